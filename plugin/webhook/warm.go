package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// warmUp answers a question of our own, over TLS in memory, before anybody
// else's: pages are read in and tables made that the first request of an API
// server would wait for. The answer is a refusal, by way of the signature check;
// nothing of it is counted or logged.
func warmUp(l *Loader, certs *certificates) error {
	h := NewHandler(l, NewMetrics(), slog.New(slog.DiscardHandler))
	here, there := net.Pipe()
	server := &http.Server{Handler: h, ReadHeaderTimeout: deadline}
	defer server.Close()
	go func() {
		_ = server.Serve(tls.NewListener(&oneConnection{conn: there, done: make(chan struct{})}, certs.config()))
	}()
	// No name and no client certificate: it is our own end of a pipe.
	conn := tls.Client(here, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	for _, question := range warmQuestions(l.State()) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://localhost"+admission.ValidatePath, bytes.NewReader(question))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(nowhere{http.Header{}}, r)
	}
	return nil
}

// warmQuestions are a review with a receipt for each issuer: signed by a key
// that nobody has, under the name of one that counts.
func warmQuestions(s *State) [][]byte {
	e, err := s.effective("default")
	if err != nil {
		return nil
	}
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	var out [][]byte
	for name, issuer := range e.Rules.Issuers {
		for _, k := range issuer.Keys {
			signer, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), k.ID, "")
			if err != nil {
				continue
			}
			compact, err := receipt.Sign(receipt.Claims{Issuer: name, Subject: "apps/Deployment/default/x", Environment: e.Rules.Environment,
				Profile: projection.Profile, Covers: []string{"image"}, Digest: digest, IssuedAt: 1, Expires: 2, ID: "warming-up-0000000000000"}, signer)
			if err != nil {
				continue
			}
			out = append(out, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"request":{"uid":"warm","operation":"CREATE","kind":{"group":"apps","kind":"Deployment"},
"namespace":"default","name":"x","userInfo":{"username":"warm"},"object":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"default","annotations":{%q:%q}},
"spec":{"template":{"spec":{"containers":[{"name":"x","image":"x","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"x","key":"x"}}}]}]}}}}}}`, reviewVersion, reviewKind, e.Annotation, compact))
		}
	}
	return out
}

// oneConnection is a listener that has a single connection.
type oneConnection struct {
	conn net.Conn
	done chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error {
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	return nil
}

func (l *oneConnection) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// nowhere is where an answer goes that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header             { return n.header }
func (n nowhere) Write(b []byte) (int, error)     { return len(b), nil }
func (n nowhere) WriteHeader(int)                 {}
func (n nowhere) SetReadDeadline(time.Time) error { return nil }
