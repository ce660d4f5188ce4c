package harness

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// ArgoCDUser is the user name under which Argo CD talks to the cluster: the
// audit log tells its writes from ours.
const ArgoCDUser = "e2e:argocd"

// controllers are those that the tests need: they make Pods and ReplicaSets of
// what is applied, and clean up. The others would only cost memory.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
	"job-controller", "cronjob-controller", "namespace-controller", "serviceaccount-controller",
	"serviceaccount-token-controller", "garbage-collector-controller",
	"root-ca-certificate-publisher-controller", "clusterrole-aggregation-controller",
}

// auditPolicy records every write, with who made it, and no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// Cluster is etcd, kube-apiserver and kube-controller-manager on loopback,
// with RBAC, TLS and an audit log, and without a node.
type Cluster struct {
	*Env
	URL        string
	Kubeconfig string // of a member of system:masters

	binary    string
	authority *authority
	client    dynamic.Interface
	audit     string
}

// StartCluster starts a control plane that lives as long as the test.
func StartCluster(e *Env, b Binaries) *Cluster {
	e.T.Helper()
	c := &Cluster{Env: e, binary: b.Kube, authority: newAuthority(e.T), audit: e.Path("audit.log")}
	c.Write("pki/ca.crt", c.authority.pem)
	port := e.freePort()
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", port)

	etcd := c.startEtcd()
	admin, adminKey := c.authority.issue("e2e:admin", []string{"system:masters"}, nil)
	pair, err := tls.X509KeyPair(admin, adminKey)
	if err != nil {
		e.T.Fatal(err)
	}
	c.Kubeconfig = c.kubeconfig("admin", admin, adminKey)
	pool := x509.NewCertPool()
	pool.AddCert(c.authority.cert)
	https := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}},
	}}
	c.startAPIServer(etcd, port, https)
	c.startControllerManager(https)

	c.client, err = dynamic.NewForConfig(&rest.Config{
		Host: c.URL, QPS: 1000, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem, CertData: admin, KeyData: adminKey},
	})
	if err != nil {
		e.T.Fatal(err)
	}
	return c
}

func (c *Cluster) startEtcd() (url string) {
	c.T.Helper()
	url = fmt.Sprintf("http://127.0.0.1:%d", c.freePort())
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.freePort())
	c.start("etcd", nil, c.binary, "etcd", "--data-dir="+filepath.Join(c.Dir, "etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--unsafe-no-fsync=true", "--log-level=warn")
	c.waitHTTP(&http.Client{Timeout: 2 * time.Second}, url+"/health")
	return url
}

func (c *Cluster) startAPIServer(etcd string, port int, client *http.Client) {
	c.T.Helper()
	cert, key := c.authority.issue("kube-apiserver", nil,
		[]string{"localhost", "kubernetes", "kubernetes.default.svc"}, net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1))
	c.Write("pki/server.crt", cert)
	c.Write("pki/server.key", key)
	serviceAccounts := newKey(c.T)
	c.Write("pki/sa.key", privatePEM(c.T, serviceAccounts))
	c.start("kube-apiserver", nil, c.binary, "kube-apiserver",
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		// A loopback address is no valid endpoint of the service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--etcd-servers="+etcd, "--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file="+c.Path("pki/ca.crt"),
		"--tls-cert-file="+c.Path("pki/server.crt"), "--tls-private-key-file="+c.Path("pki/server.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.Write("pki/sa.pub", publicPEM(c.T, serviceAccounts)),
		"--service-account-signing-key-file="+c.Path("pki/sa.key"),
		"--authorization-mode=Node,RBAC", "--profiling=false", "--shutdown-delay-duration=0s",
		"--audit-policy-file="+c.Write("audit-policy.yaml", []byte(auditPolicy)), "--audit-log-path="+c.audit)
	c.waitHTTP(client, c.URL+"/readyz")
}

func (c *Cluster) startControllerManager(client *http.Client) {
	c.T.Helper()
	port := c.freePort()
	cert, key := c.authority.issue("system:kube-controller-manager", nil, nil)
	kubeconfig := c.kubeconfig("controller-manager", cert, key)
	c.start("kube-controller-manager", nil, c.binary, "kube-controller-manager",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--tls-cert-file="+c.Path("pki/server.crt"), "--tls-private-key-file="+c.Path("pki/server.key"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.Path("pki/sa.key"), "--root-ca-file="+c.Path("pki/ca.crt"),
		"--leader-elect=false", "--controllers="+strings.Join(controllers, ","))
	c.waitHTTP(client, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
}

// kubeconfig writes a kubeconfig for one client certificate and returns its path.
func (c *Cluster) kubeconfig(name string, cert, key []byte) string {
	c.T.Helper()
	return c.Write(name+".kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %[3]s, user: {client-certificate: %[4]q, client-key: %[5]q}}]
contexts: [{name: e2e, context: {cluster: e2e, user: %[3]s}}]
current-context: e2e
`, c.URL, c.Path("pki/ca.crt"), name, c.Write("pki/"+name+".crt", cert), c.Write("pki/"+name+".key", key)))
}
