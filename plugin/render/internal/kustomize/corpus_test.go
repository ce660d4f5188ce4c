package kustomize

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// Our trees are those of kustomize's own encoder, but for how a number is
// written.
func TestTreesOfTheCorpusEqualKustomizesOwn(t *testing.T) {
	shared := os.Getenv("SYNCGATE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "..", "shared")
	}
	root := filepath.Join(shared, "corpus", "open")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no corpus of public manifests: set SYNCGATE_SHARED to run this test: %v", err)
	}
	tree, err := repo.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	tree.Close()
	compared := 0
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !slices.Contains(FileNames(), d.Name()) {
			return err
		}
		tree, err := repo.Open(t.Context(), root)
		if err != nil {
			return err
		}
		defer tree.Close()
		dir, err := tree.Rel(filepath.Dir(p))
		if err != nil {
			return err
		}
		var lines []string
		lines, err = quietly(func() error {
			m, err := run(newFiles(tree), dir)
			if err != nil {
				return nil // the corpus test of package render judges these
			}
			for _, r := range m.Resources() {
				got, err := object(r)
				if err != nil {
					t.Errorf("%s: %s %q: %v", dir, r.GetKind(), r.GetName(), err)
					continue
				}
				want, err := r.MarshalJSON()
				if err != nil {
					return err
				}
				if diff := cmp.Diff(floats(t, want), floats(t, encode(t, got))); diff != "" {
					t.Errorf("%s: %s %q (-kustomize +ours):\n%s", dir, r.GetKind(), r.GetName(), diff)
				}
				compared++
			}
			return nil
		})
		_ = lines // warnings of the builds
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if compared < 1000 {
		t.Errorf("only %d objects compared", compared)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// floats decodes JSON with every number as a float64.
func floats(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, strings.TrimSpace(string(data)))
	}
	return v
}
