//go:build e2e

package e2e

import "testing"

// TestFluxUpShowsANewcomerAllOfIt runs what "make flux-up" runs.
func TestFluxUpShowsANewcomerAllOfIt(t *testing.T) {
	const (
		image    = ".spec.template.spec.containers[0].image"
		approved = `.status.conditions[?(@.type=="syncgate.io/Approved")].status`
	)
	startUp(t, []string{"--flux"}, []upStep{
		{[]string{"Look at them"}, []string{"substituteFrom:", "syncgate.io/source: GitRepository/shop", "externalartifact.source.toolkit.fluxcd.io/syncgate-flux-api", "configmap/syncgate-flux-web", "deployment.apps/web", "deployment.apps/api", "service/api", "Running"},
			[]string{"web 2 hello ", "/shop/web:1@sha256:", "api 2 ", "/shop/api:1@sha256:", "approved True True "}},
		{[]string{"really in the path"}, []string{"ok    gate ", "ok    leader ", "ok    policy ", "ok    kustomizations  every Kustomization that is gated goes through the gate: 2", "ok    policies ", "ok    configuration"}, []string{"approved True True "}},
		{[]string{"needs nobody"}, nil, []string{"web 3 welcome ", "/shop/web:1@sha256:", "api 3 ", "/shop/api:1@sha256:", "approved True True "}},
		{[]string{"other images", "nothing of either is applied"}, []string{"web: SYNC REFUSED [DigestMismatch]", "api: SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "Deployment shop/api"},
			[]string{"/shop/web:1@sha256:", "/shop/api:1@sha256:", "approved False False "}},
		{[]string{"What Flux says"}, []string{"web: Ready=False", "syncgate-flux-web", "not found", "api: Ready=True Applied revision"}, []string{"/shop/web:1@sha256:", "/shop/api:1@sha256:"}},
		{[]string{"approve web alone"}, []string{"web: Ready=True Applied revision"}, []string{"/shop/web:2@sha256:", "/shop/api:1@sha256:", "approved True False "}},
		{[]string{"And api"}, []string{"web: main@sha1:", "api: main@sha1:"}, []string{"web 3 welcome ", "/shop/web:2@sha256:", "api 3 ", "/shop/api:2@sha256:", "approved True True "}},
		{[]string{"Go around Flux"}, []string{"SYNC REFUSED [", "Deployment shop/web", "resource requirements updated"}, []string{"/shop/web:2@sha256:"}},
		{[]string{"Go around the gate"}, []string{"syncgate-flux-kustomizations", "SYNC REFUSED ["}, []string{"artifact ExternalArtifact "}},
		{[]string{"Ask for more", "without a commit"}, []string{"api: SYNC REFUSED [ReceiptMissing]", "Service shop/api: no receipt for service"}, []string{"approved True False ", "api 3 "}},
		{[]string{"Take it back"}, []string{"api: main@sha1:"}, []string{"approved True True "}},
	},
		"printf 'web '", look("deployment web -n shop", ".spec.replicas"), look("configmap web -n shop", ".data.greeting"), look("deployment web -n shop", image),
		"printf 'api '", look("deployment api -n shop", ".spec.replicas"), look("deployment api -n shop", image),
		"printf 'approved '", look("kustomization web -n shop", approved), look("kustomization api -n shop", approved),
		"printf 'artifact '", look("kustomization api -n shop", ".spec.sourceRef.kind"))
}
