package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Binaries are the programs of a run.
type Binaries struct {
	// Kube is etcd, kube-apiserver, kube-controller-manager and kubectl in one.
	Kube string
	// ArgoCD is repo-server, application-controller and cmp-server in one, of the
	// version that With has chosen: ArgoCD2 at first.
	ArgoCD string
	// ArgoCDManifests is the folder with Argo CD's own CRDs and install manifests.
	ArgoCDManifests string
	// FluxSource and FluxKustomize are Flux's source-controller and
	// kustomize-controller; the others are the folders of their CRDs.
	FluxSource, FluxKustomize         string
	FluxSourceCRDs, FluxKustomizeCRDs string
	// Syncgate is the program under test.
	Syncgate string
	// Manifests is the folder of what we ship, manifests/ of this repository.
	Manifests string

	webhook, controller *lazyProgram
	argoCDs             map[string]argoCD // by version
}

// The versions of Argo CD that are there.
const (
	ArgoCD2 = "v2.14.21"
	ArgoCD3 = "v3.2.11"
)

// argoCD is what is there of one version: the program and Argo CD's own manifests.
type argoCD struct{ program, manifests string }

// With returns the binaries with another version of Argo CD, ArgoCD2 or ArgoCD3.
func (b Binaries) With(version string) Binaries {
	a := b.argoCDs[version]
	b.ArgoCD, b.ArgoCDManifests = a.program, a.manifests
	return b
}

// lazyProgram is built when a test first asks for it.
type lazyProgram struct {
	path, root string

	mu    sync.Mutex
	built bool
}

// Webhook returns the backstop under test, cmd/syncgate-webhook, which it builds
// from this tree when it is first asked, or which SYNCGATE_E2E_WEBHOOK (an
// absolute path) names.
func (b Binaries) Webhook(e *Env) string {
	e.T.Helper()
	if program := os.Getenv("SYNCGATE_E2E_WEBHOOK"); program != "" {
		e.T.Logf("testing %s instead of a build of this tree", program)
		return program
	}
	return b.webhook.build(e)
}

// Controller is Webhook for cmd/syncgate-controller and SYNCGATE_E2E_CONTROLLER.
func (b Binaries) Controller(e *Env) string {
	e.T.Helper()
	if program := os.Getenv("SYNCGATE_E2E_CONTROLLER"); program != "" {
		e.T.Logf("testing %s instead of a build of this tree", program)
		return program
	}
	return b.controller.build(e)
}

func (p *lazyProgram) build(e *Env) string {
	e.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.built {
		output(e.T, p.root, "go", "build", "-o", p.path, "./cmd/"+filepath.Base(p.path))
		p.built = true
	}
	return p.path
}

// Build returns the binaries. The foreign ones come from build.sh, which keeps
// them; the one under test is built from this tree, once for all tests that run
// under Main, or named by SYNCGATE_E2E_PROGRAM (an absolute path) to test a
// released one.
func Build(e *Env) Binaries {
	e.T.Helper()
	if theSuite != nil {
		return theSuite.lockedBuild(e)
	}
	return build(e, e.Dir)
}

// moduleDir is the folder of the e2e module.
func moduleDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(".") // go test runs in the folder of the test
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "build.sh")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no build.sh in any parent folder")
		}
		dir = filepath.Dir(dir)
	}
}

// build puts what it builds into the folder bin of dir.
func build(e *Env, dir string) Binaries {
	e.T.Helper()
	e2e := moduleDir(e.T)
	root := filepath.Dir(e2e)
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		e.T.Fatal(err)
	}
	paths := map[string]string{}
	for line := range strings.Lines(output(e.T, e2e, filepath.Join(e2e, "build.sh"))) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		paths[name] = path
	}
	b := Binaries{
		Kube:       paths["kube"],
		FluxSource: paths["flux-source"], FluxKustomize: paths["flux-kustomize"],
		FluxSourceCRDs: paths["flux-source-crds"], FluxKustomizeCRDs: paths["flux-kustomize-crds"],
		Syncgate: filepath.Join(bin, "syncgate"), Manifests: filepath.Join(root, "manifests"),
		webhook:    &lazyProgram{path: filepath.Join(bin, "syncgate-webhook"), root: root},
		controller: &lazyProgram{path: filepath.Join(bin, "syncgate-controller"), root: root},
		argoCDs: map[string]argoCD{
			ArgoCD2: {paths["argocd2"], paths["argocd2-manifests"]},
			ArgoCD3: {paths["argocd3"], paths["argocd3-manifests"]},
		},
	}
	for version, a := range b.argoCDs {
		if !strings.Contains(a.manifests, "@"+version+"/") {
			e.T.Fatalf("Argo CD %s is built from %s", version, a.manifests)
		}
	}
	b = b.With(ArgoCD2)
	for _, p := range []string{b.Kube, b.ArgoCD, b.ArgoCDManifests, b.With(ArgoCD3).ArgoCD, b.With(ArgoCD3).ArgoCDManifests, b.FluxSource, b.FluxKustomize, b.FluxSourceCRDs, b.FluxKustomizeCRDs, b.Manifests} {
		if _, err := os.Stat(p); err != nil {
			e.T.Fatal(err)
		}
	}
	if program := os.Getenv("SYNCGATE_E2E_PROGRAM"); program != "" {
		e.T.Logf("testing %s instead of a build of this tree", program)
		if err := os.Symlink(program, b.Syncgate); err != nil {
			e.T.Fatal(err)
		}
		return b
	}
	output(e.T, root, "go", "build", "-o", b.Syncgate, "./cmd/syncgate")
	return b
}

// output runs a build step in our own environment (which may name a proxy for
// modules) without a deadline: a cold build takes many minutes.
func output(t testing.TB, dir, bin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s: %v: %s", bin, err, stderr.String())
	}
	return string(out)
}
