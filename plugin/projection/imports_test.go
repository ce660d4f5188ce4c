package projection

import (
	"os/exec"
	"strings"
	"testing"
)

// The core is pure: values in, values out. What it must not reach, by any
// way, is refused with the importing chain.
func TestTheCoreImportsNoClusterNoNetworkNoSystem(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports ","}}`, ".").Output()
	if err != nil {
		t.Fatalf("listing dependencies: %v", err)
	}
	direct := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		path, imports, _ := strings.Cut(line, " ")
		if path == "github.com/syncgate/syncgate/plugin/projection" {
			for _, i := range strings.Split(imports, ",") {
				direct[i] = true
			}
		}
		for _, banned := range []string{"k8s.io/", "sigs.k8s.io/", "net/http"} {
			if path == banned || strings.HasSuffix(banned, "/") && strings.HasPrefix(path, banned) {
				t.Errorf("reaches %s", path)
			}
		}
		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") && path != "github.com/syncgate/syncgate/plugin/projection" {
			t.Errorf("reaches %s, which is not in the standard library", path)
		}
	}
	if len(direct) == 0 {
		t.Fatal("go list says nothing of this package")
	}
	for _, banned := range []string{"os", "time", "net", "io/fs", "os/exec", "sync"} {
		if direct[banned] {
			t.Errorf("imports %s", banned)
		}
	}
}
