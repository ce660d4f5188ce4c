//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// fluxAsked is what an annotation does to a Kustomization that is approved
// without it: what is refused then, or, if it would relax, why it is.
var fluxAsked = []struct {
	annotation, value string
	warns             bool // where policy only warns
	want              []string
}{
	{"syncgate.io/mode", "Enforce", true, []string{"SYNC REFUSED [DigestMismatch]", "web:2"}},
	{"syncgate.io/categories", "service", false, []string{"SYNC REFUSED [ReceiptMissing]", "Service ", "/web: no receipt for service"}},
	{"syncgate.io/lock", "empty", false, []string{"SYNC REFUSED [", "Deployment "}}, // neither pins nor receipts are there
	{"syncgate.io/renderer", "helm", false, []string{"GATE ERROR [PolicyInvalid]", "annotation syncgate.io/renderer is helm, and Flux builds with kustomize alone"}},

	{"syncgate.io/mode", "Warn", false, []string{"GATE ERROR [PolicyInvalid] annotation of the Kustomization: ", "policy.yaml line 8: mode.render: the mode is Enforce, and Warn would relax it"}},
	{"syncgate.io/environment", "stage", false, []string{"GATE ERROR [PolicyInvalid] annotation of the Kustomization: ", `policy.yaml line 3: environment: environment "stage" is not one that policy allows`}},
	{"syncgate.io/categories", "-image", false, []string{"GATE ERROR [PolicyInvalid] annotation of the Kustomization: ", "policy.yaml line 9: categories[0]: category image must be signed, and leaving it out would relax that"}},
	{"syncgate.io/skip", "true", false, []string{`GATE ERROR [PolicyInvalid] annotation "syncgate.io/skip" is none of syncgate.io/categories, `}},
}

// TestFluxSettings: annotations tighten without a commit and never relax, and an
// off-switch lets pass what is refused until it ends.
func TestFluxSettings(t *testing.T) {
	e := harness.New(t)
	settings := func(mode string) string {
		return harness.BasicPolicy("release") + "mode: {render: " + mode + "}\ncategories: [{name: image}]\n"
	}
	w := newFluxWorld(e, settings("Enforce"))
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) {
			s := w.newShop(mode)
			service := "apiVersion: v1\nkind: Service\nmetadata: {name: web%s}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
			service = fmt.Sprintf(service, map[string]string{byPostBuild: `, annotations: {syncgate.io/receipt: "${syncgate_receipt_service}"}`}[mode])
			s.write("1", 1, "hello", map[string]string{"apps/shop/service.yaml": service, "empty/keep": ""})
			s.repo.Write(map[string]string{"apps/shop/kustomization.yaml": strings.Replace(string(e.Run(s.repo.Work, nil, "cat", "apps/shop/kustomization.yaml")), "config.yaml]", "config.yaml, service.yaml]", 1)})
			s.sign()
			s.create()
			s.WaitApplied(s.push("Release the shop"))
			s.asked(t, func(mode string) { w.policy.SwapPolicy(settings(mode), w.signer) })
			s.offSwitch(t)
		})
	}
}

// approved waits until the gate has nothing against what Flux applies.
func (s *fluxShop) approved(why string) {
	s.T.Helper()
	s.Wait("approval "+why, func(st harness.KustomizationStatus) bool { return st.Approved == "True" && st.Ready == "True" })
}

// refusedWithoutATrace waits for a refusal, and for Flux to have met it, and
// compares the namespace with before.
func (s *fluxShop) refusedWithoutATrace(t *testing.T, before map[string]any, what string, want ...string) {
	t.Helper()
	sentence := s.WaitRefused(want...)
	report(t, s.mode+": condition "+what, sentence)
	if s.mode == byPostBuild {
		s.WaitNotReady(`configmaps "syncgate-flux-shop" not found`)
	} else if st := s.Reconcile(); st.Ready != "True" {
		t.Errorf("%s: what was approved before is not reconciled: %s", what, st)
	}
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("%s (-before +after):\n%s", what, diff)
	}
	s.Eventually("event "+what, func() (string, bool) {
		all := strings.Join(s.Events("syncgate-controller"), "\n")
		return all, strings.Contains(all, "Warning ") && strings.Contains(all, ": "+sentence)
	})
}

func (s *fluxShop) asked(t *testing.T, mode func(string)) {
	t.Helper()
	before := s.snapshot()
	annotate := func(key string, value any) {
		s.Patch(harness.Kustomizations, s.Namespace, s.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	}
	for _, a := range fluxAsked {
		what := fmt.Sprintf("with %s: %s", a.annotation, a.value)
		if a.warns {
			mode("Warn")
			s.repo.Write(map[string]string{"apps/shop/web.yaml": strings.Replace(string(s.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml")), "web:1", "web:2", 1),
				"apps/shop/.syncgate/images/registry.example.test+web.lock": locked("web:1") + locked("web:2")})
			if s.mode == byArtifact { // the image is pinned in the manifest
				s.repo.Write(map[string]string{"apps/shop/web.yaml": strings.Replace(string(s.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml")), pinOf("web:1"), pinOf("web:2"), 1)})
			}
			s.push("Try an image that nobody signed")
			s.Wait("warning", func(st harness.KustomizationStatus) bool {
				return st.Approved == "True" && st.ApprovedReason == "Warned" && strings.Contains(st.Sentence, "SYNC WOULD BE REFUSED [DigestMismatch]")
			})
			s.WaitNotReady("SYNC REFUSED [DigestMismatch]") // the webhook enforces
			before = s.snapshot()
		}
		annotate(a.annotation, a.value)
		if a.warns {
			// In artifact mode the warning was published, and the webhook refuses it.
			report(t, s.mode+": condition "+what, s.WaitRefused(a.want...))
			if diff := cmp.Diff(before, s.snapshot()); diff != "" {
				t.Errorf("%s (-before +after):\n%s", what, diff)
			}
			mode("Enforce")
			s.repo.Write(map[string]string{"apps/shop/web.yaml": strings.NewReplacer("web:2", "web:1", pinOf("web:2"), pinOf("web:1")).Replace(string(s.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml")))})
			s.push("Back to what is signed")
		} else {
			s.refusedWithoutATrace(t, before, what, a.want...)
		}
		annotate(a.annotation, nil)
		s.approved("without " + a.annotation)
		before = s.snapshot()
	}
}

// pinOf is the digest of an image.
func pinOf(image string) string {
	_, digest, _ := strings.Cut(harness.Image(image), "@")
	return digest
}

// mounts brings what is in the ConfigMap of off-switches to those who mount it,
// as the kubelet does.
func (w *fluxWorld) mounts() {
	w.T.Helper()
	files := map[string]string{}
	if u := w.Get(harness.ConfigMaps, "syncgate-system", "syncgate-off"); u != nil {
		data, _ := u.Object["data"].(map[string]any)
		for key, value := range data {
			files[key], _ = value.(string)
		}
	}
	w.off.Swap(files)
	w.webhooks.Off.Swap(maps.Clone(files))
}

// cli runs the command line on the cluster.
func (w *fluxWorld) cli(args ...string) string {
	w.T.Helper()
	return string(w.Run(w.Dir, nil, w.b.Syncgate, append(args, "--kubeconfig", w.Kubeconfig)...))
}

func (s *fluxShop) offSwitch(t *testing.T) {
	t.Helper()
	w, target := s.w, s.Namespace+"/"+s.Name
	before := s.snapshot()
	s.write("3", 1, "off", nil)
	s.push("Try an image that nobody signed")
	s.refusedWithoutATrace(t, before, "before the switch", "SYNC REFUSED [DigestMismatch]", "web:3")

	// The gate lets it pass, and the webhook does not.
	out := w.cli("off", "--kustomization", target, "--for", "1h", "--reason", "INC-7")
	if !strings.Contains(out, "end it with: syncgate on --kustomization "+target) {
		t.Errorf("off said %q", out)
	}
	w.mounts()
	st := s.Wait("off-switch", func(st harness.KustomizationStatus) bool {
		return st.Approved == "True" && st.ApprovedReason == "SwitchedOff" && harness.ContainsAll(st.Sentence, []string{"off until ", "INC-7; SYNC WOULD BE REFUSED [DigestMismatch]", "web:3"})
	})
	report(t, s.mode+": condition while it is off", st.Sentence)
	w.Eventually("event of the switch", func() (string, bool) {
		all := strings.Join(s.Events("syncgate-controller"), "\n")
		return all, strings.Contains(all, "Warning SwitchedOff: "+st.Sentence)
	})
	report(t, s.mode+": Ready while the gate alone is off", s.WaitNotReady("SYNC REFUSED [DigestMismatch]", "dry-run failed (Forbidden)"))
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("with the gate alone off (-before +after):\n%s", diff)
	}

	// Both.
	w.cli("off", "--namespace", s.Namespace, "--for", "1h", "--reason", "INC-7")
	w.mounts()
	s.Wait("apply of what nobody signed", func(st harness.KustomizationStatus) bool {
		return st.Ready == "True" && len(s.running()) == 1 && s.running()[0] == harness.Image("web:3")
	})

	// On again: what runs goes on, and nothing else passes.
	w.cli("on", "--namespace", s.Namespace)
	w.cli("on", "--kustomization", target)
	w.mounts()
	before = s.snapshot()
	s.refusedWithoutATrace(t, before, "when it is on again", "SYNC REFUSED [DigestMismatch]", "web:3")
	s.write("4", 1, "on", nil)
	s.push("Try another image that nobody signed")
	s.refusedWithoutATrace(t, before, "after it", "SYNC REFUSED [DigestMismatch]", "web:4")

	// One that ends by itself, while nobody does anything.
	value, err := json.Marshal(map[string]string{"app": s.Namespace + "_" + s.Name, "until": time.Now().Add(8 * time.Second).UTC().Format(time.RFC3339), "reason": "INC-8", "by": "alice"})
	if err != nil {
		t.Fatal(err)
	}
	w.off.Swap(map[string]string{"app." + s.Namespace + "_" + s.Name: string(value)})
	s.Wait("off-switch", func(st harness.KustomizationStatus) bool { return st.ApprovedReason == "SwitchedOff" })
	s.WaitRefused("SYNC REFUSED [DigestMismatch]", "web:4")
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after one that ended by itself (-before +after):\n%s", diff)
	}
	s.sign()
	s.WaitApplied(s.push("Sign it"))
	s.approved("at last")
}
