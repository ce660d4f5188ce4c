package controller

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/application"
)

// What becomes of a published artifact when a field is set after its approval.
const (
	harmless  = "approved, and what is published stays"         // no byte of an object is another one
	withdrawn = "refused, and nothing is published"             // Flux would change what was approved, or delete
	aside     = "refused, and what is published is not applied" // Flux looks somewhere else
)

// setAfterwards has every field of a Kustomization's spec.
var setAfterwards = map[string]struct{ value, want string }{
	"buildMetadata":           {"[originAnnotations]", withdrawn},
	"commonMetadata":          {"{annotations: {a: b}}", withdrawn},
	"components":              {"[./a]", withdrawn},
	"decryption":              {"{provider: sops, secretRef: {name: age}}", harmless}, // what is encrypted and gated was never approved
	"deletionPolicy":          {"Orphan", harmless},
	"dependsOn":               {"[{name: a}]", harmless},
	"force":                   {"true", withdrawn},
	"healthCheckExprs":        {"[{apiVersion: v1, kind: A, current: 'true'}]", harmless},
	"healthChecks":            {"[{apiVersion: v1, kind: Pod, name: web}]", harmless},
	"ignore":                  {"[{paths: [/spec/containers]}]", withdrawn},
	"ignoreMissingComponents": {"true", withdrawn},
	"images":                  {"[{name: ghcr.io/acme/web, newName: ghcr.io/evil/web}]", withdrawn},
	"interval":                {"5m", harmless},
	"kubeConfig":              {"{secretRef: {name: a}}", harmless}, // the same bytes, elsewhere
	"namePrefix":              {"a-", withdrawn},
	"nameSuffix":              {"-a", withdrawn},
	"patches":                 {"[{patch: a, target: {kind: Pod}}]", withdrawn},
	"path":                    {"./a", aside},
	"postBuild":               {"{substitute: {a: b}}", withdrawn},
	"prune":                   {"false", harmless},
	"retryInterval":           {"5m", harmless},
	"serviceAccountName":      {"a", harmless},
	"sourceRef":               {"{kind: GitRepository, name: shop}", aside},
	"suspend":                 {"true", harmless},
	"targetNamespace":         {"a", withdrawn},
	"timeout":                 {"5m", harmless},
	"wait":                    {"true", harmless},
}

// TestAFieldThatIsSetAfterTheApproval: who edits a Kustomization cannot make
// something else of an artifact that was approved before.
func TestAFieldThatIsSetAfterTheApproval(t *testing.T) {
	for name, c := range setAfterwards {
		t.Run(name, func(t *testing.T) {
			w := released(t, application.Artifact)
			before, old := w.handedOver(), w.kustomization()
			var value any
			must(t, yaml.Unmarshal([]byte(c.value), &value))
			u := w.kustomization()
			u.Object["spec"].(map[string]any)[name] = value
			w.replace(u)
			w.reconcile()
			want := before
			if c.want == withdrawn {
				want = ""
			}
			if got := w.handedOver(); got != want {
				t.Errorf("%q is published, want it %s", got, c.want)
			}
			status := metav1.ConditionFalse
			if c.want == harmless {
				status = metav1.ConditionTrue
			}
			if got := w.condition(); got.Status != status {
				t.Errorf("condition %+v, want it %s", got, c.want)
			}
			if writes, _ := w.reconcile(); len(writes) > 0 {
				t.Errorf("unchanged: writes %q", writes)
			}
			w.replace(old)
			w.reconcile()
			w.is(metav1.ConditionTrue, "Approved")
			if got := w.handedOver(); got != before {
				t.Errorf("when it is gone again %q is published, want %q", got, before)
			}
			registry := prometheus.NewRegistry()
			must(t, registry.Register(w.Metrics.repairs))
			if repairs, err := registry.Gather(); err != nil || len(repairs) > 0 {
				t.Errorf("the gate's own writes count as somebody else's: %v, %v", repairs, err)
			}
		})
	}
}

// TestNoFieldIsForgotten: the table has what Flux has.
func TestNoFieldIsForgotten(t *testing.T) {
	var want []string
	for f := range reflect.TypeFor[kustomizev1.KustomizationSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, name)
	}
	got := slices.Sorted(maps.Keys(setAfterwards))
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of the spec (-Flux's +the table's):\n%s", diff)
	}
}

// TestThePoliciesRefuseWhatTheGateWithdraws: between such a change and the gate's
// answer Flux may have applied it; the policies for Flux refuse the change itself.
func TestThePoliciesRefuseWhatTheGateWithdraws(t *testing.T) {
	data, err := manifests.Policies.ReadFile("policies/flux/kustomizations.yaml")
	must(t, err)
	_, rest, _ := strings.Cut(string(data), "- name: afterwards\n")
	list, _, _ := strings.Cut(rest, "]\n")
	got := []string{}
	for _, m := range regexp.MustCompile(`'([A-Za-z]+)'`).FindAllStringSubmatch(list, -1) {
		got = append(got, m[1])
	}
	for _, name := range []string{"force", "ignore"} {
		if strings.Contains(string(data), "variables.spec.?"+name+".") {
			got = append(got, name)
		}
	}
	var want []string
	for name, c := range setAfterwards {
		if c.want == withdrawn {
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields (-withdrawn +refused by the policies):\n%s", diff)
	}
}
