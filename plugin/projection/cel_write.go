package projection

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// celWriter writes trees as CEL: Kubernetes 1.28's, without two-variable
// comprehensions and without cel.bind. A value is bound by a macro over a list
// of one. Kubernetes counts what an expression costs: a list made costs ten, a
// step of a loop three, equality of whole trees one.
type celWriter struct{ n int }

// name returns a new variable.
func (w *celWriter) name(prefix string) string {
	w.n++
	return prefix + strconv.Itoa(w.n)
}

// same returns an expression that holds only if the two values are alike in
// everything that counts. It must not be asked about values that are equal.
// "" stands for false: they differ.
func (w *celWriter) same(t *tree, e ends) string {
	if t.form != nil {
		return t.form(w, e)
	}
	var all []string
	if t.open {
		typ := "map"
		if t.items != nil {
			typ = "list"
		}
		all = append(all, fmt.Sprintf("type(%s) == %s && type(%s) == %s", e.x, typ, e.y, typ))
	}
	if t.limit != nil {
		all = append(all, t.limit(e.x, e.y))
	}
	if t.also != nil {
		all = append(all, t.also(e.x, e.y))
	}
	if t.items != nil {
		return strings.Join(append(all, w.list(t, e)), " && ")
	}
	if t.open { // an empty object is a leaf where one of free members is none
		all = append(all, fmt.Sprintf("(size(%s) == 0) == (size(%s) == 0) && size(%s) <= %d && size(%s) <= %d", e.x, e.y, e.x, mostMembers, e.y, mostMembers))
	}
	names := slices.Sorted(maps.Keys(t.inside))
	if !t.only {
		skip := quoted(append(slices.Clone(t.free), names...))
		k := w.name("k")
		all = append(all, fmt.Sprintf("%s.all(%s, %s in %s || %s in %s && %s[%s] == %s[%s]) && %s.all(%s, %s in %s || %s in %s)",
			e.x, k, k, skip, k, e.y, e.x, k, e.y, k, e.y, k, k, skip, k, e.x))
	}
	for len(names) > 0 { // members that are compared alike share one text
		t0 := t.inside[names[0]]
		alike := []string{}
		rest := []string{}
		for _, n := range names {
			if t.inside[n] == t0 {
				alike = append(alike, n)
			} else {
				rest = append(rest, n)
			}
		}
		all = append(all, w.members(alike, t0, e))
		names = rest
	}
	return strings.Join(all, " && ")
}

// members compares members of two objects that a tree says how to compare.
func (w *celWriter) members(names []string, t *tree, e ends) string {
	empty := t.empty
	switch {
	case empty != "":
	case t.open:
		empty = "null"
	case t.items != nil:
		empty = "[]"
	default:
		empty = "{}"
	}
	k := quote(names[0])
	if len(names) > 1 {
		k = w.name("k")
	}
	a, b := w.name("a"), w.name("b")
	get := func(from string) string {
		return fmt.Sprintf("%s in %s && %s[%s] != null ? %s[%s] : %s", k, from, from, k, from, k, empty)
	}
	alike := a + " == " + b
	if s := w.same(t, ends{a, b, e.x, e.y}); s != "" {
		alike += " || " + s
	}
	out := fmt.Sprintf("[%s].all(%s, [%s].all(%s, %s))", get(e.x), a, get(e.y), b, alike)
	if len(names) > 1 {
		out = fmt.Sprintf("%s.all(%s, %s)", quoted(names), k, out)
	}
	return out
}

// list compares two lists of the same length: by merge keys, each of which
// stands once in the other list, or by position.
func (w *celWriter) list(t *tree, e ends) string {
	sizes := fmt.Sprintf("size(%s) == size(%s) && size(%s) <= %d", e.x, e.y, e.x, t.most)
	i, j := w.name("i"), w.name("j")
	alike := fmt.Sprintf("%s == %s || %s", i, j, w.same(t.items, ends{x: i, y: j}))
	if len(t.keys) == 0 {
		n := w.name("n")
		positions := make([]string, t.most)
		for p := range positions {
			positions[p] = strconv.Itoa(p)
		}
		return fmt.Sprintf("%s && [%s].all(%s, %s >= size(%s) || [%s[%s]].all(%s, [%s[%s]].all(%s, %s)))",
			sizes, strings.Join(positions, ","), n, n, e.x, e.x, n, i, e.y, n, j, alike)
	}
	var keys []string
	for _, k := range t.keys {
		keys = append(keys, fmt.Sprintf("%s.?%s.orValue(null) == %s.?%s.orValue(null)", i, k, j, k))
	}
	paired := strings.Join(keys, " && ")
	return fmt.Sprintf("%s && %s.all(%s, %s.exists(%s, %s && (%s))) && %s.all(%s, %s.exists_one(%s, %s))",
		sizes, e.x, i, e.y, j, paired, alike, e.y, j, e.x, i, paired)
}

// cel returns an expression that holds if a CEL string is in the set.
func (n *names) cel(k string) string {
	var any []string
	if len(n.exact) > 0 {
		any = append(any, k+" in "+quoted(slices.Sorted(maps.Keys(n.exact))))
	}
	for _, p := range n.prefixes {
		any = append(any, fmt.Sprintf("%s.startsWith(%s)", k, quote(p)))
	}
	for _, s := range n.suffixes {
		any = append(any, fmt.Sprintf("%s.endsWith(%s)", k, quote(s)))
	}
	return strings.Join(any, " || ")
}

// mostSetting is the length from which on a value is no mere setting: looking
// for odd characters costs in proportion.
const mostSetting = 200

// form compares two maps of labels or annotations.
func (r *metaRule) form(w *celWriter, e ends) string {
	k := w.name("k")
	free := func(m string) string {
		var any []string
		if r.names != nil {
			any = append(any, "!("+r.names.cel(k)+")")
		}
		for _, x := range r.except {
			any = append(any, x.cel(k))
		}
		if r.mayTune {
			any = append(any, fmt.Sprintf("(%s) && type(%s[%s]) == string && size(%s[%s]) <= %d && %s[%s].matches(%s)",
				tuning.cel(k), m, k, m, k, mostSetting, m, k, quote(mereSettingPattern)))
		}
		return strings.Join(any, " || ")
	}
	side := func(m, other string) string {
		return fmt.Sprintf("%s.all(%s, %s in %s && %s[%s] == %s[%s] || %s)", m, k, k, other, m, k, other, k, free(m))
	}
	return fmt.Sprintf("size(%s) <= %d && size(%s) <= %d && %s && %s", e.x, mostMetadata, e.y, mostMetadata, side(e.x, e.y), side(e.y, e.x))
}

// quote writes a CEL string. The table holds no names that need escapes; what
// policy names may.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		if r == '\'' || r == '\\' || r < ' ' || r > '~' {
			fmt.Fprintf(&b, "\\U%08x", r)
			continue
		}
		b.WriteRune(r)
	}
	b.WriteByte('\'')
	return b.String()
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}
