//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// monster is a Deployment of 50 containers with variables from Secrets. With 240
// each its gated fields cannot be compared within what the API server gives an
// expression, nor does it have a projection; with 120 it has one, and is still
// more than the generated conditions look into.
func monster(name string, variables int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
`, name)
	for i := range 50 {
		fmt.Fprintf(&b, "      - {name: c%d, image: %q, env: [", i, harness.Image("web:1"))
		for j := range variables {
			fmt.Fprintf(&b, "{name: V%d, valueFrom: {secretKeyRef: {name: s, key: k}}},", j)
		}
		b.WriteString("]}\n")
	}
	return b.String()
}

// naive compares what the generated conditions do, without asking how much it
// is.
func naive(namespace string) []byte {
	return fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: naive}
webhooks:
- name: naive.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: syncgate-system, name: syncgate-webhook, path: /validate}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
  matchConditions:
  - name: gated-fields
    expression: >-
      [[oldObject, object].map(o, o.spec.template.spec).map(s,
      [s.?initContainers.orValue([]), s.?containers.orValue([])].map(cs, cs.map(c, [
      dyn(c.name), dyn(c.?image.orValue("")), dyn(c.?securityContext.orValue({})),
      dyn(c.?env.orValue([]).filter(e, has(e.valueFrom) && has(e.valueFrom.secretKeyRef)).map(e, [dyn(e.name), dyn(e.valueFrom.secretKeyRef)]))
      ])))].exists(p, p[0] != p[1])
`, namespace)
}

// What is past the budget of the API server is judged by the webhook; nothing of
// it is refused by arithmetic, and /scale ends in running Pods, with the webhook
// dead, too (red team F26).
func TestScaleOfAnObjectPastTheBudgetEndsInRunningPods(t *testing.T) {
	o := &outage{Cluster: harness.SharedCluster(t)}
	b := harness.Build(o.Env)
	o.shop = o.NewNamespace("monster")
	o.release = harness.NewSigner(o.Env, b, "release")
	o.policy = harness.NewPolicy(o.Env, "policy", harness.BasicPolicy("release")+
		"scope: {admission: {namespaces: {include: ["+o.shop+"]}}}\n", o.release)
	o.webhooks = harness.StartWebhooks(o.Cluster, b, 1, o.policy.Dir)
	o.Apply([]byte(monster("old", 240)), "--namespace", o.shop) // from before the gate
	o.webhooks.Install(harness.WebhookConfiguration(o.Env, b, o.policy.Path()))

	before := 0.0
	// A patch that meets a write of a controller is tried again, and asked about
	// again: what counts is whether.
	asked := func(what string, want bool) {
		t.Helper()
		now := o.webhooks.Metric("syncgate_admission_requests_total", map[string]string{"kind": "Deployment"})
		if (now > before) != want {
			t.Errorf("asked about %s: got %t (%.0f questions), want %t", what, !want, now-before, want)
		}
		before = now
	}
	patch := func(name, patch string) error {
		_, err := o.Client().Resource(harness.Deployments).Namespace(o.shop).Patch(context.Background(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	arithmetic := regexp.MustCompile(`cost limit|budget`)
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) || arithmetic.MatchString(err.Error()) {
			t.Errorf("%s: got %v, want a refusal with %s", what, err, want)
		}
		t.Logf("%s: %.200v", what, err)
	}
	limits := func(cpu string) string {
		return fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/containers/0/resources","value":{"limits":{"cpu":%q}}}]`, cpu)
	}
	image := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/49/image","value":%q}]`, harness.Image("web:2"))
	label := `[{"op":"add","path":"/metadata/labels","value":{"team":"shop"}}]`

	// A table of the server's: a list of these Pods would be megabytes.
	running := func(name string, want int) (pods []string) {
		t.Helper()
		o.Eventually(fmt.Sprintf("%d running Pods of %s", want, name), func() (string, bool) {
			out := string(o.Kubectl(nil, "get", "pods", "--selector=app="+name, "--no-headers", "--namespace", o.shop))
			pods = nil
			for line := range strings.Lines(out) {
				pod, state, _ := strings.Cut(line, " ")
				if f := strings.Fields(state); len(f) > 1 && f[0] == "50/50" && f[1] == "Running" {
					pods = append(pods, pod)
				}
			}
			return out, len(pods) == want && strings.Count(out, "\n") == want
		})
		t.Logf("%s: %d Pods running, 50 of 50 containers ready", name, want)
		return pods
	}

	// The webhook is not asked about replicas and labels.
	o.applySigned(monster("new", 120), o.shop)
	asked("a creation", true)
	first := running("new", 1)
	running("old", 1)
	o.in("scale", "deployment/old", "--replicas=2")
	running("old", 2)
	for _, name := range []string{"old", "new"} {
		if err := patch(name, label); err != nil {
			t.Errorf("labels of %s: %v", name, err)
		}
	}
	asked("replicas and labels", false)

	// It is asked about the pod spec, because nobody can tell without it.
	if err := patch("new", limits("200m")); err != nil {
		t.Errorf("resources: %v", err)
	}
	o.in("rollout", "status", "deployment/new", "--timeout=150s")
	if slices.Equal(first, running("new", 1)) {
		t.Error("the Pod of before the change of resources runs")
	}
	asked("resources", true)
	refused("an image that nobody signed", patch("new", image), "[DigestMismatch]")
	asked("an image", true)
	refused("an image of what nobody ever signed", patch("old", image), "[ReceiptMissing]")
	asked("an image of what nobody ever signed", true)
	next := strings.ReplaceAll(monster("new", 120), harness.Image("web:1"), harness.Image("web:2"))
	o.Apply([]byte(o.release.Sign(o.policy, next, o.shop)), "--force-conflicts", "--namespace", o.shop)
	asked("a signed image", true)
	o.in("rollout", "status", "deployment/new", "--timeout=150s")

	// With the webhook dead.
	o.webhooks.Replicas[0].Kill()
	o.in("scale", "deployment/old", "--replicas=3")
	running("old", 3)
	for _, name := range []string{"old", "new"} {
		refused("resources of "+name+", webhook dead", patch(name, limits("300m")), "failed calling webhook")
		refused("image of "+name+", webhook dead", patch(name, strings.ReplaceAll(image, "web:2", "web:3")), "failed calling webhook")
	}

	// The object is what it is said to be.
	o.Kubectl(nil, "delete", "validatingwebhookconfiguration", "syncgate")
	recorder := harness.StartRecorder(o.Cluster)
	recorder.Install(naive(o.shop))
	if err := patch("old", limits("400m")); err == nil || !arithmetic.MatchString(err.Error()) {
		t.Errorf("resources under naive conditions: got %v, want a refusal by arithmetic", err)
	}
	if asked := recorder.Take(); len(asked) != 0 {
		t.Errorf("under naive conditions: asked %v", asked)
	}
}
