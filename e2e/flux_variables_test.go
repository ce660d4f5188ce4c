//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxVariablesThatChangeAfterSigning: receipts are for what variables make of
// the manifests, and Flux reads variables anew whenever it builds.
func TestFluxVariablesThatChangeAfterSigning(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	s := w.newShop(byPostBuild)
	s.write("1", 1, "hello", nil)
	variables := func(tag string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: %s, labels: {reconcile.fluxcd.io/watch: Enabled}}\ndata: {tag: %q}\n", s.Namespace, tag)
	}
	spec := strings.Replace(fluxSpec(byPostBuild, s.Namespace), "    substituteFrom:\n", "    substituteFrom:\n    - {kind: ConfigMap, name: vars}\n", 1)
	web := strings.Replace(string(e.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml")), "web:1@", "web:${tag}@", 1)
	s.repo.Write(map[string]string{
		"apps/shop/web.yaml": web, "vars.yaml": variables("1"),
		"clusters/shop.yaml": strings.Replace(s.manifest(), fluxSpec(byPostBuild, s.Namespace), spec, 1),
		// Both are pinned, one is signed.
		"apps/shop/.syncgate/images/registry.example.test+web.lock": locked("web:1") + locked("web:2"),
	})
	w.Run(s.repo.Work, nil, w.b.Syncgate, "sign", "--policy", w.policy.Path(), "--key", w.signer.Key, "--issuer", "release",
		"--application", filepath.Join("clusters", "shop.yaml"), "--variables", "vars.yaml", "--yes", ".")
	w.Apply([]byte(variables("1")))
	s.Replace(spec, nil)
	s.WaitApplied(s.push("Release the shop"))
	if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
		t.Fatalf("images (-want +got):\n%s", diff)
	}

	// Flux and the gate are told at the same moment.
	w.Apply([]byte(variables("2")))
	report(t, "condition after a variable changed", s.WaitRefused("SYNC REFUSED [DigestMismatch]", "web:2@"))
	report(t, "Ready after a variable changed", s.WaitNotReady("syncgate"))
	if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
		t.Errorf("images after a variable changed (-want +got):\n%s", diff)
	}
	w.Apply([]byte(variables("1")))
	s.Wait("recovery", func(st harness.KustomizationStatus) bool { return st.Approved == "True" && st.Ready == "True" })

	// Without the gate the webhook is what is left.
	w.gate.Stop()
	w.Apply([]byte(variables("2")))
	report(t, "Ready after a variable changed without the gate", s.WaitNotReady("SYNC REFUSED [DigestMismatch]", "dry-run failed (Forbidden)"))
	if diff := cmp.Diff([]string{harness.Image("web:1")}, s.running()); diff != "" {
		t.Errorf("images after a variable changed without the gate (-want +got):\n%s", diff)
	}
}
