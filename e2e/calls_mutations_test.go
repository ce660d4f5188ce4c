//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mutation is an object with one change.
type mutation struct {
	path, how string
	object    map[string]any
}

// kept are the members that an update may not change, or that nobody asks for.
var kept = regexp.MustCompile(`^(apiVersion|kind|status|metadata\.(name|namespace|uid|resourceVersion|generation|creationTimestamp|managedFields|selfLink|finalizers|ownerReferences)).*$`)

// mutations changes every scalar of an object, and takes away everything that
// it has, one at a time, in the order of their paths.
func mutations(object map[string]any) []mutation {
	var out []mutation
	add := func(path, how string, o any) {
		out = append(out, mutation{strings.TrimPrefix(path, "."), how, o.(map[string]any)})
	}
	var walk func(path string, v any, with func(any) any)
	walk = func(path string, v any, with func(any) any) {
		if kept.MatchString(strings.TrimPrefix(path, ".")) {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				next := path + "." + k
				if strings.ContainsAny(k, "./") || strings.HasSuffix(path, "labels") || strings.HasSuffix(path, "annotations") {
					next = path + "[" + k + "]"
				}
				put := func(to any) any {
					m := maps.Clone(v)
					if to == nil {
						delete(m, k)
					} else {
						m[k] = to
					}
					return with(m)
				}
				if !kept.MatchString(strings.TrimPrefix(next, ".")) && next != ".metadata" {
					add(next, "without", put(nil))
				}
				walk(next, v[k], put)
			}
		case []any:
			for i, item := range v {
				name := fmt.Sprint(i)
				if m, ok := item.(map[string]any); ok && m["name"] != nil {
					name = fmt.Sprint(m["name"])
				}
				next := path + "[" + name + "]"
				add(next, "without", with(slices.Delete(slices.Clone(v), i, i+1)))
				walk(next, item, func(to any) any {
					l := slices.Clone(v)
					l[i] = to
					return with(l)
				})
			}
		default:
			add(path, "another", with(another(v)))
		}
	}
	walk("", object, func(o any) any { return o })
	return out
}

// others are values that the API takes in the place of one another.
var others = map[string]string{
	"TCP": "UDP", "IfNotPresent": "Always", "ClusterFirst": "Default", "HTTP": "HTTPS", "RuntimeDefault": "Unconfined", "LoadBalancer": "NodePort",
	"Directory": "File", "NoSchedule": "NoExecute", "ALL": "SYS_TIME", "NET_BIND_SERVICE": "SYS_ADMIN", "Prefix": "Exact", "Always": "Never",
	"ServiceAccount": "User", "Ingress": "Egress", "enabled": "disabled", "ScheduleAnyway": "DoNotSchedule", "Opaque": "example.test/other",
}

var (
	quantity = regexp.MustCompile(`^[0-9]+(m|Mi|Gi)$`)
	address  = regexp.MustCompile(`^(.*)\b(192\.0\.2|127\.0\.0)\.([0-9]+)`)
)

// another is a different value of the same kind that may well be valid.
func another(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case int64:
		return v + 1
	case float64:
		return v + 1
	case string:
		switch {
		case others[v] != "":
			return others[v]
		case quantity.MatchString(v):
			return "1" + v
		case address.MatchString(v):
			return address.ReplaceAllString(v, "${1}198.51.100.${3}")
		case strings.Contains(v, "@sha256:"):
			return strings.Replace(v, ":1@", ":2@", 1)
		}
		return v + "x"
	}
	return v
}
