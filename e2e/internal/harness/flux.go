package harness

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources of Flux.
var (
	Kustomizations    = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	GitRepositories   = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	ExternalArtifacts = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}
)

// FluxNamespace is where Flux's controllers have their service accounts, which
// are administrators, as Flux installs them.
const FluxNamespace = "flux-system"

// Flux is source-controller and kustomize-controller, each its own process, with
// a Git server, and with a sink in the place of notification-controller.
type Flux struct {
	*Cluster
	Source, Kustomize *Component
	Git               *GitServer
	Sink              *Sink
}

// StartFlux starts Flux on a cluster, with flags for kustomize-controller:
// "--feature-gates=ExternalArtifact=true" is what artifact mode needs.
func StartFlux(c *Cluster, b Binaries, flags ...string) *Flux {
	c.T.Helper()
	f := &Flux{Cluster: c, Git: serveGit(c.Env), Sink: startSink(c.Env)}
	f.installCRDs(b)
	c.Kubectl(nil, "create", "namespace", FluxNamespace)
	f.Source = f.controller("source-controller", b.FluxSource)
	f.Kustomize = f.controller("kustomize-controller", b.FluxKustomize, append([]string{"--requeue-dependency=1s", "--http-retry=1"}, flags...)...)
	storage := c.freeAddress()
	f.Source.args = append(f.Source.args, "--storage-path="+c.Mkdir("flux-storage"), "--storage-addr="+storage, "--storage-adv-addr="+storage)
	f.Source.Launch()
	f.Kustomize.Launch()
	f.Source.WaitReady()
	f.Kustomize.WaitReady()
	return f
}

func (f *Flux) installCRDs(b Binaries) {
	f.T.Helper()
	for _, dir := range []string{b.FluxSourceCRDs, b.FluxKustomizeCRDs} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			f.T.Fatalf("CRDs in %s: %q, %v", dir, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.T.Fatal(err)
			}
			f.Apply(data)
		}
	}
	f.Kubectl(nil, "wait", "--for=condition=Established", "--timeout=120s", "--all", "crd")
}

// controller is one of Flux's controllers with a service account of its name.
func (f *Flux) controller(name, bin string, flags ...string) *Component {
	f.T.Helper()
	f.Kubectl(nil, "create", "serviceaccount", name, "--namespace", FluxNamespace)
	f.Bind("cluster-admin", "", "system:serviceaccount:"+FluxNamespace+":"+name)
	health := f.freeAddress()
	return &Component{f.Env, &component{
		run: f.run, name: name, bin: bin,
		env: []string{
			"KUBECONFIG=" + f.AsServiceAccount(FluxNamespace, name).Kubeconfig,
			"RUNTIME_NAMESPACE=" + FluxNamespace, "TMPDIR=" + f.Mkdir("tmp-"+name),
		},
		args:   append([]string{"--metrics-addr=0", "--health-addr=" + health, "--events-addr=" + f.Sink.URL}, flags...),
		abrupt: true,
		ready: func(e *Env) {
			e.T.Helper()
			e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, "http://"+health+"/readyz")
		},
	}}
}

// CreateGitRepository makes the source of that name: the branch main of the
// repository, which is looked at when PushTo asks for it.
func (f *Flux) CreateGitRepository(namespace, name string, g *GitRepo) {
	f.T.Helper()
	f.Apply(fmt.Appendf(nil, `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: %s, namespace: %s}
spec: {interval: 1h, url: %q, ref: {branch: main}}
`, name, namespace, f.Git.URL(g)))
}

// requestedAt makes Flux look at an object now, as "flux reconcile" does.
const requestedAt = "reconcile.fluxcd.io/requestedAt"

// Request asks Flux to look at an object now.
func (f *Flux) Request(r schema.GroupVersionResource, namespace, name string) {
	f.T.Helper()
	f.Patch(r, namespace, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{requestedAt: time.Now().Format(time.RFC3339Nano)}}})
}

// PushTo commits and pushes what changed in the work tree, and tells the
// GitRepository of it, as a webhook receiver would. It returns the commit as
// Flux writes revisions, "main@sha1:COMMIT".
func (f *Flux) PushTo(namespace, source string, g *GitRepo, message string) string {
	f.T.Helper()
	commit := g.Commit(message)
	f.Request(GitRepositories, namespace, source)
	return "main@sha1:" + commit
}
