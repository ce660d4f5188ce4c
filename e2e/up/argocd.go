package main

import (
	"fmt"
	"io"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const argoPath = "apps/shop/prod" // in the repository

// argoFiles are the example for Argo CD.
var argoFiles = map[string]string{
	"apps/shop/base/kustomization.yaml": "resources: [web.yaml, config.yaml]\n",
	"apps/shop/base/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: hello}
`,
	"apps/shop/base/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        envFrom: [{configMapRef: {name: web}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`,
	argoPath + "/kustomization.yaml": `resources: [../base]
images: [{name: web, newName: "REGISTRY/shop/web", newTag: "1"}]
replicas: [{name: web, count: 2}]
`,
}

// argoCD starts Argo CD of a version with the plugin, the webhook and the
// controller as manifests/ has them, and one application.
func argoCD(version string) func(*starter) {
	return func(s *starter) {
		b := s.b.With(version)
		x := newExample(s.Env, b, s.cluster, argoFiles, "shop/web")
		s.say("Argo CD " + version + " with the plugin")
		apps, off := harness.NewMount(s.Env, "apps", nil), harness.NewMount(s.Env, "off", nil)
		argo := harness.StartArgoCD(s.cluster, b, b.Manifests+"/argocd", "SYNCGATE_POLICY="+x.policy.Path(), "SYNCGATE_APPS="+apps.Dir, "SYNCGATE_OFF="+off.Dir)
		apps.Follow(s.cluster, "argocd", "syncgate-apps")
		off.Follow(s.cluster, "argocd", "syncgate-off")
		s.say("the controller and the webhook")
		// What it publishes is mounted at once here, and not within two minutes.
		harness.StartController(s.cluster, b, apps, x.policy.Dir, "--settle=3s")
		s.webhook(b, x)
		s.say("the application shop")
		x.release(argoPath, "--namespace", "shop")
		argo.Create(harness.ApplicationOptions{
			Name: "shop", RepoURL: x.repo.URL, Path: argoPath, Namespace: "shop", SelfHeal: true, NoRetry: true,
		}).WaitSynced(x.repo.Commit("Release the shop"))
		x.explainArgoCD(s.stdout, version)
	}
}

// explainArgoCD prints what to do in another terminal.
func (x *example) explainArgoCD(w io.Writer, version string) {
	fmt.Fprintf(w, `
Argo CD %[1]s runs here, with syncgate as its plugin, the admission webhook and syncgate-controller,
and with the application "shop", which is signed and synced. In another terminal:

%[2]s
Look at it.

    kubectl get application shop -n argocd
    kubectl get deployment,pod,configmap,service -n shop -o wide

What needs nobody's approval: replicas and configuration. Argo CD looks every two seconds.

    sed -i.bak 's/hello/welcome/' apps/shop/base/config.yaml
    sed -i.bak 's/count: 2/count: 3/' apps/shop/prod/kustomization.yaml
    git commit -qam 'Greet and scale' && git push -q

What does: another image. It is pinned and pushed, and refused before the sync, with all of its commit.

    sed -i.bak 's/newTag: "1"/newTag: "2"/' apps/shop/prod/kustomization.yaml
    syncgate pin apps/shop/prod --namespace shop
    git add -A && git commit -qm 'Change the image' && git push -q
    kubectl get application shop -n argocd -o jsonpath='{.status.conditions[*].message}{"\n"}'

See what would change, approve it, and watch it sync.

    syncgate diff HEAD~1 HEAD --path apps/shop/prod --namespace shop || true
    syncgate sign apps/shop/prod --namespace shop --key '%[3]s' --issuer release --yes
    git add -A && git commit -qm 'Approve the image' && git push -q

Go around Argo CD: the webhook refuses with the same sentence, and lets pass what needs nobody.

    kubectl set image deployment/web web='%[4]s/shop/web:1' -n shop || true
    kubectl set resources deployment/web --requests=cpu=10m -n shop

Ask for more of this application alone: another category must be signed, without a commit.

    kubectl annotate application shop -n argocd syncgate.io/categories=service
    kubectl get application shop -n argocd -o jsonpath='{.status.conditions[*].message}{"\n"}'

Take it back.

    kubectl annotate application shop -n argocd syncgate.io/categories-

Take the plugin out: syncgate-controller says so on the application.

    kubectl patch application shop -n argocd --type=json -p '[{"op":"remove","path":"/spec/source/plugin"}]'
    kubectl get application shop -n argocd -o jsonpath='{.metadata.annotations.syncgate\.io/status}{"\n"}'

Put it back.

    kubectl patch application shop -n argocd --type=merge -p '{"spec":{"source":{"plugin":{"name":"syncgate"}}}}'

Close that way: policies that the API server evaluates refuse an Application without the plugin. Within seconds; if it is not refused yet, ask again.

    syncgate manifests policies --argocd --policy '%[6]s' | kubectl apply -f -
    kubectl patch application shop -n argocd --type=json -p '[{"op":"remove","path":"/spec/source/plugin"}]' --dry-run=server || true

"syncgate doctor --argocd" asks a cluster where Argo CD runs in Pods. Here it is processes: there is no
Deployment argocd-repo-server with a sidecar, and the doctor says so.

%[5]s`, version, x.setup(), x.signer.Key, x.registry, x.ending(), x.policy.Path())
}
