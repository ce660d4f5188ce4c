package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const appPath = "apps/shop/prod" // in the repository

// files are the example's, but for the registry's address.
var files = map[string]string{
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
	appPath + "/kustomization.yaml": `resources: [../base]
images: [{name: web, newName: "REGISTRY/shop/web", newTag: "1"}]
replicas: [{name: web, count: 2}]
`,
	".gitignore": "*.bak\n",
}

// application is the example with its repository, and the key of who releases it.
type application struct {
	*harness.Env
	policy            *harness.Policy
	signer            *harness.Signer
	repo              *harness.GitRepo
	syncgate, tools   string
	kubeconfig, image string
}

func newApplication(e *harness.Env, b harness.Binaries, cluster *harness.Cluster) *application {
	signer := harness.NewSigner(e, b, "release")
	registry := harness.StartRegistry(e)
	for _, tag := range []string{"1", "2"} {
		registry.Push("shop/web", tag)
	}
	a := &application{
		Env: e, signer: signer, repo: harness.NewGitRepo(e), syncgate: b.Syncgate, tools: filepath.Dir(b.Syncgate),
		policy:     harness.NewPolicy(e, "policy", harness.BasicPolicy("release")+"receipts: {backstop: true}\n", signer),
		kubeconfig: cluster.Kubeconfig, image: registry.Host + "/shop/web",
	}
	written := map[string]string{}
	for name, text := range files {
		written[name] = strings.ReplaceAll(text, "REGISTRY", registry.Host)
	}
	a.repo.Write(written)
	// One program is all of the control plane, and kubectl.
	kubectl := fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl \"$@\"\n", b.Kube)
	if err := os.WriteFile(filepath.Join(a.tools, "kubectl"), []byte(kubectl), 0o755); err != nil {
		e.T.Fatal(err)
	}
	for _, setting := range [][]string{{"user.name", "Newcomer"}, {"user.email", "newcomer@example.test"}, {"push.default", "current"}, {"commit.gpgSign", "false"}} {
		e.Run(a.repo.Work, nil, "git", append([]string{"config"}, setting...)...)
	}
	return a
}

// release pins, signs and pushes what the work tree has, and returns the commit.
func (a *application) release() string {
	dir := filepath.Join(a.repo.Work, appPath)
	a.Run(dir, nil, a.syncgate, "pin", "--namespace", "shop")
	a.Run(dir, nil, a.syncgate, "sign", "--policy", a.policy.Path(), "--key", a.signer.Key, "--issuer", "release", "--namespace", "shop", "--yes")
	return a.repo.Commit("Release the shop")
}

// explain prints what to do in another terminal. Lines that begin with four
// spaces are commands; the test of this program runs them.
func (a *application) explain(w io.Writer, version string) {
	fmt.Fprintf(w, `
Argo CD %[1]s runs here, with syncgate as its plugin, the admission webhook and syncgate-controller,
and with the application "shop", which is signed and synced. In another terminal:

    export KUBECONFIG='%[2]s' SYNCGATE_POLICY='%[3]s'
    export PATH='%[4]s':"$PATH"
    cd '%[5]s'

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
    syncgate sign apps/shop/prod --namespace shop --key '%[6]s' --issuer release --yes
    git add -A && git commit -qm 'Approve the image' && git push -q

Go around Argo CD: the webhook refuses with the same sentence, and lets pass what needs nobody.

    kubectl set image deployment/web web='%[7]s:1' -n shop || true
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

Every process's log is in '%[8]s'. Ctrl-C ends all of it, and removes that folder.
`, version, a.kubeconfig, a.policy.Path(), a.tools, a.repo.Work, a.signer.Key, a.image, a.Dir)
}
