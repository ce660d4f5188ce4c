package projection

import (
	"maps"
	"slices"
)

// CustomVariables are environment variables of containers that an operator's
// policy gates beside those of the table (docs/policy.md, variables): what each
// holds is a leaf of Category ("x-..."), in every pod spec. A name may begin or
// end in '*', which stands for any text.
type CustomVariables struct {
	Names    []string
	Category Category
}

// MaxVariables bounds the names that a policy gives: the API server looks for
// each in every variable of a Pod, and its budget has an end.
const MaxVariables = 8

// MaxVariableName bounds such a name, in bytes.
const MaxVariableName = 64

// variableSet is CustomVariables, looked up.
type variableSet struct {
	names    *names
	category Category
}

func variableSets(list []CustomVariables) []variableSet {
	var out []variableSet
	for _, v := range list {
		out = append(out, variableSet{nameSet(v.Names...), v.Category})
	}
	return out
}

// customVariable adds what a variable of these names holds.
func (w *walker) customVariable(at, name string, item, from map[string]any) {
	for _, s := range w.variables {
		if s.names.has(name) {
			w.variable(s.category, at, item, from)
		}
	}
}

// isCustom reports whether policy gates a variable.
func (w *walker) isCustom(name string) bool {
	return slices.ContainsFunc(w.variables, func(s variableSet) bool { return s.names.has(name) })
}

// variableCategories are those of the variables that policy gates.
func (p *Projector) variableCategories() []Category {
	if p == nil {
		return nil
	}
	var out []Category
	for _, s := range p.variables {
		out = append(out, s.category)
	}
	return out
}

// requiredVariables are the names of the variables in categories that policy
// requires; nil for none.
func (p *Projector) requiredVariables(requires func(Category) bool) *names {
	if p == nil {
		return nil
	}
	var list []string
	for _, s := range p.variables {
		if requires(s.category) {
			list = append(list, s.names.list...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return nameSet(list...)
}

// withCategories adds categories to some that apply.
func withCategories(applies, more []Category) []Category {
	if len(more) == 0 {
		return applies
	}
	all := map[Category]bool{}
	for _, c := range slices.Concat(applies, more) {
		all[c] = true
	}
	return slices.Sorted(maps.Keys(all))
}
