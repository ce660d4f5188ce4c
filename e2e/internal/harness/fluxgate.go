package harness

import (
	"io"
	"net/http"
	"path/filepath"
	"time"
)

// FluxGate is cmd/syncgate-controller as the gate for Flux, with the rights that
// manifests/flux gives it.
type FluxGate struct {
	*Component
	// Storage is the folder of what it publishes, Metrics "http://127.0.0.1:PORT" of
	// its metrics, Address where it serves artifacts, Temp its folder for what it
	// fetches.
	Storage, Metrics, Address, Temp string

	probes string
}

// StartFluxGate installs manifests/flux and starts the controller under test as
// its service account, with the file policy.yaml of policyDir as its policy, and
// waits until it is ready.
func StartFluxGate(f *Flux, b Binaries, policyDir string, flags ...string) *FluxGate {
	f.T.Helper()
	f.TryKubectl(nil, "create", "namespace", "syncgate-system") // it may be there for the webhook
	f.Apply(f.Kubectl(nil, "kustomize", filepath.Join(b.Manifests, "flux")))
	g := newFluxGate(f, b, policyDir, flags)
	g.Start()
	return g
}

// StandByFluxGate starts a second one, with a disk of its own, which is ready
// only when it leads. It waits until it lives.
func StandByFluxGate(f *Flux, b Binaries, policyDir string, flags ...string) *FluxGate {
	f.T.Helper()
	g := newFluxGate(f, b, policyDir, flags)
	g.Launch()
	f.waitHTTP(&http.Client{Timeout: 2 * time.Second}, "http://"+g.probes+"/healthz")
	return g
}

func newFluxGate(f *Flux, b Binaries, policyDir string, flags []string) *FluxGate {
	f.T.Helper()
	name := f.plane.unique("flux-gate")
	metrics, address := f.freeAddress(), f.freeAddress()
	g := &FluxGate{Storage: f.Mkdir(name + "-storage"), Metrics: "http://" + metrics, Address: address, Temp: f.Mkdir(name + "-tmp"), probes: f.freeAddress()}
	g.Component = &Component{f.Env, &component{
		run: f.run, name: name, bin: b.Controller(f.Env),
		env: []string{"TMPDIR=" + g.Temp},
		args: append([]string{
			"--kubeconfig", f.AsServiceAccount("syncgate-system", "syncgate-flux").Kubeconfig,
			"--argocd=false", "--flux", "--policy", filepath.Join(policyDir, "policy.yaml"),
			"--events-addr", f.Sink.URL, "--metrics-listen", metrics, "--probes-listen", g.probes,
			"--storage-path", g.Storage, "--storage-addr", address, "--artifact-retention-ttl=1s",
		}, flags...),
		abrupt: true,
		ready: func(e *Env) {
			e.T.Helper()
			e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, "http://"+g.probes+"/readyz")
		},
	}}
	return g
}

// Leads reports whether the gate is ready now.
func (g *FluxGate) Leads() bool {
	resp, err := http.Get("http://" + g.probes + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Metric sums the series of a metric whose labels include labels.
func (g *FluxGate) Metric(name string, labels map[string]string) float64 {
	g.T.Helper()
	resp, err := http.Get(g.Metrics + "/metrics")
	if err != nil {
		g.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		g.T.Fatal(err)
	}
	sum, err := sumMetric(string(text), name, labels)
	if err != nil {
		g.T.Fatal(err)
	}
	return sum
}
