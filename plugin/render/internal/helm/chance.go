package helm

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// maxNamed is how many of the objects that depend on chance an error names.
const maxNamed = 3

// same says, as an error that names objects and fields, that two runs made
// something different. Values do not get into it: they are often passwords.
func same(first, second []manifest.Object) error {
	if len(first) != len(second) {
		return fmt.Errorf("the chart renders %d objects one time and %d another, because it depends on chance: set the values it makes up explicitly", len(first), len(second))
	}
	var found []string
	tests := true
	for i, o := range first {
		p := moved(o.Tree, second[i].Tree)
		if p == "" {
			continue
		}
		tests = tests && IsTest(o)
		if strings.HasPrefix(p, "metadata.") && !strings.HasPrefix(p, "metadata.annotations.") && !strings.HasPrefix(p, "metadata.labels.") {
			// Its name is another one each time, and the message must not be.
			found = append(found, fmt.Sprintf("%s of a %s (%s)", p, o.Kind(), o.Where()))
			continue
		}
		found = append(found, fmt.Sprintf("%s of %s %q (%s)", p, o.Kind(), name(o), o.Where()))
	}
	if len(found) == 0 {
		return nil // only comments differ
	}
	if len(found) > maxNamed {
		found = append(found[:maxNamed], fmt.Sprintf("and %d more", len(found)-maxNamed))
	}
	advice := "set these values explicitly, or let the chart use an existing object"
	if tests {
		advice = "they belong to the chart's tests: leave those out (skipTests)"
	}
	return fmt.Errorf("the chart makes up other values at each render, which nobody can sign: %s; %s", strings.Join(found, ", "), advice)
}

func name(o manifest.Object) string {
	n := o.Name()
	if n == "" {
		n = o.GenerateName()
	}
	if ns := o.Namespace(); ns != "" {
		return ns + "/" + n
	}
	return n
}

// moved returns the path of the first field that differs, "" if none does.
func moved(a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		all := slices.Sorted(maps.Keys(x))
		for k := range y {
			if _, both := x[k]; !both {
				all = append(all, k)
			}
		}
		slices.Sort(all)
		for _, k := range all {
			v, one := x[k]
			w, other := y[k]
			if one != other {
				return k
			}
			if p := moved(v, w); p != "" {
				return join(k, p)
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			if p := moved(x[i], y[i]); p != "" {
				return join(fmt.Sprintf("[%d]", i), p)
			}
		}
		return ""
	}
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return "." // this very value
}

func join(key, rest string) string {
	switch {
	case rest == ".":
		return key
	case strings.HasPrefix(rest, "["):
		return key + rest
	}
	return key + "." + rest
}
