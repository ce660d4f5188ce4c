package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/flux/artifact"
)

// counted serves data, and counts.
func counted(t *testing.T, data []byte) (address string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write(data)
	}), requests
}

// checkedOut returns what is in a checkout now.
func checkedOut(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// folders are those in the folder for temporary files.
func folders(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(os.TempDir(), "syncgate-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatManyReadIsFetchedOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	data := pack(t, file("a.yaml", "a"))
	address, requests := counted(t, data)
	f := artifact.New(artifact.Limits{})
	var all sync.WaitGroup
	for range 20 { // at once
		all.Go(func() {
			dir, release, err := f.Checkout(t.Context(), address, sum(data))
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if got, err := os.ReadFile(filepath.Join(dir, "a.yaml")); err != nil || string(got) != "a" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	for range 20 { // one after the other
		dir, release, err := f.Checkout(t.Context(), address, sum(data))
		if err != nil {
			t.Fatal(err)
		}
		if got := checkedOut(t, dir); got != "a" {
			t.Errorf("got %q", got)
		}
		release()
		release() // once more is nothing
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
	// Another digest of the same address is another artifact.
	if _, _, err := f.Checkout(t.Context(), address, sum([]byte("else"))); !errors.Is(err, artifact.ErrDigest) {
		t.Errorf("another digest: %v", err)
	}
	f.Close()
	if left := folders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWhatIsReadStaysAndWhatIsNotIsBounded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := artifact.New(artifact.Limits{})
	open := func(body string) (string, func()) {
		data := pack(t, file("a.yaml", body))
		address, _ := counted(t, data)
		dir, release, err := f.Checkout(t.Context(), address, sum(data))
		if err != nil {
			t.Fatal(err)
		}
		return dir, release
	}
	held, release := open("held")
	for i := range 20 {
		_, done := open(fmt.Sprint(i))
		done()
	}
	if n := len(folders(t)); n > 5 {
		t.Errorf("%d folders, want the one that is read and 4", n)
	}
	f.Close()
	if got := checkedOut(t, held); got != "held" {
		t.Errorf("got %q of what is still read", got)
	}
	release()
	if left := folders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestAFailureIsSharedAndForgotten: many who wait for a source that fails do not
// each wait for it, and none is told of it for long.
func TestAFailureIsSharedAndForgotten(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	data := pack(t, file("a.yaml", "a"))
	var requests, gone atomic.Int32
	gone.Store(1)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if gone.Load() == 1 {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	})
	f := artifact.New(artifact.Limits{})
	defer f.Close()
	for range 50 {
		if _, _, err := f.Checkout(t.Context(), address, sum(data)); !errors.Is(err, artifact.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if n := requests.Load(); n > 25 { // one, but for a machine that takes seconds for this loop
		t.Errorf("asked %d times for 50", n)
	}
	if left := folders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	gone.Store(0)
	for {
		dir, release, err := f.Checkout(t.Context(), address, sum(data))
		if err == nil {
			defer release()
			if got := checkedOut(t, dir); got != "a" {
				t.Errorf("got %q", got)
			}
			return
		}
		if !errors.Is(err, artifact.ErrNotFound) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestOneWhoGivesUpTakesNobodyAlong: the one who fetches ends, and one who waits
// for that fetches it then.
func TestOneWhoGivesUpTakesNobodyAlong(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	data := pack(t, file("a.yaml", "a"))
	var requests atomic.Int32
	asked := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			close(asked)
			<-r.Context().Done() // it hangs
			return
		}
		_, _ = w.Write(data)
	})
	f := artifact.New(artifact.Limits{})
	defer f.Close()
	first, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, _, err := f.Checkout(first, address, sum(data)); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
	})
	<-asked
	all.Go(func() {
		late, end := context.WithCancel(t.Context())
		end()
		if _, _, err := f.Checkout(late, address, sum(data)); !errors.Is(err, context.Canceled) {
			t.Errorf("one without time: %v", err)
		}
		cancel()
	})
	dir, release, err := f.Checkout(t.Context(), address, sum(data))
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got := checkedOut(t, dir); got != "a" {
		t.Errorf("got %q", got)
	}
	all.Wait()
}
