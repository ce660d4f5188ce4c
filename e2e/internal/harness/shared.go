package harness

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// suite is what the tests of one test binary share. Main makes and ends it.
type suite struct {
	dir string

	mu       sync.Mutex
	binaries *Binaries
	cluster  *Cluster
	failed   bool // the cluster did not start
	cleanups []func()
}

// theSuite is nil where a package's tests do not run under Main.
var theSuite *suite

// Main runs the tests of a package that share a cluster or the built programs:
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
//
// It also is the program of StartStandIns, which the test binary runs as a child.
func Main(m *testing.M) int {
	if os.Getenv(standInVariable) != "" {
		return standIn(os.Args[1:])
	}
	dir, err := os.MkdirTemp("", "syncgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	theSuite = &suite{dir: dir}
	code := m.Run()
	if err := theSuite.stop(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// SharedCluster returns a cluster that the first test of a binary starts and
// that ends with the last, with one node, as the administrator sees it from a
// folder of t's own. A test that uses it works in NewNamespaces, leaves nothing
// else behind (Install and Bind see to that), lets no component down, and does
// not run in parallel with others.
func SharedCluster(t testing.TB) *Cluster {
	t.Helper()
	if theSuite == nil {
		t.Fatal("SharedCluster needs func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }")
	}
	shared := theSuite.start(t)
	view := *shared
	view.Env = New(t)
	view.Env.shared = shared.run
	return &view
}

func (s *suite) start(t testing.TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		t.Fatal("the shared cluster did not start, see the first test that wanted it")
	}
	if s.cluster == nil {
		s.failed = true // unless we get to the end
		e := &Env{T: suiteTB{t, s}, Dir: s.dir, run: &run{dir: s.dir}}
		s.cleanups = append(s.cleanups, e.run.stop)
		s.cluster = StartCluster(e, s.build(e))
		StartNode(s.cluster, "shared")
		s.failed = false
	}
	return s.cluster
}

func (s *suite) lockedBuild(e *Env) Binaries {
	e.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.build(e)
}

// build is Build once for all tests.
func (s *suite) build(e *Env) Binaries {
	e.T.Helper()
	if s.binaries == nil {
		b := build(e, s.dir)
		s.binaries = &b
	}
	return *s.binaries
}

// stop ends what is shared. The folder stays after a failure, as a test's does.
func (s *suite) stop(failed bool) error {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
	if failed && (s.cluster != nil || s.failed) {
		fmt.Fprintln(os.Stderr, "files of the shared cluster:", s.dir)
		return nil
	}
	return removeAll(s.dir)
}

// suiteTB fails the test that starts what is shared, and cleans up with the
// suite.
type suiteTB struct {
	testing.TB
	suite *suite
}

// Cleanup is for the end of the suite.
func (t suiteTB) Cleanup(f func()) { t.suite.cleanups = append(t.suite.cleanups, f) }
