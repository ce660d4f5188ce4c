package projection

import (
	"maps"
	"slices"
	"strings"
)

// tree says how two values are compared in a matchCondition: which members of
// an object do not count, which count in part, and how the items of a list are
// paired. It is made from the table and the shapes of the API types by leaving
// out what the table says is no leaf: a field that nobody knows counts.
type tree struct {
	only   bool             // nothing but the members in inside is compared
	free   []string         // members that are not compared
	inside map[string]*tree // members that are compared in part

	items *tree    // of a list: how two items are compared; nil: no list
	keys  []string // merge keys that pair the items; none: their position
	most  int      // a longer list is not looked into: it may differ

	open  bool   // of a shape that nobody warrants: types are asked for first
	empty string // CEL of what absence means; "": {}, [] or null

	// limit, if set, is CEL that holds when the values x and y are small enough
	// to be looked into within the API server's budget.
	limit func(x, y string) string
	// also, if set, is CEL that holds beside what the members say, if x and y
	// are alike.
	also func(x, y string) string
	// form, if set, is CEL of its own that holds when the values do not differ
	// in what counts, after they were found unequal.
	form func(w *celWriter, e ends) string
}

// ends are the CEL variables of the two values of a tree, and of the two
// objects that they are members of.
type ends struct{ x, y, aroundX, aroundY string }

// whole compares a value as it is; absence means empty.
func whole(empty string) *tree {
	return &tree{empty: empty, form: func(*celWriter, ends) string { return "" }}
}

// member returns the tree of a member, made if it is not there.
func (t *tree) member(name string, made func() *tree) *tree {
	if t.inside[name] == nil {
		if t.inside == nil {
			t.inside = map[string]*tree{}
		}
		t.inside[name] = made()
	}
	return t.inside[name]
}

// Limits on what is looked into. Comparing costs n*n where items are paired by
// key, and what the items cost.
const (
	mostKeyed    = 64
	mostInOrder  = 16
	mostMetadata = 300
	mostMembers  = 40 // of an object of open shape
)

func openTree() *tree { return &tree{open: true} }
func onlyTree() *tree { return &tree{only: true} }

// leaveOut makes what stands at a path ("spec.rules[].weight") not count.
func (t *tree) leaveOut(path string) {
	name, rest, deeper := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	if !deeper {
		t.free = append(t.free, name)
		return
	}
	next := t.member(name, openTree)
	for list { // nothing but lists of objects so far, and lists of lists nowhere
		list = false
		if next.items == nil {
			next.items, next.most = openTree(), mostInOrder
		}
		next = next.items
	}
	next.leaveOut(rest)
}

// keep returns the tree of what stands at a path, on a way where nothing else
// counts.
func (t *tree) keep(path string) *tree {
	for rest, deeper := path, true; deeper; {
		var name string
		if name, rest, deeper = strings.Cut(rest, "."); deeper {
			t = t.member(name, onlyTree)
		} else {
			t = t.member(name, openTree)
		}
	}
	return t
}

// trees makes trees of shapes, for a policy that requires certain categories.
type trees struct {
	requires func(Category) bool
	made     map[*shape]*tree

	variables     *names // that policy gates; nil: none
	containerList *tree
}

// of returns how values of a shape are compared; nil: as they are.
func (b *trees) of(s *shape) *tree {
	switch s.kind {
	case structShape:
		if t, seen := b.made[s]; seen {
			return t
		}
		b.made[s] = nil // no API type in the table holds itself
		t := b.ofStruct(s)
		b.made[s] = t
		return t
	case listShape:
		if items := b.of(s.elem); items != nil {
			t := &tree{items: items, keys: s.keys, most: mostInOrder}
			if len(s.keys) > 0 {
				t.most = mostKeyed
			}
			return t
		}
	}
	return nil
}

func (b *trees) ofStruct(s *shape) *tree {
	if s.name == "core/v1.PodTemplateSpec" { // what stands beside these two never counts
		t := &tree{only: true}
		t.inside = map[string]*tree{"spec": b.of(shapes["core/v1.PodSpec"]), "metadata": b.podMeta()}
		return t
	}
	t := &tree{limit: b.limit(s.name), also: sameOrder[s.name]}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		m := s.fields[name]
		if freeFields[s.name+"."+name] || b.unasked(s.name, name) {
			t.free = append(t.free, name)
			continue
		}
		sub := b.podField(s.name, name, m)
		if sub == nil {
			sub = b.of(m.shape)
		}
		if sub != nil {
			t.member(name, func() *tree { return sub })
		}
	}
	if len(t.free) == 0 && len(t.inside) == 0 {
		return nil
	}
	return t
}

// freeFields are the fields of API types that are no leaves, whatever else an
// object holds.
var freeFields = indexFreeFields()

func indexFreeFields() map[string]bool {
	out := map[string]bool{}
	for field := range exclusionIndex {
		out[field] = true
	}
	for _, e := range notLeaves {
		for _, f := range strings.Fields(e.fields) {
			if e.decides {
				delete(out, e.typ+"."+f)
			}
		}
	}
	return out
}

// unasked reports whether a field of a pod or container belongs to categories
// that policy does not require.
func (b *trees) unasked(typ, name string) bool {
	var e entry
	switch typ {
	case "core/v1.PodSpec":
		e = podIndex[name]
	case "core/v1.Container", "core/v1.EphemeralContainer":
		e = containerIndex[name]
	}
	if e.row == nil || e.row.fn != "" || e.row.cat == "" || b.requires(e.row.cat) {
		return false
	}
	// The bound categories hold the image's repository.
	return e.row.cat != Image || !slices.ContainsFunc(boundCategories, b.requires)
}

// kindTree says how two objects of a kind without a pod spec are compared.
func (b *trees) kindTree(k *kindSpec) *tree {
	root := &tree{}
	typ, spec := strings.CutPrefix(k.typ, "spec=")
	if len(k.rows) > 0 && k.rows[0].parent != nil {
		typ, spec = k.rows[0].typ, strings.HasPrefix(k.rows[0].path, "spec.")
	}
	switch t := b.ofName(typ); {
	case len(k.only) > 0:
		root.only = true
	case typ == "":
		root.open = true
	case t == nil: // all of it counts
	case spec:
		root.member("spec", func() *tree { return t })
	default: // a copy: one type serves several kinds
		root.free, root.inside = slices.Clone(t.free), maps.Clone(t.inside)
	}
	for _, path := range k.only {
		if path != "metadata" {
			root.keep(path)
		}
	}
	for _, path := range k.free {
		root.leaveOut(path)
	}
	for path, empty := range k.absent {
		t := root
		for _, name := range strings.Split(path, ".") {
			t = t.member(name, func() *tree { return whole("") })
		}
		t.empty = empty
	}
	root.leaveMetadata(k.labels, k.annotations)
	return root
}

func (b *trees) ofName(typ string) *tree {
	if typ == "" {
		return nil
	}
	return b.of(shapes[typ])
}

// leaveMetadata makes of an object's own metadata only these count.
func (t *tree) leaveMetadata(labels, annotations *metaRule) {
	if !t.only {
		t.free = append(t.free, "apiVersion", "kind", "metadata", "status")
	}
	for part, rule := range map[string]*metaRule{"labels": labels, "annotations": annotations} {
		if rule != nil {
			t.member("metadata", onlyTree).member(part, func() *tree { return &tree{form: rule.form} })
		}
	}
}
