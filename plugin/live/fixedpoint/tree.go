package fixedpoint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// change is one place in which two raw trees differ.
type change struct {
	path          string
	before, after any // nil: absent
}

// compare lists where two trees differ, in the order of paths. Items of a list
// are paired by name if all have one, else by place.
func compare(path string, before, after any) []change {
	a, isMap := before.(map[string]any)
	b, both := after.(map[string]any)
	if isMap && both {
		return members(path, a, b)
	}
	x, isList := before.([]any)
	y, both := after.([]any)
	if isList && both {
		return items(path, x, y)
	}
	if same(before, after) {
		return nil
	}
	return []change{{path, before, after}}
}

func members(path string, a, b map[string]any) []change {
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	var out []change
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, compare(join(path, k), a[k], b[k])...)
	}
	return out
}

func items(path string, a, b []any) []change {
	left, right := byName(a), byName(b)
	if left == nil || right == nil {
		left, right = byPlace(a), byPlace(b)
	}
	out := members("", left, right)
	for i := range out {
		out[i].path = path + out[i].path
	}
	return out
}

// byName returns the items under "[NAME]"; nil if one has no name or two have
// the same.
func byName(list []any) map[string]any {
	out := map[string]any{}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, _ := m["name"].(string)
		key := "[" + name + "]"
		if name == "" || out[key] != nil {
			return nil
		}
		out[key] = x
	}
	return out
}

func byPlace(list []any) map[string]any {
	out := map[string]any{}
	for i, x := range list {
		out[fmt.Sprintf("[#%d]", i)] = x
	}
	return out
}

func join(path, key string) string {
	switch {
	case path == "" || key[:min(1, len(key))] == "[":
		return path + key
	case !plainKey(key):
		return path + fmt.Sprintf("[%q]", key)
	}
	return path + "." + key
}

func plainKey(key string) bool {
	for _, r := range key {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return key != ""
}

func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

// without returns a tree without what the API server keeps for itself.
func without(tree map[string]any) map[string]any {
	out := maps.Clone(tree)
	delete(out, "status")
	meta, ok := tree["metadata"].(map[string]any)
	if !ok {
		return out
	}
	meta = maps.Clone(meta)
	for _, k := range []string{"creationTimestamp", "uid", "resourceVersion", "generation", "managedFields", "selfLink", "namespace"} {
		delete(meta, k)
	}
	out["metadata"] = meta
	return out
}
