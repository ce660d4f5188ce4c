package harness

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// ArgoCDUser is the user name under which Argo CD talks to the cluster: the
// audit log tells its writes from ours.
const ArgoCDUser = "e2e:argocd"

// controllers are those that make and remove objects of gated kinds, or without
// which no Pod runs on our nodes. The others would only cost memory.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
	"daemonset-controller", "job-controller", "cronjob-controller", "ttl-after-finished-controller",
	"namespace-controller", "serviceaccount-controller", "serviceaccount-token-controller",
	"garbage-collector-controller", "pod-garbage-collector-controller", "resourcequota-controller",
	"root-ca-certificate-publisher-controller", "clusterrole-aggregation-controller",
	"node-lifecycle-controller", "taint-eviction-controller", "disruption-controller",
	"endpoints-controller", "endpointslice-controller",
	"persistentvolume-binder-controller", "persistentvolumeclaim-protection-controller", "ephemeral-volume-controller",
	"validatingadmissionpolicy-status-controller",
}

// nodeGrace is how long a node may be silent. A test process on a busy machine
// must not be taken for a lost node.
const nodeGrace = 12 * time.Second

// auditPolicy records every write, with who made it, and no bodies. What the
// nodes write all the time would only make the log long.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  userGroups: [system:nodes]
- level: Metadata
`

// Cluster is etcd, kube-apiserver and kube-controller-manager on loopback, with
// RBAC, TLS and an audit log, and without a node (see StartNode), as one user
// sees it (see As).
type Cluster struct {
	*Env
	URL        string
	Kubeconfig string // of a member of system:masters, or of the user of As

	plane  *plane
	config *rest.Config
	client dynamic.Interface
}

// plane is what the views of one cluster share.
type plane struct {
	binary    string
	authority *authority
	caFile    string // the authority's certificate
	audit     string // the log
	admin     *http.Client
	client    dynamic.Interface // as administrator

	etcd, apiServer, controllerManager *component

	names     atomic.Int64 // ever given, see unique
	nodes     int          // ever started
	scheduled bool         // the scheduler runs
}

// ClusterOption changes how a cluster starts.
type ClusterOption func(*clusterOptions)

type clusterOptions struct {
	apiServer, controllerManager []string
	webhookUser                  string
}

// APIServerFlags gives kube-apiserver more flags. They stay when it is started
// again.
func APIServerFlags(flags ...string) ClusterOption {
	return func(o *clusterOptions) { o.apiServer = append(o.apiServer, flags...) }
}

// ControllerManagerFlags gives kube-controller-manager more flags. They stay
// when it is started again. "--controllers=X" adds one to those of the harness.
func ControllerManagerFlags(flags ...string) ClusterOption {
	return func(o *clusterOptions) { o.controllerManager = append(o.controllerManager, flags...) }
}

// WebhookClientCertificate makes the API server show webhooks a client
// certificate of the cluster's authority (CAFile) with that common name.
func WebhookClientCertificate(user string) ClusterOption {
	return func(o *clusterOptions) { o.webhookUser = user }
}

// StartCluster starts a control plane that lives as long as the test.
func StartCluster(e *Env, b Binaries, options ...ClusterOption) *Cluster {
	e.T.Helper()
	var o clusterOptions
	for _, option := range options {
		option(&o)
	}
	c := &Cluster{Env: e, plane: &plane{binary: b.Kube, authority: newAuthority(e.T), audit: e.Path("audit.log")}}
	c.plane.caFile = c.Write("pki/ca.crt", c.plane.authority.pem)
	port := e.freePort()
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", port)

	cert, key := c.plane.authority.issue(c.T, "e2e:admin", []string{"system:masters"}, nil)
	c.become("admin", cert, key)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		e.T.Fatal(err)
	}
	c.plane.admin, c.plane.client = c.httpsClient(pair), c.client

	if o.webhookUser != "" {
		o.apiServer = append(o.apiServer, "--admission-control-config-file="+c.webhookCredentials(o.webhookUser))
	}
	c.startAPIServer(c.startEtcd(), port, o.apiServer)
	c.startControllerManager(o.controllerManager)
	return c
}

// Etcd is the cluster's store.
func (c *Cluster) Etcd() *Component { return &Component{c.Env, c.plane.etcd} }

// APIServer is the cluster's kube-apiserver. While it is down everything that
// asks the cluster fails the test. Nodes and controllers come back by themselves.
func (c *Cluster) APIServer() *Component { return &Component{c.Env, c.plane.apiServer} }

// ControllerManager is the cluster's kube-controller-manager.
func (c *Cluster) ControllerManager() *Component { return &Component{c.Env, c.plane.controllerManager} }

// CAFile holds the certificate of the authority that signs all others (PEM).
func (c *Cluster) CAFile() string { return c.plane.caFile }

// Config is what a client-go client needs to act as the view's user.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client is a client that acts as the view's user.
func (c *Cluster) Client() dynamic.Interface { return c.client }

// become makes the view that of a client certificate.
func (c *Cluster) become(name string, cert, key []byte) {
	c.T.Helper()
	c.Kubeconfig = c.kubeconfig(name, cert, key)
	c.connect(&rest.Config{Host: c.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.plane.authority.pem, CertData: cert, KeyData: key,
	}})
}

func (c *Cluster) connect(config *rest.Config) {
	c.T.Helper()
	config.QPS, config.Burst = 1000, 1000
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		c.T.Fatal(err)
	}
	c.config, c.client = config, client
}

// httpsClient trusts the cluster's authority.
func (c *Cluster) httpsClient(pairs ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(c.plane.authority.cert)
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: pairs},
	}}
}

// webhookCredentials writes what the API server shows to webhooks, whatever
// their address, and returns its admission configuration.
func (c *Cluster) webhookCredentials(user string) string {
	c.T.Helper()
	cert, key := c.plane.authority.issue(c.T, user, nil, nil)
	kubeconfig := c.Write("webhook-credentials.kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
users: [{name: "*", user: {client-certificate: %q, client-key: %q}}]
`, c.Write("pki/webhook-client.crt", cert), c.Write("pki/webhook-client.key", key)))
	return c.Write("admission.yaml", fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %q}
`, kubeconfig))
}

// add starts a component of the control plane.
func (c *Cluster) add(name string, ready func(*Env), args ...string) *component {
	c.T.Helper()
	part := &component{run: c.run, name: name, bin: c.plane.binary, args: append([]string{name}, args...), ready: ready}
	(&Component{c.Env, part}).Start()
	return part
}

func (c *Cluster) startEtcd() (url string) {
	c.T.Helper()
	url = fmt.Sprintf("http://127.0.0.1:%d", c.freePort())
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.freePort())
	c.plane.etcd = c.add("etcd", func(e *Env) {
		e.T.Helper()
		e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, url+"/health")
	}, "--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync=true", "--log-level=warn")
	return url
}

func (c *Cluster) startAPIServer(etcd string, port int, flags []string) {
	c.T.Helper()
	cert, key := c.plane.authority.issue(c.T, "kube-apiserver", nil,
		[]string{"localhost", "kubernetes", "kubernetes.default.svc"}, net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1))
	serviceAccounts := newKey(c.T)
	c.plane.apiServer = c.add("kube-apiserver", func(e *Env) {
		e.T.Helper()
		e.waitHTTP(c.plane.admin, c.URL+"/readyz")
	}, slices.Concat([]string{
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		// A loopback address is no valid endpoint of the service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--etcd-servers=" + etcd, "--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file=" + c.plane.caFile,
		"--tls-cert-file=" + c.Write("pki/server.crt", cert), "--tls-private-key-file=" + c.Write("pki/server.key", key),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.Write("pki/sa.pub", publicPEM(c.T, serviceAccounts)),
		"--service-account-signing-key-file=" + c.Write("pki/sa.key", privatePEM(c.T, serviceAccounts)),
		// What installers of clusters set: privileged Pods are the gate's to refuse.
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--profiling=false", "--shutdown-delay-duration=0s",
		"--audit-policy-file=" + c.Write("audit-policy.yaml", []byte(auditPolicy)), "--audit-log-path=" + c.plane.audit,
		"--audit-log-maxsize=100000", // one file, however long the run
	}, flags)...)
}

func (c *Cluster) startControllerManager(flags []string) {
	c.T.Helper()
	port := c.freePort()
	cert, key := c.plane.authority.issue(c.T, "system:kube-controller-manager", nil, nil)
	kubeconfig := c.kubeconfig("controller-manager", cert, key)
	c.plane.controllerManager = c.add("kube-controller-manager", func(e *Env) {
		e.T.Helper()
		e.waitHTTP(c.plane.admin, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
	}, slices.Concat([]string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--tls-cert-file=" + c.Path("pki/server.crt"), "--tls-private-key-file=" + c.Path("pki/server.key"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.Path("pki/sa.key"), "--root-ca-file=" + c.plane.caFile,
		"--leader-elect=false", "--controllers=" + strings.Join(controllers, ","),
		// A lost node is noticed after seconds instead of most of a minute.
		"--node-monitor-period=1s", "--node-monitor-grace-period=" + nodeGrace.String(), "--node-eviction-rate=10",
	}, flags)...)
}

// kubeconfig writes a kubeconfig for one client certificate and returns its path.
func (c *Cluster) kubeconfig(name string, cert, key []byte) string {
	c.T.Helper()
	return c.writeKubeconfig(name, fmt.Sprintf("{client-certificate: %q, client-key: %q}",
		c.Write("pki/"+name+".crt", cert), c.Write("pki/"+name+".key", key)))
}

// writeKubeconfig is kubeconfig for any kind of user.
func (c *Cluster) writeKubeconfig(name, user string) string {
	c.T.Helper()
	return c.Write(name+".kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %[3]q, user: %[4]s}]
contexts: [{name: e2e, context: {cluster: e2e, user: %[3]q}}]
current-context: e2e
`, c.URL, c.plane.caFile, name, user))
}
