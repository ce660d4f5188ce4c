package artifact

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// What is kept of artifacts that nobody reads now. Many Kustomizations are built
// from one repository, and are judged one after the other after each push: what
// they share is fetched and unpacked once. Nothing here is a matter of safety: a
// checkout is what its digest says, however old.
const (
	keptCheckouts = 4           // that nobody reads: each is as large as Limits.Unpacked at most
	keptFor       = time.Minute // since it was read last
	// failureFor is how long a failure is that of all who ask: with a source that
	// does not answer they do not wait one after the other. It is shorter than what
	// anybody waits before asking again.
	failureFor = 2 * time.Second
)

// origin tells checkouts apart.
type origin struct{ address, digest string }

// checkouts are folders with what artifacts unpack to, by where they are from.
// The zero value has none.
type checkouts struct {
	mu     sync.Mutex
	all    map[origin]*checkout
	unread []*checkout // the one that was read last is the last
	closed bool
}

// checkout is one of them. Its dir and err are there once ready is closed, and
// stay.
type checkout struct {
	from  origin
	ready chan struct{}
	dir   string
	err   error
	gone  bool // whoever fetched it gave up; err is about that

	readers int // guarded by checkouts.mu, as is
	turn    int // that counts who begins to read, so that an old timer is known
}

// Checkout returns a folder with what [Fetcher.Fetch] would unpack, for reading
// only: others read it, too. What is asked for by several, at once or within a
// minute, is fetched once. release must be called when it is not read any more.
func (f *Fetcher) Checkout(ctx context.Context, address, digest string) (dir string, release func(), err error) {
	for {
		c, first := f.checkouts.join(origin{address, digest})
		if first {
			f.fill(ctx, c)
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			f.checkouts.leave(c)
			return "", nil, fmt.Errorf("fetching artifact %.200q: %w", address, context.Cause(ctx))
		}
		if c.err == nil {
			return c.dir, sync.OnceFunc(func() { f.checkouts.leave(c) }), nil
		}
		f.checkouts.leave(c)
		if !c.gone || ctx.Err() != nil {
			return "", nil, c.err
		}
	}
}

// fill fetches what a checkout is of.
func (f *Fetcher) fill(ctx context.Context, c *checkout) {
	defer close(c.ready)
	c.dir, c.err = os.MkdirTemp("", "syncgate-flux-")
	if c.err == nil {
		c.err = f.Fetch(ctx, c.from.address, c.from.digest, c.dir)
	}
	if c.err != nil {
		c.gone = ctx.Err() != nil
		f.checkouts.failed(c)
	}
}

// Close removes what nobody reads. From now on each checkout goes with its last
// reader, and no failure is remembered.
func (f *Fetcher) Close() {
	s := &f.checkouts
	s.mu.Lock()
	s.closed = true
	unread := s.unread
	for _, c := range unread {
		delete(s.all, c.from)
	}
	s.unread = nil
	s.mu.Unlock()
	for _, c := range unread {
		c.remove()
	}
}

// join returns the checkout of an origin, with one reader more, and whether it
// is for the caller to fill.
func (s *checkouts) join(from origin) (c *checkout, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c = s.all[from]
	if c == nil {
		c, first = &checkout{from: from, ready: make(chan struct{})}, true
		if s.all == nil {
			s.all = map[origin]*checkout{}
		}
		s.all[from] = c
	}
	c.readers++
	c.turn++
	s.unread = slices.DeleteFunc(s.unread, func(x *checkout) bool { return x == c })
	return c, first
}

// leave takes a reader away.
func (s *checkouts) leave(c *checkout) {
	if old := s.left(c); old != nil {
		old.remove()
	}
}

// left returns the checkout that is to be removed now, if there is one.
func (s *checkouts) left(c *checkout) *checkout {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.readers--
	if c.readers > 0 || s.all[c.from] != c {
		return nil
	}
	select {
	case <-c.ready:
	default:
		return nil // it is being filled: who does that is a reader
	}
	if c.err != nil {
		return nil // it has no folder, and goes by itself
	}
	s.unread = append(s.unread, c)
	if s.closed || len(s.unread) > keptCheckouts {
		old := s.unread[0]
		s.take(old)
		return old
	}
	turn := c.turn
	time.AfterFunc(keptFor, func() {
		if s.stale(c, turn) {
			c.remove()
		}
	})
	return nil
}

// stale takes a checkout that nobody has read since a turn.
func (s *checkouts) stale(c *checkout, turn int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.turn != turn || s.all[c.from] != c {
		return false
	}
	s.take(c)
	return true
}

// take makes a checkout that nobody reads one that nobody finds. It is called
// with the lock held.
func (s *checkouts) take(c *checkout) {
	delete(s.all, c.from)
	s.unread = slices.DeleteFunc(s.unread, func(x *checkout) bool { return x == c })
}

// failed removes the folder of a checkout that could not be fetched, and lets
// the next one who asks try again: soon, or at once if the fault was not the
// source's.
func (s *checkouts) failed(c *checkout) {
	if c.dir != "" {
		c.remove()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.gone || s.closed {
		delete(s.all, c.from)
		return
	}
	time.AfterFunc(failureFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, c.from)
	})
}

// remove removes the folder. What cannot be removed stays behind in a folder for
// temporary files.
func (c *checkout) remove() { _ = os.RemoveAll(c.dir) }
