package harness

import (
	"net/http"
	"path/filepath"
	"time"
)

// FluxGate is cmd/syncgate-controller as the gate for Flux, with the rights that
// manifests/flux gives it.
type FluxGate struct {
	*Component
	// Storage is the folder of what it publishes, Metrics "http://127.0.0.1:PORT"
	// of its metrics, Address where it serves artifacts.
	Storage, Metrics, Address string
}

// StartFluxGate installs manifests/flux and starts the controller under test as
// its service account, with the file policy.yaml of policyDir as its policy, and
// waits until it is ready.
func StartFluxGate(f *Flux, b Binaries, policyDir string, flags ...string) *FluxGate {
	f.T.Helper()
	f.TryKubectl(nil, "create", "namespace", "syncgate-system") // it may be there for the webhook
	f.Apply(f.Kubectl(nil, "kustomize", filepath.Join(b.Manifests, "flux")))
	probes, metrics, address := f.freeAddress(), f.freeAddress(), f.freeAddress()
	g := &FluxGate{Storage: f.Mkdir("gate-storage"), Metrics: "http://" + metrics, Address: address}
	g.Component = &Component{f.Env, &component{
		run: f.run, name: f.plane.unique("flux-gate"), bin: b.Controller(f.Env),
		env: []string{"TMPDIR=" + f.Mkdir("tmp-gate")},
		args: append([]string{
			"--kubeconfig", f.AsServiceAccount("syncgate-system", "syncgate-flux").Kubeconfig,
			"--argocd=false", "--flux", "--policy", filepath.Join(policyDir, "policy.yaml"),
			"--events-addr", f.Sink.URL, "--metrics-listen", metrics, "--probes-listen", probes,
			"--storage-path", g.Storage, "--storage-addr", address, "--artifact-retention-ttl=1s",
		}, flags...),
		abrupt: true,
		ready: func(e *Env) {
			e.T.Helper()
			e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, "http://"+probes+"/readyz")
		},
	}}
	g.Start()
	return g
}
