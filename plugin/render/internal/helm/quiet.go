package helm

import (
	"bytes"
	"log"
	"strings"
	"sync"
)

// maxOutput bounds what is kept of Helm's warnings, in bytes.
const maxOutput = 64 << 10

// quietly runs fn and returns what was logged meanwhile, a line each: Helm
// warns through package log, and through log/slog, which by default writes
// there too, but standard error carries the one line of a refusal and nothing
// else (docs/spec/refusal.md). Callers run one at a time.
func quietly(fn func() error) ([]string, error) {
	var out lines
	writer, flags := log.Writer(), log.Flags()
	log.SetOutput(&out)
	log.SetFlags(0)
	err := func() error {
		defer func() {
			log.SetOutput(writer)
			log.SetFlags(flags)
		}()
		return fn()
	}()
	return out.list(), err
}

// lines keeps the first line of every record: what follows is of a value. A
// run that was left behind may go on writing to it.
type lines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, _, _ := bytes.Cut(p, []byte("\n"))
	if l.buffer.Len()+len(first) < maxOutput {
		l.buffer.Write(append(first[:len(first):len(first)], '\n'))
	}
	return len(p), nil
}

// list returns the warnings. What Helm adds in parentheses is a value, which
// may be secret.
func (l *lines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.buffer.String()) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"WARN ", "warning: ", "Warning: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		line, _, _ = strings.Cut(line, " (")
		if line != "" && !strings.HasPrefix(line, "INFO ") {
			out = append(out, line)
		}
	}
	return out
}
