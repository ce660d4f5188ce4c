package admission

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	registration "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// TestDigestsTrustsWhomTheWebhookTrusts: the expression against what the webhook
// asks of a trusted writer, for every kind with images.
func TestDigestsTrustsWhomTheWebhookTrusts(t *testing.T) {
	const now = int64(1_800_000_000)
	p := load(t, `trustedWriters:
- {user: airflow, namespaces: [shop, "team-*"], kinds: [Pod, Job], names: ["run-*"], categories: [image, command], images: ["registry.example/airflow:*", "registry.example/side*"]}
- {user: wide, namespaces: ["*"], categories: [image]}
- {user: restore, namespaces: ["*"], kinds: [Deployment.apps], categories: [image], until: 2030-01-01}
- {user: netter, namespaces: ["*"], categories: [network]}
- {user: custom, namespaces: ["*"], kinds: [Job.batch.volcano.sh], categories: [image]}
- {user: cluster, namespaces: ["-"], categories: [image]}
- {user: "o'brien", namespaces: ["*"], kinds: [CronJob], names: ["a.b"], categories: [image]}
`)
	a := p.Admission()
	// A condition has no variables: here the list itself stands for it.
	expression := func(images []string) string {
		return strings.ReplaceAll(DigestsTrusted(a), "variables.images", list(images))
	}
	trusted, compared := 0, 0
	for _, set := range [][]string{{"registry.example/airflow:2"}, {"registry.example/airflow:2", "registry.example/sidecar"}, {"registry.example/airflow:2", "evil"}, {"registry.example/airflow/x:2"}} {
		m := matcher(t, []registration.MatchCondition{{Name: "x", Expression: expression(set)}})
		for _, k := range imageKinds() {
			for _, user := range []string{"airflow", "wide", "restore", "netter", "custom", "cluster", "o'brien", "mallory"} {
				for _, ns := range []string{"shop", "team-a", "other"} {
					for _, name := range []string{"run-1", "a.b", "axb", "web"} {
						w := Writer{User: user, Operation: Create, Kind: GroupKind{k.Group, k.Kind}, Namespace: ns, Name: name}
						compared++
						want := mayNameByTag(t, a, w, set, now)
						if want {
							trusted++
						}
						got := m.Match(context.Background(), attributes(w, k.Resource, "", map[string]any{"metadata": map[string]any{"name": name}}, nil), nil, nil)
						if got.Error != nil {
							t.Fatal(got.Error)
						}
						if got.Matches != want {
							t.Errorf("%s %s %s/%s %q: the policy trusts: %t, the webhook trusts: %t", user, k.Kind, ns, name, set, got.Matches, want)
						}
					}
				}
			}
		}
	}
	t.Logf("%d compared, %d trusted", compared, trusted)
	if trusted == 0 || trusted == compared {
		t.Error("nothing was compared that could differ")
	}
	if got := DigestsTrusted(load(t, "").Admission()); got != "false" {
		t.Errorf("without trusted writers: got %s", got)
	}
}

// mayNameByTag is what the webhook does (plugin/webhook/writers.go) before a
// writer's trust ends.
func mayNameByTag(t *testing.T, a policy.Admission, w Writer, images []string, now int64) bool {
	t.Helper()
	spec := map[string]any{}
	var containers []any
	for _, i := range images {
		containers = append(containers, map[string]any{"name": "c" + string(rune('a'+len(containers))), "image": i})
	}
	spec["containers"] = containers
	p, err := projection.Project(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": w.Name}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range a.Trusted(policy.Write{User: w.User, Group: w.Kind.Group, Kind: w.Kind.Kind, Namespace: w.Namespace, Name: w.Name, Now: now}) {
		if x.Allows(projection.Image, p, nil) {
			return true
		}
	}
	return false
}

// TestDigestsAsksAboutEveryKindWithImages: the file names resources by hand.
func TestDigestsAsksAboutEveryKindWithImages(t *testing.T) {
	data, err := fs.ReadFile(manifests.Policies, "policies/digests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(data), "\n---\n")
	var p registration.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		for _, resource := range r.Resources {
			got = append(got, r.APIGroups[0]+"/"+resource)
		}
	}
	for _, k := range imageKinds() {
		want = append(want, k.Group+"/"+k.Resource)
	}
	want = append(want, "/pods/ephemeralcontainers")
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-kinds with images +file):\n%s", diff)
	}
}
