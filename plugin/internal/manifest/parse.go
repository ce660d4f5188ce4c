package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/syncgate/syncgate/plugin/internal/parallel"
)

// Parse decodes a stream of YAML documents, of JSON objects (one after the
// other, with or without line breaks), or of both, and returns its objects in
// order; file is only a name for messages. Documents without content are left
// out, so that the result may be empty: whoever renders an application decides
// what that means.
//
// A document that is not one Kubernetes object or a List of them, that holds a
// duplicate key, or that exceeds a limit is an error. The error is [Errors],
// with everything that is wrong in every document, and the objects are nil.
func Parse(data []byte, file string) ([]Object, error) {
	return Map(data, file, func(o Object) Object { return o })
}

// Map is Parse that gives each object to work and returns what work returned,
// in the order of the stream. Documents are decoded, and work runs, on all
// processors at once; a tree that work does not keep is gone before the next.
// On an error, work may have seen objects already.
func Map[T any](data []byte, file string, work func(Object) T) ([]T, error) {
	if len(data) > MaxStream {
		return nil, Errors{{File: file, Msg: fmt.Sprintf("stream of %d bytes, want at most %d", len(data), MaxStream)}}
	}
	data, err := utf8Text(data)
	if err != nil {
		return nil, Errors{{File: file, Msg: err.Error()}}
	}
	left := newBudget()
	chunks := split(data)
	// A chunk of JSON may hold several documents: from the first one on,
	// numbers depend on what came before.
	first := slices.IndexFunc(chunks, func(c chunk) bool { return bytes.HasPrefix(bytes.TrimLeft(c.text, " \t\r\n"), []byte("{")) })
	if first < 0 {
		first = len(chunks)
	}
	type result struct {
		done []T
		errs Errors
	}
	results := make([]result, first)
	parallel.Each(first, func(i int) {
		p := parser{file: file, budget: left}
		p.chunk(chunks[i])
		r := result{errs: p.errs}
		for _, o := range p.objs {
			r.done = append(r.done, work(o))
		}
		results[i] = r
	})
	rest := parser{file: file, budget: left}
	for _, c := range chunks[first:] {
		rest.chunk(c)
		if rest.full {
			break
		}
	}
	tail := result{make([]T, len(rest.objs)), rest.errs}
	parallel.Each(len(rest.objs), func(i int) { tail.done[i] = work(rest.objs[i]) })
	var out []T
	var errs Errors
	for _, r := range append(results, tail) {
		out, errs = append(out, r.done...), append(errs, r.errs...)
		if len(out) > MaxObjects {
			return nil, append(errs, &Error{File: file, Msg: fmt.Sprintf("more than %d objects in the stream", MaxObjects)})
		}
		if len(errs) >= maxErrors {
			break
		}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

type parser struct {
	file   string
	objs   []Object
	errs   Errors
	extra  int // documents that a chunk held beside its first
	full   bool
	budget *budget
}

// chunk decodes one chunk: a YAML document, or any number of JSON objects,
// which count as a document each.
func (p *parser) chunk(c chunk) {
	number := c.number + p.extra
	if c.problem != "" {
		p.fail(number, c.badLine, c.problem)
		return
	}
	if bytes.HasPrefix(c.text, []byte("\xff\xfe")) || bytes.HasPrefix(c.text, []byte("\xfe\xff")) {
		// The YAML parser would change its encoding; split has not.
		p.fail(number, c.line+1, "a byte order mark of UTF-16 inside the stream")
		return
	}
	body := bytes.TrimLeft(c.text, " \t\r\n")
	if len(body) == 0 {
		return
	}
	if body[0] == '{' {
		done := p.jsonChunk(c, number)
		if done {
			return
		}
	}
	tree, err := parseYAML(c.text, p.budget)
	if err != nil {
		line := err.line
		if line == 0 {
			line = firstLine(c.text)
		}
		p.fail(number, c.line+line, err.msg)
		return
	}
	p.add(tree, number, c.line+firstLine(c.text))
}

// jsonChunk reports whether the chunk is JSON. As in kubectl, text that stops
// being JSON before its second object may still be YAML in flow style.
func (p *parser) jsonChunk(c chunk, number int) bool {
	j := jsonParser{data: c.text}
	var trees []any
	var starts []int
	for j.more() {
		start := j.pos
		tree, err := j.value(0)
		if err != nil {
			if err.syntax && len(trees) < 2 {
				_, asYAML := parseYAML(c.text, newBudget())
				if asYAML == nil || len(trees) == 0 {
					return false
				}
			}
			p.extra += len(trees)
			p.fail(number+len(trees), c.line+lineAt(c.text, err.offset), err.msg)
			return true
		}
		trees, starts = append(trees, tree), append(starts, start)
	}
	for i, tree := range trees {
		p.add(tree, number+i, c.line+lineAt(c.text, starts[i]))
	}
	p.extra += len(trees) - 1
	return true
}

func (p *parser) add(tree any, number, line int) {
	if tree == nil {
		return
	}
	objs, problems := flatten(tree, p.file, number)
	for _, msg := range problems {
		p.fail(number, line, msg)
	}
	p.objs = append(p.objs, objs...)
	if len(p.objs) > MaxObjects {
		p.fail(number, line, fmt.Sprintf("more than %d objects in the stream", MaxObjects))
		p.full = true
	}
}

// maxErrors of a stream are kept; a file that is no manifest at all has many.
const maxErrors = 100

func (p *parser) fail(number, line int, msg string) {
	p.errs = append(p.errs, &Error{File: p.file, Document: number, Line: line, Msg: msg})
	if len(p.errs) >= maxErrors {
		p.full = true
	}
}

// lineAt returns the line (from 1) of an offset.
func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// firstLine returns the line (from 1) of the first content.
func firstLine(text []byte) int {
	for n := 1; ; n++ {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !found || !blankOrComment(line) {
			return n
		}
		text = rest
	}
}

// A budget bounds what YAML may become. It counts, roughly, bytes of JSON; what
// is JSON already has no aliases that could multiply it.
type budget struct{ left atomic.Int64 }

func newBudget() *budget {
	b := &budget{}
	b.left.Store(MaxStream)
	return b
}

// spend reports whether n bytes were left.
func (b *budget) spend(n int) bool {
	return b.left.Add(-int64(n)) >= 0
}
