package projection

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// walker collects the leaves and faults of one object.
type walker struct {
	leaves []Leaf
	faults []Fault

	variables []variableSet // that policy gates

	loose bool    // inside an object found structurally, which no API type binds
	bits  *uint16 // collects the bound categories of the container or pod at hand
	safe  func(rel string, v any) bool
	base  string // path that safe's rel starts behind
}

func (w *walker) fault(path, format string, args ...any) {
	w.faults = append(w.faults, Fault{path, fmt.Sprintf(format, args...)})
}

func (w *walker) add(c Category, path string, v any) {
	l := Leaf{Category: c, Path: path, Value: v}
	if w.safe != nil {
		l.harmless = w.safe(strings.TrimPrefix(path, w.base), v)
	}
	w.leaves = append(w.leaves, l)
	if w.bits != nil {
		*w.bits |= bit(c)
	}
}

// take adds the leaves of one value of a known shape: structs, string maps
// and keyed lists are flattened to scalars, any other list is one leaf.
func (w *walker) take(c Category, path string, m *member, v any) {
	if v == nil {
		return
	}
	switch m.shape.kind {
	case structShape:
		w.takeStruct(c, path, m, v)
	case mapShape:
		obj, ok := v.(map[string]any)
		if !ok {
			w.wrongType(path, "an object", v)
			return
		}
		for k, x := range obj {
			if m.shape.elem.kind == stringShape {
				w.entry(c, path+key(k), x)
			} else {
				w.take(c, path+key(k), m.shape.item, x)
			}
		}
	case listShape:
		w.takeList(c, path, m, v)
	default:
		if n, keep := w.normal(path, m, v); keep {
			w.add(c, path, n)
		}
	}
}

// entry adds a value of a map of strings. The API server makes "" of a null
// there, and kubectl apply leaves the key out, so that nobody can say what it
// means.
func (w *walker) entry(c Category, path string, v any) {
	if v == nil && !w.loose {
		w.nullEntry(path)
	}
	w.take(c, path, keptString, v)
}

func (w *walker) nullEntry(path string) {
	w.fault(path, `null in a map of strings: write "" or leave the key out`)
}

func (w *walker) takeStruct(c Category, path string, m *member, v any) {
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(path, "an object", v)
		return
	}
	before := len(w.leaves)
	for k, x := range obj {
		f := m.shape.fields[k]
		if f == nil { // unknown to the API types: never lost
			f = anyMember
		}
		w.take(c, path+"."+fieldName(k), f, x)
	}
	if len(w.leaves) == before && m.pointer && m.def != emptyObject {
		w.add(c, path, map[string]any{})
	}
}

func (w *walker) takeList(c Category, path string, m *member, v any) {
	list, ok := v.([]any)
	if !ok {
		w.wrongType(path, "a list", v)
		return
	}
	if len(list) == 0 {
		return
	}
	if len(m.shape.keys) == 0 {
		if n, keep := w.normal(path, m, v); keep {
			w.add(c, path, n)
		}
		return
	}
	for i, x := range list {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(path, i), "an object", x)
			continue
		}
		k, ok := w.itemKey(path, i, m.shape, item)
		if !ok {
			continue
		}
		before := len(w.leaves)
		for name, y := range item {
			if contains(m.shape.keys, name) {
				continue
			}
			f := m.shape.elem.fields[name]
			if f == nil {
				f = anyMember
			}
			w.take(c, path+k+"."+fieldName(name), f, y)
		}
		if len(w.leaves) == before {
			w.add(c, path+k, map[string]any{})
		}
	}
}

// unknown adds the members of a gated struct that the API types do not know:
// a field newer than the table is never lost. In what was found structurally
// such members mean nothing.
func (w *walker) unknown(c Category, path string, s *shape, obj map[string]any) {
	if w.loose {
		return
	}
	for k, v := range obj {
		if s.fields[k] == nil {
			w.take(c, path+"."+fieldName(k), anyMember, v)
		}
	}
}

// itemKey returns "[name]" or "[80/TCP]": the merge keys of a list item.
func (w *walker) itemKey(path string, i int, s *shape, item map[string]any) (string, bool) {
	parts := make([]string, 0, 2)
	for _, k := range s.keys {
		v, f := item[k], s.elem.fields[k]
		if (v == nil || v == "") && f.def != nil {
			v = f.def
		}
		part, ok := "", false
		if f.shape.kind == intShape {
			var n json.Number
			n, ok = integer(v)
			part = string(n)
		} else {
			part, ok = v.(string)
		}
		if !ok {
			w.fault(index(path, i), "list item whose %q is %s", k, kindOf(v))
			return "", false
		}
		parts = append(parts, part)
	}
	return key(strings.Join(parts, "/")), true
}

var anyMember = &member{shape: &shape{kind: anyShape}, pointer: true}

// key writes a list or map key: [name], or ["a.b/c"] where it holds anything
// but letters, digits, '_' and '-', so that no key can imitate a path.
func key(k string) string {
	if plain(k) {
		return "[" + k + "]"
	}
	return string(append(appendString([]byte{'['}, k), ']'))
}

// index writes the position of an item in a list without merge keys.
func index(path string, i int) string { return path + "[#" + strconv.Itoa(i) + "]" }

// fieldName writes a member name that is not a map key. One that the API
// types do not know may hold anything.
func fieldName(k string) string {
	if plain(k) {
		return k
	}
	return string(appendString(nil, k))
}

func plain(k string) bool {
	if k == "" {
		return false
	}
	for i := 0; i < len(k); i++ {
		c := k[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
