package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVectorsOnDiskAreTheGeneratedOnes(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "vectors")
	got := map[string][]byte{}
	for _, pattern := range []string{"*.txt", filepath.Join("issuers", "*.json")} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got[filepath.ToSlash(name)], err = os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run go generate ./plugin/receipt/vectors (-generated +on disk):\n%s", diff)
	}
}
