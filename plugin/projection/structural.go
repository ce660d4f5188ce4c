package projection

import "strings"

// A kind outside the table is searched for pod specs and single containers,
// so that a custom resource is gated without anybody having named it
// (docs/spec/gated-fields.md, "Found structurally").

// containerSigns are the fields of which a container has at least one. Name
// and image are optional: Knative writes no name, ECK's podTemplate no image.
var containerSigns = []string{
	"image", "securityContext", "env", "envFrom", "volumeMounts", "command",
	"args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe",
}

// wrappers are members of a map around containers whose own pod-level fields
// apply to them (Tekton, Argo Workflows).
var wrappers = []string{"podTemplate", "taskRunTemplate", "templateDefaults", "executor"}

// search finds the places of one object.
type search struct {
	w      *walker
	places []*pod // maps with a container in them, the innermost first
	all    []*container
}

// structural adds the leaves of an object outside the table and reports
// whether it found any container.
func (w *walker) structural(obj map[string]any) bool {
	s := findPlaces(w, obj)
	if s == nil || len(s.all) == 0 {
		return false
	}
	for _, p := range s.places {
		if v := p.spec["volumes"]; v != nil {
			w.looseRow(podIndex["volumes"], p.at("volumes"), v, func() { w.readVolumes(p) })
		}
		if v := p.spec["volumeClaimTemplates"]; v != nil {
			at := p.at("volumeClaimTemplates")
			w.looseRow(podIndex["volumes"], at, v, func() { w.claimTemplates(p, at, v) })
		}
	}
	for _, p := range s.places {
		w.loosePod(p)
	}
	for _, c := range s.all {
		w.container(c)
		if strings.HasSuffix(c.path, ".stepTemplate") { // its rights are every step's
			c.pod.bits |= c.bits
		}
	}
	w.bindRepositories(s.all)
	return true
}

// loosePod adds the pod-level fields and template metadata of a place.
func (w *walker) loosePod(p *pod) {
	meta, _ := p.spec["metadata"].(map[string]any)
	if p.path == "" {
		meta = nil // the object's own
	}
	w.podLevel(p, p.at("metadata"), stringMaps(meta))
	w.bits = &p.bits
	if meta, ok := p.spec["podMetadata"].(map[string]any); ok {
		w.templateMeta(p, p.at("podMetadata"), stringMaps(meta))
	}
	if v := p.spec["podSpecPatch"]; v != nil { // Argo Workflows: can set any field of the pod
		w.take(Privilege, p.at("podSpecPatch"), anyMember, v)
	}
	w.bits = nil
}

// stringMaps keeps labels and annotations of the form that metadata has; in a
// custom resource a member of that name may be anything.
func stringMaps(meta map[string]any) map[string]any {
	out := make(map[string]any, 2)
	for _, part := range []string{"annotations", "labels"} {
		if m, ok := meta[part].(map[string]any); ok {
			out[part] = m
		}
	}
	return out
}

// program adds the text that a container of Argo Workflows (script.source) or
// Tekton (steps[].script) runs.
func (w *walker) program(c *container, k string, v any) {
	if k == "script" || k == "source" {
		w.take(Command, c.path+"."+k, anyMember, v)
	}
}

// findPlaces searches an object; nil if its kind is not searched.
func findPlaces(w *walker, obj map[string]any) *search {
	if !searched(obj) {
		return nil
	}
	w.loose = true
	s := &search{w: w}
	s.walkMap("", obj, nil)
	return s
}

// searched: kinds whose pod specs are patterns, or other people's requests,
// and never run.
func searched(obj map[string]any) bool {
	group, kind := groupKind(obj)
	return kind != "AdmissionReview" && kind != "ConstraintTemplate" &&
		group != "kyverno.io" && !strings.HasSuffix(group, ".kyverno.io")
}

func (s *search) walkMap(path string, m map[string]any, parent *pod) []*container {
	p := &pod{path: path, spec: m, parent: parent}
	taken := s.containers(p)
	s.all = append(s.all, p.containers...)
	inside := map[string]bool{} // members that turned out to be places
	for k, v := range m {
		if taken[k] || k == "metadata" || k == "status" {
			continue
		}
		if below := s.walk(p.at(k), v, p); len(below) > 0 {
			p.containers = append(p.containers, below...)
			inside[k] = true
		}
	}
	if len(p.containers) == 0 {
		return nil
	}
	s.places = append(s.places, p)
	for _, k := range wrappers {
		if t, ok := m[k].(map[string]any); ok && !inside[k] {
			around := &pod{path: p.at(k), spec: t, parent: p.parent, containers: p.containers}
			p.parent = around
			s.places = append(s.places, around)
		}
	}
	return p.containers
}

func (s *search) walk(path string, v any, parent *pod) []*container {
	switch t := v.(type) {
	case map[string]any:
		return s.walkMap(path, t, parent)
	case []any:
		var out []*container
		named := uniqueNames(t)
		for i, x := range t {
			out = append(out, s.walk(looseItem(path, i, x, named), x, parent)...)
		}
		return out
	}
	return nil
}

// containers adds the containers that stand directly in a map, and returns
// the members that held them.
func (s *search) containers(p *pod) map[string]bool {
	taken := map[string]bool{}
	spec := false
	for _, list := range containerLists {
		spec = spec || holdsContainer(p.spec[list])
	}
	for _, list := range containerLists {
		if items, ok := p.spec[list].([]any); ok && spec {
			taken[list] = true
			s.list(p, list, items)
		}
	}
	common := hasImage(p.spec["stepTemplate"]) // Tekton: what every step starts from
	for _, list := range []string{"steps", "sidecars"} {
		if items, ok := p.spec[list].([]any); ok && (common && list == "steps" || holdsImage(items)) {
			taken[list] = true
			s.list(p, list, items)
		}
	}
	for _, k := range []string{"container", "script", "stepTemplate"} {
		if tree, ok := p.spec[k].(map[string]any); ok && (hasImage(tree) || k == "stepTemplate" && taken["steps"]) {
			taken[k] = true
			name, _ := tree["name"].(string)
			s.add(p, p.at(k), name, tree, false)
		}
	}
	return taken
}

func (s *search) list(p *pod, list string, items []any) {
	named := uniqueNames(items)
	if named && (list == initContainers || list == "steps") { // Tekton's steps run one after the other, too
		s.w.order(p.at(list), items)
	}
	for i, x := range items {
		at := looseItem(p.at(list), i, x, named)
		tree, ok := x.(map[string]any)
		if !ok { // no container, but nothing that may be dropped either
			s.w.take(Image, at, anyMember, x)
			continue
		}
		name, _ := tree["name"].(string)
		s.add(p, at, name, tree, list == initContainers)
	}
}

// add notes a container and searches what the API types do not know of it.
func (s *search) add(p *pod, path, name string, tree map[string]any, init bool) {
	s.w.newContainer(p, path, name, tree, init)
	for k, v := range tree {
		if _, known := containerIndex[k]; !known {
			p.containers = append(p.containers, s.walk(path+"."+fieldName(k), v, p)...)
		}
	}
}

func holdsContainer(v any) bool {
	items, _ := v.([]any)
	for _, x := range items {
		m, _ := x.(map[string]any)
		for _, k := range containerSigns {
			if m[k] != nil {
				return true
			}
		}
	}
	return false
}

func holdsImage(items []any) bool {
	for _, x := range items {
		if hasImage(x) {
			return true
		}
	}
	return false
}

func hasImage(v any) bool {
	m, _ := v.(map[string]any)
	_, ok := m["image"].(string)
	return ok
}

// uniqueNames reports whether list items can be named by their names.
func uniqueNames(items []any) bool {
	seen := make(map[string]bool, len(items))
	for _, x := range items {
		m, _ := x.(map[string]any)
		name, _ := m["name"].(string)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func looseItem(list string, i int, x any, named bool) string {
	if named {
		m, _ := x.(map[string]any)
		name, _ := m["name"].(string)
		return list + key(name)
	}
	return index(list, i)
}
