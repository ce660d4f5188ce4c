package slots_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/syncgate/syncgate/plugin/argocd/internal/slots"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("HOLD_A_SLOT_IN"); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

// hold takes the only slot, leaves something there, and waits for its end.
func hold(dir string) {
	s, err := slots.Take(context.Background(), dir, 1)
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "left"), nil, 0o600); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func take(t *testing.T, ctx context.Context, dir string, n int) slots.Slot {
	t.Helper()
	s, err := slots.Take(ctx, dir, n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ended is a context that has, so that Take looks and does not wait.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestNoMoreThanThereAreSlotsWorkAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slots")
	const n, people = 3, 20
	var now, peak atomic.Int32
	var wait sync.WaitGroup
	for range people {
		wait.Go(func() {
			s, err := slots.Take(t.Context(), dir, n)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Free()
			defer now.Add(-1)
			for at := now.Add(1); ; {
				if p := peak.Load(); at <= p || peak.CompareAndSwap(p, at) {
					break
				}
			}
			if list, err := os.ReadDir(s.Dir); err != nil || len(list) != 0 {
				t.Errorf("the folder of a slot holds %v, %v; want nothing", list, err)
			}
			if info, err := os.Stat(s.Dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder of a slot is %v, %v; want mode 0700", info, err)
			}
			if err := os.WriteFile(filepath.Join(s.Dir, "x"), nil, 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if peak.Load() > n || peak.Load() < 1 {
		t.Errorf("%d worked at once, want at most %d", peak.Load(), n)
	}
}

func TestWhoFindsNoSlotWaitsAsLongAsItMay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slots")
	s := take(t, t.Context(), dir, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := slots.Take(ctx, dir, 1)
		done <- err
	}()
	cancel(nil)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	s.Free()
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a free slot: got %v, want %v", err, os.ErrNotExist)
	}
	take(t, t.Context(), dir, 1).Free()
}

// The kernel frees what a killed process held, and the next one finds nothing of
// what it left.
func TestAKilledHolderLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slots")
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), "HOLD_A_SLOT_IN="+dir)
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(io.LimitReader(out, 5)); err != nil || string(text) != "held\n" {
		t.Fatalf("the holder says %q, %v", text, err)
	}
	left := filepath.Join(dir, "0", "left")
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	if _, err := slots.Take(ended(t), dir, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("a slot that another process holds: got %v, want %v", err, context.Canceled)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	s := take(t, ended(t), dir, 1)
	defer s.Free()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed holder left: got %v, want %v", err, os.ErrNotExist)
	}
}

func TestAFolderThatOthersCanUseIsRefused(t *testing.T) {
	open, link := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		n    int
		want string
	}{
		"others can read it": {open, 1, "with mode 0700"},
		"a link":             {link, 1, "with mode 0700"},
		"a file":             {file, 1, "making the folder of slots: not a directory"},
		"no slot":            {t.TempDir(), 0, "0 slots: want 1 to 256"},
		"far too many":       {t.TempDir(), 257, "257 slots: want 1 to 256"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := slots.Take(t.Context(), tc.dir, tc.n)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			s.Free() // holds nothing, and does no harm
		})
	}
}
