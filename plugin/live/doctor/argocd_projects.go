package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/argocd/controller"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/settings"
)

var appProjects = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"}

// admissionKinds is the group that an API server shows to no webhook and no
// policy.
const admissionKinds = "admissionregistration.k8s.io"

// project is what an AppProject lets its Applications do.
type project struct {
	name  string
	gated bool
	spec  map[string]any
}

// projects looks whether an Application can get around the gate by being of
// another project, and whether the gate's own configuration is in its own. apps
// are the Applications that are looked at.
func (r *Report) projects(ctx context.Context, c *live.Cluster, o ArgoCD, side sidecar, apps []map[string]any) error {
	const fix = "leave the gated namespaces to the destinations of gated projects, and the gate's configuration to AppProject " + controller.OwnProject + " (manifests/policies/README.md)"
	all, err := c.List(ctx, appProjects)
	if err != nil {
		return fmt.Errorf("listing AppProjects: %w", err)
	}
	var projects []project
	for _, p := range all {
		meta := child(p, "metadata")
		if text(meta, "namespace") == o.ArgoNamespace {
			name := text(meta, "name")
			projects = append(projects, project{name, o.Gates(name), child(p, "spec")})
		}
	}
	slices.SortFunc(projects, func(a, b project) int { return strings.Compare(a.name, b.name) })
	var details, writing []string
	for _, p := range projects {
		if p.gated {
			if p.may(admissionKinds) {
				writing = append(writing, p.name)
			}
			continue
		}
		if p.name == controller.OwnProject && slices.Contains(texts(p.spec, "sourceRepos"), "*") {
			details = append(details, fmt.Sprintf("AppProject %s takes any repository (sourceRepos): whoever has one configures the gate", p.name))
		}
		if there := p.shared(o, apps); len(there) > 0 {
			details = append(details, fmt.Sprintf("AppProject %s is not gated, and may deploy to where %d gated Applications are, such as %s: one that is moved to it needs no plugin", clip(p.name), len(there), there[0]))
		}
	}
	for _, a := range apps {
		if of := text(child(a, "spec"), "project"); of != controller.OwnProject {
			for _, name := range configures(a, o, side) {
				details = append(details, fmt.Sprintf("Application %s of project %s deploys ConfigMap %s/%s, by which the gate is configured", place(a), clip(of), o.ArgoNamespace, name))
			}
		}
	}
	if len(writing) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("gated AppProjects may write kinds of %s (clusterResourceWhitelist), which the API server shows to no webhook: %s", admissionKinds, clip(strings.Join(writing, ", "))))
	}
	if len(details) > 0 {
		r.add("projects", false, fix, details...)
		return nil
	}
	r.add("projects", true, "", "no project leads around the gate")
	return nil
}

// shared names the gated Applications whose destination the project has, too.
func (p project) shared(o ArgoCD, apps []map[string]any) []string {
	var out []string
	for _, a := range apps {
		spec := child(a, "spec")
		if o.Gates(text(spec, "project")) && p.reaches(child(spec, "destination")) {
			out = append(out, place(a))
		}
	}
	return out
}

// reaches reports whether a destination may be one of the project's. Argo CD
// lets one entry take it, unless another, with an exclamation mark, leaves it
// out. What cannot be told, such as whether a cluster's name and another's URL
// are the same, counts for the first and not for the second.
func (p project) reaches(destination map[string]any) bool {
	takes := false
	for _, x := range list(p.spec, "destinations") {
		d, _ := x.(map[string]any)
		is, denies := yes, false
		for _, key := range []string{"server", "name", "namespace"} {
			pattern, not := strings.CutPrefix(text(d, key), "!")
			is, denies = min(is, matches(pattern, text(destination, key))), denies || not
		}
		switch {
		case denies && is == yes:
			return false
		case !denies && is != no:
			takes = true
		}
	}
	return takes
}

// likelihood is an answer that may not be known.
type likelihood int

const (
	no likelihood = iota
	perhaps
	yes
)

// matches reports whether a pattern of Argo CD's, in which a star stands for any
// text, means a value. One that is not given means any; a value that is not given
// may be any.
func matches(pattern, value string) likelihood {
	switch {
	case pattern == "" || pattern == "*":
		return yes
	case value == "" || strings.ContainsAny(pattern, `{[?\`): // which Argo CD has, too
		return perhaps
	}
	// Ours does not cross slashes.
	flat := strings.NewReplacer("/", "\x00")
	if gate.Glob(flat.Replace(pattern)).Match(flat.Replace(value)) {
		return yes
	}
	return no
}

// may reports whether the project's Applications may have cluster-scoped objects
// of a group.
func (p project) may(group string) bool {
	in := func(key string) bool {
		return slices.ContainsFunc(list(p.spec, key), func(x any) bool {
			entry, _ := x.(map[string]any)
			return matches(text(entry, "group"), group) != no && text(entry, "group") != ""
		})
	}
	barred := slices.ContainsFunc(list(p.spec, "clusterResourceBlacklist"), func(x any) bool {
		entry, _ := x.(map[string]any)
		return matches(text(entry, "group"), group) == yes && text(entry, "group") != "" && text(entry, "kind") == "*"
	})
	return in("clusterResourceWhitelist") && !barred
}

// configures are the ConfigMaps of the gate that an Application deploys.
func configures(a map[string]any, o ArgoCD, side sidecar) []string {
	var out []string
	for _, x := range list(child(a, "status"), "resources") {
		res, _ := x.(map[string]any)
		name := text(res, "name")
		ours := name != "" && slices.Contains([]string{side.policy, policyVolume, settings.ConfigMap, offswitch.ConfigMap}, name)
		if ours && text(res, "kind") == "ConfigMap" && text(res, "namespace") == o.ArgoNamespace {
			out = append(out, name)
		}
	}
	return out
}

// place is NAMESPACE/NAME of an object.
func place(object map[string]any) string {
	meta := child(object, "metadata")
	return clip(text(meta, "namespace") + "/" + text(meta, "name"))
}

// texts is a list of strings of a tree.
func texts(t map[string]any, key string) []string {
	var out []string
	for _, x := range list(t, key) {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
