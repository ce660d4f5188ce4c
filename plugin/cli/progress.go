package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// progress counts long work on one line of a terminal, and says nothing
// anywhere else.
type progress struct {
	mu   sync.Mutex
	w    io.Writer // nil: no terminal
	what string
	n    int
	of   int
}

func newProgress(w io.Writer, what string, of int) *progress {
	p := &progress{what: what, of: of}
	if f, ok := w.(*os.File); ok && of > 0 && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	return p
}

// step counts one piece of work.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if p.w != nil {
		fmt.Fprintf(p.w, "\r%s %d of %d", p.what, p.n, p.of)
	}
}

// done clears the line.
func (p *progress) done() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
