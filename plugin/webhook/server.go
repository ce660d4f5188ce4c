package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Options of a webhook process.
type Options struct {
	Source        Source
	Listen        string // TLS, for the API server
	MetricsListen string // plain, for probes and metrics; empty: none
	Certificate   string // PEM files, read again when they change
	Key           string
	ClientCA      string // PEM; if given, clients must show a certificate of it
	// Drain is how long new connections are still taken after SIGTERM, while
	// /healthz already says no: the Service needs that long to leave us out.
	Drain time.Duration
	Poll  time.Duration // how often files are looked at; 0: every two seconds
	Log   *slog.Logger
}

// pollInterval is how often files are looked at: far below the minute that a
// kubelet takes to bring a changed ConfigMap.
const pollInterval = 2 * time.Second

// finish is how long requests that have begun may take after the last new one.
const finish = 10 * time.Second

// Run serves until ctx ends, then finishes what has begun. The error says what
// could not be loaded or listened on; a server that ends by itself is an error.
func Run(ctx context.Context, o Options) error {
	loader, err := NewLoader(o.Source)
	if err != nil {
		return fmt.Errorf("loading the policy: %w", err)
	}
	certs := &certificates{cert: o.Certificate, key: o.Key, clientCA: o.ClientCA}
	if err := certs.reload(); err != nil {
		return err
	}
	m := NewMetrics()
	m.loadedState(loader)
	m.expires.Set(float64(certs.expires()))
	p := loader.State().policy
	o.Log.Info("loaded", "policy", p.Hash(), "keyIDs", p.KeyIDs(), "environments", p.Environments(), "warnings", p.Warnings())

	if err := warmUp(loader, certs); err != nil {
		o.Log.Warn("the first request will be slow", "error", err.Error())
	}
	h := &health{loader: loader, certs: certs}
	server := &http.Server{
		Handler: NewHandler(loader, m, o.Log), ReadHeaderTimeout: deadline, IdleTimeout: 2 * time.Minute,
		WriteTimeout: 2 * deadline, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	stopped := make(chan error, 2)
	if o.MetricsListen != "" {
		side, err := net.Listen("tcp", o.MetricsListen)
		if err != nil {
			return fmt.Errorf("listening for probes: %w", err)
		}
		probes := &http.Server{Handler: h.mux(m), ReadHeaderTimeout: deadline, ReadTimeout: deadline, WriteTimeout: 2 * deadline}
		defer probes.Close() // last: the probes see the end
		go func() { stopped <- probes.Serve(side) }()
	}
	go func() { stopped <- server.Serve(tls.NewListener(listener, certs.config())) }()
	o.Log.Info("serving", "address", listener.Addr().String())

	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch(watching, cmp.Or(o.Poll, pollInterval), loader, certs, m, o.Log)
	select {
	case err := <-stopped:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	h.draining.Store(true)
	o.Log.Info("draining", "for", o.Drain.String())
	time.Sleep(o.Drain)
	end, stop := context.WithTimeout(context.Background(), finish)
	defer stop()
	if err := server.Shutdown(end); err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	o.Log.Info("stopped")
	return nil
}

// watch reads the files again and again. It goes by their content, so that no
// kind of mount needs a word of its own.
func watch(ctx context.Context, every time.Duration, l *Loader, certs *certificates, m *Metrics, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var said string
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := l.Reload(time.Now())
		err = errors.Join(err, certs.reload())
		m.loadedState(l)
		m.expires.Set(float64(certs.expires()))
		if changed {
			p := l.State().policy
			log.Info("loaded", "policy", p.Hash(), "keyIDs", p.KeyIDs(), "off", l.State().switches.All())
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != said && text != "" {
			log.Error("not loaded; what was loaded before is in force", "files", l.FailedFiles(), "error", text)
		}
		said = text
	}
}

// certificates is the serving certificate and the client authority, read again
// when they change.
type certificates struct {
	cert, key, clientCA string
	current             atomic.Pointer[loadedCertificate]
	failed              atomic.Pointer[string]
}

type loadedCertificate struct {
	pair    tls.Certificate
	expires int64
	clients *x509.CertPool
	raw     string
}

// reload keeps the last good certificate: half of a rotation is none.
func (c *certificates) reload() error {
	next, err := c.load()
	if err != nil {
		text := err.Error()
		c.failed.Store(&text)
		return fmt.Errorf("loading the certificate: %w", err)
	}
	c.failed.Store(nil)
	if old := c.current.Load(); old == nil || old.raw != next.raw {
		c.current.Store(next)
	}
	return nil
}

func (c *certificates) load() (*loadedCertificate, error) {
	cert, err := os.ReadFile(c.cert)
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(c.key)
	if err != nil {
		return nil, err
	}
	next := &loadedCertificate{}
	if next.pair, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, err
	}
	next.expires = next.pair.Leaf.NotAfter.Unix()
	next.raw = string(cert) + string(key)
	if c.clientCA == "" {
		return next, nil
	}
	pem, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, err
	}
	next.clients = x509.NewCertPool()
	if !next.clients.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", c.clientCA)
	}
	next.raw += string(pem)
	return next, nil
}

func (c *certificates) expires() int64 { return c.current.Load().expires }

// config is asked anew for every connection, so that a rotation needs no
// restart. HTTP/2 is off the list: one connection a replica would starve the
// others behind a Service.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.current.Load()
			conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{now.pair}}
			if now.clients != nil {
				conf.ClientCAs, conf.ClientAuth = now.clients, tls.RequireAndVerifyClientCert
			}
			return conf, nil
		},
	}
}
