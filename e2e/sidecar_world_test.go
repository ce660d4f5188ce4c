//go:build e2e && linux

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// sidecarPolicy lets a registry pin, warns where plugin.env or a name says so,
// and leaves one application the choice between two environments.
const sidecarPolicy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environments:
- {name: prod, match: {name: "*"}}
- {name: stage, match: {name: asked-environment}}
issuers:
- name: release
  keys: {file: release.jwks.json}
images: {pins: Registry}
mode: {render: Enforce}
categories: [{name: image}]
apps:
- match: {env: {TIER: sandbox}}
  mode: {render: Warn}
- match: {name: asked-mode}
  mode: {render: Warn}
`

// sidecarWorld is an Argo CD whose sidecar asks a registry that can be held, with
// the controller, and a repository with a folder for each application.
type sidecarWorld struct {
	*harness.ArgoCD
	binaries   harness.Binaries
	repo       *harness.GitRepo
	signer     *harness.Signer
	controller *harness.Controller
	registry   *heldRegistry
	policy     string
	slots      string // which also tells the sidecar's processes from others
	apps       map[string]*harness.Application
	head       string // the last commit
}

// heldRegistry is a registry that answers when it is let.
type heldRegistry struct {
	host string
	mu   sync.Mutex
	free chan struct{}   // closed: it answers
	held map[string]bool // repositories that it was asked for meanwhile
}

func (h *heldRegistry) hold() {
	h.mu.Lock()
	h.free, h.held = make(chan struct{}), map[string]bool{}
	h.mu.Unlock()
}
func (h *heldRegistry) release() { h.mu.Lock(); close(h.free); h.mu.Unlock() }

// asked reports whether it was asked for a repository since it is held, and since
// it last said so.
func (h *heldRegistry) asked(repository string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := h.held[repository]
	h.held[repository] = false
	return asked
}

func newHeldRegistry(t *testing.T, behind *harness.Registry) *heldRegistry {
	h := &heldRegistry{free: make(chan struct{})}
	h.release()
	open := h.free
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		free := h.free
		repository, _, look := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		if !look { // whether there is a registry at all
			free = open
		} else if h.held != nil {
			h.held[repository] = true
		}
		h.mu.Unlock()
		select {
		case <-free:
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	h.host = strings.TrimPrefix(server.URL, "http://")
	return h
}

func newSidecarWorld(t *testing.T, version string) *sidecarWorld {
	t.Helper()
	e := harness.New(t)
	w := &sidecarWorld{binaries: harness.Build(e).With(version), slots: e.Path("slots"), apps: map[string]*harness.Application{}}
	w.signer = harness.NewSigner(e, w.binaries, "release")
	w.policy = e.Write("etc/policy.yaml", []byte(sidecarPolicy))
	e.Write("etc/release.jwks.json", []byte(w.signer.JWKS))
	w.repo = harness.NewGitRepo(e)
	images := harness.StartRegistry(e)
	for _, x := range ends {
		images.Push("held/"+x.app, "1")
		images.Push("held/"+x.app, "2")
	}
	w.registry = newHeldRegistry(t, images)
	cluster := harness.StartCluster(e, w.binaries)
	mounted := harness.NewMount(e, "apps", nil)
	path := "PATH=" + scarceMemory(e, w.binaries) + string(os.PathListSeparator) + filepath.Dir(w.binaries.Syncgate) + string(os.PathListSeparator) + os.Getenv("PATH")
	w.ArgoCD = harness.StartArgoCD(cluster, w.binaries, filepath.Join(w.binaries.Manifests, "argocd"), path, "SYNCGATE_POLICY="+w.policy,
		"SYNCGATE_APPS="+mounted.Dir, "SYNCGATE_SLOTS="+w.slots, "SYNCGATE_PARALLEL=8", "SYNCGATE_TIMEOUT=12s")
	w.controller = harness.StartController(cluster, w.binaries, mounted, filepath.Dir(w.policy), "--settle=2s", "--refresh-rate=20")
	return w
}

// wait waits for something while settings of applications are mounted.
func (w *sidecarWorld) wait(what string, check func() (string, bool)) {
	w.T.Helper()
	w.Eventually(what, func() (string, bool) {
		w.controller.Mount()
		return check()
	})
}

// unsignedDeployment is an object that must be signed.
func unsignedDeployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: %[2]q}]}
`, name, image)
}

// sign signs the folder of an application.
func (w *sidecarWorld) sign(app, environment string) {
	w.T.Helper()
	w.Run(filepath.Join(w.repo.Work, "apps", app), nil, w.binaries.Syncgate, "sign", "--policy", w.policy, "--key", w.signer.Key, "--issuer", "release",
		"--name", app, "--environment", environment, "--namespace", app, "--yes")
}

// create makes an Application of the folder of its name, in a namespace of its
// name. source is how to render.
func (w *sidecarWorld) create(app, project, source, annotations string) *harness.Application {
	w.T.Helper()
	return w.createIn(app, app, project, source, annotations)
}

func (w *sidecarWorld) createIn(app, namespace, project, source, annotations string) *harness.Application {
	w.T.Helper()
	w.Apply(fmt.Appendf(nil, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd, annotations: {%s}}
spec:
  project: %s
  source: {repoURL: %q, path: apps/%[1]s, targetRevision: main, %[5]s}
  destination: {server: "https://kubernetes.default.svc", namespace: %[6]s}
  syncPolicy:
    automated: {prune: true}
    syncOptions: [CreateNamespace=true]
`, app, annotations, project, w.repo.URL, source, namespace))
	w.apps[app] = &harness.Application{ArgoCD: w.ArgoCD, Name: app, Namespace: namespace}
	return w.apps[app]
}

const byPlugin = "plugin: {name: syncgate}"

func (w *sidecarWorld) waitSynced(app, revision string) {
	w.T.Helper()
	w.wait("sync of "+app, func() (string, bool) {
		s := w.apps[app].Status()
		return s.String(), s.Sync == "Synced" && s.Revision == revision && s.Condition == ""
	})
}

// waitRefused waits until a render of the application is refused with a text that
// contains each of want.
func (w *sidecarWorld) waitRefused(app string, want ...string) string {
	w.T.Helper()
	var text string
	w.wait(fmt.Sprintf("refusal of %s with %q", app, want), func() (string, bool) {
		s := w.apps[app].Status()
		text = s.Condition
		return s.String(), s.Sync == "Unknown" && harness.ContainsAll(text, want)
	})
	return text
}

// waitFailed is waitRefused for a sync that the API server refuses.
func (w *sidecarWorld) waitFailed(app string, want ...string) string {
	w.T.Helper()
	var text string
	w.wait(fmt.Sprintf("failed sync of %s with %q", app, want), func() (string, bool) {
		s := w.apps[app].Status()
		text = s.Operation
		return s.String(), harness.ContainsAll(text, want)
	})
	return text
}

func (w *sidecarWorld) annotate(app string, annotations map[string]any) {
	w.T.Helper()
	w.Patch(harness.Applications, "argocd", app, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// render is the process that renders an application now and waits for the
// registry, or 0.
func (w *sidecarWorld) render(app string) int {
	w.T.Helper()
	if !w.registry.asked("held/" + app) {
		return 0
	}
	list, err := os.ReadDir("/proc")
	if err != nil {
		w.T.Fatal(err)
	}
	for _, d := range list {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		// What ended meanwhile has neither.
		command, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline"))
		environment, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "environ"))
		has := func(kv string) bool { return bytes.Contains(environment, []byte(kv+"\x00")) }
		if bytes.HasPrefix(command, []byte("syncgate\x00generate\x00")) && has("ARGOCD_APP_NAME="+app) && has("SYNCGATE_SLOTS="+w.slots) {
			return pid
		}
	}
	return 0
}
