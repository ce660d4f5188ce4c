package lock

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// repository is a real one: what merges is decided by git.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repository{t: t, dir: t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

// try runs git without anybody's configuration.
func (r repository) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r repository) git(args ...string) {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit makes a change on a branch that starts at main.
func (r repository) commit(branch string, change func()) {
	r.t.Helper()
	if branch == "main" {
		r.git("checkout", "-q", "-B", "main")
	} else {
		r.git("checkout", "-q", "-b", branch, "main")
	}
	change()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change "+branch)
}

// on applies a change to the lock and saves it.
func (r repository) on(change func(*Lock)) func() {
	return func() {
		l := open(r.t, r.dir)
		change(l)
		save(r.t, l)
	}
}

// bump is what a release does: another tag for an image and another receipt.
func bump(t *testing.T, l *Lock, environment, app, tag string) {
	t.Helper()
	name := "ghcr.io/acme/" + app
	l.KeepPins(func(p Pin) bool { return p.Name != name })
	pin(t, l, name, tag, digestA[:len(digestA)-1]+tag[len(tag)-1:])
	put(t, l, entry(t, environment, deployment(app), "release", tag))
}

func TestBranchesMergeUnlessTheyDisagree(t *testing.T) {
	for _, tc := range []struct {
		name        string
		left, right func(*testing.T, *Lock)
	}{
		{
			"two neighbouring bumps",
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "b", "1.2") },
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "c", "1.2") },
		},
		{
			"two new subjects in one gap",
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "bb", "1.1") },
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "bc", "1.1") },
		},
		{
			"two issuers sign one subject",
			func(t *testing.T, l *Lock) { put(t, l, entry(t, "prod", deployment("b"), "release", "9")) },
			func(t *testing.T, l *Lock) { put(t, l, entry(t, "prod", deployment("b"), "security", "9")) },
		},
		{
			"two environments get one subject",
			func(t *testing.T, l *Lock) { put(t, l, entry(t, "prod", deployment("b"), "release", "9")) },
			func(t *testing.T, l *Lock) { put(t, l, entry(t, "stage", deployment("b"), "release", "9")) },
		},
		{
			"one drops an application, one bumps its neighbour",
			func(t *testing.T, l *Lock) {
				l.KeepPins(func(p Pin) bool { return p.Name != "ghcr.io/acme/b" })
				l.Remove(func(e Entry) bool { return e.Subject.Name == "b" })
			},
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "c", "1.2") },
		},
		{
			"both sign the same",
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "b", "1.2") },
			func(t *testing.T, l *Lock) { bump(t, l, "prod", "b", "1.2") },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("main", r.on(func(l *Lock) {
				for _, app := range []string{"a", "b", "c", "d"} {
					bump(t, l, "prod", app, "1.0")
					bump(t, l, "prod", app, "1.1")
				}
			}))
			r.commit("left", r.on(func(l *Lock) { tc.left(t, l) }))
			r.commit("right", r.on(func(l *Lock) { tc.right(t, l) }))
			out, err := r.try("merge", "-q", "--no-edit", "left")
			if err != nil {
				t.Fatalf("merging: %v\n%s", err, out)
			}
			got := open(t, r.dir)

			// What a lock to which both changes were made would hold.
			r.git("checkout", "-q", "main")
			want := open(t, r.dir)
			tc.left(t, want)
			tc.right(t, want)
			if diff := cmp.Diff(want.Pins(), got.Pins()); diff != "" {
				t.Errorf("pins (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Entries(), got.Entries()); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOlderBumpRevertsUnderNewerOnes(t *testing.T) {
	r := newRepository(t)
	r.commit("main", r.on(func(l *Lock) {
		for _, app := range []string{"a", "b", "c"} {
			bump(t, l, "prod", app, "1.0")
			bump(t, l, "prod", app, "1.1")
		}
	}))
	before := open(t, r.dir)
	r.commit("main", r.on(func(l *Lock) { bump(t, l, "prod", "b", "1.2") }))
	for _, app := range []string{"a", "c", "bb"} {
		r.commit("main", r.on(func(l *Lock) { bump(t, l, "prod", app, "1.2") }))
	}
	r.git("revert", "--no-edit", "HEAD~3")
	got := open(t, r.dir)
	for _, app := range []string{"a", "c", "bb"} {
		bump(t, before, "prod", app, "1.2")
	}
	if diff := cmp.Diff(before.Entries(), got.Entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Pins(), got.Pins()); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

// TestPinsInOneSortedFileWouldConflict is the control: the same changes, with
// all pins in one file as lines that are as short as they can be. It is why
// each image name has a file of its own.
func TestPinsInOneSortedFileWouldConflict(t *testing.T) {
	base := []string{"a 1.1", "b 1.1", "c 1.1", "d 1.1"}
	edit := func(from, to string) []string {
		lines := slices.Clone(base)
		if i := slices.Index(lines, from); i >= 0 {
			lines[i] = to
		} else {
			lines = append(lines, to)
		}
		slices.Sort(lines)
		return lines
	}
	for _, tc := range []struct {
		name        string
		left, right []string
	}{
		{"two neighbouring bumps", edit("b 1.1", "b 1.2"), edit("c 1.1", "c 1.2")},
		{"two new names in one gap", edit("", "bb 1.1"), edit("", "bc 1.1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepository(t)
			file := filepath.Join(r.dir, "images.lock")
			write := func(lines []string) func() {
				return func() {
					err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			r.commit("main", write(base))
			r.commit("left", write(tc.left))
			r.commit("right", write(tc.right))
			out, err := r.try("merge", "-q", "--no-edit", "left")
			if err == nil || !strings.Contains(out, "CONFLICT") {
				t.Errorf("got %v and %q, want a conflict: one file would do after all", err, out)
			}
		})
	}
}
