//go:build e2e && linux

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// ends are what can happen to a render, and what is said of it then.
var ends = []struct {
	app  string
	do   func(t *testing.T, pid int)
	want []string
}{
	{"term", func(t *testing.T, pid int) { end(t, pid, syscall.SIGTERM) }, []string{"`syncgate generate` failed exit status 20: RENDER FAILED [RenderFailed] told to stop before it was ready; Fix: "}},
	// The kernel ends a container's largest process like this when memory is out;
	// see exhausted for one that is given no more.
	{"kill", func(t *testing.T, pid int) { end(t, pid, syscall.SIGKILL) }, []string{"`syncgate generate` failed signal: killed"}},
	{"late", nil, []string{"`syncgate generate` failed exit status 20: RENDER FAILED [RenderFailed] not ready within 12s; Fix: "}},
}

func end(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// asked is what an annotation does to an application that is synced without it:
// what is refused then, or, if it would relax, why it is.
var asked = []struct {
	app, files, environment string
	annotation              map[string]any
	want                    []string
}{
	{"asked-mode", unsignedDeployment("web", harness.Image("web:1")), "", map[string]any{"syncgate.io/mode": "Enforce"},
		[]string{"SYNC REFUSED [ReceiptMissing]", "Deployment asked-mode/web"}},
	{"asked-environment", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/environment": "stage"},
		[]string{"SYNC REFUSED [ReceiptMissing]", "--environment stage,"}},
	{"asked-categories", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n", "", map[string]any{"syncgate.io/categories": "service"},
		[]string{"SYNC REFUSED [ReceiptMissing]", "Service asked-categories/web: no receipt for service"}},
	{"asked-renderer", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/renderer": "helm"},
		[]string{"RENDER FAILED [RenderFailed] helm: "}},
	{"asked-lock", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/lock": "locks/empty"},
		[]string{"SYNC REFUSED [ReceiptMissing]", "Deployment asked-lock/web"}},
	{"relax-mode", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/mode": "Warn"},
		[]string{"GATE ERROR [PolicyInvalid] annotation of the Application: ", "policy.yaml line 10: mode.render: the mode is Enforce, and Warn would relax it"}},
	{"relax-environment", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/environment": "stage"},
		[]string{"GATE ERROR [PolicyInvalid] annotation of the Application: ", `policy.yaml line 3: environments: environment "stage" is not one that policy allows for application "relax-environment"`}},
	{"relax-categories", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/categories": "-image"},
		[]string{"GATE ERROR [PolicyInvalid] annotation of the Application: ", "policy.yaml line 11: categories[0]: category image must be signed, and leaving it out would relax that"}},
	{"relax-unknown", unsignedDeployment("web", harness.Image("web:1")), "prod", map[string]any{"syncgate.io/skip": "true"},
		[]string{`GATE ERROR [PolicyInvalid] annotation "syncgate.io/skip" is none of syncgate.io/categories, `}},
}

const spare = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: spare}\n"

// TestTheSidecarWhateverHappens: renders that are ended, settings that change
// without a commit, and the ways around, on one real Argo CD.
func TestTheSidecarWhateverHappens(t *testing.T) {
	w := newSidecarWorld(t, harness.ArgoCD2)
	files := map[string]string{"locks/empty/keep": "", "apps/gone/README.md": "nothing\n", "apps/gone/all.yaml": spare, "apps/memory/spare.yaml": spare, "apps/memory/kept.yaml": strings.Replace(spare, "spare", "kept", 1), "apps/moved/web.yaml": unsignedDeployment("web", harness.Image("web:1"))}
	held := func(app, tag string) map[string]string {
		return map[string]string{"apps/" + app + "/web.yaml": unsignedDeployment("web", w.registry.host+"/held/"+app+":"+tag)}
	}
	for _, x := range ends {
		maps.Copy(files, held(x.app, "1"))
		files["apps/"+x.app+"/spare.yaml"] = spare
	}
	for _, x := range asked {
		files["apps/"+x.app+"/all.yaml"] = x.files
	}
	for _, project := range []string{"sandbox", "gated"} {
		w.Apply(fmt.Appendf(nil, sidecarProjects, project))
	}
	w.repo.Write(files)
	for _, x := range ends {
		w.sign(x.app, "prod")
	}
	for _, x := range asked {
		if x.environment != "" {
			w.sign(x.app, x.environment)
		}
	}
	first := w.repo.Commit("Release them all")
	for _, x := range ends {
		w.create(x.app, "default", byPlugin, "")
	}
	for _, x := range asked {
		annotation := ""
		if x.app == "asked-environment" {
			annotation = "syncgate.io/environment: prod"
		}
		w.create(x.app, "default", byPlugin, annotation)
	}
	w.create("gone", "default", byPlugin, "")
	w.create("memory", "default", byPlugin, "")
	w.create("moved", "sandbox", "plugin: {name: syncgate, env: [{name: TIER, value: sandbox}]}", "")
	for _, app := range slices.Sorted(maps.Keys(w.apps)) {
		w.waitSynced(app, first)
	}

	w.endedRenders(t)
	w.exhausted(t)
	w.changedAnnotations(t)
	w.movedApplication(t)
	w.waysAround(t)
	w.deletedApplication(t, "asked-mode") // which nobody signed
	w.deletedApplication(t, "asked-lock")
}

// endedRenders ends renders of a commit that takes an object away: nothing is
// pruned until a render is whole.
func (w *sidecarWorld) endedRenders(t *testing.T) {
	t.Helper()
	before, writes := map[string]any{}, map[string][]string{}
	state := func(app string) any { return w.Snapshot(app, harness.Deployments, harness.ConfigMaps) }
	for _, x := range ends {
		w.repo.Write(map[string]string{"apps/" + x.app + "/web.yaml": unsignedDeployment("web", w.registry.host+"/held/"+x.app+":2")})
		w.remove(t, "apps/"+x.app+"/spare.yaml")
		w.sign(x.app, "prod")
	}
	w.remove(t, "apps/gone/all.yaml")
	for _, app := range []string{"term", "kill", "late", "gone"} {
		before[app], writes[app] = state(app), w.Writes(harness.ArgoCDUser, app)
	}
	w.registry.hold()
	second := w.repo.Commit("Drop what is spare")
	for _, x := range ends {
		// Again and again: Argo CD keeps the first failure of a poll to itself.
		w.wait("refusal of "+x.app, func() (string, bool) {
			s := w.apps[x.app].Status()
			if s.Sync == "Unknown" && harness.ContainsAll(s.Condition, x.want) {
				report(t, "condition after "+x.app, s.Condition)
				return "", true
			}
			if x.do != nil {
				if pid := w.render(x.app); pid != 0 {
					x.do(t, pid)
				}
			}
			return s.String(), false
		})
	}
	report(t, "condition of no objects", w.waitRefused("gone", "RENDER FAILED [EmptyRender] the render has no objects; with pruning on, syncing it would delete the application; Fix: "))
	for app := range before {
		if diff := cmp.Diff(before[app], state(app)); diff != "" {
			t.Errorf("%s: what runs (-before +after):\n%s", app, diff)
		}
		if diff := cmp.Diff(writes[app], w.Writes(harness.ArgoCDUser, app)); diff != "" {
			t.Errorf("%s: Argo CD's writes (-before +after):\n%s", app, diff)
		}
	}
	// The same commit, rendered whole: now it is pruned.
	w.registry.release()
	for _, x := range ends {
		w.waitSynced(x.app, second)
		if u := w.Get(harness.ConfigMaps, x.app, "spare"); u != nil {
			t.Errorf("%s: the spare ConfigMap is there after a whole render", x.app)
		}
		if got := harness.Images(w.Get(harness.Deployments, x.app, "web")); len(got) != 1 || !strings.Contains(got[0], "/held/"+x.app+":2@sha256:") {
			t.Errorf("%s runs %q, want the second image", x.app, got)
		}
	}
	// And back to what was approved before: a revert needs nobody.
	w.Run(w.repo.Work, nil, "git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.test", "revert", "--no-commit", "HEAD")
	w.head = w.repo.Commit("Revert")
	for _, x := range ends {
		w.waitSynced(x.app, w.head)
		if got := harness.Images(w.Get(harness.Deployments, x.app, "web")); len(got) != 1 || !strings.Contains(got[0], "/held/"+x.app+":1@sha256:") {
			t.Errorf("%s runs %q after the revert, want the first image", x.app, got)
		}
	}
	w.wait("the slots empty", func() (string, bool) {
		left, err := filepath.Glob(filepath.Join(w.slots, "?"))
		return fmt.Sprint(left, err), err == nil && len(left) == 0
	})
}

func (w *sidecarWorld) remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(filepath.Join(w.repo.Work, filepath.FromSlash(file))); err != nil {
		t.Fatal(err)
	}
}

// changedAnnotations: each counts without a commit, and what would relax is
// refused.
func (w *sidecarWorld) changedAnnotations(t *testing.T) {
	t.Helper()
	for _, x := range asked {
		w.annotate(x.app, x.annotation)
	}
	for _, x := range asked {
		report(t, fmt.Sprint("condition after ", x.annotation), w.waitRefused(x.app, x.want...))
	}
	// And it stays refused: what was good before is not in the cache any more.
	for _, x := range asked {
		if s := w.apps[x.app].Refresh("normal"); s.Sync != "Unknown" || s.Condition == "" {
			t.Errorf("%s after a further refresh: %s", x.app, s)
		}
	}
	if s := w.apps["asked-lock"].Sync(w.head); s.Phase != "Error" || !strings.Contains(s.Operation, "SYNC REFUSED [ReceiptMissing]") {
		t.Errorf("a sync by hand of what an annotation refuses: %s", s)
	}
	for _, x := range asked {
		none := map[string]any{}
		for key := range x.annotation {
			none[key] = nil
		}
		if x.app == "asked-environment" {
			none["syncgate.io/environment"] = "prod"
		}
		w.annotate(x.app, none)
	}
	for _, x := range asked {
		w.wait(x.app+" in sync again", func() (string, bool) {
			s := w.apps[x.app].Status()
			return s.String(), s.Sync == "Synced" && s.Condition == ""
		})
	}
}
