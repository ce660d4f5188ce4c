package projection

import (
	"encoding/json"
	"strings"
)

// get follows a dotted path of plain member names and returns the value with
// the object that holds it; nil if a part is absent. A part that is no object
// is a fault, because what is behind it would vanish.
func (w *walker) get(obj map[string]any, path string) (map[string]any, any) {
	for start := 0; ; {
		n := strings.IndexByte(path[start:], '.')
		if n < 0 {
			return obj, obj[path[start:]]
		}
		v := obj[path[start:start+n]]
		if v == nil {
			return nil, nil
		}
		next, ok := v.(map[string]any)
		if !ok {
			w.wrongType(path[:start+n], "an object", v)
			return nil, nil
		}
		obj, start = next, start+n+1
	}
}

// object is get for a value that must be an object.
func (w *walker) object(obj map[string]any, path string) map[string]any {
	_, v := w.get(obj, path)
	if v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		w.wrongType(path, "an object", v)
	}
	return m
}

// member is object for one member of an object that stands at a path.
func (w *walker) member(at string, obj map[string]any, name string) map[string]any {
	v := obj[name]
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		w.wrongType(at+"."+name, "an object", v)
	}
	return m
}

var zero = json.Number("0")

// kindRows takes the fields that rows name, and what stands beside them that
// the API types do not know.
func (w *walker) kindRows(rows []kindRow, obj map[string]any) {
	for i := range rows {
		_, v := w.get(obj, rows[i].path)
		if v == nil && rows[i].pointer {
			v = zero // what absence means, and it counts
		}
		w.take(rows[i].cat, rows[i].path, rows[i].member, withoutFilledIn(obj, rows[i].path, v))
	}
	switch r := &rows[0]; {
	case r.parent == nil:
	case strings.HasPrefix(r.path, "spec."):
		if spec, ok := obj["spec"].(map[string]any); ok {
			w.unknown(r.cat, "spec", r.parent, spec)
		}
	default:
		w.unknownTop(r.cat, r.parent, obj)
	}
}

// unknownTop is unknown for the members of the object itself.
func (w *walker) unknownTop(c Category, s *shape, obj map[string]any) {
	for k, v := range obj {
		switch k {
		case "apiVersion", "kind", "metadata", "status":
		default:
			if s.fields[k] == nil {
				w.take(c, fieldName(k), anyMember, v)
			}
		}
	}
}
