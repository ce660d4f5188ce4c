package projection

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// Limits of one object. The API server's own limit is 3 MiB of JSON; a
// manifest that reaches these is not one that a person approved by reading.
const (
	maxLeaves = 20000
	maxDepth  = 100
)

// Project returns the projection of an object: decoded JSON whose numbers are
// json.Number. The error is a *MalformedError.
func Project(obj map[string]any) (*Projection, error) {
	if depth(obj, 0) > maxDepth {
		return nil, &MalformedError{[]Fault{{"", fmt.Sprintf("nested more than %d deep", maxDepth)}}}
	}
	w := &walker{leaves: make([]Leaf, 0, 16)}
	p := &Projection{valid: true}
	if k := lookup(obj); k != nil {
		p.applies = k.applies
		w.kind(k, obj)
	} else if w.structural(obj) {
		p.applies = podCategories
	}
	return w.finish(p)
}

func lookup(obj map[string]any) *kindSpec {
	group, kind := groupKind(obj)
	return kindIndex[kindKey{group, kind}]
}

func groupKind(obj map[string]any) (group, kind string) {
	version, _ := obj["apiVersion"].(string)
	kind, _ = obj["kind"].(string)
	if i := strings.IndexByte(version, '/'); i >= 0 {
		group = version[:i]
	}
	return CanonicalGroup(group, kind), kind
}

func (w *walker) kind(k *kindSpec, obj map[string]any) {
	if k.pod != nil {
		w.builtinPod(k.pod, obj)
	}
	if len(k.rows) > 0 {
		w.kindRows(k.rows, obj)
	}
	if k.fn != nil {
		k.fn(w, obj)
	}
}

func (w *walker) finish(p *Projection) (*Projection, error) {
	if len(w.leaves) > maxLeaves {
		w.fault("", "more than %d gated fields", maxLeaves)
	}
	sort.Slice(w.leaves, func(i, j int) bool {
		if w.leaves[i].Category != w.leaves[j].Category {
			return w.leaves[i].Category < w.leaves[j].Category
		}
		return comparePaths(w.leaves[i].Path, w.leaves[j].Path) < 0
	})
	for i := 1; i < len(w.leaves); i++ {
		if w.leaves[i].Category == w.leaves[i-1].Category && w.leaves[i].Path == w.leaves[i-1].Path {
			w.fault(w.leaves[i].Path, "stands twice")
		}
	}
	for i := range w.leaves {
		if !utf8.ValidString(w.leaves[i].Path) {
			w.fault(w.leaves[i].Path, "invalid UTF-8")
		}
	}
	if len(w.faults) > 0 {
		sort.Slice(w.faults, func(i, j int) bool {
			if w.faults[i].Path != w.faults[j].Path {
				return w.faults[i].Path < w.faults[j].Path
			}
			return w.faults[i].Text < w.faults[j].Text
		})
		return nil, &MalformedError{w.faults}
	}
	p.leaves = w.leaves
	return p, nil
}

// depth guards the walks, which recurse: how deep v is nested, counting no
// further than just past maxDepth.
func depth(v any, n int) int {
	if n > maxDepth {
		return n
	}
	deepest := n
	switch t := v.(type) {
	case map[string]any:
		for _, x := range t {
			if d := depth(x, n+1); d > deepest {
				deepest = d
			}
		}
	case []any:
		for _, x := range t {
			if d := depth(x, n+1); d > deepest {
				deepest = d
			}
		}
	}
	return deepest
}
