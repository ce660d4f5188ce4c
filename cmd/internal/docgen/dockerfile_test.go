package main

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDockerfileBuildsEveryProgramFromWhatItCopies stands in for a build of the
// image, which needs a container engine.
func TestDockerfileBuildsEveryProgramFromWhatItCopies(t *testing.T) {
	text := read(t, "../../../Dockerfile")
	var programs []string
	list, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e.IsDir() && e.Name() != "internal" {
			programs = append(programs, "./cmd/"+e.Name())
		}
	}
	build := regexp.MustCompile(`go build .* -o \S+ (.*?) *\\\n`).FindStringSubmatch(text)
	if build == nil {
		t.Fatal("no go build")
	}
	if diff := cmp.Diff(programs, strings.Fields(build[1])); diff != "" {
		t.Errorf("programs (-cmd +Dockerfile):\n%s", diff)
	}
	copied := matches(`(?m)^COPY (\S+) \S+$`, text)
	ignored := strings.Fields(read(t, "../../../.dockerignore"))
	c := exec.Command("go", append([]string{"list", "-deps", "-f", "{{.ImportPath}}"}, programs...)...)
	c.Dir = "../../.."
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range strings.Fields(string(out)) {
		rest, ours := strings.CutPrefix(p, "github.com/syncgate/syncgate/")
		if !ours {
			continue
		}
		if dir, _, _ := strings.Cut(rest, "/"); !slices.Contains(copied, dir) || slices.Contains(ignored, dir) {
			t.Errorf("%s is needed, and its folder not copied", path.Clean(rest))
		}
	}
}
