//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxFieldsThatAreSetAfterTheApproval: what was approved for artifact mode
// Flux would apply with a field that somebody sets later. Here without the policies
// for Flux, which refuse the field; and for a ConfigMap, which the webhook is not
// asked about.
func TestFluxFieldsThatAreSetAfterTheApproval(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	s := w.newShop(byArtifact)
	s.write("1", 1, "hello", nil)
	s.sign()
	s.create()
	first := s.push("Release the shop")
	s.WaitApplied(first)
	before := s.snapshot()
	set := func(field string, value any) {
		t.Helper()
		w.Patch(harness.Kustomizations, s.Namespace, s.Name, map[string]any{"spec": map[string]any{field: value}})
	}
	artifact := func() string {
		return harness.Field(w.Get(harness.ExternalArtifacts, s.Namespace, "syncgate-flux-shop"), "status", "artifact", "digest")
	}
	published := artifact()

	// Decryption comes last: nothing that is gated was encrypted.
	set("decryption", map[string]any{"provider": "sops"})
	s.Reconcile()
	s.WaitApplied(first)
	if got := artifact(); got != published || got == "" {
		t.Errorf("after decryption %q is published, want %q", got, published)
	}
	set("decryption", nil)

	// While Flux waits for something else, so that the gate is the quicker one.
	set("suspend", true)
	set("patches", []any{map[string]any{"target": map[string]any{"kind": "ConfigMap"}, "patch": `[{"op": "replace", "path": "/data/text", "value": "bye"}]`}})
	report(t, "condition after patches", s.WaitRefused("spec.patches is applied by Flux after the gate"))
	e.Eventually("end of what was published", func() (string, bool) { got := artifact(); return got, got == "" })
	set("suspend", false)
	s.WaitNotReady("Source artifact not found")
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after patches (-before +after):\n%s", diff)
	}

	// And when they are gone, it goes on with what was approved.
	set("patches", nil)
	s.WaitApplied(first)
	if got := artifact(); got != published {
		t.Errorf("when the patches are gone %q is published, want %q", got, published)
	}
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("when the patches are gone (-before +after):\n%s", diff)
	}
}
