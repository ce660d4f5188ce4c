package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/argocd/controller"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// ArgoCD says what is expected of an Argo CD.
type ArgoCD struct {
	// Options are those of the controller: the namespaces and gated projects.
	controller.Options
	// Policy is what the sidecar must go by.
	Policy *policy.Policy
	// Policies are the generated ValidatingAdmissionPolicies for Applications and
	// their bindings, as raw trees. They must be given.
	Policies []map[string]any
	// RepoServer is the name of the Deployment with the sidecar.
	RepoServer string
	// Image is what the sidecar's image must be, by its digest if it has one;
	// empty: of the same version as Version, which is this program's.
	Image, Version string
}

// The resources of Argo CD that are looked at.
var (
	applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// group is a check of Applications: it fails if one has a finding of its codes.
type group struct {
	name  string
	codes []string
	well  string // what is said if none has
	fix   string
}

// groups are in the order in which they help.
var groups = []group{
	{"sources", []string{controller.PluginMissing, controller.UngatedSource, controller.SourceHydrator}, "every source names the plugin",
		"syncgate migrate rewrites an Application to the plugin, on each of its sources; or name the gated projects with --projects"},
	{"operations", []string{controller.LocalSync, controller.UngatedOperation}, "no operation goes around the plugin",
		"argocd app sync NAME, from Git; then look at what it had deployed"},
	{"differences", []string{controller.RespectIgnoreDifferences}, "no Application puts live values in the place of signed ones",
		"take away RespectIgnoreDifferences=true, or leave /spec/replicas, /metadata/ and /status only in ignoreDifferences"},
	{"annotations", []string{controller.AnnotationRefused}, "no annotation asks for what policy forbids",
		"change or remove the annotation of the Application"},
	{checkMode, []string{controller.OnlyWarned}, "policy enforces at render",
		"none while you look at the warnings; to refuse, set mode.render to Enforce in the policy"},
}

// LookArgoCD makes every check of an Argo CD once. The error says why it could
// not be looked at; what is wrong is in the report.
func LookArgoCD(ctx context.Context, c *live.Cluster, o ArgoCD) (Report, error) {
	var r Report
	all, err := c.List(ctx, applications)
	if err != nil {
		return r, fmt.Errorf("listing Applications: %w", err)
	}
	side, err := r.sidecar(ctx, c, o)
	if err != nil {
		return r, err
	}
	if err := r.sidecarPolicy(ctx, c, o, side); err != nil {
		return r, err
	}
	r.image(o, side)
	var seen []controller.Examined
	var looked []map[string]any
	others := map[string]int{}
	for _, object := range all {
		meta, _ := object["metadata"].(map[string]any)
		if ns := text(meta, "namespace"); ns == o.ArgoNamespace || slices.Contains(o.Namespaces, ns) {
			seen = append(seen, o.Examine(object, o.Policy))
			looked = append(looked, object)
		} else {
			others[ns]++
		}
	}
	r.applications(seen)
	if err := r.published(ctx, c, o, side, seen); err != nil {
		return r, err
	}
	if err := r.switches(ctx, c, o, side); err != nil {
		return r, err
	}
	if err := r.projects(ctx, c, o, side, looked); err != nil {
		return r, err
	}
	if err := r.parameters(ctx, c, o, side, others); err != nil {
		return r, err
	}
	if err := r.hidden(ctx, c, o); err != nil {
		return r, err
	}
	return r, r.argoPolicies(ctx, c, o)
}

// applications are the checks of what each Application says itself.
func (r *Report) applications(seen []controller.Examined) {
	gated, asking := 0, 0
	for _, e := range seen {
		if e.Gated {
			gated++
			if e.Asks {
				asking++
			}
		}
	}
	for _, g := range groups {
		var details []string
		for _, e := range seen {
			for _, f := range e.Findings {
				if slices.Contains(g.codes, f.Code) {
					details = append(details, fmt.Sprintf("Application %s: [%s] %s", e.Key, f.Code, f.Text))
				}
			}
		}
		if len(details) == 0 {
			r.add(g.name, true, "", g.well)
			continue
		}
		r.add(g.name, false, g.fix, details...)
	}
	if asking == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("of %d Applications %d are in gated projects, and none names the plugin: nothing is judged yet", len(seen), gated))
	}
}

// published looks whether the sidecar is shown what Applications ask for now.
func (r *Report) published(ctx context.Context, c *live.Cluster, o ArgoCD, side sidecar, seen []controller.Examined) error {
	const fix = "see the log of Deployment syncgate-controller: it publishes within seconds of a change"
	cm, there, err := configMap(ctx, c, o.ArgoNamespace, settings.ConfigMap)
	if err != nil {
		return err
	}
	if side.env["SYNCGATE_APPS"] == "" && !side.blind {
		r.Warnings = append(r.Warnings, "the sidecar has no SYNCGATE_APPS: annotations of Applications do not count")
		return nil
	}
	if !there {
		r.add("settings", false, fix, fmt.Sprintf("no ConfigMap %s/%s: every Application is refused", o.ArgoNamespace, settings.ConfigMap))
		return nil
	}
	var details []string
	for _, e := range seen {
		if !e.Asks {
			continue
		}
		switch have, ok := cm[e.Key]; {
		case !ok:
			details = append(details, fmt.Sprintf("Application %s: nothing is published, and it is refused", e.Key))
		case have != e.Entry:
			details = append(details, fmt.Sprintf("Application %s: %s is published, and it asks for %s", e.Key, clip(have), clip(e.Entry)))
		}
	}
	if len(details) > 0 {
		r.add("settings", false, fix, details...)
		return nil
	}
	r.add("settings", true, "", "what Applications ask for is published")
	return nil
}

// argoPolicies is the check of the policies for Applications.
func (r *Report) argoPolicies(ctx context.Context, c *live.Cluster, o ArgoCD) error {
	if err := r.policies(ctx, c, o.Policies); err != nil {
		return err
	}
	if last := &r.Checks[len(r.Checks)-1]; !last.OK {
		last.Fix = strings.Replace(fixPolicies, "policies --policy", "policies --argocd --policy", 1)
	}
	return nil
}

// configMap is the data of a ConfigMap, and whether there is one.
func configMap(ctx context.Context, c *live.Cluster, namespace, name string) (map[string]string, bool, error) {
	cm, err := c.Get(ctx, configMaps, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
	}
	data, _ := cm["data"].(map[string]any)
	out := map[string]string{}
	for key := range data {
		out[key] = text(data, key)
	}
	return out, true, nil
}
