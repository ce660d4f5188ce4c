package policy

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// customVariables are the environment variables that policy gates.
func (v *validator) customVariables() []projection.CustomVariables {
	var out []projection.CustomVariables
	var all []string
	for i, d := range v.doc.Variables {
		path := item("variables", i)
		if len(d.Names) == 0 {
			v.fail(path+".names", "missing: which variables")
		}
		for j, name := range d.Names {
			v.word(item(path+".names", j), name, variableWord, "a name of at most 62 characters, which may begin or end in *")
			if slices.Contains(all, name) {
				v.fail(item(path+".names", j), "%.40q stands twice", name)
			}
			all = append(all, name)
		}
		if !strings.HasPrefix(string(d.Category), "x-") {
			v.fail(path+".category", "got %.40q, want a category of your own, x- and a name", string(d.Category))
		}
		out = append(out, projection.CustomVariables{Names: d.Names, Category: projection.Category(d.Category)})
	}
	if len(all) > projection.MaxVariables {
		v.fail("variables", "%d names, want at most %d: a * stands for any text", len(all), projection.MaxVariables)
	}
	return out
}
