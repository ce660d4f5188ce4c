//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// The two ways to gate a Kustomization.
const (
	byPostBuild = "postBuild"
	byArtifact  = "artifact"
)

// fluxWorld is a cluster with Flux, the webhook, and the gate for Flux.
type fluxWorld struct {
	*harness.Flux
	b        harness.Binaries
	signer   *harness.Signer
	policy   *harness.Policy
	webhooks *harness.Webhooks
	gate     *harness.FluxGate
	off      *harness.Mount // the ConfigMap of off-switches, as the gate has it
}

func newFluxWorld(e *harness.Env, policy string) *fluxWorld {
	e.T.Helper()
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	w := &fluxWorld{b: b, Flux: harness.StartFlux(cluster, b, "--feature-gates=ExternalArtifact=true")}
	w.signer = harness.NewSigner(e, b, "release")
	w.policy = harness.NewPolicy(e, "policy", policy, w.signer)
	w.off = harness.NewMount(e, "gate-off", nil)
	w.gate = harness.StartFluxGate(w.Flux, b, w.policy.Dir, "--off", w.off.Dir) // before the webhook, which would want its roles signed
	w.webhooks = harness.StartWebhooks(cluster, b, 1, w.policy.Dir)
	w.webhooks.Install(harness.WebhookConfiguration(e, b, w.policy.Path()))
	return w
}

// fluxShop is one Kustomization of an application in a namespace of its own, in
// a repository of its own.
type fluxShop struct {
	*harness.Kustomization
	w    *fluxWorld
	repo *harness.GitRepo
	mode string
}

// fluxSpec is the spec of the Kustomization shop.
func fluxSpec(mode, namespace string) string {
	if mode == byArtifact {
		return "  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-shop}\n"
	}
	return fmt.Sprintf(`  targetNamespace: %s
  path: ./apps/shop
  sourceRef: {kind: GitRepository, name: shop}
  postBuild:
    substituteFrom:
    - {kind: ConfigMap, name: syncgate-flux-shop}
`, namespace)
}

func fluxAnnotations(mode string) map[string]string {
	if mode != byArtifact {
		return nil
	}
	return map[string]string{"syncgate.io/source": "GitRepository/shop", "syncgate.io/path": "./apps/shop"}
}

// newShop makes the repository and its source; the Kustomization is made by
// create.
func (w *fluxWorld) newShop(mode string) *fluxShop {
	w.T.Helper()
	namespace := w.NewNamespace("shop-" + strings.ToLower(mode))
	s := &fluxShop{w: w, repo: harness.NewGitRepoAt(w.Env, namespace), mode: mode}
	s.Kustomization = &harness.Kustomization{Flux: w.Flux, Namespace: namespace, Name: "shop"}
	w.CreateGitRepository(namespace, "shop", s.repo)
	return s
}

// create makes the Kustomization in the cluster.
func (s *fluxShop) create() {
	s.T.Helper()
	s.Replace(fluxSpec(s.mode, s.Namespace), fluxAnnotations(s.mode))
}

// write puts a version of the application into the work tree: the tag of its
// image, its replicas and the greeting of its ConfigMap, and more files.
func (s *fluxShop) write(tag string, replicas int, greeting string, more map[string]string) {
	s.T.Helper()
	image, receipt := harness.Image("web:"+tag), ""
	if s.mode == byPostBuild {
		name, _, _ := strings.Cut(image, "@")
		image, receipt = name+"@${syncgate_pin_web}", `, annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}`
	}
	namespace := ""
	if s.mode == byArtifact {
		namespace = "namespace: " + s.Namespace + "\n"
	}
	s.repo.Write(merge(map[string]string{
		"apps/shop/kustomization.yaml": namespace + "resources: [web.yaml, config.yaml]\n",
		"apps/shop/config.yaml":        fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {text: %q}\n", greeting),
		"apps/shop/web.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web%s}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: %q}]}
`, receipt, replicas, image),
		// What syncgate pin would write, had a registry these images.
		"apps/shop/.syncgate/images/registry.example.test+web.lock": locked("web:" + tag),
		"clusters/shop.yaml": s.manifest(),
	}, more))
}

// locked is the pin of an image in the lock.
func locked(image string) string {
	name, digest, _ := strings.Cut(harness.Image(image), "@")
	i := strings.LastIndex(name, ":")
	return fmt.Sprintf("- {name: %s, tag: %q, digest: %s}\n", name[:i], name[i+1:], digest)
}

// manifest is the Kustomization as a file, for the command line.
func (s *fluxShop) manifest() string {
	text := fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: shop\n  namespace: %s\n  annotations: {", s.Namespace)
	for key, value := range fluxAnnotations(s.mode) {
		text += fmt.Sprintf("%s: %q, ", key, value)
	}
	return text + "}\nspec:\n  interval: 1h\n  prune: true\n" + fluxSpec(s.mode, s.Namespace)
}

// sign approves what the work tree is built to.
func (s *fluxShop) sign() {
	s.T.Helper()
	s.Run(s.repo.Work, nil, s.w.b.Syncgate, "sign", "--policy", s.w.policy.Path(), "--key", s.w.signer.Key, "--issuer", s.w.signer.Name,
		"--application", filepath.Join("clusters", "shop.yaml"), "--yes", ".")
}

func (s *fluxShop) push(message string) string {
	s.T.Helper()
	return s.PushTo(s.Namespace, "shop", s.repo, message)
}

// running are the images of the Deployment.
func (s *fluxShop) running() []string {
	s.T.Helper()
	return harness.Images(s.Get(harness.Deployments, s.Namespace, "web"))
}

func (s *fluxShop) snapshot() map[string]any {
	s.T.Helper()
	all := s.Snapshot(s.Namespace, harness.Deployments, harness.ConfigMaps, harness.Secrets, harness.Services)
	delete(all, "configmaps/syncgate-flux-shop") // the gate's own
	for _, o := range all {
		// The Deployment's controller writes it some time after Flux.
		annotations, _ := o.(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]string)
		delete(annotations, "deployment.kubernetes.io/revision")
	}
	return all
}
