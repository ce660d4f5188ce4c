package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

// off puts a switch into the mounted ConfigMap.
func (w *world) off(s offswitch.Switch) {
	w.t.Helper()
	if w.Off == "" {
		w.Off = w.t.TempDir()
	}
	text, err := s.Encode(w.now)
	must(w.t, err)
	must(w.t, os.WriteFile(filepath.Join(w.Off, s.Key()), []byte(text), 0o600))
}

// forAnHour is a switch of the Kustomization shop/shop.
func (w *world) forAnHour() offswitch.Switch {
	return offswitch.Switch{App: "shop_shop", Until: w.now.Add(time.Hour).Format(time.RFC3339), Reason: "INC-7", By: "alice"}
}

// TestAnOffSwitchLetsARefusalPassUntilItsEnd: at once, said in the condition and
// an event, and over by itself.
func TestAnOffSwitchLetsARefusalPassUntilItsEnd(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		w.write("2", nil)
		w.push("main@sha1:2")
		w.reconcile()
		w.is(metav1.ConditionFalse, "DigestMismatch")
		first := w.handedOver()
		w.said()

		w.off(w.forAnHour())
		w.reconcile()
		w.is(metav1.ConditionTrue, "SwitchedOff", "off until 2026-12-02T04:00:00Z by alice: INC-7; SYNC WOULD BE REFUSED [DigestMismatch]", "Pod shop/web")
		if diff := cmp.Diff([]string{"Warning SwitchedOff"}, w.said()); diff != "" {
			t.Errorf("%s: events while it is off (-want +got):\n%s", mode, diff)
		}
		passed := w.handedOver()
		if passed == first || passed == "" {
			t.Errorf("%s: while it is off %q is handed over, %q before", mode, passed, first)
		}
		if writes, fetches := w.reconcile(); len(writes) > 0 || fetches > 0 {
			t.Errorf("%s: unchanged: writes %q, %d fetches", mode, writes, fetches)
		}

		w.now = w.now.Add(time.Hour)
		w.reconcile()
		w.is(metav1.ConditionFalse, "DigestMismatch", "SYNC REFUSED [DigestMismatch]")
		if diff := cmp.Diff([]string{"Warning DigestMismatch"}, w.said()); diff != "" {
			t.Errorf("%s: events at its end (-want +got):\n%s", mode, diff)
		}
		want := "" // the ConfigMap goes; what an administrator let pass stays published
		if mode == application.Artifact {
			want = passed
		}
		if got := w.handedOver(); got != want {
			t.Errorf("%s: at its end %q is handed over, want %q", mode, got, want)
		}
		w.write("3", nil)
		w.push("main@sha1:3")
		w.reconcile()
		w.is(metav1.ConditionFalse, "DigestMismatch", "web:3")
		if got := w.handedOver(); got != want {
			t.Errorf("%s: after its end %q is handed over, want %q", mode, got, want)
		}
	}
}

// TestWhatIsApprovedAnywaySaysThatTheGateIsOff: whoever looks at it knows.
func TestWhatIsApprovedAnywaySaysThatTheGateIsOff(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		before := w.handedOver()
		w.off(w.forAnHour())
		w.reconcile()
		w.is(metav1.ConditionTrue, "Approved", "all allowed in prod; the gate is off until 2026-12-02T04:00:00Z by alice: INC-7")
		if got := w.handedOver(); got != before {
			t.Errorf("%s: %q is handed over, %q before", mode, got, before)
		}
		must(t, os.RemoveAll(filepath.Join(w.Off, "app.shop_shop")))
		w.reconcile()
		w.is(metav1.ConditionTrue, "Approved", "all allowed in prod")
		if c := w.condition(); strings.Contains(c.Message, "off") {
			t.Errorf("%s: after the end: %q", mode, c.Message)
		}
	}
}

// TestWhatNoOffSwitchOpens: it is for what policy refuses of this Kustomization.
func TestWhatNoOffSwitchOpens(t *testing.T) {
	unsigned := func(w *world) {
		w.write("2", nil)
		w.push("main@sha1:2")
	}
	for name, c := range map[string]struct {
		spoil  func(*world)
		reason string
		want   string
	}{
		"another Kustomization": {func(w *world) {
			unsigned(w)
			s := w.forAnHour()
			s.App = "shop"
			w.off(s)
		}, "DigestMismatch", "SYNC REFUSED"},
		"the namespace, which is the webhook's": {func(w *world) {
			unsigned(w)
			s := w.forAnHour()
			s.App, s.Namespace = "", "shop"
			w.off(s)
		}, "DigestMismatch", "SYNC REFUSED"},
		"one that cannot be read": {func(w *world) {
			unsigned(w)
			w.off(w.forAnHour())
			must(w.t, os.WriteFile(filepath.Join(w.Off, "app.other"), []byte("{"), 0o600))
		}, "DigestMismatch", "no off-switch counts: reading off-switch app.other: "},
		"what cannot be built": {func(w *world) {
			w.write("2", map[string]string{"app/web.yaml": "a: [\n"})
			w.push("main@sha1:2")
			w.off(w.forAnHour())
		}, "RenderFailed", "RENDER FAILED"},
		"what cannot be judged": {func(w *world) {
			w.write("2", map[string]string{"app/other.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop}, spec: {containers: [{name: a, image: 5}]}}\n"})
			w.push("main@sha1:2")
			w.off(w.forAnHour())
		}, "ObjectMalformed", "Pod shop/other"},
		"force": {func(w *world) {
			w.replace(kustomizationOf(w.t, w.mode, "  force: true\n"))
			w.off(w.forAnHour())
		}, "ForceNotAllowed", "spec.force"},
		"a protected namespace": {func(w *world) {
			u := kustomizationOf(w.t, w.mode, "")
			unstructured.RemoveNestedField(u.Object, "spec", "targetNamespace")
			w.replace(u)
			w.write("1", map[string]string{"app/config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}}\n"})
			w.push("main@sha1:2")
			w.off(w.forAnHour())
		}, "ProtectedTarget", "kube-system"},
		"an annotation that relaxes": {func(w *world) {
			w.annotate(map[string]string{"syncgate.io/mode": "Warn"})
			w.off(w.forAnHour())
		}, "PolicyInvalid", "Warn would relax it"},
	} {
		for _, mode := range modes {
			t.Run(name+" in "+string(mode)+" mode", func(t *testing.T) {
				w := released(t, mode)
				before := w.handedOver()
				c.spoil(w)
				w.reconcile()
				w.is(metav1.ConditionFalse, c.reason, c.want)
				want := ""
				if mode == application.Artifact && name != "force" { // setAfterwards
					want = before
				}
				if got := w.handedOver(); got != want {
					t.Errorf("%q is handed over, want %q", got, want)
				}
			})
		}
	}
}

// TestAnOffSwitchIsNoPin: a placeholder that nothing can fill in Flux cannot
// build, whoever lets it pass.
func TestAnOffSwitchIsNoPin(t *testing.T) {
	w := released(t, application.PostBuild)
	w.write("2", map[string]string{"app/.syncgate/images/ghcr.io+acme+web.lock": "- {name: ghcr.io/acme/web, tag: \"0\", digest: " + digestOf("0") + "}\n"})
	w.push("main@sha1:2")
	w.off(w.forAnHour())
	w.reconcile()
	w.is(metav1.ConditionFalse, "ImageNotPinned", "SYNC REFUSED [ImageNotPinned]")
	if w.values() != nil {
		t.Errorf("values: got %v", w.values())
	}
}

// TestTheSwitchesInForceAreToldApart: what follows them sees each change, and
// each end, and nothing else.
func TestTheSwitchesInForceAreToldApart(t *testing.T) {
	w := newWorld(t, application.PostBuild)
	is := func(want string) {
		t.Helper()
		got, err := w.inForce()
		if got != want || (err != nil) != strings.HasPrefix(want, "error: ") {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	is("")
	w.off(w.forAnHour())
	is("shop_shop off until 2026-12-02T04:00:00Z by alice: INC-7")
	w.off(offswitch.Switch{Namespace: "shop", Until: w.now.Add(time.Minute).Format(time.RFC3339), Reason: "INC-8", By: "bob"})
	is("shop_shop off until 2026-12-02T04:00:00Z by alice: INC-7")
	must(t, os.WriteFile(filepath.Join(w.Off, "app.x"), []byte("{"), 0o600))
	if got, err := w.inForce(); err == nil || !strings.HasPrefix(got, "error: reading off-switch app.x: ") {
		t.Errorf("got %q, %v", got, err)
	}
	must(t, os.Remove(filepath.Join(w.Off, "app.x")))
	w.now = w.now.Add(time.Hour)
	is("")
}
