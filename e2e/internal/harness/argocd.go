package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// ArgoCD is repo-server, application-controller and a plugin sidecar's
// cmp-server, each its own process, with a redis.
type ArgoCD struct {
	*Cluster
	// Sidecar and RepoServer are the IDs of their processes.
	Sidecar, RepoServer int
}

// On is Cluster.On.
func (a *ArgoCD) On(t testing.TB) *ArgoCD {
	view := *a
	view.Cluster = a.Cluster.On(t)
	return &view
}

// inCluster is Argo CD's name of the cluster that it runs in.
const inCluster = "https://kubernetes.default.svc"

// argoNamespace is where Argo CD and its Applications live.
const argoNamespace = "argocd"

// argoObjects are the few objects that Argo CD cannot do without.
const argoObjects = `apiVersion: v1
kind: Namespace
metadata: {name: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: e2e}
`

// defaultProject is made by argocd-server, which does not run here.
const defaultProject = `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`

// StartArgoCD starts Argo CD on a cluster, of the version that b has (see With).
// pluginConfig is the folder of a
// plugin.yaml; pluginEnv is the sidecar's environment, to which the folder of
// the program under test is added as the first of PATH.
//
// Git is polled every few seconds, so that a test can wait for what happens by
// itself.
func StartArgoCD(c *Cluster, b Binaries, pluginConfig string, pluginEnv ...string) *ArgoCD {
	c.T.Helper()
	return StartArgoCDWith(c, b, ArgoCDOptions{Plugin: pluginConfig, Sidecar: pluginEnv})
}

// ArgoCDOptions are what StartArgoCDWith is told. The variables come after those
// that the harness sets, so that they count.
type ArgoCDOptions struct {
	Plugin     string   // the folder of a plugin.yaml
	Sidecar    []string // environment of the sidecar
	Controller []string // environment of the application-controller
}

// StartArgoCDWith is StartArgoCD with more to choose.
func StartArgoCDWith(c *Cluster, b Binaries, o ArgoCDOptions) *ArgoCD {
	c.T.Helper()
	a := &ArgoCD{Cluster: c}
	for _, crd := range []string{"application-crd.yaml", "appproject-crd.yaml"} {
		data, err := os.ReadFile(filepath.Join(b.ArgoCDManifests, "crds", crd))
		if err != nil {
			c.T.Fatal(err)
		}
		c.Apply(data)
	}
	c.Kubectl(nil, "wait", "--for=condition=Established", "--timeout=120s",
		"crd/applications.argoproj.io", "crd/appprojects.argoproj.io")
	c.Apply([]byte(argoObjects))
	c.Apply([]byte(defaultProject))

	redis := c.startRedis()
	sockets := "ARGOCD_PLUGINSOCKFILEPATH=" + c.Mkdir("sock")
	common := []string{
		"ARGOCD_GPG_ENABLED=false", "ARGOCD_TLS_DATA_PATH=" + c.Mkdir("tls"), "ARGOCD_SSH_DATA_PATH=" + c.Mkdir("ssh"),
	}

	sidecar := c.start("argocd-cmp-server", append([]string{
		// Its own /tmp, as the container has: the plugins take turns there.
		sockets, "ARGOCD_CMP_WORKDIR=" + c.Mkdir("cmp"), "TMPDIR=" + c.Mkdir("cmp-tmp"),
		"PATH=" + filepath.Dir(b.Syncgate) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}, o.Sidecar...), b.ArgoCD, "argocd-cmp-server", "--config-dir-path", o.Plugin, "--logformat", "text")
	a.Sidecar = sidecar.cmd.Process.Pid

	port := c.freePort()
	server := c.start("argocd-repo-server", append([]string{
		sockets, "TMPDIR=" + c.Mkdir("tmp"), "ARGOCD_ASK_PASS_SOCK=" + filepath.Join(c.Dir, "askpass.sock"),
		// As manifests/argocd/README.md tells people to: a refusal takes the place of
		// what was good before, and is looked at again at every second refresh.
		"ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS=1", "ARGOCD_PAUSE_GEN_REQUESTS=1",
		"ARGOCD_REPO_SERVER_PLUGIN_TAR_EXCLUSIONS=.git",
		// How long the answer "main is at commit X" is believed.
		"ARGOCD_RECONCILIATION_TIMEOUT=1s",
	}, common...), b.ArgoCD, "argocd-repo-server", "--address", "127.0.0.1", "--port", fmt.Sprint(port),
		"--metrics-address", "127.0.0.1", "--metrics-port", fmt.Sprint(c.freePort()),
		"--disable-tls", "--redis", redis, "--logformat", "text")
	a.RepoServer = server.cmd.Process.Pid
	c.waitTCP("argocd-repo-server", port)
	c.Eventually("plugin's socket", func() (string, bool) {
		sockets, err := filepath.Glob(filepath.Join(c.Dir, "sock", "*.sock"))
		return fmt.Sprint(sockets, err), len(sockets) == 1
	})

	cert, key := c.plane.authority.issue(c.T, ArgoCDUser, []string{"system:masters"}, nil)
	kubeconfig, metrics := c.kubeconfig("argocd", cert, key), c.freePort()
	c.start("argocd-application-controller", slices.Concat([]string{
		"KUBECONFIG=" + kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_SYNC_WAVE_DELAY=0",
		"ARGOCD_RECONCILIATION_TIMEOUT=2s", "ARGOCD_RECONCILIATION_JITTER=0s",
		// Show the first failure of a poll, too.
		"ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS=0s",
	}, common, o.Controller), b.ArgoCD, "argocd-application-controller", "--kubeconfig", kubeconfig, "-n", argoNamespace,
		"--repo-server", fmt.Sprintf("127.0.0.1:%d", port), "--repo-server-plaintext",
		"--redis", redis, "--metrics-port", fmt.Sprint(metrics), "--logformat", "text")
	c.waitHTTP(&http.Client{Timeout: 2 * time.Second}, fmt.Sprintf("http://127.0.0.1:%d/healthz", metrics))
	return a
}

// AddCluster tells Argo CD of another cluster, which Applications then name by
// its URL, as "argocd cluster add" does.
func (a *ArgoCD) AddCluster(name string, remote *Cluster) {
	a.T.Helper()
	cert, key := remote.plane.authority.issue(a.T, ArgoCDUser, []string{"system:masters"}, nil)
	config, err := json.Marshal(map[string]any{"tlsClientConfig": map[string]any{
		"caData": remote.plane.authority.pem, "certData": cert, "keyData": key, // base64, as they are []byte
	}})
	if err != nil {
		a.T.Fatal(err)
	}
	a.Apply(fmt.Appendf(nil, `apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: %[1]s, server: %[3]q, config: %[4]q}
`, name, argoNamespace, remote.URL, config))
}
