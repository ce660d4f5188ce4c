package projection

import "strings"

// Kind is one kind of the table, as an API server names it.
type Kind struct {
	Group, Kind   string
	Resource      string // plural, in lower case
	ClusterScoped bool
	// ByDefault: the webhook judges the kind unless policy says otherwise. Of
	// cluster-scoped kinds it never is more than a possibility: policy names them.
	ByDefault bool
	// Hidden: the API server shows the kind to no admission webhook, lest one
	// make itself irremovable (k8s.io/apiserver, webhook/predicates/rules).
	Hidden bool
}

// Kinds returns the kinds of the table, in its order.
func Kinds() []Kind {
	out := make([]Kind, 0, len(kindTable))
	for i := range kindTable {
		k := &kindTable[i]
		out = append(out, Kind{
			Group: k.group, Kind: k.kind, Resource: Resource(k.group, k.kind), ClusterScoped: ClusterScoped(k.group, k.kind),
			ByDefault: !contains(onDemand, k.name()) && !contains(toCategories(k.applies), string(Delivery)),
			Hidden:    k.group == admissionGroup,
		})
	}
	return out
}

// onDemand are namespaced kinds that the webhook judges only if policy asks:
// controllers and meshes of all sorts write them all the time.
var onDemand = []string{"Endpoints", "EndpointSlice.discovery.k8s.io"}

func toCategories(cs []Category) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = string(c)
	}
	return out
}

// Resource returns the plural under which the API serves a kind, by the rules of
// English that the Kubernetes APIs follow.
func Resource(group, kind string) string {
	s := strings.ToLower(kind)
	switch {
	case group == "" && s == "endpoints":
		return s
	case strings.HasSuffix(s, "s"), strings.HasSuffix(s, "x"), strings.HasSuffix(s, "ch"), strings.HasSuffix(s, "sh"):
		return s + "es"
	case strings.HasSuffix(s, "y") && len(s) > 1 && !strings.ContainsRune("aeiou", rune(s[len(s)-2])):
		return s[:len(s)-1] + "ies"
	}
	return s + "s"
}
