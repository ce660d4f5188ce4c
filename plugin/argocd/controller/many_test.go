package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

func TestOfTwoHundredApplicationsThreeAreRefreshed(t *testing.T) {
	var objects []client.Object
	want := map[string]string{}
	for i := range 200 {
		name := fmt.Sprintf("app-%03d", i)
		var change func(*receipt.Claims)
		if i%70 == 7 { // 7, 77 and 147
			want[name] = "revocation"
			change = func(c *receipt.Claims) { c.Release = "1.5" }
		}
		objects = append(objects, app(t, name), deployment(t, name, signed(t, "apps/Deployment/shop/"+name, change)))
	}
	w := settled(t, files(t, ""), objects...)
	w.reload("", receipt.Revocation{Release: "1.5"})
	w.sweep()
	if diff := cmp.Diff(want, w.refreshAll()); diff != "" || len(want) != 3 {
		t.Errorf("refreshed (-want +got):\n%s", diff)
	}
}

func TestWhoLooksWithoutAControllerSeesTheSame(t *testing.T) {
	dir := files(t, "")
	w := newWorld(t, dir, app(t, "web"), annotated(app(t, "api"), "syncgate.io/mode", "Enforce"), annotated(app(t, "bad"), "syncgate.io/nonsense", "x"), native(t, "old"))
	w.sweep()
	published := w.configMap(settings.ConfigMap)
	for _, name := range []string{"web", "api", "bad", "old"} {
		e := Options{ArgoNamespace: "argocd"}.Examine(w.get(name).Object, load(t, dir))
		if e.Key != name || e.Entry != published[name] {
			t.Errorf("%s: %q, %q, and %q is published", name, e.Key, e.Entry, published[name])
		}
		if got, want := statusText(e.Findings), w.get(name).GetAnnotations()[settings.Status]; got != want {
			t.Errorf("%s: findings %q, and the status is %q", name, got, want)
		}
	}
}
