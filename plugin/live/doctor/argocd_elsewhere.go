package doctor

import (
	"fmt"
	"maps"
	shell "path"
	"regexp"
	"slices"
	"strings"
)

// elsewhere looks for Applications of this Argo CD in namespaces that nobody
// named: the controller publishes nothing for them, and no other check here looks
// at them. found counts them by namespace.
func (r *Report) elsewhere(parameters map[string]string, found map[string]int) {
	const fix = "name the namespaces with --application-namespaces, to syncgate-controller (manifests/argocd/controller/README.md) and here"
	served := parameters["application.namespaces"]
	var details, perhaps []string
	for _, ns := range slices.Sorted(maps.Keys(found)) {
		text := fmt.Sprintf("namespace %s has %d Applications", clip(ns), found[ns])
		if serves(served, ns) {
			details = append(details, text+" that Argo CD serves (application.namespaces) and nobody looks at: each that names the plugin is refused where settings are published, and no other is seen")
			continue
		}
		perhaps = append(perhaps, text)
	}
	if len(perhaps) > 0 {
		r.Warnings = append(r.Warnings, strings.Join(perhaps, ", ")+", which argocd-cmd-params-cm does not say that this Argo CD serves: not looked at")
	}
	if len(details) > 0 {
		r.add("namespaces", false, fix, details...)
		return
	}
	r.add("namespaces", true, "", "every namespace that Argo CD serves is looked at")
}

// serves reports whether application.namespaces, as Argo CD reads it, names a
// namespace: patterns with commas between them, of a shell or, in slashes,
// regular expressions. One that cannot be read names all.
func serves(setting, namespace string) bool {
	for pattern := range strings.SplitSeq(setting, ",") {
		pattern = strings.TrimSpace(pattern)
		if pattern == "" {
			continue
		}
		if inner, ok := strings.CutPrefix(pattern, "/"); ok && strings.HasSuffix(inner, "/") {
			re, err := regexp.Compile(strings.TrimSuffix(inner, "/"))
			if err != nil || re.MatchString(namespace) {
				return true
			}
			continue
		}
		if match, err := shell.Match(pattern, namespace); err != nil || match {
			return true
		}
	}
	return false
}
