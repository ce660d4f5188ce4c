package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
)

func TestGeneratedDocsAreCurrent(t *testing.T) {
	files, err := generate("../../../docs")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run go generate ./cmd/internal/docgen (-want +got):\n%s", path, diff)
		}
	}
}

func TestReplaceRefusesAFileWithoutTheMarks(t *testing.T) {
	for name, file := range map[string]string{"none": "text\n", "no end": "a\n" + begin + "b\n", "end first": end + begin} {
		if got, err := replace([]byte(file), []byte("new\n")); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
	got, err := replace([]byte("a\n"+begin+"old\n"+end+"z\n"), []byte("new\n"))
	if want := "a\n" + begin + "new\n" + end + "z\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestOnlyReservedCodesAreUnused looks for what mentions each code: a code that
// nothing reports must be marked in the docs, and one that something reports
// must not.
func TestOnlyReservedCodesAreUnused(t *testing.T) {
	text := sources(t, "../../../plugin", "gate/reason.go", "gate/class.go", "cli/codes.go")
	for _, r := range gate.Reasons() {
		// Within gate the constants stand without the package's name.
		used := regexp.MustCompile(`\b(gate\.)?` + string(r) + `\b`).MatchString(text)
		if want := !slices.Contains(reserved, r); used != want {
			t.Errorf("%s: got used %v, want %v", r, used, want)
		}
	}
}

// sources is the code of the packages below dir but for tests, comments, and
// what begins with one of the given paths.
func sources(t *testing.T, dir string, but ...string) string {
	t.Helper()
	var b strings.Builder
	comment := regexp.MustCompile(`(?m)//.*$`)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || slices.ContainsFunc(but, func(p string) bool { return strings.HasPrefix(filepath.ToSlash(rel), p) }) {
			return err
		}
		data, err := os.ReadFile(path)
		b.Write(comment.ReplaceAll(data, nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
