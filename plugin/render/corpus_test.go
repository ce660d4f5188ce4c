package render_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/render"
)

// stricter lists kustomizations that kustomize builds and we refuse, with a
// part of the reason. Today there are only some whose data files, not being
// manifests, are not in the corpus: RENDER.tsv was made with stand-ins.
var stricter = map[string]string{
	"argoproj+argo-cd/examples/plugins/helm":                                                                  `"generate.sh" does not exist`,
	"fluxcd+flux2/cmd/flux/testdata/build-kustomization/podinfo":                                              `"token.encrypted" does not exist`,
	"kubeflow+manifests/applications/pipeline/upstream/base/installs/multi-user/pipelines-profile-controller": `"sync.py" does not exist`,
	"redhat-cop+gitops-catalog/jenkins2/overlays/m2-pvc":                                                      `"settings.xml" does not exist`,
	"redhat-cop+gitops-catalog/jenkins2/overlays/m2-pvc-nexus2-sonarqube8-settings":                           `"settings.xml" does not exist`,
	"redhat-cop+gitops-catalog/jenkins2/overlays/nexus2-settings":                                             `"settings.xml" does not exist`,
}

// corpusRow is one line of RENDER.tsv: what kustomize or Helm itself made of
// a directory, offline.
type corpusRow struct {
	dir    string
	values string // file, "" for none
	ok     bool
	docs   int
}

// corpus returns the directory of the corpus and its rows of a type.
func corpus(t *testing.T, kind string) (string, []corpusRow) {
	t.Helper()
	dir := os.Getenv("SYNCGATE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "corpus")
	f, err := os.Open(filepath.Join(dir, "RENDER.tsv"))
	if err != nil {
		t.Skipf("no corpus of public manifests: set SYNCGATE_SHARED to run this test: %v", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []corpusRow
	for _, l := range lines {
		if !strings.HasPrefix(l[0], kind) {
			continue
		}
		docs, err := strconv.Atoi(l[3])
		if err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		name, values, _ := strings.Cut(l[1], " -f ")
		rows = append(rows, corpusRow{dir: name, values: values, ok: l[2] == "ok", docs: docs})
	}
	return filepath.Join(dir, "open"), rows
}

// Every kustomization of the public corpus renders to as many objects as
// kustomize itself made, or is refused for a reason listed above; what
// kustomize could not build offline is an error here too.
func TestCorpusKustomizationsRenderAsKustomizeDoes(t *testing.T) {
	root, rows := corpus(t, "kustomize")
	built := 0
	for _, row := range rows {
		app := filepath.Join(root, filepath.FromSlash(row.dir))
		repository, _, _ := strings.Cut(row.dir, "/")
		got, err := render.Render(t.Context(), render.Options{Dir: app, Root: filepath.Join(root, repository), Renderer: render.Kustomize})
		if err != nil && (strings.Contains(err.Error(), root) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: error names an absolute path or has several lines: %v", row.dir, err)
		}
		switch reason, listed := stricter[row.dir]; {
		case listed && err == nil:
			t.Errorf("%s: renders, but is listed as refused for %q", row.dir, reason)
		case listed && !strings.Contains(err.Error(), reason):
			t.Errorf("%s: got error %q, want one with %q", row.dir, err, reason)
		case listed:
		case row.ok && err != nil:
			t.Errorf("%s: kustomize makes %d objects, we fail: %v", row.dir, row.docs, err)
		case !row.ok && err == nil:
			t.Errorf("%s: renders %d objects, but kustomize fails", row.dir, len(got.Objects))
		case row.ok && len(got.Objects) != row.docs:
			t.Errorf("%s: got %d objects, want %d", row.dir, len(got.Objects), row.docs)
		default:
			built++
		}
	}
	if built < 200 {
		t.Errorf("only %d of %d kustomizations compared", built, len(rows))
	}
}
