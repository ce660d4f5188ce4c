//go:build e2e

package e2e

// "syncgate doctor --flux" against a live Flux with the gate, the webhook and the
// generated policies.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// fluxDeployment is what the doctor reads of kustomize-controller, which runs as
// a process here.
const fluxDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller, namespace: flux-system}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: manager, image: a, args: [%s]}]}}}}`

func TestDoctorForFlux(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	harness.StartNode(cluster, "node")
	w := &fluxWorld{b: b, Flux: harness.StartFlux(cluster, b, "--feature-gates=ExternalArtifact=true"), signer: harness.NewSigner(e, b, "release")}
	const policy = "gatedDeletes: [NetworkPolicy]\n"
	w.policy = harness.NewPolicy(e, "policy", harness.BasicPolicy("release")+policy, w.signer)
	look := func(as *harness.Cluster) harness.Result {
		return e.Try(e.Dir, nil, b.Syncgate, "doctor", "--flux", "--policy", w.policy.Path(), "--kubeconfig", as.Kubeconfig, "-o", "json")
	}
	// failing waits until these checks fail and no others.
	failing := func(want string) {
		t.Helper()
		e.Eventually(fmt.Sprintf("the doctor to find %q", want), func() (string, bool) {
			r := look(w.Cluster)
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
			text := ""
			for _, check := range report.Checks {
				if !check.OK {
					got = append(got, check.Name)
					text += fmt.Sprintf("%s: %.200q; Fix: %s\n", check.Name, check.Details, check.Fix)
				}
			}
			if (r.Status == 0) != report.Converged || r.Status != 0 && r.Status != 10 {
				t.Fatalf("status %d, converged %v: %s", r.Status, report.Converged, r.Stderr)
			}
			if strings.Join(got, " ") != want {
				return text, false
			}
			t.Logf("%q:\n%s", want, text)
			return "", true
		})
	}
	failing("gate policies writers") // nothing is there

	w.Kubectl(nil, "create", "namespace", "syncgate-system")
	w.Kubectl(nil, "create", "configmap", "syncgate-policy", "--namespace", "syncgate-system", "--from-file", w.policy.Path(), "--from-file", w.policy.File("release.jwks.json"))
	w.Apply(fmt.Appendf(nil, fluxDeployment, "--feature-gates=ExternalArtifact=false"))
	w.gate = harness.StartFluxGate(w.Flux, b, w.policy.Dir)
	var shops []*fluxShop
	for _, mode := range []string{byPostBuild, byArtifact} {
		s := w.newShop(mode)
		s.write("1", 0, "hello", nil)
		s.sign()
		s.create()
		shops = append(shops, s)
	}
	old := w.newShop("nothing")
	old.mode = byPostBuild
	w.CreateKustomization(old.Namespace, "old", "  path: ./apps/shop\n  sourceRef: {kind: GitRepository, name: shop}\n", nil) // from before the gate
	w.Apply(e.Run("", nil, b.Syncgate, "manifests", "policies", "--flux", "--policy", w.policy.Path()))
	w.webhooks = harness.StartWebhooks(cluster, b, 1, w.policy.Dir)
	failing("artifacts kustomizations rights configuration")
	w.Apply(fmt.Appendf(nil, fluxDeployment, "--default-service-account=default, --feature-gates=ExternalArtifact=true"), "--force-conflicts")
	w.webhooks.Install(harness.WebhookConfiguration(e, b, w.policy.Path()))
	failing("kustomizations")
	w.Kubectl(nil, "delete", "kustomization", "old", "--namespace", old.Namespace)
	for _, s := range shops {
		s.WaitApplied(s.push("Release the shop"))
	}
	failing("")

	// A refusal is what the gate is for.
	for _, s := range shops {
		s.write("2", 0, "hello", nil)
		s.push("Change the image")
		s.WaitRefused("DigestMismatch")
	}
	failing("")
	if r := look(w.Cluster); !strings.Contains(string(r.Stdout), "is not approved: SYNC REFUSED [DigestMismatch]") {
		t.Errorf("the refusals are not said: %s", r.Stdout)
	}
	for _, s := range shops {
		s.sign()
		s.WaitApplied(s.push("Approve the image"))
	}

	first := shops[0]
	w.Kubectl(nil, "annotate", "kustomization", "shop", "--namespace", first.Namespace, "syncgate.io/mode=Warn") // an administrator may
	failing("annotations")
	w.Kubectl(nil, "annotate", "kustomization", "shop", "--namespace", first.Namespace, "syncgate.io/mode-")
	failing("")
	w.Kubectl(nil, "patch", "configmap", "syncgate-policy", "--namespace", "syncgate-system", "--type=merge", "--patch", `{"data":{"policy.yaml":"kind: other"}}`)
	failing("policy")
	w.Kubectl(nil, "patch", "configmap", "syncgate-policy", "--namespace", "syncgate-system", "--type=merge", "--patch",
		fmt.Sprintf(`{"data":{"policy.yaml":%q}}`, harness.BasicPolicy("release")+policy))
	w.Kubectl(nil, "scale", "deployment", "syncgate-flux", "--namespace", "syncgate-system", "--replicas=0")
	failing("gate")
	w.Kubectl(nil, "scale", "deployment", "syncgate-flux", "--namespace", "syncgate-system", "--replicas=1")
	failing("")
	w.Kubectl(nil, "delete", "validatingadmissionpolicybinding", "syncgate-flux-objects")
	failing("policies writers")
	w.Apply(e.Run("", nil, b.Syncgate, "manifests", "policies", "--flux", "--policy", w.policy.Path()))
	failing("")

	w.gate.Stop()
	failing("leader")
	w.Kubectl(nil, "delete", "configmap", "syncgate-flux-shop", "--namespace", first.Namespace)
	failing("leader published")
	w.gate.Start()
	failing("")

	if r := look(w.As("nobody")); r.Status != 30 || !strings.Contains(string(r.Stderr), "listing Kustomizations") {
		t.Errorf("status %d, want 30: %s", r.Status, r.Stderr)
	}
}
