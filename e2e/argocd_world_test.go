//go:build e2e

package e2e

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// argoPolicy trusts the webhook with what has expired, and enforces everywhere
// but in the render of one application.
const argoPolicy = `receipts: {backstop: true}
apps:
- match: {name: warned}
  mode: {render: Warn}
`

// world is a cluster with everything that people install: an Argo CD of one
// version with the plugin, the webhook, the controller. A node runs its Pods.
type world struct {
	*harness.ArgoCD
	version  string
	binaries harness.Binaries
	release  *harness.Signer
	policy   string          // the sidecar's policy file
	copied   *harness.Policy // that of webhook and controller
}

// newWorld starts all of it but the webhook.
func newWorld(t *testing.T, version string, release *harness.Signer) *world {
	t.Helper()
	e := harness.New(t)
	w := &world{version: version, binaries: harness.Build(e).With(version), release: release}
	text := harness.BasicPolicy("release") + argoPolicy
	w.policy = e.Write("etc/policy.yaml", []byte(text))
	e.Write("etc/release.jwks.json", []byte(release.JWKS))
	cluster := harness.StartCluster(e, w.binaries)
	harness.StartNode(cluster, "node")
	w.ArgoCD = harness.StartArgoCD(cluster, w.binaries, filepath.Join(w.binaries.Manifests, "argocd"), "SYNCGATE_POLICY="+w.policy)
	w.copied = harness.NewPolicy(e, "policy", text, release)
	harness.StartController(cluster, w.binaries, harness.NewMount(e, "apps", nil), w.copied.Dir, "--settle=1s", "--refresh-rate=20")
	return w
}

// guard starts the webhook, which from now on judges what is changed in the
// namespace of Argo CD, too.
func (w *world) guard() {
	w.T.Helper()
	webhooks := harness.StartWebhooks(w.Cluster, w.binaries, 1, w.copied.Dir)
	webhooks.Install(harness.WebhookConfiguration(w.Env, w.binaries, w.copied.Path()))
}

// on is the world as a subtest sees it.
func (w *world) on(t *testing.T) *world {
	view := *w
	view.ArgoCD = w.ArgoCD.On(t)
	return &view
}

// newShop is an application's own repository, whose release engineer has the key
// that all of these policies name.
func (w *world) newShop(t *testing.T, path, namespace string) *shop {
	t.Helper()
	e := harness.New(t)
	return &shop{
		Env: e, syncgate: w.binaries.Syncgate, repo: harness.NewGitRepo(e), path: path, namespace: namespace,
		policy: w.policy, key: w.release.Key,
	}
}

// on is the shop as a subtest sees it.
func (s *shop) on(t *testing.T) *shop {
	view, repo := *s, *s.repo
	view.Env = s.Env.On(t)
	repo.Env = view.Env
	view.repo = &repo
	return &view
}

// part is a subtest.
type part struct {
	name string
	run  func(*testing.T)
}

// together runs parts at the same time, however few processors there are (-parallel
// counts those that wait, too), and returns when all have ended.
func together(t *testing.T, parts ...part) {
	t.Helper()
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() { t.Run(p.name, p.run) })
	}
	wg.Wait()
}
