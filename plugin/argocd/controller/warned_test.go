package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

const lenient = "mode: {render: Warn}\n"

// approved is a Deployment with a receipt that is good for it until it is so
// many days old.
func approved(t *testing.T, name string, days int64) *unstructured.Unstructured {
	t.Helper()
	u := deployment(t, name, "")
	e, err := load(t, files(t, "")).For(policy.App{Name: name, Namespace: "shop"})
	must(t, err)
	tree, err := plain(u.Object)
	must(t, err)
	p, err := e.Projector.Project(tree)
	must(t, err)
	covers := p.Applies()
	digest, err := p.Digest(covers)
	must(t, err)
	return annotated(u, "syncgate.io/receipt", signed(t, "apps/Deployment/shop/"+name, func(c *receipt.Claims) {
		c.Covers = nil
		for _, x := range covers {
			c.Covers = append(c.Covers, string(x))
		}
		c.Digest, c.IssuedAt, c.Expires = digest, start.Unix()-60, start.Unix()+days*24*60*60
	}))
}

// failedSync is what Argo CD writes of an object that the API server refused.
func failedSync(t *testing.T, u *unstructured.Unstructured, name, message string) *unstructured.Unstructured {
	t.Helper()
	return with(t, with(t, u, "Failed", "status", "operationState", "phase"), []any{map[string]any{
		"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": name, "status": "SyncFailed", "message": message,
	}}, "status", "operationState", "syncResult", "resources")
}

const denied = `error when patching "/dev/shm/123": admission webhook "workloads.syncgate.io" denied the request: SYNC REFUSED [DigestMismatch] 1 of 1 gated objects: ` +
	`Deployment shop/web: containers[a].image is ghcr.io/shop/web:2@sha256:abababababab..., receipt 01J9 (issuer release) was signed for another image; Fix: ask release`

func (w *world) status(name string) string {
	w.t.Helper()
	return w.get(name).GetAnnotations()[settings.Status]
}

func TestWhatPolicyWarnsOfIsToldByObjectAndField(t *testing.T) {
	const (
		head = "[OnlyWarned] policy warns for this Application: what would be refused syncs"
		sign = "; Fix: syncgate sign --key FILE --issuer release --environment prod, commit .syncgate"
	)
	remote := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return with(t, u, "https://prod.example", "spec", "destination", "server")
	}
	source := func(tier string) map[string]any {
		return map[string]any{"repoURL": "x", "path": "y", "plugin": map[string]any{"name": "syncgate", "env": []any{map[string]any{"name": "TIER", "value": tier}}}}
	}
	resources := func(u *unstructured.Unstructured, list ...any) *unstructured.Unstructured {
		all, _, err := unstructured.NestedSlice(u.Object, "status", "resources")
		must(t, err)
		return with(t, u, append(all, list...), "status", "resources")
	}
	tests := []struct {
		name    string
		policy  string
		objects []client.Object
		forbid  string
		status  string
		metric  string // "REASON NUMBER", sorted
	}{
		{"without a receipt", lenient, []client.Object{app(t, "web"), deployment(t, "web", "")}, "",
			head + "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [ReceiptMissing] 1 of 1 gated objects: Deployment shop/web: no receipt for image (containers[a].image)" + sign, "ReceiptMissing 1"},
		{"with one", lenient, []client.Object{app(t, "web"), approved(t, "web", 30)}, "", head + "; of 1 gated objects that run none would be", ""},
		{"with one that was signed for other things", lenient, []client.Object{app(t, "web"), with(t, approved(t, "web", 30), true, "spec", "template", "spec", "hostNetwork")}, "",
			head + "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [DigestMismatch] 1 of 1 gated objects: Deployment shop/web: *" + sign, "DigestMismatch 1"},
		{"an image without a digest", lenient, []client.Object{app(t, "web"), with(t, deployment(t, "web", ""), []any{map[string]any{"name": "a", "image": "web:1"}}, "spec", "template", "spec", "containers")}, "",
			head + "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [ImageNotPinned] 1 of 1 gated objects: (1) Deployment shop/web: containers[a].image is web:1, which has no digest; (2) [ReceiptMissing] Deployment shop/web: *; Fix: syncgate pin, commit .syncgate", "ImageNotPinned 1"},
		{"an object that is to be replaced by force", lenient, []client.Object{app(t, "web"), annotated(deployment(t, "web", ""), "argocd.argoproj.io/sync-options", "Force=true")}, "",
			head + "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [ForceNotAllowed] 1 of 1 gated objects: Deployment shop/web: annotation argocd.argoproj.io/sync-options: Force=true *", "ForceNotAllowed 1"},
		{"an object that does not run", lenient, []client.Object{app(t, "web")}, "", head + "; of 0 gated objects that run none would be, and 1 could not be looked at: syncgate check judges them, too", "Unread 1"},
		{"a kind that must not be read", lenient, []client.Object{app(t, "web"), deployment(t, "web", "")}, "Deployment",
			head + "; of 0 gated objects that run none would be, and 1 could not be looked at (Deployment.apps): syncgate check judges them, too", "Unread 1"},
		{"a Secret", lenient, []client.Object{resources(app(t, "web"), map[string]any{"version": "v1", "kind": "Secret", "namespace": "shop", "name": "s"}), approved(t, "web", 30)}, "",
			head + "; of 1 gated objects that run none would be, and 1 could not be looked at (Secret): syncgate check judges them, too", "Unread 1"},
		{"a protected namespace", lenient, []client.Object{resources(app(t, "web"), map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": "argocd", "name": "argocd-cm"}), approved(t, "web", 30)}, "",
			head + "; of 2 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [ProtectedTarget] 1 of 2 gated objects: ConfigMap argocd/argocd-cm: namespace argocd is protected: *", "ProtectedTarget 1"},
		{"another cluster", lenient, []client.Object{remote(app(t, "web")), deployment(t, "web", "")}, "",
			head + "; what that is in another cluster, the controller does not see: syncgate check says it, and the log of the sidecar", "Unread 1"},
		{"another cluster whose webhook refused", lenient, []client.Object{failedSync(t, remote(app(t, "web")), "web", denied)}, "",
			head + "; of what is in another cluster the controller sees what the webhook refused, and no more: syncgate check says the rest; [WouldBeRefused] SYNC WOULD BE REFUSED [DigestMismatch] 1 of 1 gated objects: " +
				"Deployment shop/web: containers[a].image is ghcr.io/shop/web:2@sha256:abababababab..., receipt 01J9 (issuer release) was signed for another image (refused by the webhook in the last sync); Fix: ask release", "DigestMismatch 1"},
		{"what runs is good, and the webhook refused another", lenient, []client.Object{failedSync(t, app(t, "web"), "web", denied), approved(t, "web", 30)}, "",
			head + "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [DigestMismatch] 1 of 1 gated objects: Deployment shop/web: containers[a].image is *(refused by the webhook in the last sync); Fix: ask release", "DigestMismatch 1"},
		{"refused by somebody else", lenient, []client.Object{failedSync(t, app(t, "web"), "web", "denied: SYNC REFUSED [Nonsense] x"), approved(t, "web", 30)}, "", head + "; of 1 gated objects that run none would be", ""},
		{"several sources, one of which may have it", lenient + "apps: [{match: {env: {TIER: low}}, categories: [{name: image, required: false}]}]\n", []client.Object{
			with(t, app(t, "web"), []any{source("high"), source("low")}, "spec", "sources"), deployment(t, "web", "")}, "", head + "; of 1 gated objects that run none would be", ""},
		{"policy enforces", "", []client.Object{app(t, "web"), deployment(t, "web", "")}, "", "", ""},
		{"not through the plugin", lenient, []client.Object{native(t, "web"), deployment(t, "web", "")}, "", "[PluginMissing] *", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, files(t, tt.policy), tt.objects...)
			w.forbid[tt.forbid] = true
			w.sweep()
			if got := w.status("web"); !matches(tt.status, got) {
				t.Errorf("status:\ngot  %s\nwant %s", got, tt.status)
			}
			var metric []string
			for _, reason := range []string{"DigestMismatch", "ForceNotAllowed", "ImageNotPinned", "ProtectedTarget", "ReceiptMissing", "Unread"} {
				if n := w.metric("syncgate_argocd_would_be_refused", "web", "argocd", reason); n != 0 {
					metric = append(metric, fmt.Sprintf("%s %v", reason, n))
				}
			}
			if got := strings.Join(metric, ", "); got != tt.metric {
				t.Errorf("metric: got %q, want %q", got, tt.metric)
			}
			want := "" // the event's beginning
			if code := strings.Fields(tt.metric + " .")[0]; code != "Unread" && code != "." {
				want = "Warning WouldBeRefused SYNC WOULD BE REFUSED [" + code + "] "
			}
			got := ""
			for _, e := range w.said() {
				if strings.HasPrefix(e, "Warning WouldBeRefused ") {
					got += e
				}
			}
			if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
				t.Errorf("event: got %q, want %q", got, want)
			}
		})
	}
}

// matches reports whether got is want, in which each * stands for anything.
func matches(want, got string) bool {
	parts := strings.Split(want, "*")
	rest, ok := strings.CutPrefix(got, parts[0])
	if len(parts) == 1 {
		return ok && rest == ""
	}
	for _, p := range parts[1:] {
		i := strings.Index(rest, p)
		ok = ok && i >= 0
		if ok {
			rest = rest[i+len(p):]
		}
	}
	return ok
}

// Nothing is read, written or said again while nothing changes; and what can
// change without a sign is looked at now and then.
func TestWarnedApplicationsAreLookedAtWhenSomethingChanges(t *testing.T) {
	w := newWorld(t, files(t, lenient), app(t, "web"), approved(t, "web", 1))
	w.sweep()
	if diff := cmp.Diff([]string{"Deployment in shop"}, w.lists); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	w.said()
	quiet := func(when string) {
		t.Helper()
		w.sweep()
		if len(w.lists)+len(w.writes) != 0 || len(w.said()) != 0 {
			t.Errorf("%s: listed %q, wrote %q", when, w.lists, w.writes)
		}
	}
	quiet("at once")
	w.now = w.now.Add(again - time.Second)
	quiet("soon after")
	w.change("web", func(u *unstructured.Unstructured) { with(t, u, "Progressing", "status", "health", "status") })
	quiet("when its health changes")

	w.now = start.Add(25 * time.Hour) // the receipt has expired
	w.sweep()
	if !strings.Contains(w.status("web"), "[ReceiptExpired] 1 of 1 gated objects: Deployment shop/web: ") {
		t.Errorf("status: %s", w.status("web"))
	}
	if said := w.said(); !slices.ContainsFunc(said, func(e string) bool { return strings.HasPrefix(e, "Warning WouldBeRefused ") }) {
		t.Errorf("events: %q", said)
	}
	quiet("after the end of the receipt")

	// During an operation nothing is what it will be.
	u := &unstructured.Unstructured{Object: approved(t, "web", 30).Object}
	must(t, w.Client.Update(t.Context(), u))
	w.change("web", func(u *unstructured.Unstructured) {
		with(t, with(t, u, "b", "status", "sync", "revision"), "Running", "status", "operationState", "phase")
	})
	quiet("during an operation")
	w.change("web", func(u *unstructured.Unstructured) { with(t, u, "Succeeded", "status", "operationState", "phase") })
	w.sweep()
	if strings.Contains(w.status("web"), "WouldBeRefused") || w.metric("syncgate_argocd_would_be_refused") != 0 {
		t.Errorf("after it was signed: %s", w.status("web"))
	}

	w.reload("")
	w.sweep()
	if w.status("web") != "" {
		t.Errorf("status when policy enforces: %s", w.status("web"))
	}
}

func TestAListThatFailsIsTriedAgainAndStopsNothing(t *testing.T) {
	w := newWorld(t, files(t, lenient), app(t, "web"), deployment(t, "web", ""))
	w.fail["Deployment"] = true
	w.sweep()
	if got := w.status("web"); !strings.HasSuffix(got, "and 1 could not be looked at (Deployment.apps): syncgate check judges them, too") {
		t.Errorf("status: %s", got)
	}
	if w.pace.size() != 1 {
		t.Errorf("%d refreshes are due, want 1", w.pace.size())
	}
	w.fail["Deployment"] = false
	w.sweep()
	if got := w.status("web"); !strings.Contains(got, "[WouldBeRefused] ") {
		t.Errorf("status: %s", got)
	}
}

func TestWhatIsSaidOfManyObjectsIsBounded(t *testing.T) {
	const n = 300
	var objects []client.Object
	var resources []any
	for i := range n {
		name := fmt.Sprintf("%s-%03d", strings.Repeat("a", 50), i)
		objects = append(objects, deployment(t, name, ""))
		resources = append(resources, map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": name})
	}
	w := newWorld(t, files(t, lenient), append(objects, with(t, app(t, "web"), resources, "status", "resources"))...)
	w.sweep()
	status := w.status("web")
	if len(status) > 3<<10 || !strings.Contains(status, fmt.Sprintf("of %d gated objects that run %[1]d would be", n)) || !strings.Contains(status, "; and 295 more; Fix: ") {
		t.Errorf("%d bytes: %s", len(status), status)
	}
	if got := w.metric("syncgate_argocd_would_be_refused", "web", "ReceiptMissing"); got != n {
		t.Errorf("metric: got %v, want %d", got, n)
	}
	events := 0
	for _, e := range w.said() {
		if strings.HasPrefix(e, "Warning WouldBeRefused ") {
			events++
		}
	}
	if events != 20 {
		t.Errorf("%d events, want 20", events)
	}
	if got := note(strings.Repeat("x", 2000)); len(got) != 1024 {
		t.Errorf("an event's note has %d bytes, want what the API server takes", len(got))
	}
}
