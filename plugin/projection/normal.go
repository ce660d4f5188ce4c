package projection

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// normal returns the normalised form of a value, and whether it is there at
// all: null, empty lists, zero values of fields that are not pointers, and
// defaults are the same as absence.
func (w *walker) normal(path string, m *member, v any) (any, bool) {
	if v == nil {
		return nil, false
	}
	switch m.shape.kind {
	case stringShape:
		s, ok := v.(string)
		if !ok {
			w.wrongType(path, "a string", v)
			return nil, false
		}
		if !utf8.ValidString(s) {
			w.fault(path, "invalid UTF-8")
			return nil, false
		}
		return s, (m.pointer || s != "") && (m.def == nil || m.def != s)
	case boolShape:
		b, ok := v.(bool)
		if !ok {
			w.wrongType(path, "true or false", v)
			return nil, false
		}
		return b, (m.pointer || b) && (m.def == nil || m.def != b)
	case intShape:
		n, ok := integer(v)
		if !ok {
			w.wrongType(path, "an integer", v)
			return nil, false
		}
		return n, (m.pointer || n != "0") && (m.def == nil || m.def != n)
	case intOrStringShape:
		switch t := v.(type) {
		case string:
			return t, true
		case json.Number:
			if n, ok := integer(v); ok {
				return string(n), true
			}
		}
		w.wrongType(path, "an integer or a string", v)
		return nil, false
	case quantityShape:
		s, ok := v.(string)
		if n, isNumber := v.(json.Number); isNumber {
			s, ok = string(n), true
		}
		if !ok {
			w.wrongType(path, "a quantity", v)
			return nil, false
		}
		s = quantity(s)
		return s, m.def == nil || m.def != s
	case listShape:
		return w.normalList(path, m, v)
	case structShape, mapShape:
		return w.normalMap(path, m, v)
	}
	if depth(v, 0) > maxDepth {
		w.fault(path, "nested more than %d deep", maxDepth)
		return nil, false
	}
	return w.normalAny(path, v)
}

func (w *walker) normalList(path string, m *member, v any) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		w.wrongType(path, "a list", v)
		return nil, false
	}
	out := make([]any, 0, len(list))
	for i, x := range list {
		if s, ok := x.(string); ok && m.shape.elem.kind == stringShape && utf8.ValidString(s) {
			out = append(out, s) // the common case, without a path of its own
			continue
		}
		n, keep := w.normal(index(path, i), m.shape.item, x)
		switch {
		case x == nil:
			w.wrongType(index(path, i), "a value", x)
		case keep:
			out = append(out, n)
		default: // an item is there even when it is empty
			out = append(out, emptyOf(m.shape.elem))
		}
	}
	if m.shape.set {
		out = sortedSet(out)
	}
	return out, len(out) > 0
}

func emptyOf(s *shape) any {
	switch s.kind {
	case structShape, mapShape:
		return map[string]any{}
	case listShape:
		return []any{}
	case boolShape:
		return false
	case intShape, floatShape:
		return json.Number("0")
	}
	return ""
}

func (w *walker) normalMap(path string, m *member, v any) (any, bool) {
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(path, "an object", v)
		return nil, false
	}
	out := make(map[string]any, len(obj))
	for k, x := range obj {
		f := anyMember
		switch {
		case m.shape.kind == mapShape:
			f = m.shape.item
		case m.shape.fields[k] != nil:
			f = m.shape.fields[k]
		}
		if x == nil && m.shape.kind == mapShape && m.shape.elem.kind == stringShape && !w.loose {
			w.nullEntry(path + key(k))
		}
		if n, keep := w.normal(path+"."+fieldName(k), f, x); keep {
			out[w.validKey(path, k)] = n
		}
	}
	return out, len(out) > 0 || m.pointer && m.def != emptyObject
}

// normalAny keeps a value of unknown shape as written, without nulls.
func (w *walker) normalAny(path string, v any) (any, bool) {
	switch t := v.(type) {
	case nil:
		return nil, false
	case bool:
		return t, true
	case string:
		if !utf8.ValidString(t) {
			w.fault(path, "invalid UTF-8")
			return nil, false
		}
		return t, true
	case json.Number:
		n, ok := number(t)
		if !ok {
			w.fault(path, "a number that has no exact form")
			return nil, false
		}
		return n, true
	case []any:
		out := make([]any, 0, len(t))
		for i, x := range t {
			if n, keep := w.normalAny(index(path, i), x); keep {
				out = append(out, n)
			} else {
				out = append(out, nil)
			}
		}
		return out, len(out) > 0
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, x := range t {
			if n, keep := w.normalAny(path+"."+fieldName(k), x); keep {
				out[w.validKey(path, k)] = n
			}
		}
		return out, true
	}
	w.wrongType(path, "JSON", v)
	return nil, false
}

// validKey refuses a member name that RFC 8785 cannot write.
func (w *walker) validKey(path, k string) string {
	if !utf8.ValidString(k) {
		w.fault(path, "invalid UTF-8 in a member name")
	}
	return k
}

func (w *walker) wrongType(path, want string, v any) {
	w.fault(path, "want %s, got %s", want, kindOf(v))
}

// kindOf names the type alone: everybody who may look at an application reads
// its sync error, and a value in the wrong place may be a password.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

// integer returns the shortest form of an integral JSON number.
func integer(v any) (json.Number, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return "", false
	}
	n, ok = number(n)
	if !ok || strings.ContainsAny(string(n), ".e") {
		return "", false
	}
	return n, true
}

// maxSafeInteger: beyond 2^53-1 a double stands for several integers, so two
// parsers may see two values.
const maxSafeInteger = 1<<53 - 1

// number returns the form of RFC 8785 section 3.2.2.3; false for integers past
// 2^53-1 and for what no double can hold.
func number(n json.Number) (json.Number, bool) {
	s := string(n)
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		if i > maxSafeInteger || i < -maxSafeInteger {
			return "", false
		}
		if s == "-0" {
			return "0", true
		}
		return n, true // JSON allows no other spelling without '.' or 'e'
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > maxSafeInteger {
		return "", false
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxSafeInteger {
		return json.Number(strconv.FormatInt(int64(f), 10)), true
	}
	b, err := json.Marshal(f) // ES6 rules, as RFC 8785 wants
	if err != nil {
		return "", false
	}
	return json.Number(b), true
}

func sortedSet(list []any) []any {
	enc := make([]string, len(list))
	for i, x := range list {
		enc[i] = string(appendValue(nil, x))
	}
	idx := make([]int, len(list))
	for i := range idx {
		idx[i] = i
	}
	sort.Slice(idx, func(a, b int) bool { return enc[idx[a]] < enc[idx[b]] })
	out := make([]any, 0, len(list))
	for i, j := range idx {
		if i > 0 && enc[j] == enc[idx[i-1]] {
			continue
		}
		out = append(out, list[j])
	}
	return out
}
