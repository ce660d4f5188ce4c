package app_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
)

// fluxWeb is the Deployment of a Kustomization in postBuild mode.
const fluxWeb = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: web, image: "ghcr.io/acme/web:${tag}@${syncgate_pin_web}"}
      - {name: side, image: "` + "ghcr.io/acme/side:1@" + `${syncgate_pin_side}"}
`

// fluxSite is a site whose application Flux builds. variables are the data of
// the ConfigMap that the Kustomization takes them from.
func fluxSite(t *testing.T, variables map[string]string) *site {
	t.Helper()
	s := newSite(t, "")
	source, err := application.Parse([]byte(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec:
  path: app
  sourceRef: {kind: GitRepository, name: r}
  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}, {kind: ConfigMap, name: syncgate-flux-shop}]}
`), "ks.yaml")
	s.check(err)
	s.options, err = source.Built(s.path("repo"), func(_ context.Context, kind, name string) (map[string]string, bool, error) {
		if kind != "ConfigMap" || name != "settings" {
			t.Errorf("asked for %s %s", kind, name)
		}
		return variables, true, nil
	})
	s.check(err)
	s.write("web.yaml", fluxWeb)
	s.pin("ghcr.io/acme/web", "1.5", sha("a"))
	s.pin("ghcr.io/acme/side", "1", sha("b"))
	return s
}

func TestWhatFluxFillsInIsWhatIsJudged(t *testing.T) {
	s := fluxSite(t, map[string]string{"tag": "1.5"})
	s.write("config.yaml", object("v1", "ConfigMap", "name: c, namespace: shop, annotations: {syncgate.io/receipt: '${syncgate_receipt_c}'}", "data: {replicas: '2'}"))
	s.refused(gate.ReceiptMissing, "Deployment shop/web")
	s.signed("release")
	s.allowed()
	b := s.build()
	if got, want := slices.Sorted(maps.Keys(b.Values)), []string{"syncgate_latch", "syncgate_pin_side", "syncgate_pin_web", "syncgate_receipt_c", "syncgate_receipt_web"}; !slices.Equal(got, want) {
		t.Fatalf("got values of %q, want %q", got, want)
	}
	if v := b.Values; v["syncgate_pin_web"] != sha("a") || v["syncgate_pin_side"] != sha("b") || v["syncgate_receipt_c"] != "none" || !strings.HasPrefix(v["syncgate_receipt_web"], "eyJ") || len(v["syncgate_latch"]) != 64 {
		t.Errorf("got %q", v)
	}
	out := s.output()
	for _, part := range []string{webImage("1.5", "a"), "ghcr.io/acme/side:1@" + sha("b"), `"syncgate.io/receipt":"none"`, b.Values["syncgate_receipt_web"]} {
		if !strings.Contains(out, part) {
			t.Errorf("got %s, want %s in it", out, part)
		}
	}
	if strings.Contains(out, "${") {
		t.Errorf("got %s, want no placeholder left", out)
	}
	// What is not gated moves the latch and needs nobody.
	s.write("config.yaml", object("v1", "ConfigMap", "name: c, namespace: shop, annotations: {syncgate.io/receipt: '${syncgate_receipt_c}'}", "data: {replicas: '3'}"))
	s.allowed()
	if again := s.build(); again.Values["syncgate_latch"] == b.Values["syncgate_latch"] || again.Values["syncgate_receipt_web"] != b.Values["syncgate_receipt_web"] {
		t.Error("another object: want another latch, and the same receipt")
	}
}

// T20: the variables are part of what was signed.
func TestT20AVariableThatChangesAfterSigningIsRefused(t *testing.T) {
	variables := map[string]string{"tag": "1.5"}
	s := fluxSite(t, variables)
	s.pin("ghcr.io/acme/web", "1.6", sha("c"))
	s.signed("release")
	s.allowed()
	variables["tag"] = "1.6"
	s.refused(gate.DigestMismatch, "containers[web].image")
	if b := s.build(); b.Values["syncgate_pin_web"] != sha("c") {
		t.Errorf("got %q, want the digest of the new tag", b.Values)
	}
	variables["tag"] = "1.7"
	s.refused(gate.ImageNotPinned, "ghcr.io/acme/web:1.7")
	delete(variables, "tag")
	s.refused(gate.RenderFailed, `variable not set (strict mode): "tag"`)
}

func TestPlaceholdersThatAreMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		old, new string
		reason   gate.Reason
		words    string
	}{
		"for a digest":             {"side:1@${syncgate_pin_side}", "side:1", gate.ImageNotPinned, "an image has no placeholder for its digest (containers[side].image"},
		"for receipts":             {"  annotations: {syncgate.io/receipt: \"${syncgate_receipt_web}\"}\n", "", gate.ReceiptMissing, "has receipts in the lock, and no placeholder for them"},
		"one for two images":       {"syncgate_pin_side", "syncgate_pin_web", gate.ImageNotPinned, "it stands for something else at another place"},
		"one where none belongs":   {"replicas: 2", "replicas: 2\n  paused: \"${syncgate_pin_web}\"", gate.ImageNotPinned, "spec.paused is"},
		"the latch, as any other":  {"replicas: 2", "replicas: 2\n  paused: \"${syncgate_latch}\"", gate.RenderFailed, "Flux would apply something else than what is judged"},
		"one that has a default":   {"pin_side}", "pin_side:-x}", gate.RenderFailed, "is not bare"},
		"one that nobody fills in": {"namespace: shop\n", "namespace: shop\n  labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n", gate.RenderFailed, "leaves them as they are"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fluxSite(t, map[string]string{"tag": "1.5"})
			s.signed("release")
			if !strings.Contains(fluxWeb, tc.old) {
				t.Fatalf("no %q", tc.old)
			}
			s.write("web.yaml", strings.Replace(fluxWeb, tc.old, tc.new, 1))
			s.refused(tc.reason, tc.words)
			if tc.reason != gate.RenderFailed || name == "the latch, as any other" {
				s.refused(tc.reason, "syncgate flux scaffold")
				if b := s.build(); b.Values != nil {
					t.Errorf("got values %q for what is refused", b.Values)
				}
			}
		})
	}
}

// A receipt on a CronJob is on its jobTemplate, too, if there is a placeholder.
func TestACronJobHasTwoPlaceholders(t *testing.T) {
	const placeholder = "annotations: {syncgate.io/receipt: '${syncgate_receipt_job}'}"
	job := func(template string) string {
		return object("batch/v1", "CronJob", "name: job, namespace: shop, "+placeholder,
			"spec: {jobTemplate: {"+template+"spec: {template: {spec: {containers: [{name: web, image: '"+webImage("1.5", "a")+"'}]}}}}}")
	}
	s := fluxSite(t, nil)
	s.remove("web.yaml")
	s.write("job.yaml", job("metadata: {"+placeholder+"}, "))
	s.refused(gate.ReceiptMissing, "CronJob shop/job: ")
	s.signed("release")
	s.allowed()
	s.write("job.yaml", job(""))
	s.refused(gate.ReceiptMissing, "no placeholder for them")
}
