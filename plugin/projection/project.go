package projection

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one object. The API server's own limit is 3 MiB of JSON; a
// manifest that reaches these is not one that a person approved by reading.
const (
	maxLeaves = 60000 // more than fit into an object that the API server takes
	maxDepth  = 100
)

// Project returns the projection of an object: decoded JSON whose numbers are
// json.Number. The error is a *MalformedError.
func Project(obj map[string]any) (*Projection, error) { return projectWith(obj, nil, nil) }

// projectWith is Project with the variables of a policy, whose categories apply
// where those of pods do.
func projectWith(obj map[string]any, variables []variableSet, own []Category) (*Projection, error) {
	w := &walker{leaves: make([]Leaf, 0, 32), variables: variables}
	p := &Projection{valid: true, own: own}
	switch k := lookup(obj); {
	case k != nil && k.pod != nil: // no deeper than the API types, see normalAny
		p.applies = withCategories(k.applies, own)
		w.kind(k, obj)
	case depth(obj, 0) > maxDepth:
		w.fault("", "nested more than %d deep", maxDepth)
	case k != nil:
		p.applies = k.applies
		w.kind(k, obj)
	case w.structural(obj):
		p.applies = withCategories(podCategories, own)
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
	w.foldedMembers(k, obj)
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
	slices.SortFunc(w.leaves, func(a, b Leaf) int {
		if a.Category != b.Category {
			return strings.Compare(string(a.Category), string(b.Category))
		}
		return comparePaths(a.Path, b.Path)
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
		slices.SortFunc(w.faults, func(a, b Fault) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Text, b.Text))
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
