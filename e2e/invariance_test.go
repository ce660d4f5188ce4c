//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// definitions are Go modules that hold the definitions of custom resources
// which the table of gated fields has rows for. The sum is that of the module,
// so that nobody has to be asked whether it is the right one.
var definitions = []struct{ module, sum, folder string }{
	{"sigs.k8s.io/gateway-api@v1.5.0", "h1:duoo14Ky/fJXpjpmyMISE2RTBGnfCg8zICfTYLTnBJA=", "config/crd/experimental"},
	{"github.com/fluxcd/source-controller@v1.9.6", "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=", "config/crd/bases"},
	{"github.com/fluxcd/kustomize-controller@v1.9.6", "h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE=", "config/crd/bases"},
	{"github.com/fluxcd/helm-controller@v1.6.0", "h1:jlS5X11SG26gspubB5aLrdVSCm0q0tA4ULsY+vwSkL0=", "config/crd/bases"},
	{"github.com/operator-framework/api@v0.30.0", "h1:44hCmGnEnZk/Miol5o44dhSldNH0EToQUG7vZTl29kk=", "crds"},
	{"open-cluster-management.io/api@v1.0.0", "h1:54QllH9DTudCk6VrGt0q8CDsE3MghqJeTaTN4RHZpE0=", "work/v1"},
}

const selection = "../plugin/projection/testdata/invariance"

// What the recorded selection says of the API server is still so: every
// document comes out as it was recorded, and none is left out.
func TestTheRecordedSelectionIsWhatTheAPIServerDoes(t *testing.T) {
	got := map[string]string{}
	for _, r := range invariance(t, filepath.Join(selection, "inputs"), "", os.Getenv("SYNCGATE_INVARIANCE_RECORD")) {
		got[fmt.Sprintf("%s document %d", strings.TrimSuffix(r.path, ".yaml"), r.document)] = r.outcome + " " + r.field
		if r.outcome == "Same" && (r.before != r.after || !strings.HasPrefix(r.before, "sha256:")) {
			t.Errorf("%s document %d: digests %q and %q", r.path, r.document, r.before, r.after)
		}
	}
	want := map[string]string{}
	files, err := filepath.Glob(filepath.Join(selection, "pairs", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(strings.NewReader(string(raw))); d.More(); {
			var pair struct {
				Document       int
				Outcome, Field string
			}
			if err := d.Decode(&pair); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			want[fmt.Sprintf("%s document %d", strings.TrimSuffix(filepath.Base(f), ".json"), pair.Document)] = pair.Outcome + " " + pair.Field
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("outcomes of %d documents (-recorded +now):\n%s", len(want), diff)
	}
}

// TestDigestsStayOnceStored is "make invariance": it asks about every manifest
// of a folder.
func TestDigestsStayOnceStored(t *testing.T) {
	corpus := os.Getenv("SYNCGATE_INVARIANCE_CORPUS")
	if corpus == "" {
		t.Skip("SYNCGATE_INVARIANCE_CORPUS names no folder of manifests")
	}
	rows := invariance(t, corpus, os.Getenv("SYNCGATE_INVARIANCE_OUT"), "")
	t.Logf("%d documents", len(rows))
}

// outcome is a line of the table that the program writes.
type outcome struct {
	path                                string
	document                            int
	kind, outcome, before, after, field string
}

// invariance runs the program over a folder against a cluster of its own. The
// program ends with status 1 if a digest changes and nothing explains it.
func invariance(t *testing.T, corpus, out, record string) []outcome {
	t.Helper()
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	folders := []string{filepath.Join(b.ArgoCDManifests, "crds")}
	for _, d := range definitions {
		folders = append(folders, filepath.Join(download(e, d.module, d.sum), d.folder))
	}
	if out == "" {
		out = e.Path("invariance.tsv")
	}
	program := e.Path("bin", "invariance")
	build := exec.Command("go", "build", "-o", program, "./plugin/projection/internal/invariance")
	build.Dir = ".."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, text)
	}
	args := []string{"--kubeconfig", cluster.Kubeconfig, "--corpus", corpus, "--out", out, "--crds", strings.Join(folders, ",")}
	if record != "" {
		args = append(args, "--record", record)
	}
	text, err := exec.Command(program, args...).CombinedOutput()
	t.Logf("%s", text)
	if err != nil {
		t.Errorf("running the program: %v", err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var rows []outcome
	for i, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 7 {
			t.Fatalf("line %d: got %d columns, want 7", i+1, len(f))
		}
		if i == 0 {
			continue // names of columns
		}
		r := outcome{path: f[0], kind: f[2], outcome: f[3], before: f[4], after: f[5], field: f[6]}
		if _, err := fmt.Sscan(f[1], &r.document); err != nil {
			t.Fatalf("line %d: document %q: %v", i+1, f[1], err)
		}
		rows = append(rows, r)
	}
	return rows
}

// download returns the folder of a Go module.
func download(e *harness.Env, module, sum string) string {
	e.T.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = e.Dir // outside any module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOSUMDB=off")
	out, err := cmd.Output()
	if err != nil {
		e.T.Fatalf("downloading %s: %v: %s", module, err, out)
	}
	var m struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &m); err != nil {
		e.T.Fatalf("downloading %s: %v", module, err)
	}
	if m.Sum != sum {
		e.T.Fatalf("%s: got sum %q, want %q", module, m.Sum, sum)
	}
	return m.Dir
}
