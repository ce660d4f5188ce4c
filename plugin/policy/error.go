package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
)

// Error says what is wrong with a policy: with the file (PolicyInvalid), with
// a file of keys or revocations that it names (KeysUnavailable), or with what
// an application asks of it (PolicyInvalid, without File and Line).
type Error struct {
	Reason gate.Reason
	File   string
	Line   int    // from 1; 0: not known
	Path   string // of the field: issuers[0].keys.file; empty: the whole file
	Named  string // the file of keys or revocations that is wrong, as the policy names it; empty: File itself
	Msg    string // one line
	Choice Choice // what is wrong is which environment was asked for
}

// Choice tells the errors that another environment mends from those that the
// policy must be changed for, because it is somebody else who chooses it.
type Choice int

const (
	NoChoice      Choice = iota // the error is about something else
	WrongChoice                 // an application asks for one that policy does not allow for it, though it allows others
	MissingChoice               // an application must ask for one of several
	UnknownChoice               // an operator names one that the policy does not have
)

// Error returns "policy.yaml line 7: issuers[0].name: want a name".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(printable(e.File))
		if e.Line > 0 {
			fmt.Fprintf(&b, " line %d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + e.Msg
}

// Errors are all that is wrong with a policy, in the order of its lines.
type Errors []*Error

// maxShown errors are spelled out; a refusal has room for a few only.
const maxShown = 5

// Error returns the first few errors in one line.
func (e Errors) Error() string {
	var parts []string
	for i, x := range e {
		if i == maxShown {
			parts = append(parts, fmt.Sprintf("and %d more", len(e)-maxShown))
			break
		}
		parts = append(parts, x.Error())
	}
	return strings.Join(parts, "; ")
}

// Unwrap gives errors.As each *Error.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, x := range e {
		out[i] = x
	}
	return out
}

// sorted orders by line; what has none, like a missing key, comes first.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
	return e
}

// cause is an error of the file system without the path, which the message
// names already, in the policy's own spelling.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// printable quotes a file name that could be mistaken for anything else.
func printable(file string) string {
	for _, r := range file {
		if r <= ' ' || r > '~' || r == '"' {
			return strconv.QuoteToASCII(file)
		}
	}
	return file
}
