//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// scarce is what the render of one application may take of memory that is its
// own, in KiB: enough for a small one.
const scarce = 220_000

// scarceMemory makes a folder with a program syncgate that starts the one under
// test, for the application "memory" with so little memory that the kernel
// gives it no more in the middle of a large render.
func scarceMemory(e *harness.Env, b harness.Binaries) string {
	e.T.Helper()
	dir := e.Mkdir("scarce")
	text := fmt.Sprintf("#!/bin/sh\nif [ \"$ARGOCD_APP_NAME\" = memory ]; then ulimit -d %d; export SYNCGATE_TIMEOUT=45s; fi\nPATH='%s'\nexec syncgate \"$@\"\n", scarce, filepath.Dir(b.Syncgate))
	if err := os.WriteFile(filepath.Join(dir, "syncgate"), []byte(text), 0o755); err != nil {
		e.T.Fatal(err)
	}
	return dir
}

// exhausted: a render that runs out of memory ends without any output, and
// nothing is pruned. When it fits, what was taken away is.
func (w *sidecarWorld) exhausted(t *testing.T) {
	t.Helper()
	const app, large = "memory", "apps/memory/large.yaml"
	var many strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&many, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: many-%d}, data: {a: b, c: d, e: f, g: h}}\n", i)
	}
	state := func() any { return w.Snapshot(app, harness.ConfigMaps) }
	before, writes := state(), w.Writes(harness.ArgoCDUser, app)
	w.remove(t, "apps/memory/spare.yaml")
	w.repo.Write(map[string]string{large: many.String()})
	w.repo.Commit("Drop what is spare, and make far too much")
	report(t, "condition of a render that is out of memory", cut(w.waitRefused(app, "`syncgate generate` failed exit status 2: ", "memory", "runtime stack:")))
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("what is there (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(writes, w.Writes(harness.ArgoCDUser, app)); diff != "" {
		t.Errorf("Argo CD's writes (-before +after):\n%s", diff)
	}
	w.remove(t, large)
	w.head = w.repo.Commit("Make less")
	w.waitSynced(app, w.head)
	if u := w.Get(harness.ConfigMaps, app, "spare"); u != nil {
		t.Error("the spare ConfigMap is there after a whole render")
	}
}

// cut is the beginning of a text that nobody reads to its end.
func cut(text string) string { return text[:min(len(text), 400)] }
