package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
)

func rbac(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
}

// writers looks who may write ExternalArtifacts or their status by RBAC, beside
// the gate: Flux applies whatever the status says. Its own roles give the right
// to editors of a namespace. The policies for Flux refuse it all the same; guarded
// says that they are there.
func (r *Report) writers(ctx context.Context, c *live.Cluster, o Flux, guarded bool) error {
	found, err := artifactWriters(ctx, c)
	if err != nil && isForbidden(err) {
		r.Warnings = append(r.Warnings, "who may write ExternalArtifacts cannot be seen: "+clip(err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing who may write ExternalArtifacts: %w", err)
	}
	delete(found, fmt.Sprintf("ServiceAccount %s/%s", o.Policy.Admission().Namespace, FluxDeployment))
	delete(found, "Group system:masters") // whom no right is kept from
	names := slices.Sorted(maps.Keys(found))
	const most = 10
	said := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		said += fmt.Sprintf(" and %d more", len(names)-most)
	}
	switch {
	case len(names) == 0:
		r.add("writers", true, "", "nobody but the gate may write ExternalArtifacts")
	case guarded:
		r.add("writers", true, "", "the policies refuse writes of the gate's ExternalArtifacts by others who may write some: "+said)
	default:
		r.add("writers", false, "install the policies for Flux, or take the right away", "others than the gate may write ExternalArtifacts or their status, which Flux applies, and no policy refuses it: "+said)
	}
	return nil
}

// artifactWriters are those who are bound to a role that may.
func artifactWriters(ctx context.Context, c *live.Cluster) (map[string]bool, error) {
	may := map[string]bool{} // by "ClusterRole NAME" or "Role NAMESPACE/NAME"
	for kind, resource := range map[string]string{"ClusterRole": "clusterroles", "Role": "roles"} {
		roles, err := c.List(ctx, rbac(resource))
		if err != nil {
			return nil, err
		}
		for _, role := range roles {
			if slices.ContainsFunc(list(role, "rules"), writesArtifacts) {
				may[roleName(kind, text(child(role, "metadata"), "namespace"), configurationName(role))] = true
			}
		}
	}
	found := map[string]bool{}
	for _, resource := range []string{"clusterrolebindings", "rolebindings"} {
		bindings, err := c.List(ctx, rbac(resource))
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			home, ref := text(child(b, "metadata"), "namespace"), child(b, "roleRef")
			if !may[roleName(text(ref, "kind"), home, text(ref, "name"))] {
				continue
			}
			for _, x := range list(b, "subjects") {
				s, _ := x.(map[string]any)
				name := text(s, "name")
				if text(s, "kind") == "ServiceAccount" {
					name = text(s, "namespace") + "/" + name
				}
				found[text(s, "kind")+" "+clip(name)] = true
			}
		}
	}
	return found, nil
}

func roleName(kind, namespace, name string) string {
	if kind == "Role" {
		return kind + " " + namespace + "/" + name
	}
	return kind + " " + name
}

// writesArtifacts reports whether a rule of RBAC gives the right to write an
// ExternalArtifact, or the status of one.
func writesArtifacts(x any) bool {
	rule, _ := x.(map[string]any)
	has := func(key string, of ...string) bool {
		return slices.ContainsFunc(list(rule, key), func(v any) bool {
			s, _ := v.(string)
			return s == "*" || slices.Contains(of, s)
		})
	}
	if names := list(rule, "resourceNames"); len(names) > 0 && !slices.ContainsFunc(names, func(v any) bool {
		s, _ := v.(string)
		return strings.HasPrefix(s, FluxDeployment+"-")
	}) {
		return false
	}
	return has("apiGroups", externalArtifacts.Group) &&
		has("resources", externalArtifacts.Resource, externalArtifacts.Resource+"/status", "*/status") &&
		has("verbs", "create", "update", "patch")
}
