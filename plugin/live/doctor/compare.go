package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Difference is one thing in which the configuration in the cluster is not
// the generated one. Entry is the name of the webhook, empty for the
// configuration as a whole.
type Difference struct {
	Entry string `json:"entry,omitempty"`
	Field string `json:"field"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// bundleField is filled in after the configuration is applied.
const bundleField = "clientConfig.caBundle"

// String is the difference in one line.
func (d Difference) String() string {
	at := d.Field
	if d.Entry != "" {
		at = d.Entry + " " + d.Field
	}
	return fmt.Sprintf("%s: got %s, want %s", at, clip(d.Got), clip(d.Want))
}

// Compare returns in what a ValidatingWebhookConfiguration as the cluster has it
// differs from the generated one. Where the webhook is (the URL or Service, and
// the authority that signs its certificate) is not compared, but for the path;
// nor are labels and annotations, and the order of what has no order.
func Compare(want, got map[string]any) []Difference {
	var out []Difference
	wanted, _ := entries(want)
	found, twice := entries(got)
	for _, name := range twice {
		out = append(out, Difference{name, "name", "one entry", "several"})
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		entry, there := found[name]
		if !there {
			out = append(out, Difference{name, "entry", "there", "missing"})
			continue
		}
		out = append(out, compareEntry(name, wanted[name], entry)...)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if wanted[name] == nil {
			out = append(out, Difference{name, "entry", "missing", "there: it is of another policy or version"})
		}
	}
	return out
}

// entries returns the webhooks of a configuration by name, and the names that
// stand twice.
func entries(config map[string]any) (byName map[string]map[string]any, twice []string) {
	byName = map[string]map[string]any{}
	for _, x := range list(config, "webhooks") {
		entry, _ := x.(map[string]any)
		name := text(entry, "name")
		if byName[name] != nil {
			twice = append(twice, name)
		}
		byName[name] = entry
	}
	return byName, twice
}

// normal says how the fields of an entry are compared: as a text that is the
// same for what means the same. A field that is not here is one that a newer
// API server knows and that could narrow what the webhook is asked.
var normal = map[string]func(any) string{
	"failurePolicy":           plain,
	"matchPolicy":             plain,
	"sideEffects":             plain,
	"timeoutSeconds":          plain,
	"admissionReviewVersions": plain,
	"namespaceSelector":       selector,
	"objectSelector":          selector,
}

func compareEntry(name string, want, got map[string]any) []Difference {
	var out []Difference
	differ := func(field, want, got string) {
		if want != got {
			out = append(out, Difference{name, field, want, got})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(normal)) {
		differ(field, normal[field](want[field]), normal[field](got[field]))
	}
	missing, more := sets(rules(want), rules(got))
	differ("rules", "also "+joined(missing), "also "+joined(more)) // the same: nothing on both sides
	out = append(out, compareConditions(name, conditions(want), conditions(got))...)
	client, _ := got["clientConfig"].(map[string]any)
	wantClient, _ := want["clientConfig"].(map[string]any)
	differ("clientConfig path", path(wantClient), path(client))
	if text(client, "caBundle") == "" {
		differ(bundleField, "there", "missing")
	}
	for _, field := range slices.Sorted(maps.Keys(got)) {
		switch field {
		case "name", "rules", "matchConditions", "clientConfig":
		default:
			if normal[field] == nil {
				differ(field, "nothing", plain(got[field]))
			}
		}
	}
	return out
}

func compareConditions(name string, want, got map[string]string) []Difference {
	var out []Difference
	for _, c := range slices.Sorted(maps.Keys(want)) {
		expression, there := got[c]
		switch {
		case !there:
			out = append(out, Difference{name, "matchConditions[" + c + "]", "there", "missing: the webhook is asked too often"})
		case expression != want[c]:
			out = append(out, Difference{name, "matchConditions[" + c + "]", "the generated expression", "another"})
		}
	}
	for _, c := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[c]; !there {
			out = append(out, Difference{name, "matchConditions[" + c + "]", "missing", "there: the webhook may not be asked when it has to be"})
		}
	}
	return out
}

// conditions returns the expressions by name.
func conditions(entry map[string]any) map[string]string {
	out := map[string]string{}
	for _, x := range list(entry, "matchConditions") {
		c, _ := x.(map[string]any)
		out[text(c, "name")] = text(c, "expression")
	}
	return out
}

// rules returns what an entry is asked about, one line an operation and
// resource.
func rules(entry map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, x := range list(entry, "rules") {
		r, _ := x.(map[string]any)
		scope := text(r, "scope")
		if scope == "" {
			scope = "*"
		}
		for _, operation := range list(r, "operations") {
			for _, group := range list(r, "apiGroups") {
				for _, version := range list(r, "apiVersions") {
					for _, resource := range list(r, "resources") {
						out[fmt.Sprintf("%v %v/%v/%v (%s)", operation, group, version, resource, scope)] = true
					}
				}
			}
		}
	}
	return out
}

// sets returns what only one of two sets has, sorted.
func sets(a, b map[string]bool) (onlyA, onlyB []string) {
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if !b[k] {
			onlyA = append(onlyA, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if !a[k] {
			onlyB = append(onlyB, k)
		}
	}
	return onlyA, onlyB
}

func joined(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// selector is a label selector as a sorted list of requirements; everything is
// the empty one.
func selector(v any) string {
	s, _ := v.(map[string]any)
	var parts []string
	match, _ := s["matchLabels"].(map[string]any)
	for key, value := range match {
		parts = append(parts, fmt.Sprintf("%s In [%v]", key, value))
	}
	for _, x := range list(s, "matchExpressions") {
		r, _ := x.(map[string]any)
		var values []string
		for _, v := range list(r, "values") {
			values = append(values, fmt.Sprint(v))
		}
		slices.Sort(values)
		parts = append(parts, fmt.Sprintf("%s %s [%s]", text(r, "key"), text(r, "operator"), strings.Join(values, " ")))
	}
	if len(parts) == 0 {
		return "everything"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// plain is any value.
func plain(v any) string {
	if v == nil {
		return "nothing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "something"
	}
	return strings.Trim(string(data), `"`)
}

// path is where on its server the webhook is asked.
func path(client map[string]any) string {
	if service, ok := client["service"].(map[string]any); ok {
		return text(service, "path")
	}
	_, rest, _ := strings.Cut(text(client, "url"), "://")
	_, at, found := strings.Cut(rest, "/")
	if !found {
		return ""
	}
	at, _, _ = strings.Cut(at, "?")
	return "/" + at
}

// host is where the webhook is, without the path.
func host(client map[string]any) string {
	if service, ok := client["service"].(map[string]any); ok {
		return "service " + text(service, "namespace") + "/" + text(service, "name")
	}
	_, rest, found := strings.Cut(text(client, "url"), "://")
	if !found {
		return ""
	}
	at, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(at)
}

func list(m map[string]any, key string) []any {
	l, _ := m[key].([]any)
	return l
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// clip bounds what somebody else wrote.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
