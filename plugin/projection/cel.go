package projection

import (
	"fmt"
	"strings"
)

// Conditions are CEL expressions over object and oldObject, either of which may
// be null, for the matchConditions of a webhook (admissionregistration.k8s.io/v1;
// they compile on Kubernetes 1.28 and later).
//
// They never hide a change: whenever the projections of two states of an object
// differ in a required category, or one state has a fault that the other has
// not, they are true. They fail for no object that an API server can send, and
// stay within its cost limits: what is too large to be looked into is said to
// differ, instead of being refused by arithmetic.
type Conditions struct {
	// Create holds for an object that may have a leaf in a required category;
	// it is "true" for kinds that nearly always have one.
	Create string
	// Update all hold if the gated fields may differ. Where looking into them
	// costs much, a cheap inequality stands first: the API server skips the
	// call for one false condition even when another has failed.
	Update []string
}

// when restricts a comparison to objects in which anything counts. It returns
// the CEL of objects x and y that are alike; same writes the plain comparison.
type when func(w *celWriter, requires func(Category) bool, x, y string, same func() string) string

// CEL returns the conditions of a kind for a policy that requires certain
// categories (nil: all). Kinds of the same form have equal conditions, byte for
// byte. Of a kind outside the table everything counts but metadata and status,
// because a pod spec may stand anywhere in it. It returns false for kinds that
// no webhook is shown, and those that Project does not search for pod specs.
func (p *Projector) CEL(group, kind string, requires func(Category) bool) (Conditions, bool) {
	if requires == nil {
		requires = func(Category) bool { return true }
	}
	key := kindKey{CanonicalGroup(group, kind), kind}
	var fields []CustomField
	if p != nil {
		fields = p.fields[key]
	}
	k := kindIndex[key]
	applies := podCategories
	switch {
	case k != nil:
		applies = k.applies
	case !searched(map[string]any{"apiVersion": key.group + "/v1", "kind": kind}):
		if len(fields) == 0 {
			return Conditions{}, false
		}
		applies = nil
	}
	if key.group == admissionGroup {
		return Conditions{}, false
	}
	c := &conditions{k: k, requires: requires, variables: p.requiredVariables(requires)}
	if c.variables != nil && (k == nil && applies != nil || k != nil && k.pod != nil) {
		c.needed = true
	}
	for _, cat := range applies {
		c.needed = c.needed || requires(cat)
	}
	for _, f := range fields {
		if requires(f.Category) {
			c.paths = append(c.paths, f.Path)
		}
	}
	return c.make(), true
}

// conditions makes the conditions of one kind.
type conditions struct {
	k         *kindSpec // nil: outside the table
	requires  func(Category) bool
	variables *names   // that policy gates and requires; nil: none
	needed    bool     // a built-in category of the kind is required
	paths     []string // of custom fields that are
}

func (c *conditions) make() Conditions {
	switch {
	case !c.needed && len(c.paths) == 0:
		return Conditions{Create: "false", Update: []string{"false"}}
	case !c.needed: // only custom fields
		return Conditions{c.created(nil), []string{c.changed(nil)}}
	case c.k == nil:
		return Conditions{"true", []string{c.changed(customTree())}}
	case c.k.pod != nil && c.k.pod.anyData:
		member, path, _ := strings.Cut(c.k.pod.spec, ".")
		data := onlyTree()
		data.put(member, whole("null"))
		return Conditions{"object == null || " + (&celWriter{}).reaches("object", member+"."+path), []string{c.changed(data)}}
	case c.k.pod != nil:
		return Conditions{"true", []string{c.changed(c.trees().podPlaceTree(c.k.pod, true)), c.changed(c.trees().podPlaceTree(c.k.pod, false))}}
	}
	out := Conditions{"true", []string{c.changed(c.trees().kindTree(c.k))}}
	if c.k.quiet {
		out.Create = c.created(c.trees().kindTree(c.k))
	}
	return out
}

func (c *conditions) trees() *trees {
	return &trees{requires: c.requires, made: map[*shape]*tree{}, variables: c.variables}
}

// changed: unless both states are there and alike.
func (c *conditions) changed(t *tree) string {
	return "oldObject == null || object == null || !(" + c.alike(t, "oldObject", "object") + ")"
}

// created: a new object has a leaf if it differs from one that holds nothing.
func (c *conditions) created(t *tree) string {
	return "object == null || ![dyn({})].all(o, " + c.alike(t, "o", "object") + ")"
}

func (c *conditions) alike(t *tree, x, y string) string {
	w := &celWriter{}
	var all []string
	if t != nil {
		same := func() string { return w.same(t, ends{x: x, y: y}) }
		if c.k != nil && c.k.when != nil {
			all = append(all, c.k.when(w, c.requires, x, y, same))
		} else {
			all = append(all, same())
		}
	}
	for _, path := range c.paths {
		all = append(all, w.sameAt(x, y, path))
	}
	return strings.Join(all, " && ")
}

// customTree compares a kind outside the table: everything but metadata and
// status, and the labels and annotations that would count in a pod template.
func customTree() *tree {
	root := openTree()
	root.leaveMetadata(nil, nil)
	meta := (&trees{requires: func(Category) bool { return true }}).podMeta()
	root.member("metadata", func() *tree { return meta })
	return root
}

// sameAt compares what stands at a path of an object of unknown shape.
func (w *celWriter) sameAt(x, y, path string) string {
	name, rest, deeper := strings.Cut(path, ".")
	a, b := w.name("a"), w.name("b")
	alike := a + " == " + b
	if deeper {
		alike += " || " + w.sameAt(a, b, rest)
	}
	at := func(m string) string {
		return fmt.Sprintf("type(%s) == map ? %s[?%s].orValue(null) : null", m, m, quote(name))
	}
	return fmt.Sprintf("[%s].all(%s, [%s].all(%s, %s))", at(x), a, at(y), b, alike)
}

// reaches holds if there is something at a path, or in its way.
func (w *celWriter) reaches(x, path string) string {
	name, rest, deeper := strings.Cut(path, ".")
	a := w.name("a")
	there := a + " != null"
	if deeper {
		there += fmt.Sprintf(" && (type(%s) != map || %s)", a, w.reaches(a, rest))
	}
	return fmt.Sprintf("[%s[?%s].orValue(null)].exists(%s, %s)", x, quote(name), a, there)
}

// serviceCounts: see serviceKind. A Service that opens nothing counts only if
// policy requires category service, or for an annotation that opens it.
func serviceCounts(w *celWriter, requires func(Category) bool, x, y string, same func() string) string {
	exposes := fmt.Sprintf("[%s, %s].exists(o, !(o.?spec.?type.orValue('') in ['', 'ClusterIP']) || [o.?spec.?externalIPs.orValue([])].exists(i, i != null && i != []))", x, y)
	annotations := func(r *metaRule) string {
		t := onlyTree()
		t.leaveMetadata(nil, r)
		return w.same(t, ends{x: x, y: y})
	}
	var all []string
	switch {
	case requires(Service):
		all = append(all, same())
	default:
		all = append(all, fmt.Sprintf("(!%s || %s)", exposes, same()))
	}
	if requires(Network) {
		all = append(all, annotations(exposingAnnotations), fmt.Sprintf("(!%s || %s)", exposes, annotations(exposureAnnotations)))
	}
	return strings.Join(all, " && ")
}

// secretCounts: see secretKind. Before anything of a Secret is compared it must
// make an identity, or tell Argo CD about a cluster or repository.
func secretCounts(_ *celWriter, _ func(Category) bool, x, y string, same func() string) string {
	return fmt.Sprintf("(![%s, %s].exists(o, o.?type.orValue('') in %s || o.?metadata.?labels[?%s].hasValue()) || %s)",
		x, y, quoted(identityTypes), quote(argoSecret), same())
}
