//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// certificates runs the program of the Job as the Job's account, on this machine.
func (g *guarded) certificates(t *testing.T) {
	g.admin.Kubectl(nil, "apply", "--server-side", "-f", filepath.Join(g.binaries.Manifests, "webhook", "configuration.yaml"))
	account := g.AsServiceAccount(own, "syncgate-certificates")
	run := func() harness.Result {
		return g.Try(g.Dir, nil, g.binaries.Syncgate, "certificates", "--kubeconfig", account.Kubeconfig)
	}
	if r := run(); r.Status != 0 {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	secret := g.Get(harness.Secrets, own, "syncgate-webhook-tls")
	if secret == nil {
		t.Fatal("no Secret")
	}
	ca := harness.Field(secret, "data", "ca.crt")
	webhooks := harness.Maps(g.Get(harness.WebhookConfigs, "", "syncgate"), "webhooks")
	for _, w := range webhooks {
		got := harness.Field(&unstructured.Unstructured{Object: w}, "clientConfig", "caBundle")
		if got == "" || got != ca {
			t.Errorf("caBundle of %v: got %.20q, want that of the Secret", w["name"], got)
		}
	}
	if len(webhooks) == 0 {
		t.Error("the configuration has no entries")
	}
	version := secret.GetResourceVersion()
	if r := run(); r.Status != 0 || len(r.Stderr) != 0 {
		t.Errorf("again: status %d, %s, want nothing to do", r.Status, r.Stderr)
	}
	if got := g.Get(harness.Secrets, own, "syncgate-webhook-tls").GetResourceVersion(); got != version {
		t.Error("the second run wrote the Secret")
	}
	// Applied anew by who owns the rest, the bundle stays.
	g.admin.Kubectl(nil, "apply", "--server-side", "-f", filepath.Join(g.binaries.Manifests, "webhook", "configuration.yaml"))
	w := harness.Maps(g.Get(harness.WebhookConfigs, "", "syncgate"), "webhooks")[0]
	if harness.Field(&unstructured.Unstructured{Object: w}, "clientConfig", "caBundle") != ca {
		t.Error("a server-side apply of the configuration takes the bundle away")
	}
	g.admin.Kubectl(nil, "delete", "validatingwebhookconfiguration", "syncgate")
	g.WaitAdmission()
}

// static starts the API server with the files of --static.
func (g *guarded) static(t *testing.T) {
	recorder := harness.StartRecorder(g.Cluster)
	webhooks, policies := g.Path("static/webhook"), g.Path("static/policies")
	g.Run(g.Dir, nil, g.binaries.Syncgate, "manifests", "webhook", "--static", "--url", recorder.URL(), "--ca-bundle", g.CAFile(), "--out", webhooks)
	g.Run(g.Dir, nil, g.binaries.Syncgate, "manifests", "policies", "--static", "--out", policies)
	text, err := os.ReadFile(filepath.Join(webhooks, "admission.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const webhookDir, policyDir = "/etc/kubernetes/syncgate/webhooks", "/etc/kubernetes/syncgate/policies"
	if n := strings.Count(string(text), webhookDir) + strings.Count(string(text), policyDir); n != 2 {
		t.Fatalf("admission.yaml names its folders %d times, want each once", n)
	}
	config := strings.NewReplacer(webhookDir, filepath.Join(webhooks, "webhooks"), policyDir, policies).Replace(string(text))
	// The policies of the API go: what is shown now is the work of the files.
	g.Kubectl(nil, "delete", "-k", filepath.Join(g.binaries.Manifests, "policies"))
	g.APIServer().Restart("--admission-control-config-file=" + g.Write("admission-config.yaml", []byte(config)))

	create := []string{"create", "-f", "-"}
	const by = ".static.k8s.io"
	g.try(t, []attempt{
		{"an image by tag", g.mallory, pod("s", g.shop, "containers: [{name: web, image: web:1}]"), create, "syncgate-digests" + by},
		{"the policy", g.mallory, "", []string{"patch", "configmap", "syncgate-policy", "--namespace", own, "--patch", "data: {policy.yaml: x}"}, "syncgate-own-namespace" + by},
		{"the namespace", g.mallory, "", []string{"delete", "namespace", own, "--wait=false"}, "syncgate-namespace" + by},
		// What no policy of the API is ever shown.
		{"a policy of that name", g.mallory, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: syncgate-digests}, spec: {policyName: x, validationActions: [Deny]}}",
			create, "syncgate-admission" + by},
		{"the configuration", g.mallory, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: syncgate}}", create, "syncgate-admission" + by},
		{"the configuration, by an administrator", g.admin, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: syncgate}}", create, ""},
		{"the configuration goes with all others", g.mallory, "", []string{"delete", "validatingwebhookconfigurations", "--all"}, "syncgate-admission" + by},
		{"another configuration", g.mallory, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: other}}", create, ""},
	})
	if r := g.admin.TryKubectl(nil, "delete", "validatingwebhookconfiguration", "syncgate-admission"+by); r.Status == 0 {
		t.Error("the API could take away what is on the disk")
	}

	recorder.Take()
	recorder.Answer(harness.Deny("asked"))
	r := g.mallory.TryApply(fmt.Appendf(nil, deploymentOf, "static", g.shop, 1, pinned))
	if !strings.Contains(string(r.Stderr), `admission webhook "workloads.syncgate.io" denied the request: asked`) {
		t.Errorf("got %s, want the refusal of the webhook on the disk", r.Stderr)
	}
	if reviews := recorder.Take(); len(reviews) != 1 {
		t.Errorf("the webhook was asked %d times: %v", len(reviews), reviews)
	}
	g.mallory.Kubectl(nil, "scale", "deployment/deployment", "--namespace", g.shop, "--replicas=2")
	if reviews := recorder.Take(); len(reviews) != 0 {
		t.Errorf("the webhook was asked about replicas: %v", reviews)
	}
	// Back to the policies of the API.
	g.APIServer().Restart()
	g.Kubectl(nil, "apply", "-k", filepath.Join(g.binaries.Manifests, "policies"))
	g.mallory.WaitRefused(fmt.Appendf(nil, `{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: %s}}`, own), "syncgate-own-namespace'")
}
