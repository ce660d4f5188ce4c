package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// CustomKind is a field of a custom resource that policy gates: the string at
// Path in every object of Group and Kind is a leaf of Category ("x-..."). With
// Pin it is an image reference and is pinned like one.
type CustomKind = projection.CustomField

func (v *validator) customKinds() []CustomKind {
	var out []CustomKind
	for i, d := range v.doc.Kinds {
		path := item("kinds", i)
		v.word(path+".group", d.Group, groupWord, "an API group")
		v.word(path+".kind", d.Kind, kindWord, "a kind such as Prometheus")
		v.word(path+".path", d.Path, fieldPath, "a path such as spec.image")
		if !strings.HasPrefix(string(d.Category), "x-") {
			v.fail(path+".category", "got %.40q, want a category of your own, x- and a name", string(d.Category))
		}
		for j, before := range v.doc.Kinds[:i] {
			if before.Group == d.Group && before.Kind == d.Kind && before.Path == d.Path {
				v.fail(path, "the same field as kinds[%d]", j)
			}
		}
		v.admissionOf(path, d)
		out = append(out, CustomKind{Group: d.Group, Kind: d.Kind, Path: d.Path, Category: projection.Category(d.Category), Pin: d.Pin})
	}
	return out
}

// requiredCategories are the built-in ones but service, and those of custom
// kinds and variables. An entry of the file changes one: it never makes another one lapse,
// so that `{name: command, since: ...}` alone cannot switch the gate off.
func (v *validator) requiredCategories(kinds []CustomKind, variables []projection.CustomVariables) map[projection.Category]int64 {
	required := map[projection.Category]int64{}
	for _, c := range projection.Categories() {
		if c != projection.Service {
			required[c] = 0
		}
	}
	custom := map[projection.Category]bool{}
	for _, k := range kinds {
		required[k.Category], custom[k.Category] = 0, true
	}
	for _, s := range variables {
		required[s.Category], custom[s.Category] = 0, true
	}
	known := func(path string, c category) {
		if strings.HasPrefix(string(c), "x-") && !custom[projection.Category(c)] {
			v.fail(path, "no entry of kinds or variables has the category %.40q", string(c))
		}
	}
	v.categoryEntries("categories", v.doc.Categories, known)
	for _, d := range v.doc.Categories {
		change(required, d)
	}
	for i, d := range v.doc.Issuers {
		for j, c := range d.Categories {
			known(item(item("issuers", i)+".categories", j), c)
		}
	}
	for i, d := range v.doc.Requirements {
		for j, c := range d.Categories {
			known(item(item("requirements", i)+".categories", j), c)
		}
	}
	for i, d := range v.doc.TrustedWriters {
		for j, c := range d.Categories {
			known(item(item("trustedWriters", i)+".categories", j), c)
		}
	}
	for i, d := range v.doc.Apps {
		v.categoryEntries(item("apps", i)+".categories", d.Categories, known)
	}
	if len(required) == 0 {
		v.fail("categories", "none is required: this policy would gate nothing")
	}
	return required
}

func (v *validator) categoryEntries(path string, list []categoryDoc, known func(string, category)) {
	var names []string
	for i, d := range list {
		if d.Name == "" {
			v.fail(item(path, i)+".name", "missing")
			continue
		}
		known(item(path, i)+".name", d.Name)
		if d.off() && d.Since != nil {
			v.fail(item(path, i)+".since", "given beside required: false")
		}
		names = append(names, string(d.Name))
	}
	unique(v, path, names)
}

func (d categoryDoc) off() bool { return d.Required != nil && !*d.Required }

func (d categoryDoc) since() int64 {
	if d.Since == nil {
		return 0
	}
	return int64(*d.Since)
}

// change applies an entry to a set of required categories.
func change(required map[projection.Category]int64, d categoryDoc) {
	if d.off() {
		delete(required, projection.Category(d.Name))
		return
	}
	required[projection.Category(d.Name)] = d.since()
}

func requiredList(required map[projection.Category]int64) []gate.Required {
	// Never nil: to gate.Rules, nil means the default.
	out := []gate.Required{}
	for _, c := range slices.Sorted(maps.Keys(required)) {
		out = append(out, gate.Required{Category: c, Since: required[c]})
	}
	return out
}

func (v *validator) requirementList() []gate.Requirement {
	var out []gate.Requirement
	for i, d := range v.doc.Requirements {
		path := item("requirements", i)
		if len(d.Categories) == 0 {
			v.fail(path+".categories", "missing: what this requirement is for")
		}
		if len(d.Issuers) == 0 {
			v.fail(path+".issuers", "missing: who counts")
		}
		unique(v, path+".categories", d.Categories)
		unique(v, path+".issuers", d.Issuers)
		threshold := int64(1)
		if d.Threshold != nil {
			threshold = *d.Threshold
		}
		ordinary := 0
		for j, name := range d.Issuers {
			issuer, known := v.issuers[name]
			switch {
			case !known:
				v.fail(item(path+".issuers", j), "%.40q is not an issuer of this policy", name)
			case issuer.BreakGlass:
				v.fail(item(path+".issuers", j), "%q is break-glass, which counts for every requirement", name)
			default:
				ordinary++
			}
		}
		switch {
		case threshold < 1:
			v.fail(path+".threshold", "got %d, want at least 1", threshold)
		case threshold > int64(ordinary) && ordinary == len(d.Issuers) && ordinary > 0:
			v.fail(path+".threshold", "got %d, but only %d issuers count", threshold, ordinary)
		}
		out = append(out, gate.Requirement{Categories: categories(d.Categories), Issuers: d.Issuers, Threshold: int(threshold)})
	}
	return out
}
