//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxAppliesWhatIsSignedAndNothingElse is the whole story, in both modes.
func TestFluxAppliesWhatIsSignedAndNothingElse(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) { w.story(t, mode) })
	}
}

func (w *fluxWorld) story(t *testing.T, mode string) {
	s := w.newShop(mode)

	// 1. Signed: it is applied by itself, with its receipt.
	s.write("1", 1, "hello", nil)
	s.sign()
	first := s.push("Release the shop")
	s.create()
	st := s.WaitApplied(first)
	report(t, mode+": status of a signed revision", st.String())
	if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
		t.Fatalf("images of the signed revision (-want +got):\n%s", diff)
	}
	if w.Get(harness.Deployments, s.Namespace, "web").GetAnnotations()["syncgate.io/receipt"] == "" {
		t.Error("the Deployment carries no receipt")
	}
	s.Wait("approval", func(st harness.KustomizationStatus) bool {
		return st.Approved == "True" && st.ApprovedReason == "Approved"
	})

	// 2. Not signed: nothing of it arrives, not even its harmless part, and nothing
	// goes.
	before, writes := s.snapshot(), w.Writes("system:serviceaccount:flux-system:kustomize-controller", s.Namespace)
	s.write("2", 5, "bye", nil)
	second := s.push("Try an image that nobody signed")
	sentence := s.WaitRefused("SYNC REFUSED [DigestMismatch]", "Deployment "+s.Namespace+"/web", "web:2")
	report(t, mode+": condition of an unsigned revision", sentence)
	if mode == byPostBuild {
		report(t, mode+": Ready of an unsigned revision", s.WaitNotReady(`configmaps "syncgate-flux-shop" not found`))
		if st := s.Status(); st.Applied != first || st.Attempted != second {
			t.Errorf("revisions after the refusal: %s", st)
		}
	} else {
		st := s.Reconcile()
		report(t, mode+": status of an unsigned revision", st.String())
		if st.Ready != "True" || st.Origin != first {
			t.Errorf("the previous revision is not reconciled any more: %s", st)
		}
	}
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("the refused revision changed the namespace (-before +after):\n%s", diff)
	}
	for _, write := range w.Writes("system:serviceaccount:flux-system:kustomize-controller", s.Namespace)[len(writes):] {
		if strings.HasPrefix(write, "delete ") {
			t.Errorf("after the refusal Flux did: %s", write)
		}
	}
	w.Eventually("event of the refusal", func() (string, bool) {
		all := strings.Join(s.Events("syncgate-controller"), "\n")
		return all, strings.Contains(all, "Warning DigestMismatch: "+sentence)
	})
	report(t, mode+": events of the gate", strings.Join(s.Events("syncgate-controller"), "\n"))
	w.Eventually("notification of the refusal", func() (string, bool) {
		for _, n := range w.Sink.Notifications("syncgate-controller", "Kustomization", s.Namespace, "shop") {
			if n.Severity == "error" && n.Message == sentence && n.Metadata["kustomize.toolkit.fluxcd.io/revision"] == second &&
				n.Metadata["kustomize.toolkit.fluxcd.io/commit_status"] == "update" {
				return "", true
			}
		}
		return "none", false
	})

	// 3. Signed at last: no button.
	s.sign()
	third := s.push("Sign it")
	s.WaitApplied(third)
	if diff := cmp.Diff([]string{harness.Image("web:2")}, s.running()); diff != "" {
		t.Fatalf("images after signing (-want +got):\n%s", diff)
	}

	// 4. What nobody needs to sign.
	s.write("2", 3, "welcome", nil)
	scaled := s.push("Scale and greet")
	s.WaitApplied(scaled)
	if got := harness.Int(w.Get(harness.Deployments, s.Namespace, "web"), "spec", "replicas"); got != 3 {
		t.Errorf("replicas: got %d, want 3", got)
	}
}
