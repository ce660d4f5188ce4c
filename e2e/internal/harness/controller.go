package harness

import (
	"net/http"
	"path/filepath"
	"time"
)

// Controller is cmd/syncgate-controller with the rights that
// manifests/argocd/controller gives it.
type Controller struct {
	*Component
	// Apps is what the sidecar has mounted of the ConfigMap syncgate-apps; Mount
	// brings it there.
	Apps *Mount

	cluster *Cluster
	version string // of the ConfigMap that is mounted
}

// StartController installs manifests/argocd/controller and starts the controller
// under test as its service account, with the file policy.yaml of policyDir as
// its policy, and waits until it is ready. apps is the folder that StartArgoCD
// was told of as the mount of the settings.
func StartController(c *Cluster, b Binaries, apps *Mount, policyDir string, flags ...string) *Controller {
	c.T.Helper()
	c.Kubectl(nil, "create", "namespace", "syncgate-system")
	c.Apply(c.Kubectl(nil, "kustomize", filepath.Join(b.Manifests, "argocd", "controller")))
	probes := c.freeAddress()
	name := c.plane.unique("controller")
	view := c.AsServiceAccount("syncgate-system", "syncgate-controller")
	r := &Controller{Apps: apps, cluster: c, Component: &Component{c.Env, &component{
		run: c.run, name: name, bin: b.Controller(c.Env),
		args: append([]string{
			"--kubeconfig", view.Kubeconfig, "--policy", filepath.Join(policyDir, "policy.yaml"),
			"--metrics-listen", c.freeAddress(), "--probes-listen", probes,
		}, flags...),
		abrupt: true,
		ready: func(e *Env) {
			e.T.Helper()
			e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, "http://"+probes+"/readyz")
		},
	}}}
	r.Start()
	return r
}

// Mount does what the kubelet of the repo-server's node does: it brings the
// ConfigMap to the sidecar. It reports whether there was anything new.
func (c *Controller) Mount() bool {
	c.T.Helper()
	u := c.cluster.Get(ConfigMaps, argoNamespace, "syncgate-apps")
	if u == nil || u.GetResourceVersion() == c.version {
		return false
	}
	c.Apps.Swap(configMapFiles(u))
	c.version = u.GetResourceVersion()
	return true
}
