//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// asksAboutDeployments is a configuration for the Deployments of one namespace
// whose image or replicas are new.
func asksAboutDeployments(name, namespace string) []byte {
	return fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %s}
webhooks:
- name: %[1]s.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 5
  clientConfig: {service: {namespace: syncgate-system, name: syncgate-webhook, path: /validate}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  matchConditions:
  - name: image
    expression: oldObject == null || oldObject.spec.template.spec.containers != object.spec.template.spec.containers
`, name, namespace)
}

func deployment(name, namespace, image string, replicas int) []byte {
	return fmt.Appendf(nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {replicas: %d,
  selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: web, image: %[4]q}]}}}}
`, name, namespace, replicas, image)
}

func TestRecorderIsAskedWhatTheConditionsSay(t *testing.T) {
	cluster := harness.SharedCluster(t)
	ns := cluster.NewNamespace("recorder")
	recorder := harness.StartRecorder(cluster)
	recorder.Install(asksAboutDeployments("recorder", ns))

	steps := []struct {
		name, image string
		replicas    int
		asked       []string
	}{
		{"create", "web:1", 1, []string{"CREATE deployments " + ns + "/web by e2e:admin"}},
		{"replicas", "web:1", 2, nil},
		{"image", "web:2", 2, []string{"UPDATE deployments " + ns + "/web by e2e:admin"}},
	}
	apply := func(image string, replicas int) harness.Result {
		t.Helper()
		return cluster.TryApply(deployment("web", ns, image, replicas))
	}
	var last []harness.Review
	for _, s := range steps {
		if r := apply(s.image, s.replicas); r.Status != 0 {
			t.Fatalf("%s: %s", s.name, r.Stderr)
		}
		last = recorder.Take()
		var asked []string
		for _, review := range last {
			// The controller's writes of the status subresource are not in the rules.
			asked = append(asked, review.String())
		}
		if diff := cmp.Diff(s.asked, asked); diff != "" {
			t.Errorf("%s: reviews (-want +got):\n%s", s.name, diff)
		}
	}
	if raw := string(last[0].Raw); !strings.HasPrefix(raw, `{"kind":"AdmissionReview"`) || !strings.Contains(raw, `"web:2"`) {
		t.Errorf("raw review: got %.200s", raw)
	}

	recorder.Answer(harness.Deny("not today"))
	if text := cluster.WaitRefused(deployment("web", ns, "web:3", 2), "not today", "denied the request"); !strings.Contains(text, "recorder.example.test") {
		t.Errorf("refusal: got %q", text)
	}
	recorder.Answer(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"nonce": "n-1"}}
	})
	if r := apply("web:4", 2); r.Status != 0 {
		t.Fatal(string(r.Stderr))
	}
	event := cluster.WaitAudit("the change", func(a harness.AuditEvent) bool {
		return a.ObjectRef.Namespace == ns && a.Annotations["recorder.example.test/nonce"] == "n-1"
	})
	if got, want := event.Write(), "patch deployments/web"; got != want || event.ResponseStatus.Code != http.StatusOK {
		t.Errorf("audited write: got %q, %d, want %q, 200", got, event.ResponseStatus.Code, want)
	}

	// A changed configuration counts as soon as WaitAdmission says so, not some
	// time later.
	configuration := cluster.Get(harness.WebhookConfigs, "", "recorder")
	webhook := harness.Maps(configuration, "webhooks")[0]
	recorder.Answer(harness.Allow)
	recorder.Take()
	for i := range 20 {
		asks := i%2 == 0
		webhook["matchConditions"] = []any{map[string]any{"name": "asks", "expression": strconv.FormatBool(asks)}}
		cluster.Patch(harness.WebhookConfigs, "", "recorder", map[string]any{"webhooks": []any{webhook}})
		cluster.WaitAdmission()
		cluster.Patch(harness.Deployments, ns, "web", map[string]any{"metadata": map[string]any{"labels": map[string]any{"turn": strconv.Itoa(i)}}})
		// More than one review is a patch that the API server tried again.
		if got := recorder.Take(); (len(got) > 0) != asks {
			t.Fatalf("change %d of the configuration: got %v, want a review %t", i, got, asks)
		}
	}
	recorder.Install(asksAboutDeployments("recorder", ns))

	// Down: what the conditions let by passes, the rest does not, and back.
	recorder.Close()
	if r := apply("web:4", 3); r.Status != 0 {
		t.Errorf("replicas while the webhook is down: %s", r.Stderr)
	}
	cluster.WaitRefused(deployment("web", ns, "web:5", 3), "connection refused", "recorder.example.test")
	recorder.Open()
	if r := apply("web:5", 3); r.Status != 0 {
		t.Errorf("image when the webhook is back: %s", r.Stderr)
	}
}

func TestWebhookReplicasDieOneByOneBehindOneAddress(t *testing.T) {
	cluster := harness.SharedCluster(t)
	ns := cluster.NewNamespace("replicas")
	policy := harness.NewMount(cluster.Env, "policy", map[string]string{"policy.yaml": "allow"})
	webhooks := harness.StartStandIns(cluster, 3, policy.Dir)
	webhooks.Install(asksAboutDeployments("replicas", ns))
	reviews := func(r *harness.Replica) float64 {
		return r.Metric("standin_reviews_total", map[string]string{"operation": "CREATE"})
	}
	n := 0
	create := func() { // nothing that the API server would try, and ask, twice
		t.Helper()
		n++
		if r := cluster.TryApply(deployment(fmt.Sprintf("web-%d", n), ns, "web:1", 1)); r.Status != 0 {
			t.Errorf("creation %d: %s", n, r.Stderr)
		}
	}
	// New connections go round; those that there are stay where they are.
	for range webhooks.Replicas {
		create()
		webhooks.Cut()
	}
	for i, r := range webhooks.Replicas {
		if got := reviews(r); got != 1 {
			t.Errorf("reviews of replica %d: got %v, want 1", i, got)
		}
	}
	if got := webhooks.Metric("standin_reviews_total", map[string]string{"operation": "CREATE", "kind": "Deployment"}); got != 3 {
		t.Errorf("reviews by all replicas: got %v, want 3", got)
	}

	webhooks.Replicas[0].Kill()
	webhooks.Replicas[1].Stop()
	for range 4 {
		create()
		webhooks.Cut()
	}
	if got := reviews(webhooks.Replicas[2]); got != 5 {
		t.Errorf("reviews of the last replica alive: got %v, want 5", got)
	}
	webhooks.Replicas[0].Start()
	webhooks.Replicas[2].Kill()
	create()
	if got := webhooks.Metric("standin_reviews_total", nil); got != 1 {
		t.Errorf("reviews of the only replica, which was started again: got %v, want 1", got)
	}

	// One asked by itself, with a policy that was swapped under it and a new
	// certificate.
	policy.Swap(map[string]string{"policy.yaml": "deny"})
	webhooks.RotateCertificate()
	cluster.WaitRefused(deployment("web", ns, "web:x", 1), "stand-in says no")
	review := fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","kind":{"kind":"Deployment"}}}`)
	status, body := webhooks.Replicas[0].Ask("/validate", review)
	if text := string(body); status != http.StatusOK || !strings.Contains(text, `"uid":"u-1","allowed":false`) {
		t.Errorf("asking one replica: got %d %s", status, text)
	}

	webhooks.Close()
	cluster.WaitRefused(deployment("web", ns, "web:y", 1), "connection refused")
	policy.Swap(map[string]string{"policy.yaml": "allow"})
	webhooks.Open()
	create()
}

func TestBackstopReplicasJudgeByTheMountedPolicy(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b, harness.WebhookClientCertificate("kube-apiserver"))
	ns := cluster.NewNamespace("backstop")
	release, other := harness.NewSigner(cluster.Env, b, "release"), harness.NewSigner(cluster.Env, b, "other")
	policy := harness.NewPolicy(cluster.Env, "policy", harness.BasicPolicy("release"), release)
	webhooks := harness.StartWebhooks(cluster, b, 2, policy.Dir, "--drain", "0s", "--client-ca", cluster.CAFile())
	webhooks.Install(asksAboutDeployments("backstop", ns))
	response, err := webhooks.Client().Post("https://"+webhooks.Replicas[1].Address+"/validate", "application/json", strings.NewReader("{}"))
	if err == nil {
		response.Body.Close()
		t.Errorf("a client without a certificate got an answer: %s", response.Status)
	}

	manifest := string(deployment("web", ns, harness.Image("web:1"), 1))
	cluster.WaitRefused([]byte(manifest), "admission webhook", "SYNC REFUSED [ReceiptMissing]", "Deployment "+ns+"/web")
	cluster.Apply([]byte(release.Sign(policy, manifest, ns)))
	judged := func(labels map[string]string) float64 {
		return webhooks.Metric("syncgate_admission_requests_total", labels)
	}
	if refused, all := judged(map[string]string{"code": "ReceiptMissing"}), judged(map[string]string{"kind": "Deployment"}); refused < 1 || all != refused+1 {
		t.Errorf("reviews of Deployments: got %v, of them refused %v, want one that is not", all, refused)
	}
	webhooks.Replicas[0].Stop()
	webhooks.Replicas[1].Kill()
	webhooks.Replicas[0].Start()
	policy.SwapPolicy(harness.BasicPolicy("other"), other)
	changed := []byte(strings.ReplaceAll(manifest, harness.Image("web:1"), harness.Image("web:2")))
	signed := other.Sign(policy, string(changed), ns)
	cluster.Eventually("the swapped policy to count", func() (string, bool) {
		r := cluster.TryApply([]byte(signed))
		return string(r.Stderr), r.Status == 0
	})
}
