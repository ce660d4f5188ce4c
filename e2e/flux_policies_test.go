//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxPoliciesOnALiveFlux: with the policies of the API server installed for
// all namespaces, the whole story goes as without them, for Kustomizations that
// are made by hand and for those that another one applies, from the first
// revision to the garbage collector.
func TestFluxPoliciesOnALiveFlux(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release")+"scope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]}}\n")
	w.Apply(w.Run(w.Dir, nil, w.b.Syncgate, "manifests", "policies", "--flux", "--policy", w.policy.Path(),
		"--ungated", "flux-system/apps-"+strings.ToLower(byPostBuild)+",flux-system/apps-"+byArtifact))
	w.WaitRefused([]byte(kustomizationIn("default", "probe", fluxGit)), byFluxKustomizations)
	w.WaitRefused([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: syncgate-flux-probe, namespace: default}}"), byFluxObjects)
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run("the story in "+mode+" mode", func(t *testing.T) {
			known := len(w.byPolicies())
			w.story(t, mode)
			w.nothingElseRefused(t, known, "the story")
		})
		t.Run("applied by another in "+mode+" mode", func(t *testing.T) { w.applied(t, mode) })
	}
}

// byPolicies are the writes of Flux, of the gate and of Kubernetes' controllers
// that the policies for Flux have refused so far.
func (w *fluxWorld) byPolicies() []string {
	w.T.Helper()
	var all []string
	for _, a := range w.Audit(func(a harness.AuditEvent) bool {
		return strings.HasPrefix(a.User.Username, "system:serviceaccount:") && strings.Contains(a.ResponseStatus.Message, "ValidatingAdmissionPolicy 'syncgate-flux")
	}) {
		all = append(all, a.User.Username+" "+a.Write()+": "+a.ResponseStatus.Message)
	}
	return all
}

// nothingElseRefused compares with how many refusals were known.
func (w *fluxWorld) nothingElseRefused(t *testing.T, known int, of string) {
	t.Helper()
	if refused := w.byPolicies()[known:]; len(refused) > 0 {
		t.Errorf("the policies refused what belongs to %s:\n%s", of, strings.Join(refused, "\n"))
	}
}

// applied has the Kustomization of a shop applied by another one, as in a
// repository of clusters.
func (w *fluxWorld) applied(t *testing.T, mode string) {
	known := len(w.byPolicies())
	s := w.newShop(mode)
	s.write("1", 1, "hello", map[string]string{"clusters/keep.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keep, namespace: " + s.Namespace + "}\n"})
	s.sign()
	parent := "apps-" + strings.ToLower(mode)
	w.CreateGitRepository(harness.FluxNamespace, parent, s.repo)
	push := func(message string) string {
		revision := s.push(message)
		w.Request(harness.GitRepositories, harness.FluxNamespace, parent)
		return revision
	}
	first := push("Release the shop")
	apps := w.CreateKustomization(harness.FluxNamespace, parent, "  path: ./clusters\n  sourceRef: {kind: GitRepository, name: "+parent+"}\n", nil)
	apps.WaitApplied(first)
	s.WaitApplied(first)
	s.approved("of one that another applies")
	s.Patch(harness.Kustomizations, s.Namespace, s.Name, map[string]any{"spec": map[string]any{"suspend": true}})
	s.Patch(harness.Kustomizations, s.Namespace, s.Name, map[string]any{"spec": map[string]any{"suspend": false}})
	w.nothingElseRefused(t, known, "its life")

	// A commit takes the gate out of the path: that is where it ends.
	before := s.snapshot()
	around := strings.NewReplacer("kind: ExternalArtifact, name: syncgate-flux-shop", "kind: GitRepository, name: shop", "name: syncgate-flux-shop}", "name: greeting}",
		`syncgate.io/source: "GitRepository/shop", `, "", `syncgate.io/path: "./apps/shop", `, "").Replace(s.manifest())
	if around == s.manifest() {
		t.Fatalf("nothing to replace in\n%s", around)
	}
	s.write("2", 1, "around", map[string]string{"clusters/shop.yaml": around})
	push("Go around the gate")
	report(t, mode+": Ready of what applies a Kustomization without the gate", apps.WaitNotReady(byFluxKustomizations, "SYNC REFUSED ["))
	s.WaitRefused("SYNC REFUSED [DigestMismatch]", "web:2") // the gate is in the path as before
	s.Reconcile()
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after the way around (-before +after):\n%s", diff)
	}

	// Back, and then it is taken out of the repository: what the gate wrote for it
	// goes with it.
	s.write("1", 1, "hello", nil)
	apps.WaitApplied(push("Back to the gate"))
	s.approved("when it is back")
	known = len(w.byPolicies())
	s.Run(s.repo.Work, nil, "rm", "clusters/shop.yaml")
	apps.WaitApplied(push("Close the shop"))
	for name, resource := range map[string]string{"shop": "kustomizations.kustomize.toolkit.fluxcd.io", "web": "deployment", "syncgate-flux-shop": "configmap,externalartifact"} {
		s.Eventually("the end of "+name, func() (string, bool) {
			out := string(w.Kubectl(nil, "get", resource, "--namespace", s.Namespace, "--output=name", "--field-selector=metadata.name="+name))
			return out, out == ""
		})
	}
	w.nothingElseRefused(t, known, "its end")
}
