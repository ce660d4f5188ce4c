package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

func forbidden(kind string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
}

func native(t *testing.T, name string) *unstructured.Unstructured {
	return without(app(t, name), "spec", "source", "plugin")
}

// settled is a world in which every gated Application was refreshed.
func settled(t *testing.T, dir string, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, dir, objects...)
	w.sweep()
	w.refreshAll()
	w.sweep()
	w.said()
	if n := w.pace.size(); n != 0 {
		t.Fatalf("%d refreshes are due in a settled world", n)
	}
	return w
}

func TestASweepPublishesAndRefreshesOnce(t *testing.T) {
	w := newWorld(t, files(t, ""), app(t, "web"), annotated(app(t, "api"), "syncgate.io/mode", "Enforce"), native(t, "old"))
	w.sweep()
	if diff := cmp.Diff(map[string]string{"web": "{}", "api": `{"mode":"Enforce"}`, "old": "{}"}, w.configMap(settings.ConfigMap)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if _, r, wait, any := w.pace.next(w.now); !any || wait < time.Minute || wait > 66*time.Second {
		t.Errorf("the first refresh, for %q, is due in %s; want what the sidecars' mounts take", r.cause, wait)
	}
	if diff := cmp.Diff(map[string]string{"web": "new", "api": "new"}, w.refreshAll()); diff != "" {
		t.Errorf("refreshed (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"web": "hard", "api": "hard", "old": ""} {
		if got := w.get(name).GetAnnotations()[refreshAnnotation]; got != want {
			t.Errorf("%s: refresh is %q, want %q", name, got, want)
		}
	}
	w.sweep()
	if len(w.writes) != 0 || w.pace.size() != 0 {
		t.Errorf("a sweep without news wrote %q and made %d refreshes due", w.writes, w.pace.size())
	}
	if got := w.metric("syncgate_argocd_refreshes_total", "new"); got != 2 {
		t.Errorf("refreshes in metrics: got %v, want 2", got)
	}
}

// TestARestartRefreshesNothingAgain: what was refreshed is kept in the cluster.
func TestARestartRefreshesNothingAgain(t *testing.T) {
	w := settled(t, files(t, ""), app(t, "web"))
	again := *w
	again.Controller = &Controller{Client: w.Client, Reader: w.Reader, Events: w.events, Loader: w.Loader, Metrics: w.Metrics, Log: w.Log, Now: w.Now, ArgoNamespace: "argocd", pace: newPacer(1, 1)}
	again.sweep()
	if again.pace.size() != 0 {
		t.Errorf("%d refreshes are due", again.pace.size())
	}
}

// TestARefreshDuringASweepIsNotAskedForAgain: what the sweep has read does not
// know of it.
func TestARefreshDuringASweepIsNotAskedForAgain(t *testing.T) {
	w := newWorld(t, files(t, ""), app(t, "web"), app(t, "api"))
	w.sweep()
	w.meanwhile = func() { w.refreshAll() }
	w.sweep()
	if w.pace.size() != 0 {
		t.Errorf("%d refreshes are due that were just made", w.pace.size())
	}
	// Whoever takes the record away gets them all again.
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: Refreshed}}
	must(t, w.Client.Update(context.Background(), cm))
	w.sweep()
	if w.pace.size() != 2 {
		t.Errorf("%d refreshes are due, want 2", w.pace.size())
	}
}

func TestEveryGatedApplicationIsRefreshedForAPolicy(t *testing.T) {
	w := settled(t, files(t, ""), app(t, "web"), app(t, "api"), native(t, "old"))
	w.reload("mode: {render: Warn}\n")
	w.sweep()
	if diff := cmp.Diff(map[string]string{"web": "policy", "api": "policy"}, w.refreshAll()); diff != "" {
		t.Errorf("refreshed (-want +got):\n%s", diff)
	}
}

func TestOneApplicationIsRefreshedForItsAnnotations(t *testing.T) {
	w := settled(t, files(t, ""), app(t, "web"), app(t, "api"))
	w.change("web", func(u *unstructured.Unstructured) { annotated(u, "syncgate.io/categories", "service") })
	w.sweep()
	if got := w.configMap(settings.ConfigMap)["web"]; got != `{"categories":["service"]}` {
		t.Errorf("published: got %s", got)
	}
	if w.writes[0] != "update ConfigMap syncgate-apps" {
		t.Errorf("wrote %q, want the settings first", w.writes)
	}
	// It is put off when it changes again, and dropped when it is as before.
	_, first, _, _ := w.pace.next(w.now)
	w.now = w.now.Add(time.Minute)
	w.change("web", func(u *unstructured.Unstructured) { annotated(u, "syncgate.io/categories", "service,rbac") })
	w.sweep()
	if _, second, _, _ := w.pace.next(w.now); !second.at.After(first.at) {
		t.Errorf("due at %s, want later than %s", second.at, first.at)
	}
	if got := w.refreshAll(); len(got) != 1 || got["web"] != "annotations" {
		t.Errorf("refreshed %v, want web alone", got)
	}
	w.change("api", func(u *unstructured.Unstructured) { annotated(u, "syncgate.io/mode", "Enforce") })
	w.sweep()
	w.change("api", func(u *unstructured.Unstructured) { annotated(u) })
	w.sweep()
	if w.pace.size() != 0 {
		t.Error("a refresh is due for what is as it was")
	}
	// Annotations of others are no news.
	w.change("api", func(u *unstructured.Unstructured) { annotated(u, "example.com/x", "y") })
	w.sweep()
	if w.pace.size() != 0 || len(w.writes) != 0 {
		t.Errorf("wrote %q for an annotation of somebody else", w.writes)
	}
}

// Argo CD's cache does not tell projects, clusters and repositories apart, and
// policy may be stricter in one of them.
func TestAnApplicationThatMovesIsRefreshed(t *testing.T) {
	for name, move := range map[string]func(*unstructured.Unstructured){
		"to another project": func(u *unstructured.Unstructured) { with(t, u, "gated", "spec", "project") },
		"to another cluster": func(u *unstructured.Unstructured) {
			with(t, u, "https://prod.example", "spec", "destination", "server")
		},
		"to another repository": func(u *unstructured.Unstructured) {
			with(t, u, "https://git.example/fork.git", "spec", "source", "repoURL")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, files(t, ""), app(t, "web"), app(t, "api"))
			w.change("web", move)
			w.sweep()
			if got := w.refreshAll(); len(got) != 1 || got["web"] != "moved" {
				t.Errorf("refreshed %v, want web alone, because it moved", got)
			}
		})
	}
}

// Of six Applications a, b and c have what is taken back.
// TestTheEndOfAnOffSwitchIsNews: what was rendered under it is in the cache.
func TestTheEndOfAnOffSwitchIsNews(t *testing.T) {
	w := settled(t, files(t, ""), app(t, "web"), app(t, "api"))
	s := offswitch.Switch{App: "web", Until: w.now.Add(time.Hour).Format(time.RFC3339), Reason: "INC-1", By: "me"}
	text, err := s.Encode(w.now)
	must(t, err)
	must(t, w.Client.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: offswitch.ConfigMap},
		Data: map[string]string{s.Key(): text, "app.api": "not one"}}))
	w.sweep()
	if got := w.refreshAll(); len(got) != 1 || got["web"] == "" {
		t.Errorf("refreshed %v when it was set, want web", got)
	}
	if got := w.said(); len(got) != 1 || got[0] != "Warning SwitchedOff an off-switch lets what would be refused pass until "+s.Until+": INC-1" {
		t.Errorf("events: got %q", got)
	}
	w.now = w.now.Add(2 * time.Hour)
	w.sweep()
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Gated ") {
		t.Errorf("events after its end: got %q", got)
	}
	if got := w.refreshAll(); len(got) != 1 || got["web"] == "" {
		t.Errorf("refreshed %v when it had ended, want web", got)
	}
}

func TestFindingsAreToldOnceAndTakenBack(t *testing.T) {
	w := newWorld(t, files(t, ""), native(t, "old"), app(t, "web"), with(t, native(t, "own"), "syncgate", "spec", "project"))
	w.sweep()
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning PluginMissing no source names") {
		t.Errorf("events: got %q, want one of old", got)
	}
	status := func() string { return w.get("old").GetAnnotations()[settings.Status] }
	if !strings.HasPrefix(status(), "[PluginMissing] no source names the plugin syncgate") {
		t.Errorf("status: got %q", status())
	}
	if got := w.metric("syncgate_argocd_application_finding", PluginMissing, "old", "argocd"); got != 1 {
		t.Errorf("metric: got %v", got)
	}
	if n := w.metric("syncgate_argocd_application_finding"); n != 1 {
		t.Errorf("%v metrics, want that of old alone", n)
	}
	w.sweep()
	if got := w.said(); len(got) != 0 || len(w.writes) != 0 {
		t.Errorf("told again: %q, %q", got, w.writes)
	}
	w.change("old", func(u *unstructured.Unstructured) { with(t, u, "syncgate", "spec", "source", "plugin", "name") })
	w.sweep()
	if got := w.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Normal Gated ") || status() != "" || w.metric("syncgate_argocd_application_finding") != 0 {
		t.Errorf("after the repair: %q, %q", got, status())
	}
}

// TestItIsToldWherePolicyOnlyWarns: Argo CD shows nobody what a plugin that
// succeeds says.
func TestItIsToldWherePolicyOnlyWarns(t *testing.T) {
	w := newWorld(t, files(t, "apps: [{match: {name: \"s-*\"}, mode: {render: Warn}}]\n"),
		app(t, "s-a"), app(t, "web"), annotated(app(t, "s-b"), "syncgate.io/mode", "Enforce"))
	w.sweep()
	for name, want := range map[string]bool{"s-a": true, "web": false, "s-b": false} {
		status := w.get(name).GetAnnotations()[settings.Status]
		if got := strings.HasPrefix(status, "[OnlyWarned] "); got != want {
			t.Errorf("%s: status %q, want it told: %v", name, status, want)
		}
	}
}

// TestNobodyTakesTurnsWithAnApplicationSet, which removes annotations that its
// template does not have.
func TestNobodyTakesTurnsWithAnApplicationSet(t *testing.T) {
	w := newWorld(t, files(t, ""), native(t, "old"))
	writes := 0
	for range 100 {
		w.sweep()
		for _, one := range w.writes {
			if one == "patch Application old" {
				writes++
			}
		}
		w.now = w.now.Add(30 * time.Second)
		w.change("old", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	}
	if writes != 1 {
		t.Errorf("the annotation was written %d times in 50 minutes, want once", writes)
	}
	if w.metric("syncgate_argocd_status_removed_total") == 0 {
		t.Error("nobody was told that it is removed")
	}
	w.now = w.now.Add(time.Hour)
	w.sweep()
	if len(w.writes) != 1 {
		t.Errorf("wrote %q after an hour, want the annotation", w.writes)
	}
}

func TestWhatIsPublishedIsExactlyWhatThereIs(t *testing.T) {
	w := settled(t, files(t, ""), app(t, "web"), app(t, "api"))
	cm := &corev1.ConfigMap{}
	must(t, w.Client.Get(context.Background(), client.ObjectKey{Namespace: "argocd", Name: settings.ConfigMap}, cm))
	cm.Data["stranger"], cm.Data["web"] = "{}", `{"mode":"Warn"}`
	must(t, w.Client.Update(context.Background(), cm))
	must(t, w.Client.Delete(context.Background(), w.get("api")))
	w.sweep()
	if diff := cmp.Diff(map[string]string{"web": "{}"}, w.configMap(settings.ConfigMap)); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if got := w.configMap(Refreshed); len(got) != 1 || got["web"] == "" {
		t.Errorf("refreshes on record: got %v, want that of web", got)
	}
	if w.refreshAll() != nil && w.pace.size() != 0 {
		t.Error("a refresh is due")
	}
}

func TestWithoutItsConfigMapsASweepFails(t *testing.T) {
	for _, name := range []string{settings.ConfigMap, Refreshed} {
		w := newWorld(t, files(t, ""), app(t, "web"))
		must(t, w.Client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}}))
		err := w.Sweep(context.Background())
		if err == nil || !strings.Contains(err.Error(), "argocd/"+name+", which manifests/argocd/controller makes") {
			t.Errorf("without %s: got %v", name, err)
		}
	}
}

func TestAPolicyIsTakenWhenItWasReadTwice(t *testing.T) {
	dir := files(t, "")
	w := newWorld(t, dir)
	before, _ := w.Loader.Policy()
	write(t, dir, "mode: {render: Warn}\n")
	if w.Loader.Reload() {
		t.Error("taken at once: another file of it may still be old")
	}
	if !w.Loader.Reload() {
		t.Error("not taken")
	}
	good, _ := w.Loader.Policy()
	write(t, dir, "mode: {render: Maybe}\n")
	for range 2 { // the second look takes what stayed as it was
		if w.Loader.Reload() {
			t.Error("a policy that does not load was taken")
		}
	}
	if p, failed := w.Loader.Policy(); p != good || p == before || failed == nil {
		t.Errorf("got %v, want the last good one and the error", failed)
	}
	if _, err := policy.NewLoader(dir + "/absent.yaml"); err == nil {
		t.Error("started without a policy")
	}
}

func TestThePacerKeepsTimeAndRate(t *testing.T) {
	p := newPacer(1000, 1)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for i, key := range []string{"c", "a", "b"} {
		p.put(key, refresh{at: at(i), want: stamp{rules: key}})
	}
	if p.put("c", refresh{at: at(60), want: stamp{rules: "c"}}) {
		t.Error("what is due already was put again")
	}
	if key, _, wait, _ := p.next(at(-5)); key != "c" || wait != 5*time.Second {
		t.Errorf("next: got %q in %s, want c in 5s", key, wait)
	}
	var order []string
	ctx, cancel := context.WithCancel(context.Background())
	p.run(ctx, func(_ context.Context, key string, r refresh) error { // all are overdue
		order = append(order, key)
		if key == "a" && r.at == at(1) {
			return fmt.Errorf("not now")
		}
		if len(order) == 3 {
			cancel()
		}
		return nil
	})
	if diff := cmp.Diff([]string{"c", "a", "b"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if key, r, _, any := p.next(time.Now()); !any || key != "a" || !r.at.After(time.Now()) {
		t.Errorf("left: %q at %s, want what failed, for later", key, r.at)
	}
}
