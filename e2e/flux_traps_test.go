//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxPostBuildTraps: what a ConfigMap of variables can be made to mean, it
// never means that something unsigned runs.
func TestFluxPostBuildTraps(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	s := w.newShop(byPostBuild)
	s.write("1", 1, "hello", nil)
	s.sign()
	s.create()
	first := s.push("Release the shop")
	s.WaitApplied(first)
	before := s.snapshot()
	unchanged := func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(before, s.snapshot()); diff != "" {
			t.Errorf("something of it is there (-before +after):\n%s", diff)
		}
	}
	const own = "syncgate-flux-shop"
	values := func() map[string]any {
		data, _ := w.Get(harness.ConfigMaps, s.Namespace, own).Object["data"].(map[string]any)
		return data
	}
	good := values()
	if len(good) != 3 || good["syncgate_latch"] == "" {
		t.Fatalf("values: got %v, want a pin, receipts and the latch", good)
	}

	// With the gate there, what somebody does to its ConfigMap is undone.
	for what, undone := range map[string]func(){
		"changed": func() {
			w.Patch(harness.ConfigMaps, s.Namespace, own, map[string]any{"data": map[string]any{"syncgate_pin_web": "sha256:" + strings.Repeat("0", 64)}})
		},
		"deleted": func() { w.Kubectl(nil, "delete", "configmap", own, "--namespace", s.Namespace) },
		"added to": func() {
			w.Patch(harness.ConfigMaps, s.Namespace, own, map[string]any{"data": map[string]any{"evil": "x"}})
		},
	} {
		undone()
		e.Eventually("repair of a ConfigMap that was "+what, func() (string, bool) {
			u := w.Get(harness.ConfigMaps, s.Namespace, own)
			if u == nil {
				return "gone", false
			}
			return fmt.Sprint(values()), cmp.Diff(good, values()) == ""
		})
	}
	s.WaitApplied(first)
	unchanged(t)

	// In the repository or the Kustomization: refused, and the ConfigMap goes.
	plain, _, _ := strings.Cut(harness.Image("web:1"), "@")
	_, digest, _ := strings.Cut(harness.Image("web:2"), "@")
	web := string(e.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml"))
	for _, trap := range []struct{ name, old, new, want string }{
		{"a default", "${syncgate_pin_web}", "${syncgate_pin_web:-" + digest + "}", "is not bare"},
		{"a replacement", "${syncgate_pin_web}", "${syncgate_pin_web/a/b}", "is not bare"},
		{"substitution switched off", "metadata: {name: web,", "metadata: {name: web, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled},", "substitute: disabled"},
		{"no placeholder for the digest", plain + "@${syncgate_pin_web}", plain, "no placeholder for its digest (containers[web].image of apps/shop/web.yaml)"},
		{"no placeholder for receipts", `syncgate.io/receipt: "${syncgate_receipt_web}"`, "", "no placeholder for them"},
		{"receipts in a place of their own", `{metadata: {labels: {app: web}}`, `{metadata: {labels: {app: web, x: "${syncgate_pin_web}"}}`, "placeholder of the gate"},
	} {
		text := strings.Replace(web, trap.old, trap.new, 1)
		if trap.name == "receipts in a place of their own" {
			text = strings.Replace(web, "labels: {app: web}}\n    spec", "labels: {app: web, x: \"${syncgate_pin_web}\"}}\n    spec", 1)
		}
		if text == web {
			t.Fatalf("%s: nothing to replace in\n%s", trap.name, web)
		}
		s.repo.Write(map[string]string{"apps/shop/web.yaml": text})
		s.push("Try " + trap.name)
		report(t, "condition after "+trap.name, s.WaitRefused(trap.want))
		s.WaitNotReady(`configmaps "` + own + `" not found`)
		unchanged(t)
	}
	s.write("1", 1, "hello", nil)
	s.WaitApplied(s.push("Mend it"))

	missing := `configmaps "` + own + `" not found`
	for _, change := range []struct{ name, old, new, want, flux string }{
		{"an inline substitute", "  postBuild:\n", "  postBuild:\n    substitute: {syncgate_pin_web: " + digest + "}\n", "syncgate_pin_web: variables that begin with syncgate_ are the gate's", missing},
		// Then Flux can do without it, and applies what is written: the webhook does not.
		{"an optional ConfigMap", "name: " + own + "}", "name: " + own + ", optional: true}", "optional is set", "SYNC REFUSED ["},
		{"another ConfigMap behind", "name: " + own + "}\n", "name: " + own + "}\n    - {kind: ConfigMap, name: greeting}\n", "must be the last one", missing},
		{"a patch with another image", "  postBuild:\n", "  patches: [{patch: '[{\"op\": \"replace\", \"path\": \"/spec/template/spec/containers/0/image\", \"value\": \"" + plain + "@" + digest + "\"}]', target: {kind: Deployment}}]\n  postBuild:\n", "DigestMismatch", missing},
	} {
		spec := fluxSpec(byPostBuild, s.Namespace)
		other := strings.Replace(spec, change.old, change.new, 1)
		if other == spec {
			t.Fatalf("%s: nothing to replace in\n%s", change.name, spec)
		}
		s.Replace(other, nil)
		report(t, "condition after "+change.name, s.WaitRefused(change.want))
		s.WaitNotReady(change.flux)
		unchanged(t)
		s.Replace(spec, nil)
		s.Wait("approval after "+change.name, func(st harness.KustomizationStatus) bool { return st.Approved == "True" && st.Ready == "True" })
	}

	// Without the gate: what is left is Flux, and the webhook.
	w.gate.Stop()
	write := func(data map[string]any) {
		t.Helper()
		all := map[string]any{}
		for key := range values() {
			all[key] = nil
		}
		maps.Copy(all, data)
		w.Patch(harness.ConfigMaps, s.Namespace, own, map[string]any{"data": all})
	}
	write(map[string]any{"syncgate_pin_web": digest, "syncgate_receipt_web": good["syncgate_receipt_web"], "syncgate_latch": good["syncgate_latch"]})
	report(t, "a pin of another revision than the receipts (a torn read)", s.WaitNotReady("SYNC REFUSED [DigestMismatch]", "dry-run failed (Forbidden)"))
	unchanged(t)
	write(nil)
	report(t, "an empty ConfigMap", s.WaitNotReady("SYNC REFUSED ["))
	unchanged(t)
	write(map[string]any{"syncgate_latch": "x"})
	report(t, "a variable that is missing", s.WaitNotReady(`variable not set (strict mode): "syncgate_`))
	unchanged(t)
	w.Flux.Kustomize.Restart("--feature-gates=StrictPostBuildSubstitutions=false")
	report(t, "a variable that is missing, and Flux is not strict", s.WaitNotReady("SYNC REFUSED ["))
	unchanged(t)
	w.Kubectl(nil, "delete", "configmap", own, "--namespace", s.Namespace)
	report(t, "no ConfigMap", s.WaitNotReady(`configmaps "`+own+`" not found`))
	unchanged(t)

	// And it comes back by itself.
	w.gate.Start()
	s.Wait("recovery", func(st harness.KustomizationStatus) bool { return st.Approved == "True" && st.Ready == "True" })
	unchanged(t)
}
