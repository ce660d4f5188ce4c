//go:build e2e

package e2e

// "syncgate doctor --argocd" against the real API server, with Argo CD's own
// CRDs and the generated policies. Argo CD itself does not run: what is looked
// at are objects.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// argoObjects are a repo-server with the sidecar and the settings that the
// component recommended makes, as far as the doctor reads them.
const argoObjects = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server, namespace: argocd}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {
  automountServiceAccountToken: false, volumes: [{name: syncgate-policy, configMap: {name: syncgate-policy}}], containers: [
  {name: argocd-repo-server, image: a, env: [{name: ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS, value: "1"}, {name: ARGOCD_PAUSE_GEN_REQUESTS, value: "1"}]},
  {name: syncgate, image: syncgate, envFrom: [{configMapRef: {name: sidecar}}]}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: sidecar, namespace: argocd}, data: {SYNCGATE_APPS: /etc/syncgate-apps, SYNCGATE_OFF: /etc/syncgate-off}}
---
{apiVersion: argoproj.io/v1alpha1, kind: AppProject, metadata: {name: other, namespace: argocd}, spec: {destinations: [{server: "*", namespace: elsewhere}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cmd-params-cm, namespace: argocd}, data: {reposerver.repo.cache.expiration: 30m, controller.repo.server.timeout.seconds: "120"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: syncgate-apps, namespace: argocd}, data: {web: "{}"}}
`

func TestDoctorForArgoCDOnARealAPIServer(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	c := harness.StartCluster(e, b)
	for _, crd := range []string{"application-crd.yaml", "appproject-crd.yaml"} {
		data, err := os.ReadFile(filepath.Join(b.ArgoCDManifests, "crds", crd))
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(data)
	}
	c.Kubectl(nil, "create", "namespace", "argocd")
	e.Eventually("Argo CD's kinds", func() (string, bool) {
		r := c.TryKubectl(nil, "get", "applications", "--namespace", "argocd")
		return string(r.Stderr), r.Status == 0
	})
	signer := harness.NewSigner(e, b, "release")
	policy := harness.NewPolicy(e, "policy", argoGatePolicy, signer)
	look := func(more ...string) harness.Result {
		return e.Try(e.Dir, nil, b.Syncgate, append([]string{"doctor", "--argocd", "--policy", policy.Path(), "--kubeconfig", c.Kubeconfig, "--projects", "shop"}, more...)...)
	}
	// failing wants these checks to fail and no others.
	failing := func(t *testing.T, want string, more ...string) {
		t.Helper()
		r := look(append(more, "-o", "json")...)
		var report struct {
			Converged bool
			Checks    []struct {
				Name, Fix string
				OK        bool
				Details   []string
			}
		}
		if err := json.Unmarshal(r.Stdout, &report); err != nil {
			t.Fatalf("status %d: %v\n%s%s", r.Status, err, r.Stdout, r.Stderr)
		}
		var got []string
		for _, check := range report.Checks {
			if !check.OK {
				got = append(got, check.Name)
				t.Logf("%s: %.200q; Fix: %s", check.Name, check.Details, check.Fix)
			}
		}
		status := 10
		if want == "" {
			status = 0
		}
		if text := strings.Join(got, " "); text != want || r.Status != status || report.Converged != (want == "") {
			t.Errorf("status %d, failed %q, want %d, %q\n%s", r.Status, text, status, want, r.Stderr)
		}
	}
	failing(t, "sidecar cache hidden policies") // nothing is there

	c.ControllerManager().Stop() // no node is there, and it would say so of the Deployment
	c.Apply([]byte(argoObjects))
	c.Kubectl(nil, "create", "configmap", "syncgate-policy", "--namespace", "argocd", "--from-file", policy.Path(), "--from-file", policy.File("release.jwks.json"))
	c.Kubectl(nil, "patch", "deployment", "argocd-repo-server", "--namespace", "argocd", "--subresource=status", "--type=merge",
		"--patch", `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1}}`)
	c.Apply([]byte(appOf("old", "shop", "source: {"+gitSource+"}"))) // from before the gate
	c.Apply(e.Run("", nil, b.Syncgate, "manifests", "policies", "--argocd", "--policy", policy.Path(), "--projects", "shop"))
	c.Apply([]byte(appOf("web", "shop", gatedSource)))
	failing(t, "sources")
	c.Kubectl(nil, "delete", "application", "old", "--namespace", "argocd")
	failing(t, "")

	for _, tt := range []struct{ object, patch, back, want string }{
		{"configmap/argocd-cm", `{"data":{"resource.customizations.ignoreDifferences.all":"jsonPointers: [/spec/template]"}}`, `{"data":null}`, "hidden"},
		{"configmap/argocd-cmd-params-cm", `{"data":{"server.repo.server.timeout.seconds":"30"}}`, `{"data":{"server.repo.server.timeout.seconds":null}}`, "timeouts"},
		{"configmap/sidecar", `{"data":{"SYNCGATE_TIMEOUT":"90s"}}`, `{"data":{"SYNCGATE_TIMEOUT":null}}`, "timeouts"},
		{"appproject/other", `{"spec":{"destinations":[{"server":"*","namespace":"*"}]}}`, `{"spec":{"destinations":[{"server":"*","namespace":"elsewhere"}]}}`, "projects"},
		{"configmap/syncgate-apps", `{"data":{"web":"{\"mode\":\"Enforce\"}"}}`, `{"data":{"web":"{}"}}`, "settings"},
		{"configmap/syncgate-policy", `{"data":{"policy.yaml":"kind: other"}}`, fmt.Sprintf(`{"data":{"policy.yaml":%q}}`, argoGatePolicy), "policy"},
	} {
		c.Kubectl(nil, "patch", tt.object, "--namespace", "argocd", "--type=merge", "--patch", tt.patch)
		failing(t, tt.want)
		c.Kubectl(nil, "patch", tt.object, "--namespace", "argocd", "--type=merge", "--patch", tt.back)
		failing(t, "")
	}
	failing(t, "image", "--image", "syncgate@sha256:"+strings.Repeat("0", 64))
	failing(t, "", "--image", "syncgate")
	c.Run(c.Dir, nil, b.Syncgate, "off", "--app", "web", "--for", "1h", "--reason", "INC-1", "--kubeconfig", c.Kubeconfig)
	failing(t, "switches")
	c.Run(c.Dir, nil, b.Syncgate, "on", "--app", "web", "--kubeconfig", c.Kubeconfig)
	failing(t, "")
	c.Kubectl(nil, "delete", "validatingadmissionpolicybinding", byApplications)
	failing(t, "policies")
	// Somebody without rights is told that he cannot know.
	nobody := c.As("nobody")
	r := e.Try(e.Dir, nil, b.Syncgate, "doctor", "--argocd", "--policy", policy.Path(), "--kubeconfig", nobody.Kubeconfig)
	if r.Status != 30 || !strings.Contains(string(r.Stderr), "listing Applications") {
		t.Errorf("status %d, want 30: %s", r.Status, r.Stderr)
	}
}
