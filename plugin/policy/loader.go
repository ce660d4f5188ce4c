package policy

import "sync"

// Loader keeps the newest policy that loads, for a process that lives longer
// than a policy.
type Loader struct {
	file string

	mu      sync.Mutex
	current *Policy
	seen    string // hash of the last reading, which may be half old and half new
	failed  error
}

// NewLoader loads the policy. One that does not load is an error: what is to be
// published is not known then.
func NewLoader(file string) (*Loader, error) {
	p, err := Load(file)
	if err != nil {
		return nil, err
	}
	return &Loader{file: file, current: p, seen: p.Hash()}, nil
}

// Policy returns the newest good one, and why the files as they are now could
// not be loaded, or nil.
func (l *Loader) Policy() (*Policy, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current, l.failed
}

// Reload reads the files and reports whether another policy is in force. It
// takes one that it has read twice: a ConfigMap may be swapped in between two
// of the files.
func (l *Loader) Reload() (changed bool) {
	p, err := Load(l.file)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
	if err != nil {
		return false
	}
	steady := l.seen == p.Hash()
	l.seen = p.Hash()
	if !steady || p.Hash() == l.current.Hash() {
		return false
	}
	l.current = p
	return true
}
