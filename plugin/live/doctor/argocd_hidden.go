package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/plugin/live"
)

// ignored is a part of Argo CD's customizations: what it does not compare.
type ignored struct {
	JSONPointers          []string `yaml:"jsonPointers"`
	JQPathExpressions     []string `yaml:"jqPathExpressions"`
	ManagedFieldsManagers []string `yaml:"managedFieldsManagers"`
}

const (
	customizations = "resource.customizations"
	ignorePrefix   = customizations + ".ignoreDifferences."
)

// gatedKinds are some that no gate means to leave out. Argo CD drops what it
// excludes from a render, and does not compare it.
var gatedKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Service", "Ingress"}

// hidden looks for settings of Argo CD as a whole by which a gated field is not
// compared: that it is not what was signed is then shown nowhere, and with
// RespectIgnoreDifferences it is applied.
func (r *Report) hidden(ctx context.Context, c *live.Cluster, o ArgoCD) error {
	const fix = "leave only /spec/replicas, /metadata/ and /status in what argocd-cm ignores and excludes, or ignore the rest for one Application"
	data, there, err := configMap(ctx, c, o.ArgoNamespace, "argocd-cm")
	if err != nil {
		return err
	}
	if !there {
		r.add("hidden", false, "name Argo CD's namespace with --argocd-namespace", fmt.Sprintf("no ConfigMap %s/argocd-cm", o.ArgoNamespace))
		return nil
	}
	var details []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		switch {
		case strings.HasPrefix(key, ignorePrefix):
			var i ignored
			if err := yaml.Unmarshal([]byte(data[key]), &i); err != nil {
				details = append(details, fmt.Sprintf("%s cannot be read", clip(key)))
				continue
			}
			if paths := i.gated(); len(paths) > 0 {
				details = append(details, fmt.Sprintf("%s hides %.200q", clip(key), paths[0]))
			}
		case key == customizations: // the older form, with all in one
			details = append(details, older(data[key])...)
		case key == "resource.exclusions":
			details = append(details, excluded(data[key])...)
		}
	}
	if len(details) > 0 {
		r.add("hidden", false, fix, details...)
		return nil
	}
	r.add("hidden", true, "", "argocd-cm hides no gated field")
	return nil
}

// gated returns what is ignored, but for what is never gated.
func (i ignored) gated() []string {
	out := slices.DeleteFunc(slices.Clone(i.JSONPointers), func(p string) bool {
		return p == "/spec/replicas" || p == "/status" || strings.HasPrefix(p, "/status/") || strings.HasPrefix(p, "/metadata/")
	})
	out = append(out, i.JQPathExpressions...)
	for _, m := range i.ManagedFieldsManagers {
		out = append(out, "fields of "+m)
	}
	return out
}

func older(value string) []string {
	var all map[string]struct {
		IgnoreDifferences string `yaml:"ignoreDifferences"`
	}
	if err := yaml.Unmarshal([]byte(value), &all); err != nil {
		return []string{customizations + " cannot be read"}
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		var i ignored
		if err := yaml.Unmarshal([]byte(all[kind].IgnoreDifferences), &i); err != nil {
			out = append(out, fmt.Sprintf("%s, %.80q: ignoreDifferences cannot be read", customizations, kind))
		} else if paths := i.gated(); len(paths) > 0 {
			out = append(out, fmt.Sprintf("%s, %.80q hides %.200q", customizations, kind, paths[0]))
		}
	}
	return out
}

func excluded(value string) []string {
	var all []struct {
		APIGroups []string `yaml:"apiGroups"`
		Kinds     []string `yaml:"kinds"`
		Clusters  []string `yaml:"clusters"`
	}
	if err := yaml.Unmarshal([]byte(value), &all); err != nil {
		return []string{"resource.exclusions cannot be read"}
	}
	var out []string
	for _, e := range all {
		for _, kind := range e.Kinds {
			everything := kind == "*" && slices.ContainsFunc(e.APIGroups, func(g string) bool { return g == "*" || g == "" || g == "apps" || g == "batch" })
			if everything || slices.Contains(gatedKinds, kind) {
				out = append(out, fmt.Sprintf("resource.exclusions leaves out %.80q of %.80q: neither deployed nor compared", kind, strings.Join(e.APIGroups, ",")))
			}
		}
	}
	return out
}
