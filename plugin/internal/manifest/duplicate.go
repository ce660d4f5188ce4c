package manifest

import (
	"fmt"
	"sort"
	"strings"
)

// DuplicateError says that objects stand in a stream more than once. Which of
// them would run depends on the tool that applies them, so that a front end
// refuses with DuplicateObject.
type DuplicateError struct {
	// Places are the objects concerned, each with every place where it stands,
	// sorted: "Deployment shop/web: a.yaml document 1, b.yaml document 2".
	Places []string
}

// Error returns the first few in one line.
func (e *DuplicateError) Error() string {
	shown := e.Places
	more := ""
	if len(shown) > maxShown {
		more = fmt.Sprintf("; and %d more", len(shown)-maxShown)
		shown = shown[:maxShown]
	}
	return "duplicate objects: " + strings.Join(shown, "; ") + more
}

// Duplicates returns a [*DuplicateError] if the same group, kind, namespace and
// name occur twice, in whatever versions, nil if not. An object with only a
// generateName is a new one each time. Namespaces are compared as they are:
// whoever knows the destination fills them in before.
func Duplicates(objs []Object) error {
	type key struct{ group, kind, namespace, name string }
	places := make(map[key][]string, len(objs))
	for _, o := range objs {
		if o.Name() == "" {
			continue
		}
		k := key{o.Group(), o.Kind(), o.Namespace(), o.Name()}
		places[k] = append(places[k], o.Where())
	}
	var found []string
	for k, at := range places {
		if len(at) < 2 {
			continue
		}
		name := k.name
		if k.namespace != "" {
			name = k.namespace + "/" + name
		}
		kind := k.kind
		if k.group != "" {
			kind += "." + k.group
		}
		found = append(found, fmt.Sprintf("%s %s: %s", oneLine(kind), oneLine(name), strings.Join(at, ", ")))
	}
	if len(found) == 0 {
		return nil
	}
	sort.Strings(found)
	return &DuplicateError{Places: found}
}
