package projection

import (
	"fmt"
	"sort"
	"strings"
)

// Limits of one object. The API server's own limit is 3 MiB of JSON; a
// manifest that reaches these is not one that a person approved by reading.
const (
	maxLeaves = 20000
	maxDepth  = 100
)

// Project returns the projection of an object: decoded JSON whose numbers are
// json.Number. The error is a *MalformedError.
func Project(obj map[string]any) (p *Projection, err error) {
	if fault := tooDeep(obj); fault != nil {
		return nil, &MalformedError{[]Fault{*fault}}
	}
	w := &walker{leaves: make([]Leaf, 0, 16)}
	k := lookup(obj)
	p = &Projection{valid: true}
	if k != nil {
		p.applies = k.applies
		w.kind(k, obj)
	}
	return w.finish(p)
}

func lookup(obj map[string]any) *kindSpec {
	version, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	group := ""
	if i := strings.IndexByte(version, '/'); i >= 0 {
		group = version[:i]
	}
	return kindIndex[CanonicalGroup(group, kind)+"/"+kind]
}

func (w *walker) kind(k *kindSpec, obj map[string]any) {
	if k.pod != nil {
		if spec := w.object(obj, k.pod.spec); spec != nil {
			w.podSpec(k.pod.spec, spec, k.pod.meta, w.object(obj, k.pod.meta), k.pod.isPod, false)
		}
	}
	for _, r := range k.rows {
		w.kindRow(obj, r)
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

// tooDeep guards the walks below, which recurse.
func tooDeep(v any) *Fault {
	if depth(v, 0) > maxDepth {
		return &Fault{"", fmt.Sprintf("nested more than %d deep", maxDepth)}
	}
	return nil
}

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
