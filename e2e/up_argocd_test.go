//go:build e2e

package e2e

import "testing"

// TestArgoCDUpShowsANewcomerAllOfIt runs what "make argocd-up" runs.
func TestArgoCDUpShowsANewcomerAllOfIt(t *testing.T) {
	startUp(t, nil, []upStep{
		{[]string{"Look at it"}, []string{"deployment.apps/web", "service/web", "Running"}, []string{"Synced 2 hello ", "/shop/web:1@sha256:"}},
		{[]string{"needs nobody"}, nil, []string{"Synced 3 welcome ", "/shop/web:1@sha256:"}},
		{[]string{"another image", "refused"}, []string{"SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "containers[web].image"}, []string{"Unknown 3 welcome ", "/shop/web:1@sha256:"}},
		{[]string{"approve it"}, []string{"containers[web].image"}, []string{"Synced 3 welcome ", "/shop/web:2@sha256:"}},
		{[]string{"Go around"}, []string{"SYNC REFUSED [", "Deployment shop/web", "resource requirements updated"}, []string{"/shop/web:2@sha256:"}},
		{[]string{"Ask for more", "without a commit"}, []string{"SYNC REFUSED [ReceiptMissing]", "Service shop/web: no receipt for service"}, []string{"Unknown 3 welcome ", "/shop/web:2@sha256:"}},
		{[]string{"Take it back"}, nil, []string{"Synced 3 welcome ", "/shop/web:2@sha256:"}},
		{[]string{"Take the plugin out"}, []string{"[PluginMissing]"}, []string{"/shop/web:2@sha256:"}},
		{[]string{"Put it back"}, nil, []string{"Synced 3 welcome ", "/shop/web:2@sha256:"}},
		{[]string{"Close that way"}, []string{"SYNC REFUSED [ProtectedTarget] Application argocd/shop", "do not name the plugin syncgate"}, []string{"Synced 3 welcome ", "/shop/web:2@sha256:"}},
	},
		look("application shop -n argocd", ".status.sync.status"), look("deployment web -n shop", ".spec.replicas"),
		look("configmap web -n shop", ".data.greeting"), look("deployment web -n shop", ".spec.template.spec.containers[0].image"))
}
