//go:build linux

package main_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutOfMemoryLeavesNothing gives the plugin ever more memory, from too little
// to start with to enough: as long as it fails, wherever that is, Argo CD gets
// a status and not one byte of manifests, which pruning would go by.
func TestOutOfMemoryLeavesNothing(t *testing.T) {
	s := testStage(t)
	var objects strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&objects, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d, namespace: shop}\ndata: {a: %q}\n", i, strings.Repeat("x", 200))
	}
	ok(t, s.write("app/all.yaml", objects.String()))
	failed := 0
	for size := 8 << 10; ; size = size * 5 / 4 {
		if size > 4<<20 {
			t.Fatal("4 GiB were not enough")
		}
		c := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$0" generate app`, size), program)
		c.Dir = s.dir
		c.Env = []string{"SYNCGATE_POLICY=" + filepath.Join(s.dir, "policy.yaml"), "ARGOCD_APP_NAME=web", "ARGOCD_APP_NAMESPACE=shop", "TMPDIR=" + t.TempDir()}
		var stdout bytes.Buffer
		c.Stdout = &stdout
		err := c.Run()
		if err == nil {
			if n := strings.Count(stdout.String(), "\n"); n != 2000 {
				t.Errorf("with %d KiB: status 0 and %d objects, want all 2000", size, n)
			}
			break
		}
		if stdout.Len() > 0 {
			t.Errorf("with %d KiB: %v, and %d bytes on stdout", size, err, stdout.Len())
		}
		failed++
	}
	if failed < 5 {
		t.Errorf("only %d sizes were too small: this tested nothing", failed)
	}
}
