package main

import (
	"fmt"
	"io"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// fluxFiles are the example for Flux: two applications, one for each way to be
// gated, and what tells Flux of them.
var fluxFiles = map[string]string{
	"apps/web/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: "REGISTRY/shop/web:1@${syncgate_pin_web}"
        envFrom: [{configMapRef: {name: web}}]
`,
	"apps/web/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: hello}
`,
	"apps/api/kustomization.yaml": "namespace: shop\nresources: [api.yaml]\n",
	"apps/api/api.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
      - {name: api, image: "REGISTRY/shop/api:1"}
---
apiVersion: v1
kind: Service
metadata: {name: api}
spec: {selector: {app: api}, ports: [{port: 80}]}
`,
	"clusters/web.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: shop}
spec:
  interval: 10m
  retryInterval: 5s
  prune: true
  serviceAccountName: flux
  path: ./apps/web
  targetNamespace: shop
  sourceRef: {kind: GitRepository, name: shop}
  postBuild:
    substituteFrom:
    - {kind: ConfigMap, name: syncgate-flux-web}
`,
	"clusters/api.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: api
  namespace: shop
  annotations:
    syncgate.io/source: GitRepository/shop
    syncgate.io/path: ./apps/api
spec:
  interval: 10m
  retryInterval: 5s
  prune: true
  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-api}
`,
}

// fluxApps are the applications of the example.
var fluxApps = []string{"web", "api"}

// flux starts Flux with the gate, the webhook and the policies as manifests/ has
// them, and two applications.
func flux(s *starter) {
	x := newExample(s.Env, s.b, s.cluster, fluxFiles, "shop/web", "shop/api")
	s.say("Flux: source-controller and kustomize-controller")
	f := harness.StartFlux(s.cluster, s.b, "--feature-gates=ExternalArtifact=true")
	s.say("the gate for Flux and the webhook")
	off := harness.NewMount(s.Env, "off", nil)
	// web is applied as this account, to which the webhook would want its role signed.
	s.cluster.Kubectl(nil, "create", "namespace", "shop")
	s.cluster.Kubectl(nil, "create", "serviceaccount", "flux", "--namespace", "shop")
	s.cluster.Kubectl(nil, "create", "rolebinding", "flux", "--clusterrole=admin", "--serviceaccount=shop:flux", "--namespace", "shop")
	// The Pod of the Deployment, which only seems to run here, has it mounted.
	s.cluster.Kubectl(nil, "create", "namespace", "syncgate-system")
	s.cluster.Kubectl(nil, "create", "configmap", "syncgate-policy", "--namespace", "syncgate-system", "--from-file", x.policy.Path(), "--from-file", x.policy.File("release.jwks.json"))
	harness.StartFluxGate(f, s.b, x.policy.Dir, "--off", off.Dir) // before the webhook, which would want its roles signed
	off.Follow(s.cluster, "syncgate-system", "syncgate-off")
	s.webhook(s.b, x)
	s.cluster.Apply(x.Run(x.Dir, nil, x.syncgate, "manifests", "policies", "--flux", "--policy", x.policy.Path()))
	s.say("the applications web and api")
	for _, name := range fluxApps {
		x.release(".", "--application", "clusters/"+name+".yaml")
	}
	commit := "main@sha1:" + x.repo.Commit("Release the shop")
	s.cluster.Apply(fmt.Appendf(nil, `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: shop, namespace: shop}
spec: {interval: 5s, url: %q, ref: {branch: main}}
`, f.Git.URL(x.repo)))
	for _, name := range fluxApps {
		x.Run(x.repo.Work, []string{"KUBECONFIG=" + x.kubeconfig}, x.tools+"/kubectl", "apply", "-f", "clusters/"+name+".yaml")
	}
	for _, name := range fluxApps {
		(&harness.Kustomization{Flux: f, Namespace: "shop", Name: name}).WaitApplied(commit)
	}
	x.explainFlux(s.stdout)
}

// explainFlux prints what to do in another terminal.
func (x *example) explainFlux(w io.Writer) {
	const (
		said = `kubectl get kustomization -n shop -o jsonpath='{range .items[*]}{.metadata.name}{": "}{.status.conditions[?(@.type=="syncgate.io/Approved")].message}{"\n"}{end}'`
		flux = `kubectl get kustomization -n shop -o jsonpath='{range .items[*]}{.metadata.name}{": Ready="}{.status.conditions[?(@.type=="Ready")].status}{" "}{.status.conditions[?(@.type=="Ready")].message}{"\n"}{end}'`
	)
	fmt.Fprintf(w, `
Flux runs here (source-controller, kustomize-controller), with syncgate-controller as its gate, the
admission webhook and the policies of the API server. Two Kustomizations are signed and applied:
"web" in postBuild mode, "api" in artifact mode. In another terminal:

%[1]s
Look at them. The ConfigMap is what web waits for, the ExternalArtifact what api is built from.

    cat clusters/web.yaml clusters/api.yaml
    kubectl get gitrepository,kustomization,externalartifact,configmap -n shop
    kubectl get deployment,pod,service -n shop -o wide

Ask the cluster whether the gate is really in the path.

    syncgate doctor --flux

What needs nobody's approval: replicas and configuration. Flux looks every five seconds.

    sed -i.bak 's/hello/welcome/' apps/web/config.yaml
    sed -i.bak 's/replicas: 2/replicas: 3/' apps/web/web.yaml apps/api/api.yaml
    git commit -qam 'Greet and scale' && git push -q

What does: other images. They are pinned and pushed, and nothing of either is applied.

    sed -i.bak 's|shop/web:1|shop/web:2|' apps/web/web.yaml
    sed -i.bak 's|shop/api:1|shop/api:2|' apps/api/api.yaml
    syncgate pin --application clusters/web.yaml
    syncgate pin --application clusters/api.yaml
    git add -A && git commit -qm 'Change the images' && git push -q
    %[2]s

What Flux says of it: web cannot be built, api goes on with what was approved last.

    %[3]s

See what would change, approve web alone, and watch it.

    syncgate diff HEAD~1 HEAD --application clusters/web.yaml || true
    syncgate sign --application clusters/web.yaml --key '%[4]s' --issuer release --yes
    git add -A && git commit -qm 'Approve web' && git push -q
    %[3]s

And api.

    syncgate sign --application clusters/api.yaml --key '%[4]s' --issuer release --yes
    git add -A && git commit -qm 'Approve api' && git push -q
    %[2]s

Go around Flux: the webhook refuses with the same sentence, and lets pass what needs nobody.

    kubectl set image deployment/web web='%[5]s/shop/web:1' -n shop || true
    kubectl set resources deployment/web --requests=cpu=10m -n shop

Go around the gate: the policies refuse a Kustomization that it does not judge.

    kubectl patch kustomization api -n shop --type=merge -p '{"spec":{"sourceRef":{"kind":"GitRepository","name":"shop"},"path":"./apps/api"}}' || true

Ask for more of one Kustomization alone: another category must be signed, without a commit.

    kubectl annotate kustomization api -n shop syncgate.io/categories=service
    %[2]s

Take it back.

    kubectl annotate kustomization api -n shop syncgate.io/categories-
    %[2]s

%[6]s`, x.setup(), said, flux, x.signer.Key, x.registry, x.ending())
}
