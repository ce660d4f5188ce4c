package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/live/doctor"
)

// What the policy leaves to nobody: rights that a revision in postBuild mode can
// give while the webhook is not asked, and what is pruned.
func TestWhatTheWebhookIsNotAskedOfAFlux(t *testing.T) {
	const (
		deletes = "gatedDeletes: [NetworkPolicy]\n"
		lacking = "scope: {admission: {clusterScoped: "
		named   = webPath + `,"serviceAccountName":"shop"`
	)
	for name, c := range map[string]struct {
		policy string // after prod
		web    string // spec of the Kustomization in postBuild mode; empty: it is not there
		own    bool   // kustomize-controller has a --default-service-account
		check  string // that fails, alone; empty: none
		text   string // in its details, or else in a warning
	}{
		"none is judged":          {deletes, webPath, false, "rights", "Kustomization shop/web is in postBuild mode and applied with the rights of Flux itself: a revision that needs no variable, refused or not, can bring a ClusterRole or ClusterRoleBinding that nobody judges"},
		"roles alone":             {lacking + "[Namespace, ClusterRole]}}\n" + deletes, webPath, false, "rights", "bring a ClusterRoleBinding that nobody judges"},
		"bindings alone":          {lacking + "[ClusterRoleBinding]}}\n" + deletes, webPath, false, "rights", "bring a ClusterRole that nobody judges"},
		"both are judged":         {judgesGrants + deletes, webPath, false, "", ""},
		"both, with their group":  {lacking + "[ClusterRole.rbac.authorization.k8s.io, ClusterRoleBinding.rbac.authorization.k8s.io]}}\n" + deletes, webPath, false, "", ""},
		"an account":              {deletes, named, false, "", ""},
		"an account for all":      {deletes, webPath, true, "", ""},
		"artifact mode alone":     {deletes, "", false, "", ""},
		"deletions":               {judgesGrants, webPath, true, "", "policy has no gatedDeletes"},
		"the webhook only warns":  {judgesGrants + deletes + "mode: {admission: Warn}\n", webPath, true, "mode", "the webhook only warns"},
		"it warns, and no matter": {judgesGrants + deletes + "mode: {admission: Warn}\n", "", true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := fluxStageBy(t, prod+c.policy)
			s.Delete(fluxKs + "/web")
			if c.web != "" {
				s.kustomization("web", "", c.web, yes)
			}
			if !c.own {
				s.Put(fluxDeploys, strings.Replace(fluxOwnController, `"--default-service-account=default",`, "", 1))
			}
			r, err := doctor.LookFlux(t.Context(), s.cluster, o)
			must(t, err)
			got := failures(r)
			switch {
			case c.check == "" && len(got) > 0:
				t.Errorf("failed: %v", got)
			case c.check != "" && (len(got) != 1 || !strings.Contains(got[c.check], c.text)):
				t.Errorf("failed: %v, want %s alone, with %q", got, c.check, c.text)
			case c.check != "":
				return
			}
			if said := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "gatedDeletes") }); said != strings.Contains(c.text, "gatedDeletes") {
				t.Errorf("warnings %q", r.Warnings)
			}
			// Where the webhook judges RBAC, what it is never shown is left.
			bare := c.web == webPath && !c.own
			if said := slices.ContainsFunc(r.Warnings, func(w string) bool {
				return strings.Contains(w, "shop/web: ") && strings.Contains(w, "admission policies")
			}); said != bare {
				t.Errorf("warned of the rights of Flux itself: %v, want %v: %q", said, bare, r.Warnings)
			}
		})
	}
}
