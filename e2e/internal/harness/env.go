package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Patience is how long Eventually waits. It is no assertion about speed, only
// the point at which a machine that is merely slow is told from one that hangs.
const Patience = 3 * time.Minute

// pollInterval is short beside everything that is waited for.
const pollInterval = 50 * time.Millisecond

// Env is what one test runs in.
type Env struct {
	T testing.TB
	// Dir holds every file of the run. Its path is short, because Argo CD puts
	// a Unix socket in it (the limit is 107 bytes).
	Dir string

	run    *run
	shared *run   // what a shared cluster runs in, nil without one
	gave   string // what Eventually gave up on
}

// New makes a folder of its own for the test. When the test fails the folder
// stays and the ends of the process logs are shown.
func New(t testing.TB) *Env {
	t.Helper()
	dir, err := os.MkdirTemp("", "syncgate-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{T: t, Dir: dir, run: &run{dir: dir}}
	t.Cleanup(func() {
		tails := append(e.shared.tails(), e.run.tails()...) // before they log how they are stopped
		e.run.stop()
		if t.Failed() {
			// The reason last: a reader of a long log often sees its end only.
			t.Logf("%s\nfiles of the run: %s\n%s", strings.Join(tails, "\n"), dir, e.gave)
			return
		}
		if err := removeAll(dir); err != nil {
			t.Error(err)
		}
	})
	return e
}

// removeAll removes a folder. The repo-server takes all permissions from its
// checkouts while it does not use them; they are given back first.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700) // before it is read
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Path joins elem to the folder of the run and makes the parent folder.
func (e *Env) Path(elem ...string) string {
	e.T.Helper()
	p := filepath.Join(append([]string{e.Dir}, elem...)...)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		e.T.Fatal(err)
	}
	return p
}

// Mkdir makes a folder in that of the run and returns its path.
func (e *Env) Mkdir(name string) string {
	e.T.Helper()
	p := filepath.Join(e.Dir, name)
	if err := os.MkdirAll(p, 0o755); err != nil {
		e.T.Fatal(err)
	}
	return p
}

// Write puts a file into the folder of the run and returns its path.
func (e *Env) Write(name string, data []byte) string {
	e.T.Helper()
	p := e.Path(name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		e.T.Fatal(err)
	}
	return p
}

// Eventually polls until done. The string that check returns says what is so
// now; it is shown when Patience ends, or when a process of the run does
// that nobody stopped.
func (e *Env) Eventually(what string, check func() (now string, done bool)) {
	e.T.Helper()
	deadline := time.Now().Add(Patience)
	for {
		now, done := check()
		if done {
			return
		}
		for _, r := range []*run{e.shared, e.run} {
			if p := r.dead(); p != nil {
				e.T.Fatalf("waiting for %s: %s ended: %s", what, p.name, p.tail())
			}
		}
		if time.Now().After(deadline) {
			e.gave = fmt.Sprintf("waiting for %s: still not so; now: %s", what, now)
			e.T.Fatal(e.gave)
		}
		time.Sleep(pollInterval)
	}
}

// readFile reads a file, whose path it joins first.
func (e *Env) readFile(elem ...string) []byte {
	e.T.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		e.T.Fatal(err)
	}
	return data
}
