package projection

import (
	"maps"
	"slices"
	"strings"
)

// CustomField is a field of a custom resource that an operator's policy gates
// (docs/policy.md, kinds): what stands at Path (keys of maps, joined by ".") in
// every object of Group and Kind are leaves of Category ("x-..."). With Pin it
// is an image reference, and is pinned and must have a digest like any other.
type CustomField struct {
	Group, Kind string
	Path        string
	Category    Category
	Pin         bool
}

// Projector projects with fields of an operator beside those of the table. A
// nil one has none. Custom fields have categories of their own, so that the
// digest of every other category stays the same for everybody.
type Projector struct {
	fields    map[kindKey][]CustomField
	variables []variableSet
}

// NewProjector returns a projector for these fields and variables; nil for none.
func NewProjector(fields []CustomField, variables ...CustomVariables) *Projector {
	if len(fields) == 0 && len(variables) == 0 {
		return nil
	}
	p := &Projector{fields: map[kindKey][]CustomField{}, variables: variableSets(variables)}
	for _, f := range fields {
		k := kindKey{CanonicalGroup(f.Group, f.Kind), f.Kind}
		p.fields[k] = append(p.fields[k], f)
	}
	return p
}

func (p *Projector) of(obj map[string]any) []CustomField {
	if p == nil || len(p.fields) == 0 {
		return nil
	}
	group, kind := groupKind(obj)
	return p.fields[kindKey{group, kind}]
}

// Project is the function Project with the custom fields.
func (p *Projector) Project(obj map[string]any) (*Projection, error) {
	var variables []variableSet
	if p != nil {
		variables = p.variables
	}
	base, err := projectWith(obj, variables, p.variableCategories())
	fields := p.of(obj)
	if err != nil || len(fields) == 0 {
		return base, err
	}
	if depth(obj, 0) > maxDepth {
		return nil, &MalformedError{[]Fault{{"", "nested too deep"}}}
	}
	w := &walker{leaves: slices.Clone(base.leaves)}
	applies := map[Category]bool{}
	for _, c := range base.applies {
		applies[c] = true
	}
	for _, f := range fields {
		applies[f.Category] = true
		_, v := w.get(obj, f.Path)
		before := len(w.leaves)
		w.takeAny(f.Category, f.Path, v, nil)
		if !f.Pin {
			continue
		}
		if _, isString := v.(string); v != nil && !isString {
			w.wrongType(f.Path, "an image reference", v)
		}
		for i := before; i < len(w.leaves); i++ {
			w.leaves[i].image = true
		}
	}
	out := &Projection{valid: true, applies: slices.Sorted(maps.Keys(applies)), own: base.own}
	return w.finish(out)
}

// EachImage is the function EachImage with the custom fields that are images.
func (p *Projector) EachImage(obj map[string]any, fn func(path, ref string) (string, error)) error {
	return eachImage(p.imagePlaces(obj), fn)
}

func (p *Projector) imagePlaces(obj map[string]any) []imagePlace {
	places := imagePlaces(obj)
	for _, f := range p.of(obj) {
		if !f.Pin || slices.ContainsFunc(places, func(x imagePlace) bool { return x.path == f.Path }) {
			continue
		}
		w := &walker{}
		tree, v := w.get(obj, f.Path)
		if _, ok := v.(string); ok {
			places = append(places, imagePlace{f.Path, tree, f.Path[strings.LastIndexByte(f.Path, '.')+1:]})
		}
	}
	slices.SortStableFunc(places, func(a, b imagePlace) int { return strings.Compare(a.path, b.path) })
	return places
}

// UnknownImages is the function UnknownImages without what custom fields name.
func (p *Projector) UnknownImages(obj map[string]any) []string {
	unknown := UnknownImages(obj)
	return slices.DeleteFunc(unknown, func(path string) bool {
		return slices.ContainsFunc(p.of(obj), func(f CustomField) bool {
			return path == f.Path || strings.HasPrefix(path, f.Path+".")
		})
	})
}

// Images returns the leaves that are image references: those of category image,
// and custom fields that policy pins.
func (p *Projection) Images() []Leaf {
	var out []Leaf
	for _, l := range p.leaves {
		if l.Category == Image || l.image {
			out = append(out, l)
		}
	}
	return out
}
