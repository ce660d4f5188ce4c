package policy

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// admissionGroup is the group whose objects the API server shows to no
// admission webhook, lest one could make itself irremovable.
const admissionGroup = "admissionregistration.k8s.io"

// kindRef is a kind as policy writes it: "Kind" or "Kind.group". Without a
// group it is that of the table of gated fields.
type kindRef string

func (r kindRef) split() (kind, group string, grouped bool) {
	return strings.Cut(string(r), ".")
}

// matches reports whether r means a kind. Without a group it means the table's
// kinds of that name, and only a name that the table does not have means that of
// any group: a custom resource called Service is no Service.
func (r kindRef) matches(group, kind string) bool {
	name, of, grouped := r.split()
	if name != kind {
		return false
	}
	group = projection.CanonicalGroup(group, kind)
	if grouped {
		return projection.CanonicalGroup(of, name) == group
	}
	inTable := tableKinds(r)
	return len(inTable) == 0 || slices.ContainsFunc(inTable, func(k projection.Kind) bool { return k.Group == group })
}

// table is the table of kinds by their names.
var table = func() map[string][]projection.Kind {
	out := map[string][]projection.Kind{}
	for _, k := range projection.Kinds() {
		out[k.Kind] = append(out[k.Kind], k)
	}
	return out
}()

// tableKinds returns what r means in the table.
func tableKinds(r kindRef) []projection.Kind {
	name, group, grouped := r.split()
	if !grouped {
		return table[name]
	}
	for i, k := range table[name] {
		if k.Group == projection.CanonicalGroup(group, name) {
			return table[name][i : i+1]
		}
	}
	return nil
}

// qualified is "Kind.group", or "Kind" in the core group.
func qualified(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

// judgedKinds fills in the kinds that are judged beside those that always are,
// and refuses those that cannot be.
func (v *validator) judgedKinds(a *Admission) {
	scope := v.doc.Scope.Admission
	a.ClusterScoped, a.Kinds = scope.ClusterScoped, scope.Kinds
	if a.ClusterScoped == nil {
		a.ClusterScoped = defaultClusterScoped
	}
	v.kindRefs("scope.admission.clusterScoped", a.ClusterScoped, true)
	v.kindRefs("scope.admission.kinds", a.Kinds, false)
	for _, c := range v.custom {
		list := &a.Kinds
		if c.ClusterScoped {
			list = &a.ClusterScoped
		}
		if !slices.ContainsFunc(*list, func(r string) bool { return kindRef(r).matches(c.Group, c.Kind) }) {
			*list = append(slices.Clip(*list), qualified(c.Group, c.Kind))
		}
	}
}

// kindRefs checks a list of kinds that are all cluster-scoped, or all not, and
// remembers those outside the table.
func (v *validator) kindRefs(path string, list []string, cluster bool) {
	example := "a kind such as Endpoints or Rollout.argoproj.io"
	if cluster {
		example = "a kind such as ClusterRole or Cluster.example.com"
	}
	unique(v, path, list)
	for i, s := range list {
		at := item(path, i)
		if !v.word(at, s, kindRefWord, example) {
			continue
		}
		kinds := tableKinds(kindRef(s))
		kind, group, grouped := kindRef(s).split()
		switch {
		case group == admissionGroup || slices.ContainsFunc(kinds, func(k projection.Kind) bool { return k.Group == admissionGroup }):
			v.fail(at, "%q is shown to no webhook; guard it by RBAC", s)
		case len(kinds) == 0 && !grouped:
			v.fail(at, "%q is not in the table of gated fields; write it as Kind.group", s)
		case len(kinds) == 0:
			v.customKind(at, customKind{Group: group, Kind: kind, ClusterScoped: cluster})
		case cluster && !kinds[0].ClusterScoped:
			v.fail(at, "%q has a namespace; it is judged, or named in scope.admission.kinds", s)
		case !cluster && kinds[0].ClusterScoped:
			v.fail(at, "%q has no namespace; name it in scope.admission.clusterScoped", s)
		}
	}
}

// customKind is a kind that policy names for the webhook.
type customKind struct {
	Group, Kind   string
	Resource      string // plural; empty: by the usual rules
	ClusterScoped bool
}

// customKind remembers a kind; what is said of it twice must agree.
func (v *validator) customKind(path string, c customKind) {
	i := slices.IndexFunc(v.custom, func(x customKind) bool { return x.Group == c.Group && x.Kind == c.Kind })
	if i < 0 {
		v.custom = append(v.custom, c)
		return
	}
	known := &v.custom[i]
	if known.ClusterScoped != c.ClusterScoped {
		v.fail(path, "%s is cluster-scoped here and namespaced elsewhere; kinds[].scope says which", qualified(c.Group, c.Kind))
	}
	if known.Resource != "" && c.Resource != "" && known.Resource != c.Resource {
		v.fail(path+".resource", "got %.40q, but an entry before says %q", c.Resource, known.Resource)
	}
	if known.Resource == "" {
		known.Resource = c.Resource
	}
}

// admissionOf remembers where the webhook finds a kind of kinds.
func (v *validator) admissionOf(path string, d kindDoc) {
	if d.Resource != "" {
		v.word(path+".resource", d.Resource, resourceWord, "a plural such as prometheuses")
	}
	c := customKind{Group: projection.CanonicalGroup(d.Group, d.Kind), Kind: d.Kind, Resource: d.Resource, ClusterScoped: d.Scope.is(clusterScope)}
	if kinds := tableKinds(kindRef(qualified(c.Group, c.Kind))); len(kinds) > 0 {
		if d.Scope != nil && c.ClusterScoped != kinds[0].ClusterScoped {
			v.fail(path+".scope", "got %q, which %s does not have", *d.Scope, qualified(c.Group, c.Kind))
		}
		c.ClusterScoped = kinds[0].ClusterScoped
	}
	if c.Group != admissionGroup {
		v.customKind(path, c)
	}
}

// gatedDeletes refuses a kind whose DELETE the API server would not show.
func (v *validator) gatedDeletes(a Admission) {
	v.words("gatedDeletes", a.GatedDeletes, kindWord, "a kind such as NetworkPolicy")
	for i, name := range a.GatedDeletes {
		if !kindWord.MatchString(name) || v.judged(a, name) {
			continue
		}
		v.fail(item("gatedDeletes", i), "the webhook does not judge %q; name it in scope.admission.kinds or clusterScoped", name)
	}
}

// judged reports whether the webhook judges a kind of this name.
func (v *validator) judged(a Admission, name string) bool {
	for _, r := range slices.Concat(a.Kinds, a.ClusterScoped) {
		if kind, _, _ := kindRef(r).split(); kind == name {
			return true
		}
	}
	return slices.ContainsFunc(tableKinds(kindRef(name)), func(k projection.Kind) bool { return k.ByDefault && !k.ClusterScoped })
}
