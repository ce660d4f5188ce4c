//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// controllerPolicy warns for one application and enforces for all others.
const controllerPolicy = policy + `revocations: {file: revocations.jwt, issuers: [release]}
apps:
- match: {name: lenient}
  mode: {render: Warn}
`

// workload is an application of one Deployment.
func workload(name string) map[string]string {
	return map[string]string{"apps/" + name + "/web.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: %[2]q}]}
`, name, harness.Image(name+":1"))}
}

// refreshes are those that a controller has asked for, by application, with what
// they were for.
func refreshes(log string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(log) {
		var l struct{ Msg, Application, Cause string }
		if err := json.Unmarshal([]byte(line), &l); err == nil && l.Msg == "refresh" {
			out[l.Application] = l.Cause
		}
	}
	return out
}

// TestTheControllerKeepsArgoCDsCacheHonest: with the shipped rights and nothing
// else, against the real cache.
func TestTheControllerKeepsArgoCDsCacheHonest(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	s := newShop(e, b)
	e.Write("etc/policy.yaml", []byte(controllerPolicy))
	// The sidecar's policy and the controller's are one folder here; the
	// settings are what Mount brings.
	list := e.Path("etc", "revocations.jwt")
	e.Run(e.Dir, nil, s.syncgate, "revoke", "--list", list, "--key", s.key, "--issuer", "release", "--release", "long-ago")
	cluster := harness.StartCluster(e, b)
	apps := harness.NewMount(e, "apps", nil)
	argo := harness.StartArgoCD(cluster, b, filepath.Join(b.Manifests, "argocd"), "SYNCGATE_POLICY="+s.policy, "SYNCGATE_APPS="+apps.Dir)
	// Ten seconds are how long Mount may take: it is called all the time.
	controller := harness.StartController(cluster, b, apps, filepath.Dir(s.policy), "--settle=10s", "--refresh-rate=20")
	mounting := func(what string, check func() (string, bool)) {
		t.Helper()
		e.Eventually(what, func() (string, bool) {
			controller.Mount()
			return check()
		})
	}

	bad, good := []string{"a", "b", "c"}, []string{"d", "e", "f", "g", "h"}
	files := workload("lenient")
	for _, name := range slices.Concat(bad, good) {
		maps.Copy(files, workload(name))
	}
	files["apps/native/config.yaml"] = base["apps/shop/base/config.yaml"]
	s.repo.Write(files)
	for _, name := range slices.Concat(bad, good) {
		release := "1.4"
		if slices.Contains(bad, name) {
			release = "1.5"
		}
		e.Run(filepath.Join(s.repo.Work, "apps", name), nil, s.syncgate, "sign", "--policy", s.policy, "--key", s.key, "--issuer", "release",
			"--environment", environment, "--namespace", namespace, "--release", release, "--yes")
	}
	revision := s.repo.Commit("Release them all")
	created := map[string]*harness.Application{}
	for _, name := range append(slices.Concat(bad, good), "lenient") {
		created[name] = argo.CreateApplication(name, s.repo.URL, "apps/"+name, "syncgate", namespace)
	}
	created["native"] = argo.CreateDirectoryApplication("native", s.repo.URL, "apps/native", namespace)

	// 1. New applications sync when their settings are mounted, and are refreshed
	// once.
	settled := func() (string, bool) {
		done := refreshes(controller.Log())
		for name, app := range created {
			if st := app.Status(); st.Sync != "Synced" || st.Synced != revision || st.Annotated {
				return name + ": " + st.String(), false
			}
			if _, once := done[name]; !once && name != "native" {
				return name + " was not refreshed", false
			}
		}
		return fmt.Sprint(done), len(done) == len(created)-1
	}
	mounting("all applications synced and refreshed", settled)

	// 2. What goes around the gate is told on the application.
	mounting("the status of native", func() (string, bool) {
		status := cluster.Get(harness.Applications, "argocd", "native").GetAnnotations()["syncgate.io/status"]
		return status, strings.HasPrefix(status, "[PluginMissing] ")
	})
	mounting("the event of native", func() (string, bool) {
		text := strings.Join(created["native"].Events(), "\n")
		return text, strings.Contains(text, "Warning PluginMissing: no source names the plugin syncgate")
	})

	// What only warns is judged where it runs, and told by object and field. Nobody
	// writes it again while nothing changes.
	mounting("the status of lenient", func() (string, bool) {
		status := cluster.Get(harness.Applications, "argocd", "lenient").GetAnnotations()["syncgate.io/status"]
		return status, strings.Contains(status, "; of 1 gated objects that run 1 would be; [WouldBeRefused] SYNC WOULD BE REFUSED [ReceiptMissing] 1 of 1 gated objects: Deployment shop/lenient: no receipt for image (containers[web].image") &&
			strings.Contains(status, "; Fix: syncgate sign ")
	})
	mounting("the event of lenient", func() (string, bool) {
		text := strings.Join(created["lenient"].Events(), "\n")
		return text, strings.Contains(text, "Warning WouldBeRefused: SYNC WOULD BE REFUSED [ReceiptMissing] Deployment shop/lenient: ")
	})
	report(t, "status of an application that only warns", cluster.Get(harness.Applications, "argocd", "lenient").GetAnnotations()["syncgate.io/status"])
	writes := func() int {
		return len(cluster.Audit(func(a harness.AuditEvent) bool {
			return a.User.Username == "system:serviceaccount:syncgate-system:syncgate-controller" && a.ObjectRef.Resource == "applications" && a.ObjectRef.Name == "lenient"
		}))
	}
	told := writes()

	// 3. A revocation refreshes exactly whom it concerns, and their cached
	// approvals are gone.
	before := len(controller.Log())
	e.Run(e.Dir, nil, s.syncgate, "revoke", "--list", list, "--key", s.key, "--issuer", "release", "--release", "1.5")
	revoked := time.Now()
	gone := map[string]time.Duration{}
	mounting("refusal of those that it takes back", func() (string, bool) {
		last := ""
		for _, name := range bad {
			st := created[name].Status()
			if _, seen := gone[name]; seen {
				continue
			}
			if st.Sync == "Unknown" && strings.Contains(st.Condition, "SYNC REFUSED [ReceiptRevoked]") {
				gone[name] = time.Since(revoked)
				continue
			}
			last = name + ": " + st.String()
		}
		return last, len(gone) == len(bad)
	})
	t.Logf("seconds from revoke to the cached approval gone, with a settle of 10 s: %v", gone)
	report(t, "condition of a revoked application", created["a"].Status().Condition)
	// No sync gets the approved render from the cache any more.
	if st := created["a"].Sync(revision); st.Phase != "Error" || !strings.Contains(st.Operation, "SYNC REFUSED [ReceiptRevoked]") {
		t.Errorf("a sync after the revocation: %s", st)
	}
	mounting("the record of the new list", func() (string, bool) { // of all: nobody is left to be refreshed
		data, _ := cluster.Get(harness.ConfigMaps, "argocd", "syncgate-refreshed").Object["data"].(map[string]any)
		lists := map[string]bool{}
		for _, stamp := range data {
			lists[fmt.Sprint(stamp)[strings.LastIndex(fmt.Sprint(stamp), " "):]] = true
		}
		return fmt.Sprint(data), len(lists) == 1
	})
	want := map[string]string{"a": "revocation", "b": "revocation", "c": "revocation"}
	if diff := cmp.Diff(want, refreshes(controller.Log()[before:])); diff != "" {
		t.Errorf("refreshes after the revocation (-want +got):\n%s", diff)
	}
	for _, name := range good {
		if st := created[name].Status(); st.Sync != "Synced" {
			t.Errorf("%s is %s, want Synced", name, st)
		}
	}

	if again := writes(); again != told {
		t.Errorf("the controller has written lenient %d times, want none after %d: nothing of it has changed", again, told)
	}

	// 4. An annotation tightens without a commit.
	if st := created["lenient"].Status(); st.Sync != "Synced" {
		t.Errorf("lenient is %s, want Synced by a warning", st)
	}
	annotate := func(name string, value any) {
		t.Helper()
		cluster.Patch(harness.Applications, "argocd", name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"syncgate.io/mode": value}}})
	}
	annotate("lenient", "Enforce")
	mounting("refusal of lenient", func() (string, bool) {
		st := created["lenient"].Status()
		return st.String(), st.Sync == "Unknown" && strings.Contains(st.Condition, "SYNC REFUSED [ReceiptMissing]")
	})

	// 5. One that would relax is refused, naming the line.
	annotate("d", "Warn")
	mounting("refusal of d", func() (string, bool) {
		st := created["d"].Status()
		return st.String(), st.Sync == "Unknown" && strings.Contains(st.Condition, "mode.render: the mode is Enforce, and Warn would relax it")
	})
	report(t, "condition of an annotation that would relax", created["d"].Status().Condition)
	annotate("d", nil)
	mounting("d in sync again", func() (string, bool) {
		st := created["d"].Status()
		return st.String(), st.Sync == "Synced" && st.Condition == ""
	})

	// 6. Whoever has the controller's token can do no more than it does.
	thief := cluster.AsServiceAccount("syncgate-system", "syncgate-controller")
	for what, patch := range map[string]map[string]any{
		"take the plugin out":    {"spec": map[string]any{"source": map[string]any{"plugin": nil}}},
		"sync by itself":         {"operation": map[string]any{"sync": map[string]any{"manifests": []any{"{}"}}}},
		"set another annotation": {"metadata": map[string]any{"annotations": map[string]any{"syncgate.io/mode": "Warn"}}},
		"take away a finalizer":  {"metadata": map[string]any{"finalizers": []any{"x.example/y"}}},
	} {
		if err := thief.TryPatch(harness.Applications, "argocd", "e", patch); err == nil || !strings.Contains(err.Error(), "SYNC REFUSED [ProtectedTarget]") {
			t.Errorf("with the controller's token somebody could %s: %v", what, err)
		}
	}
	for _, args := range [][]string{
		{"create", "configmap", "syncgate-off", "--namespace=argocd"}, {"get", "secrets", "--all-namespaces"},
		{"delete", "application.argoproj.io", "e", "--namespace=argocd"}, {"get", "configmap", "argocd-cm", "--namespace=argocd"},
	} {
		if r := thief.TryKubectl(nil, args...); r.Status == 0 || !strings.Contains(string(r.Stderr), "forbidden") {
			t.Errorf("with the controller's token kubectl %v: status %d, %s", args, r.Status, r.Stderr)
		}
	}
}
