package projection

import (
	"fmt"
	"sort"
	"strings"
)

// Leaf is one gated value. Value is normalised decoded JSON: string, bool,
// json.Number (an integer in its shortest form), []any or map[string]any.
type Leaf struct {
	Category Category
	Path     string
	Value    any

	harmless bool // only tightens, or does nothing
	binding  bool // an image#repository leaf, there because of another leaf
	image    bool // a custom field that is an image reference
}

// Projection is what the gate knows of an object. The zero value belongs to
// no object and is not valid.
type Projection struct {
	leaves  []Leaf // sorted by category, then path; no two alike
	applies []Category
	own     []Category // of policy's variables, which apply to every pod spec
	valid   bool
}

// Valid reports whether p came out of Project.
func (p *Projection) Valid() bool { return p != nil && p.valid }

// Leaves returns the leaves, sorted by category and path. The caller must not
// change them.
func (p *Projection) Leaves() []Leaf { return p.leaves }

// Gated reports whether the object has any leaf.
func (p *Projection) Gated() bool { return len(p.leaves) > 0 }

// Applies returns the categories that apply to the kind, sorted, whether or
// not they have leaves. A receipt covers only these.
func (p *Projection) Applies() []Category { return p.applies }

// Has reports whether category c has a leaf.
func (p *Projection) Has(c Category) bool {
	from, to := p.span(c)
	return to > from
}

// Harmless reports whether every leaf of category c is a value that only
// tightens (docs/spec/gated-fields.md, "Harmless values"). A category without
// leaves is harmless.
func (p *Projection) Harmless(c Category) bool {
	from, to := p.span(c)
	for _, l := range p.leaves[from:to] {
		if !l.harmless && !l.binding {
			return false
		}
	}
	return true
}

// In returns the leaves of category c. The caller must not change them.
func (p *Projection) In(c Category) []Leaf {
	from, to := p.span(c)
	return p.leaves[from:to]
}

func (p *Projection) span(c Category) (from, to int) {
	from = sort.Search(len(p.leaves), func(i int) bool { return p.leaves[i].Category >= c })
	to = from
	for to < len(p.leaves) && p.leaves[to].Category == c {
		to++
	}
	return from, to
}

// Fault is one thing wrong with an object: a gated path that holds a value of
// the wrong JSON type, two leaves with one path, or a value that must not be
// there.
type Fault struct {
	Path string
	Text string
}

// MalformedError says why an object has no projection. Faults are sorted by
// path.
type MalformedError struct{ Faults []Fault }

func (e *MalformedError) Error() string {
	parts := make([]string, 0, len(e.Faults))
	for _, f := range e.Faults {
		if f.Path == "" { // about the object as a whole
			parts = append(parts, f.Text)
			continue
		}
		parts = append(parts, f.Path+": "+f.Text)
	}
	return strings.Join(parts, "; ")
}

// Change is one gated field that differs between two projections.
type Change struct {
	Category Category
	Path     string
	Old, New any // nil: absent
}

// Diff lists the leaves that differ, sorted by category and path. Both
// projections may be of different objects; nil stands for no leaves.
func Diff(from, to *Projection) []Change {
	var a, b []Leaf
	if from != nil {
		a = from.leaves
	}
	if to != nil {
		b = to.leaves
	}
	var out []Change
	for len(a) > 0 || len(b) > 0 {
		switch c := compareHeads(a, b); {
		case c < 0:
			out = append(out, Change{Category: a[0].Category, Path: a[0].Path, Old: a[0].Value})
			a = a[1:]
		case c > 0:
			out = append(out, Change{Category: b[0].Category, Path: b[0].Path, New: b[0].Value})
			b = b[1:]
		default:
			if !equalValue(a[0].Value, b[0].Value) {
				out = append(out, Change{Category: a[0].Category, Path: a[0].Path, Old: a[0].Value, New: b[0].Value})
			}
			a, b = a[1:], b[1:]
		}
	}
	return out
}

func compareHeads(a, b []Leaf) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	case a[0].Category != b[0].Category:
		return strings.Compare(string(a[0].Category), string(b[0].Category))
	}
	return comparePaths(a[0].Path, b[0].Path)
}

// EqualIn reports whether two projections have the same leaves in category c.
// What did not come out of Project equals nothing.
func EqualIn(a, b *Projection, c Category) bool {
	if !a.Valid() || !b.Valid() {
		return false
	}
	x, y := a.In(c), b.In(c)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Path != y[i].Path || !equalValue(x[i].Value, y[i].Value) {
			return false
		}
	}
	return true
}

func equalValue(a, b any) bool {
	return string(appendValue(nil, a)) == string(appendValue(nil, b))
}

// String returns "category path = value", for messages and tests.
func (l Leaf) String() string {
	return fmt.Sprintf("%s %s = %s", l.Category, l.Path, appendValue(nil, l.Value))
}
