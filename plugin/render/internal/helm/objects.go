package helm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// hookKey is the annotation that makes an object a hook.
const hookKey = "helm.sh/hook"

// hooks are the events that Helm knows. It drops an object with another.
var hooks = []string{
	"pre-install", "post-install", "pre-delete", "post-delete", "pre-upgrade", "post-upgrade",
	"pre-rollback", "post-rollback", "test", "test-success",
}

// parse makes objects of the texts, each parsed once. Faults of all templates
// are reported together.
func (r *renderer) parse(texts []text) ([]manifest.Object, error) {
	total := 0
	for _, t := range texts {
		total += len(t.body)
	}
	if total > manifest.MaxStream {
		return nil, fmt.Errorf("the chart renders %d bytes, want at most %d", total, manifest.MaxStream)
	}
	var out []manifest.Object
	var faults manifest.Errors
	for _, t := range texts {
		list, err := manifest.Parse([]byte(t.body), t.name)
		if errs, ok := err.(manifest.Errors); ok {
			faults = append(faults, errs...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, o := range list {
			if r.keeps(o) {
				out = append(out, o)
			}
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if len(out) > manifest.MaxObjects {
		return nil, fmt.Errorf("the chart renders %d objects, want at most %d", len(out), manifest.MaxObjects)
	}
	return out, nil
}

// keeps reports whether an object is one that Argo CD would get from Helm.
func (r *renderer) keeps(o manifest.Object) bool {
	for _, event := range events(o) {
		if !slices.Contains(hooks, event) {
			r.warnings = append(r.warnings, fmt.Sprintf("%s: %s %q is left out, as Helm does: %s has the unknown %q", o.Where(), o.Kind(), o.Name(), hookKey, event))
			return false
		}
	}
	return !r.settings.SkipTests || !IsTest(o)
}

// events are those at which Helm would apply the object if it is a hook.
func events(o manifest.Object) []string {
	meta, _ := o.Tree["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, ok := annotations[hookKey].(string)
	if !ok {
		return nil
	}
	out := strings.Split(text, ",")
	for i, e := range out {
		out[i] = strings.ToLower(strings.TrimSpace(e))
	}
	return out
}

// IsTest reports whether an object is a hook that Helm runs for `helm test`
// alone, and that [Settings] can leave out.
func IsTest(o manifest.Object) bool {
	return slices.ContainsFunc(events(o), func(e string) bool { return e == "test" || e == "test-success" })
}
