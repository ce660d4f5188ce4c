package harness

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"
)

// Webhooks is the backstop as people run it: replicas, each a process of its
// own, behind one address. Its Balancer is the Service: Close is a dead webhook
// and Open its return.
type Webhooks struct {
	*Balancer
	Replicas []*Replica
	// Certificate is the Secret that all replicas mount: tls.crt and tls.key.
	Certificate *Mount
	// Off is the ConfigMap of off-switches that all replicas mount, empty at first.
	Off *Mount

	cluster *Cluster
}

// Replica is one process of the backstop, which a test may stop, kill, start
// again and ask by itself.
type Replica struct {
	*Component
	Address string // "127.0.0.1:PORT" of the webhook itself
	Metrics string // "http://127.0.0.1:PORT" of /metrics, /healthz and /readyz

	client *http.Client
}

// StartWebhooks starts n replicas of the backstop under test, with the file
// policy.yaml of policyDir as their policy and flags, and waits until all are
// ready. They end with the test.
func StartWebhooks(c *Cluster, b Binaries, n int, policyDir string, flags ...string) *Webhooks {
	c.T.Helper()
	return startWebhooks(c, n, b.Webhook(c.Env), nil, policyDir, flags)
}

func startWebhooks(c *Cluster, n int, program string, env []string, policyDir string, flags []string) *Webhooks {
	c.T.Helper()
	w := &Webhooks{cluster: c, Balancer: startBalancer(c.Env)}
	w.Certificate = NewMount(c.Env, c.plane.unique("webhook-tls"), w.newCertificate())
	w.Off = NewMount(c.Env, c.plane.unique("webhook-off"), nil)
	for range n {
		w.add(program, env, policyDir, flags)
	}
	for _, r := range w.Replicas {
		r.WaitReady()
	}
	return w
}

// Add adds a replica of another program, for two versions behind one Service,
// and waits until it is ready.
func (w *Webhooks) Add(program, policyDir string, flags ...string) *Replica {
	w.T.Helper()
	r := w.add(program, nil, policyDir, flags)
	r.WaitReady()
	return r
}

func (w *Webhooks) add(program string, env []string, policyDir string, flags []string) *Replica {
	w.T.Helper()
	metrics := w.freeAddress()
	r := &Replica{Address: w.freeAddress(), Metrics: "http://" + metrics, client: w.Client()}
	r.Component = &Component{w.Env, &component{
		run: w.run, name: w.cluster.plane.unique("webhook"), env: env, bin: program,
		args: append([]string{
			"--listen", r.Address, "--metrics-listen", metrics, "--policy", filepath.Join(policyDir, "policy.yaml"),
			"--tls-cert", w.Certificate.File("tls.crt"), "--tls-key", w.Certificate.File("tls.key"),
			"--off", w.Off.Dir,
		}, flags...),
		abrupt: true, // it would drain first
		ready: func(e *Env) {
			e.T.Helper()
			e.waitHTTP(&http.Client{Timeout: 2 * time.Second}, r.Metrics+"/readyz")
		},
	}}
	r.Launch()
	w.Replicas = append(w.Replicas, r)
	w.routeAll()
	return r
}

// routeAll makes every replica a backend, dead ones too: the balancer passes
// those over.
func (w *Webhooks) routeAll() {
	var backends []string
	for _, r := range w.Replicas {
		backends = append(backends, r.Address)
	}
	w.Route(backends...)
}

// Client trusts the replicas' certificates and shows the given ones, for
// requests that are no reviews.
func (w *Webhooks) Client(pairs ...tls.Certificate) *http.Client {
	client := w.cluster.httpsClient(pairs...)
	client.Timeout = Patience
	return client
}

// Install stores webhook configurations (YAML) with our address and CA
// in the place of theirs, and returns when the API server goes by them. All else
// of them counts as it stands. In a shared cluster they go when the test ends.
func (w *Webhooks) Install(config []byte) {
	w.T.Helper()
	w.cluster.install(config, w.URL())
}

// RotateCertificate puts another certificate of the same authority where the
// replicas read theirs.
func (w *Webhooks) RotateCertificate() {
	w.T.Helper()
	w.Certificate.Swap(w.newCertificate())
}

func (w *Webhooks) newCertificate() map[string]string {
	w.T.Helper()
	cert, key := w.cluster.serverCertificate("syncgate-webhook")
	return map[string]string{"tls.crt": string(cert), "tls.key": string(key)}
}

// Metric sums a counter or gauge over the replicas that are up and the series
// whose labels include labels. What never counted anything is 0. A replica that
// is started again begins at 0.
func (w *Webhooks) Metric(name string, labels map[string]string) float64 {
	w.T.Helper()
	var sum float64
	for _, r := range w.Replicas {
		if r.Up() {
			sum += r.Metric(name, labels)
		}
	}
	return sum
}

// Metric is Webhooks.Metric of one replica.
func (r *Replica) Metric(name string, labels map[string]string) float64 {
	r.T.Helper()
	status, body := r.Get("/metrics")
	if status != http.StatusOK {
		r.T.Fatalf("metrics of %s: status %d: %s", r.name, status, body)
	}
	sum, err := sumMetric(string(body), name, labels)
	if err != nil {
		r.T.Fatalf("metrics of %s: %v", r.name, err)
	}
	return sum
}

// Get asks the metrics and health port.
func (r *Replica) Get(path string) (status int, body []byte) {
	r.T.Helper()
	return r.do(http.MethodGet, r.Metrics+path, nil)
}

// Ask posts an AdmissionReview (see Review.Raw) to this replica alone.
func (r *Replica) Ask(path string, review []byte) (status int, body []byte) {
	r.T.Helper()
	return r.do(http.MethodPost, "https://"+r.Address+path, review)
}

func (r *Replica) do(method, url string, content []byte) (status int, body []byte) {
	r.T.Helper()
	request, err := http.NewRequest(method, url, bytes.NewReader(content))
	if err != nil {
		r.T.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.client.Do(request)
	if err != nil {
		r.T.Fatal(fmt.Errorf("asking %s: %w", r.name, err))
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxReview))
	if err != nil {
		r.T.Fatal(fmt.Errorf("asking %s: %w", r.name, err))
	}
	return response.StatusCode, body
}
