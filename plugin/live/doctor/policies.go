package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
)

// admissionPolicies are the kinds of the generated policies.
var admissionPolicies = map[string]schema.GroupVersionResource{
	"ValidatingAdmissionPolicy":        {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	"ValidatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
}

// gone says what it means that a policy or binding is not there. The webhook is
// asked about what is applied, and about the gate's own objects in part; of
// Applications, Kustomizations and what the gate's controllers write it is never
// asked.
func gone(kind, name string) string {
	switch {
	case kind == "ValidatingAdmissionPolicyBinding":
		return "missing: the policy refuses nothing"
	case slices.ContainsFunc([]string{"syncgate-argocd", "syncgate-flux", "syncgate-controller"}, func(p string) bool { return strings.HasPrefix(name, p) }):
		return "missing: what it refuses passes, with the webhook or without: the webhook does not judge it"
	}
	return "missing: what it refuses passes while the webhook is dead, and what the webhook does not judge passes always"
}

// fixPolicies ends with what an apply leaves alone: what nobody who applies owns.
const fixPolicies = "syncgate manifests policies --policy FILE | kubectl apply -f -; for what is still different after that, kubectl replace -f -"

// policies looks whether the API server has the generated policies, bound and
// unchanged.
func (r *Report) policies(ctx context.Context, c *live.Cluster, want []map[string]any) error {
	found := map[string]map[string]any{}
	for kind, gvr := range admissionPolicies {
		list, err := c.List(ctx, gvr)
		if err != nil {
			return fmt.Errorf("listing admission policies: %w", err)
		}
		for _, object := range list {
			found[kind+" "+configurationName(object)] = object
		}
	}
	var details []string
	for _, w := range want {
		kind := text(w, "kind")
		entry := kind + " " + configurationName(w)
		if found[entry] == nil {
			details = append(details, entry+": "+gone(kind, configurationName(w)))
			continue
		}
		for _, d := range ComparePolicy(w, found[entry]) {
			details = append(details, d.String())
		}
	}
	switch {
	case len(want) == 0: // a doctor who expects nothing would find everything well
		details = append(details, "no policies are expected: there is nothing to compare with")
	case len(details) == 0:
		r.add("policies", true, "", fmt.Sprintf("the API server's own policies are the generated ones: %d objects", len(want)))
		return nil
	}
	r.add("policies", false, fixPolicies, details...)
	return nil
}

// ComparePolicy returns in what a ValidatingAdmissionPolicy or its binding, as
// the cluster has it, differs from the generated one: in anything of its spec,
// but for what the API server fills in. A field that the generated one does not
// have is a difference: it could narrow what is refused.
func ComparePolicy(want, got map[string]any) []Difference {
	entry := text(want, "kind") + " " + configurationName(want)
	var out []Difference
	a, b := spec(want), spec(got)
	for _, field := range union(a, b) {
		x, y := a[field], b[field]
		if named[field] && (x == nil || isList(x)) && (y == nil || isList(y)) {
			out = append(out, compareNamed(entry, field, x, y)...)
			continue
		}
		if wanted, is := plainField(field, x), plainField(field, y); wanted != is {
			out = append(out, Difference{entry, field, wanted, is})
		}
	}
	return out
}

// named are the lists of which each item is compared by itself: whole, nobody
// could see the difference.
var named = map[string]bool{"matchConditions": true, "variables": true, "validations": true, "auditAnnotations": true}

func compareNamed(entry, field string, want, got any) []Difference {
	a, b := byName(want), byName(got)
	var out []Difference
	for _, name := range union(a, b) {
		at := field + "[" + name + "]"
		switch x, y := a[name], b[name]; {
		case y == nil:
			out = append(out, Difference{entry, at, "there", "missing"})
		case x == nil:
			out = append(out, Difference{entry, at, "missing", "there"})
		case plain(x) != plain(y):
			out = append(out, Difference{entry, at, "the generated one", "another"})
		}
	}
	return out
}

// byName is a list by its items' names, and by their places where they have
// none. Two items of one name are never the generated ones.
func byName(v any) map[string]any {
	out := map[string]any{}
	items, _ := v.([]any)
	for i, x := range items {
		item, _ := x.(map[string]any)
		name := text(item, "name")
		if name == "" || out[name] != nil {
			name += fmt.Sprintf("#%d", i)
		}
		out[name] = x
	}
	return out
}

// defaults are what the API server fills in
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
var defaults = map[string]string{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "scope": "*"}

// plainField is a field as text, with its default said.
func plainField(field string, v any) string {
	if v == nil && defaults[field] != "" {
		return defaults[field]
	}
	return plain(v)
}

// spec is the spec of an object without what means nothing: defaults, what is
// empty, and the order of lists of words.
func spec(object map[string]any) map[string]any {
	s, _ := object["spec"].(map[string]any)
	m, _ := reduced(s).(map[string]any)
	return m
}

// reduced returns nil for what is empty.
func reduced(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if s, ok := value.(string); ok && s != "" && s == defaults[key] {
				continue
			}
			if x := reduced(value); x != nil {
				out[key] = x
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		var out []any
		words := true
		for _, value := range v {
			x, word := value.(string) // the API group of the core is an empty one
			words = words && word
			switch item := reduced(value); {
			case word:
				out = append(out, x)
			case item == nil: // an empty item is an item: a rule for everything
				out = append(out, map[string]any{})
			default:
				out = append(out, item)
			}
		}
		if len(out) == 0 {
			return nil
		}
		if words {
			slices.SortFunc(out, compareWords)
		}
		return out
	case string:
		if v != "" {
			return v
		}
	case json.Number, bool, float64:
		return v
	}
	return nil
}

func compareWords(a, b any) int {
	x, _ := a.(string)
	y, _ := b.(string)
	return strings.Compare(x, y)
}

func isList(v any) bool {
	_, is := v.([]any)
	return is
}

func union(a, b map[string]any) []string {
	out := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(out)
	return slices.Compact(out)
}
