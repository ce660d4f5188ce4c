package projection

import (
	"slices"
	"strings"
)

// everyMember are members that objects of many kinds have, beside those that the
// table names.
var everyMember = []string{"apiVersion", "kind", "metadata", "spec", "status", "data", "webhooks"}

// topMembers are the members of an object of the kind whose names the table, or
// the API type that it refers to, knows.
func (k *kindSpec) topMembers() []string {
	out := slices.Clone(everyMember)
	add := func(path string) {
		if name, _, _ := strings.Cut(path, "."); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for i := range k.rows {
		add(k.rows[i].path)
		if r := &k.rows[i]; r.parent != nil && !strings.Contains(r.path, ".") {
			for name := range r.parent.fields {
				add(name)
			}
		}
	}
	if k.pod != nil {
		add(k.pod.spec)
	}
	if s := shapes[k.typ]; s != nil {
		for name := range s.fields {
			add(name)
		}
	}
	return out
}

// foldedMembers refuses a member of the object itself that is a known one in
// another case. The API server drops it and the projection does not see it, but a
// reader that folds case, as encoding/json does, takes the last of the two: people
// and tools would not agree on what was approved.
func (w *walker) foldedMembers(k *kindSpec, obj map[string]any) {
	for name := range obj {
		if slices.Contains(k.members, name) {
			continue
		}
		for _, known := range k.members {
			if strings.EqualFold(name, known) {
				w.fault(fieldName(name), "is %s in another case", known)
			}
		}
	}
}
