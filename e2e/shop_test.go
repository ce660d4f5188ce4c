//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const (
	environment = "prod"
	namespace   = "shop"
	appPath     = "apps/shop/prod" // in the repository
)

const policy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- name: release
  keys: {file: keys.jwks.json}
`

// base is what an application looks like before anybody thought of a gate.
var base = map[string]string{
	"apps/shop/base/kustomization.yaml": "resources: [web.yaml, config.yaml]\n",
	"apps/shop/base/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: hello}
`,
	"apps/shop/base/web.yaml": `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: apps/v1
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
`,
}

// change is what a commit says in the kustomization of the environment.
type change struct {
	image, tag string
	replicas   int
	resource   string // one more file, "" for none
	more       string // further lines
}

// files are the files of the change.
func (c change) files() map[string]string {
	resources := "[../base]"
	if c.resource != "" {
		resources = "[../base, " + c.resource + "]"
	}
	return map[string]string{appPath + "/kustomization.yaml": fmt.Sprintf(`resources: %s
images: [{name: web, newName: %q, newTag: %q}]
replicas: [{name: web, count: %d}]
%s`, resources, c.image, c.tag, c.replicas, c.more)}
}

// merge returns the files of both.
func merge(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// shop is the application and its release engineer, with the program under
// test, a policy and a key.
type shop struct {
	*harness.Env
	syncgate, policy, key string
	repo                  *harness.GitRepo
	path, namespace       string // of the application: in the repository, and where it goes
}

func newShop(e *harness.Env, b harness.Binaries) *shop {
	e.T.Helper()
	release := harness.NewSigner(e, b, "release")
	s := &shop{
		Env: e, syncgate: b.Syncgate, repo: harness.NewGitRepo(e), path: appPath, namespace: namespace,
		policy: e.Write("etc/policy.yaml", []byte(policy)), key: release.Key,
	}
	e.Write("etc/keys.jwks.json", []byte(release.JWKS))
	return s
}

// dir is the application's directory in the work tree.
func (s *shop) dir() string { return filepath.Join(s.repo.Work, s.path) }

// pin is a build's last step: it looks the tags up and writes them down.
func (s *shop) pin() {
	s.T.Helper()
	s.Run(s.dir(), nil, s.syncgate, "pin", "--namespace", s.namespace)
}

// sign is the release: it approves what the work tree renders to.
func (s *shop) sign(flags ...string) {
	s.T.Helper()
	s.Run(s.dir(), nil, s.syncgate, append([]string{"sign", "--policy", s.policy, "--key", s.key,
		"--issuer", "release", "--environment", environment, "--namespace", s.namespace, "--yes"}, flags...)...)
}

// generate runs the plugin on a directory as Argo CD would.
func (s *shop) generate(dir string) []byte {
	s.T.Helper()
	return s.Run(dir, []string{
		"SYNCGATE_POLICY=" + s.policy, "ARGOCD_APP_NAME=shop", "ARGOCD_APP_NAMESPACE=" + s.namespace,
		"ARGOCD_APP_PARAMETERS=null", "KUBE_VERSION=1.37",
	}, s.syncgate, "generate")
}

// report logs a text that people are to read, so that it can be quoted.
func report(t *testing.T, title, text string) {
	t.Helper()
	t.Logf("%s:\n%s", title, text)
}
