package manifest

import (
	"fmt"
	"strings"
)

// Error says why a document was refused. Msg holds no values of the document,
// which may be secret; keys and kinds stand quoted in it.
type Error struct {
	File     string
	Document int    // from 1; 0: the stream as a whole
	Line     int    // from 1, of the file; 0: not known
	Msg      string // one line
}

// Error returns "deploy.yaml document 2 line 14: duplicate key \"image\"".
func (e *Error) Error() string {
	at := where(e.File, e.Document)
	if e.Line > 0 {
		at += fmt.Sprintf(" line %d", e.Line)
	}
	return at + ": " + e.Msg
}

// Errors are all that is wrong with a stream, in the order of the stream.
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

// orNil avoids an error interface that holds an empty list.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
