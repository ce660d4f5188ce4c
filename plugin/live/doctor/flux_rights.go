package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/application"
)

// anywayReason is that of the gate's condition when Flux has applied what it
// refused.
const anywayReason = "AppliedAnyway"

// anyway is the check that nothing was.
func (r *Report) anyway(all []kustomized) {
	var details []string
	for _, k := range all {
		if text(k.approved, "status") == "False" && text(k.approved, "reason") == anywayReason {
			details = append(details, fmt.Sprintf("%s: %s", k, clip(text(k.approved, "message"))))
		}
	}
	r.check("applied", details, "flux suspend kustomization NAME --namespace NAMESPACE, and look at what it brought (docs/flux.md, Applied anyway)", "Flux has applied last nothing that the gate refused")
}

// rights is the check of what a revision in postBuild mode can do though it is
// refused, because it needs no variable or meets the ConfigMap of the one before
// it: the webhook alone judges it, and not what it is not asked about. account is
// the one that Flux takes where a Kustomization names none; empty: its own, or it
// cannot be seen.
func (r *Report) rights(o Flux, all []kustomized, account string) {
	unjudged := o.Policy.Admission().UnjudgedGrants()
	var details, bare []string
	for _, k := range all {
		switch {
		case k.Mode != application.PostBuild || k.account != "" || account != "":
		case len(unjudged) > 0:
			details = append(details, fmt.Sprintf("%s is in postBuild mode and applied with the rights of Flux itself: a revision that needs no variable, refused or not, can bring a %s that nobody judges", k, strings.Join(unjudged, " or ")))
		default:
			bare = append(bare, k.String())
		}
	}
	r.check("rights", details, "name ClusterRole and ClusterRoleBinding under scope.admission.clusterScoped and generate the webhook's configuration anew, or give the Kustomization spec.serviceAccountName, or kustomize-controller --default-service-account, of an account that may write neither (docs/flux.md, What postBuild mode guarantees)",
		"no right can be given in postBuild mode that nobody judges")
	if len(bare) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("applied in postBuild mode with the rights of Flux itself: %s: a revision that needs no variable can bring webhook configurations and admission policies, which the API server shows to no webhook, and take the gate away; give each spec.serviceAccountName", clip(strings.Join(bare, ", "))))
	}
	if len(o.Policy.Admission().GatedDeletes) == 0 && slices.ContainsFunc(all, func(k kustomized) bool { return k.Mode != application.Plain }) {
		r.Warnings = append(r.Warnings, "policy has no gatedDeletes: what a revision leaves out is pruned, a NetworkPolicy too, and nobody is asked")
	}
}
