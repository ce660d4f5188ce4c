package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/admission"
)

// authority issues certificates for 127.0.0.1.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	n    int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, n: 1}
	a.cert, a.pem, a.key = a.issue(nil, "ca", true)
	return a
}

func (a *authority) issue(parent *authority, name string, ca bool) (*x509.Certificate, []byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signer, issuer := key, template
	if parent != nil {
		signer, issuer = parent.key, parent.cert
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// files writes a certificate and its key.
func (a *authority) files(dir, name string) (cert, key string) {
	a.t.Helper()
	_, c, k := a.issue(a, name, false)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	write(a.t, key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	write(a.t, cert, c)
	return cert, key
}

func (a *authority) client(certs ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}}}
}

// running is a webhook that serves on loopback.
type running struct {
	url, probes string
	stop        context.CancelFunc
	done        chan error
	log         *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t testing.TB, o Options) *running {
	t.Helper()
	port := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	o.Listen, o.MetricsListen = port(), port()
	r := &running{url: "https://" + o.Listen, probes: "http://" + o.MetricsListen, done: make(chan error, 1), log: &lockedBuffer{}}
	o.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- Run(ctx, o) }()
	t.Cleanup(stop)
	eventually(t, "the webhook to serve", func() bool { code, _ := get(r.probes + "/healthz"); return code == 200 })
	return r
}

func get(url string) (int, string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data)
}

// eventually waits for what takes a moment; it is no claim about how long.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waiting for %s: still not so", what)
}

func (r *running) ask(c *http.Client, data []byte) (string, error) {
	resp, err := c.Post(r.url+admission.ValidatePath, "application/json", bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("%s: %s", resp.Status, out)
	}
	return string(out), err
}

func TestNoRequestIsLostWhenFilesChangeOrTheProcessEnds(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.files(dir, "one")
	policy := policyDir(t, minimal)
	r := start(t, Options{Source: Source{Policy: policy}, Certificate: cert, Key: key, Drain: 300 * time.Millisecond, Poll: 20 * time.Millisecond})
	question := body(t, ask("CREATE", person, tree(t, deployment(pinned, "")), nil))

	var asked, failed atomic.Int64
	var first atomic.Value
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := ca.client()
			for ctx.Err() == nil {
				asked.Add(1)
				if _, err := r.ask(c, question); err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, err.Error())
				}
			}
		})
	}
	// The policy changes, is broken, and is mended; the certificate is rotated.
	write(t, policy, []byte(minimal+"help: ask us\n"))
	c := ca.client()
	eventually(t, "the new policy", func() bool { a, _ := r.ask(c, question); return strings.Contains(a, "ask us") })
	write(t, policy, []byte("nonsense"))
	eventually(t, "/readyz to say that the policy is bad", func() bool {
		code, text := get(r.probes + "/readyz")
		return code == 503 && strings.Contains(text, "policy.yaml")
	})
	if code, _ := get(r.probes + "/healthz"); code != 200 {
		t.Error("a bad file takes the webhook out of its Service")
	}
	if _, text := get(r.probes + "/metrics"); !strings.Contains(text, "syncgate_reload_failed 1") || !strings.Contains(text, `syncgate_reload_failed_file{file="policy.yaml"} 1`) {
		t.Error("the metrics do not show it")
	}
	write(t, policy, []byte(minimal))
	eventually(t, "/readyz to be well again", func() bool { code, _ := get(r.probes + "/readyz"); return code == 200 })
	eventually(t, "no file to be bad", func() bool {
		_, text := get(r.probes + "/metrics")
		return strings.Contains(text, "syncgate_reload_failed 0") && !strings.Contains(text, "syncgate_reload_failed_file{")
	})
	ca.files(dir, "two")
	eventually(t, "the new certificate", func() bool {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), ca.client().Transport.(*http.Transport).TLSClientConfig)
		if err != nil {
			return false
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName == "two"
	})
	cancel()
	wg.Wait()
	if failed.Load() > 0 || asked.Load() == 0 {
		t.Errorf("%d of %d requests failed: %v", failed.Load(), asked.Load(), first.Load())
	}

	// At its end it answers what has begun.
	conn := ca.client()
	if _, err := r.ask(conn, question); err != nil {
		t.Fatal(err)
	}
	r.stop()
	eventually(t, "/healthz to say that it drains", func() bool { code, _ := get(r.probes + "/healthz"); return code != 200 })
	if _, err := r.ask(conn, question); err != nil {
		t.Errorf("a request while it drains: %v", err)
	}
	if err := <-r.done; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestOnlyClientsOfTheAuthorityAreAnswered(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.files(dir, "server")
	authorityFile := filepath.Join(dir, "ca.crt")
	write(t, authorityFile, ca.pem)
	r := start(t, Options{Source: Source{Policy: policyDir(t, minimal)}, Certificate: cert, Key: key, ClientCA: authorityFile})
	question := body(t, ask("CREATE", person, tree(t, deployment(pinned, "")), nil))
	if _, err := r.ask(ca.client(), question); err == nil {
		t.Error("a client without a certificate is answered")
	}
	clientDir := t.TempDir()
	c, k := ca.files(clientDir, "kube-apiserver")
	pair, err := tls.LoadX509KeyPair(c, k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ask(ca.client(pair), question); err != nil {
		t.Errorf("the API server: %v", err)
	}
}

func TestSlowAndHalfRequestsAreCutOff(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.files(dir, "server")
	r := start(t, Options{Source: Source{Policy: policyDir(t, minimal)}, Certificate: cert, Key: key})
	conf := ca.client().Transport.(*http.Transport).TLSClientConfig
	var wg sync.WaitGroup
	for _, sent := range []string{
		"", "POST /validate", "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	} {
		wg.Go(func() {
			conn, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), conf)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Error(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(conn)
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Errorf("after %.40q the connection stays open", sent)
			}
			if strings.Contains(string(answer), `"allowed":true`) || strings.HasPrefix(string(answer), "HTTP/1.1 200") {
				t.Errorf("after %.40q: got %.100q", sent, answer)
			}
		})
	}
	wg.Wait()
	if _, err := r.ask(ca.client(), body(t, ask("CREATE", person, tree(t, deployment(pinned, "")), nil))); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
