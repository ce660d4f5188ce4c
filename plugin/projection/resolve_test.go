package projection

import (
	"encoding/json"
	"strconv"
	"strings"
)

// segment is one step of a leaf's path: a member, a key or a position.
type segment struct {
	name     string
	bracket  bool // [name], of a list or a string map
	position int  // [#1]; -1: none
}

// segments takes a leaf's path apart. Only an unambiguous notation allows it.
func segments(path string) []segment {
	var out []segment
	for path != "" {
		switch {
		case path[0] == '.':
			path = path[1:]
		case strings.HasPrefix(path, "[#"):
			end := strings.IndexByte(path, ']')
			n, _ := strconv.Atoi(path[2:end])
			out = append(out, segment{bracket: true, position: n})
			path = path[end+1:]
		case path[0] == '[':
			name, rest := word(path[1:], "]")
			out = append(out, segment{name: name, bracket: true, position: -1})
			path = rest[1:]
		default:
			name, rest := word(path, ".[")
			out = append(out, segment{name: name, position: -1})
			path = rest
		}
	}
	return out
}

// word reads a plain word or a JSON string.
func word(s, stop string) (string, string) {
	if s[0] == '"' {
		d := json.NewDecoder(strings.NewReader(s))
		var name string
		if d.Decode(&name) != nil {
			return "", "]"
		}
		return name, s[d.InputOffset():]
	}
	i := strings.IndexAny(s, stop)
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:]
}

// resolve finds where in a tree the value of a leaf comes from; false where
// the leaf is made by a rule of its own (a default, an alias).
func resolve(tree any, path string) ([]any, bool) {
	path = strings.TrimSuffix(path, "#repository")
	segs := segments(path)
	var at []any
	for i, s := range segs {
		switch t := tree.(type) {
		case map[string]any:
			next, ok := t[s.name]
			if !ok {
				return nil, false
			}
			tree, at = next, append(at, s.name)
		case []any:
			n := item(t, s, segs[i+1:])
			if n < 0 {
				return nil, false
			}
			tree, at = t[n], append(at, n)
		default:
			return nil, false
		}
	}
	return at, true
}

// item finds a list item by merge key, or by its position among the items
// that have the member that comes next.
func item(list []any, s segment, rest []segment) int {
	seen := 0
	for i, x := range list {
		m, _ := x.(map[string]any)
		if s.position >= 0 {
			if typed := len(rest) > 0 && (rest[0].name == "prefix" || rest[0].name != "" && m[rest[0].name] == nil) && hasSource(list); typed {
				continue
			}
			if seen == s.position {
				return i
			}
			seen++
			continue
		}
		if matches(m, s.name) {
			return i
		}
	}
	return -1
}

// hasSource tells the lists whose positions count among items of one type.
func hasSource(list []any) bool {
	for _, x := range list {
		m, _ := x.(map[string]any)
		for _, k := range []string{"secretRef", "configMapRef", "secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"} {
			if m[k] != nil {
				return true
			}
		}
	}
	return false
}

func matches(m map[string]any, name string) bool {
	if meta, ok := m["metadata"].(map[string]any); ok && meta["name"] == name {
		return true
	}
	for _, k := range []string{"name", "mountPath", "devicePath", "ip", "topologyKey", "uid"} {
		if m[k] == name {
			return true
		}
	}
	protocol, _ := m["protocol"].(string)
	if protocol == "" {
		protocol = "TCP"
	}
	for _, k := range []string{"containerPort", "port"} {
		if n, ok := m[k].(json.Number); ok && n.String()+"/"+protocol == name {
			return true
		}
	}
	return false
}
