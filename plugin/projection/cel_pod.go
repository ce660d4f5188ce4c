package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// podPlaceTree says how two objects of a kind with a pod spec are compared;
// cheaply: the whole pod template, which a replica count leaves alone.
func (b *trees) podPlaceTree(place *podPlace, cheap bool) *tree {
	root := onlyTree()
	spec, meta := whole("{}"), &tree{only: true, inside: map[string]*tree{"annotations": whole("{}"), "labels": whole("{}")}}
	if !cheap {
		spec, meta = b.of(shapes["core/v1.PodSpec"]), b.podMeta()
	}
	root.put(place.spec, spec)
	root.put(place.meta, meta)
	if place.spec == "spec.template.spec" { // one condition for Deployments, StatefulSets and their like
		root.put("spec.volumeClaimTemplates", whole("[]"))
		root.put("metadata.annotations", &tree{form: func(_ *celWriter, e ends) string {
			return fmt.Sprintf("!(%s in %s) && !(%s in %s)", quote(rollbackAnnotation), e.x, quote(rollbackAnnotation), e.y)
		}})
	}
	return root
}

// put sets the tree of what stands at a path.
func (t *tree) put(path string, at *tree) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		t.member(name, func() *tree { return at })
		return
	}
	t.member(name, onlyTree).put(rest, at)
}

// podMeta compares the labels and annotations of a pod template that count, but
// for these.
func (b *trees) podMeta(except ...*names) *tree {
	t := onlyTree()
	for _, part := range []string{"annotations", "labels"} {
		var list []string
		for _, r := range templateRows {
			if name, ok := strings.CutPrefix(r.path, part+"["); ok && b.requires(r.cat) {
				list = append(list, strings.TrimSuffix(name, "]"))
			}
		}
		if len(list) > 0 {
			rule := &metaRule{names: nameSet(list...), except: except}
			t.member(part, func() *tree { return &tree{form: rule.form} })
		}
	}
	return t
}

// podField returns the tree of a field whose row has a function of its own, or
// nil.
func (b *trees) podField(typ, name string, m *member) *tree {
	switch typ + "." + name {
	case "core/v1.PodSpec.containers", "core/v1.PodSpec.initContainers", "core/v1.PodSpec.ephemeralContainers":
		return b.containers()
	case "core/v1.EphemeralContainer.restartPolicy":
		return sidecarTree()
	case "core/v1.PodSpec.priorityClassName":
		return &tree{empty: "''", form: func(_ *celWriter, e ends) string {
			return fmt.Sprintf("!%s.startsWith(%s) && !%s.startsWith(%s)", e.x, quote(systemClasses), e.y, quote(systemClasses))
		}}
	case "core/v1.PodSpec.tolerations":
		reaching := quoted(append([]string{""}, controlPlaneTaints...))
		return filtered(mostTolerations, func(t string) string { return fmt.Sprintf("%s.?key.orValue('') in %s", t, reaching) })
	case "core/v1.EphemeralContainer.ports":
		free := slices.Clone(m.shape.keys)
		for f := range m.shape.elem.fields {
			if freeFields[m.shape.elem.name+"."+f] {
				free = append(free, f)
			}
		}
		slices.Sort(free)
		return filtered(0, func(p string) string { return fmt.Sprintf("!%s.all(k, k in %s)", p, quoted(free)) })
	case "core/v1.EphemeralContainer.env":
		return &tree{empty: "[]", form: b.envForm}
	case "core/v1.ConfigMapVolumeSource.name", "core/v1.ConfigMapProjection.name", "core/v1.ConfigMapEnvSource.name":
		return &tree{empty: "''", form: hashedName}
	}
	return nil
}

// containers are one tree for the three lists, so that they share one text.
func (b *trees) containers() *tree {
	if b.containerList == nil {
		s := shapes["core/v1.EphemeralContainer"] // a container, and whose processes it sees
		b.containerList = &tree{items: b.of(s), keys: []string{"name"}, most: mostKeyed}
	}
	return b.containerList
}

// filtered compares the items of two lists that count, in their order.
func filtered(most int, counts func(item string) string) *tree {
	return &tree{empty: "[]", form: func(w *celWriter, e ends) string {
		i := w.name("i")
		same := fmt.Sprintf("%s.filter(%s, %s) == %s.filter(%s, %s)", e.x, i, counts(i), e.y, i, counts(i))
		if most > 0 {
			same = fmt.Sprintf("size(%s) <= %d && size(%s) <= %d && ", e.x, most, e.y, most) + same
		}
		return same
	}}
}

const mostTolerations = 100

// envForm: of a container's variables those count that come from a Secret, that
// decide what runs, or that hold what the API types do not know; all of them if
// a mount's subPathExpr can use them. Sizes are asked for instead of members
// because this is what a large object's budget goes to.
func (b *trees) envForm(w *celWriter, e ends) string {
	named := programVariables.cel("n")
	if b.variables != nil {
		named += " || " + b.variables.cel("n")
	}
	plain := slices.DeleteFunc(slices.Sorted(maps.Keys(envSource.shape.fields)), func(f string) bool { return f == "secretKeyRef" })
	same := filtered(0, func(v string) string {
		return fmt.Sprintf("size(%s) > 2 || (has(%s.valueFrom) ? %s.valueFrom == null || !%s.valueFrom.all(k, k in %s) : size(%s) == 2 && !has(%s.value)) || %s.?name.optMap(n, %s).orValue(true)",
			v, v, v, v, quoted(plain), v, v, v, named)
	})
	return fmt.Sprintf("![%s, %s].exists(c, has(c.volumeMounts) && c.volumeMounts != null && c.volumeMounts.exists(m, m.?subPathExpr.hasValue())) && %s",
		e.aroundX, e.aroundY, same.form(w, e))
}

// hashedName compares the names of two ConfigMaps without kustomize's hash, see
// withoutContentHash.
func hashedName(_ *celWriter, e ends) string {
	base := func(n string) string {
		return fmt.Sprintf("(size(%s) > %d && %s.substring(size(%s) - %d).matches('^-[%s]{%d}$') ? %s.substring(0, size(%s) - %d) : %s)",
			n, hashSize+1, n, n, hashSize+1, hashAlphabet, hashSize, n, n, hashSize+1, n)
	}
	return fmt.Sprintf("size(%s) <= %d && size(%s) <= %d && %s == %s", e.x, mostName, e.y, mostName, base(e.x), base(e.y))
}

const mostName = 253 // of a DNS name: the API server does not look at references

// What a pod may hold for its parts to be compared within the API server's
// budget (TestTheBudgetHolds measures it). Larger ones are sent to the webhook.
// An item is a variable, a mount or a port; one of envFrom, and a source of a
// projected volume, costs as much as several, for ConfigMaps' names.
const (
	mostContainers = 64
	mostItems      = 5500
	mostItemsNamed = 1500 // where policy names variables
	nameWeight     = 4
)

func (b *trees) limit(typ string) func(x, y string) string {
	if typ != "core/v1.PodSpec" {
		return nil
	}
	most := mostItems
	if b.variables != nil { // looked for in each
		most = mostItemsNamed
	}
	return func(x, y string) string { return podLimit(x, y, most) }
}

func podLimit(x, y string, most int) string {
	lists := quoted(containerLists)
	sizeOf := func(x, member string) string {
		return fmt.Sprintf("(has(%s.%s) && %s.%s != null ? size(%s.%s) : 0)", x, member, x, member, x, member)
	}
	each := func(of string) string {
		return fmt.Sprintf("%s.map(l, l in s && s[l] != null ? %s : 0).sum()", lists, of)
	}
	return fmt.Sprintf("[%s, %s].all(s, %s <= %d && %s <= %d && %s + (has(s.volumes) && s.volumes != null ? s.volumes.map(v, has(v.projected) && v.projected != null ? %d * %s : 0).sum() : 0) <= %d)",
		x, y, each("size(s[l])"), mostContainers, sizeOf("s", "volumes"), mostKeyed,
		each(fmt.Sprintf("s[l].map(c, %s + %s + %s + %d * %s).sum()", sizeOf("c", "env"), sizeOf("c", "ports"), sizeOf("c", "volumeMounts"), nameWeight, sizeOf("c", "envFrom"))),
		nameWeight, sizeOf("v.projected", "sources"), most)
}
