// Package registry finds out which digest an image tag has now. It asks for
// headers only (HEAD, which registries count less or not at all), once for
// each reference, within bounded time, and gives every registry no credentials
// but its own.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/hashicorp/go-cleanhttp"

	"github.com/syncgate/syncgate/plugin/pin"
)

// Options are the operator's. The zero value asks every registry under its
// own name over HTTPS with the credentials of the Docker configuration.
type Options struct {
	// Mirrors sends look-ups for a host ("docker.io") to another host, with an
	// optional path prefix ("registry.internal:5000/hub"), and never back to
	// the first: two registries may disagree about a tag. Manifests keep the
	// name that is written in them.
	Mirrors map[string]string

	// PlainHTTP are hosts ("registry.internal:5000") that may be asked over
	// plain HTTP. Loopback hosts always may; no other, private addresses
	// included.
	PlainHTTP []string

	// Keychain gives the credentials; nil means the Docker configuration
	// ($DOCKER_CONFIG/config.json, ~/.docker, credential helpers).
	Keychain authn.Keychain

	// Base sends the requests; nil means a pooled transport that honours
	// HTTPS_PROXY.
	Base http.RoundTripper

	LookupTimeout  time.Duration // for one reference with all its retries; 0: 30 s
	AttemptTimeout time.Duration // for one request; 0: 8 s
	MaxRetryAfter  time.Duration // the longest wait that a registry may ask for; 0: 15 s
	Retries        int           // of one request; 0: 3, negative: none
	Concurrency    int           // look-ups at a time; 0: 8
}

// Resolver is a pin.Resolver that asks registries. It may be used by several
// goroutines. It keeps every answer, failures too, so it is made anew for each
// run that shall see the registry as it is then.
type Resolver struct {
	keychain  authn.Keychain
	transport http.RoundTripper
	mirrors   map[string]string
	plain     map[string]bool
	timeout   time.Duration
	slots     chan struct{}

	mu    sync.Mutex
	calls map[string]*call
}

var _ pin.Resolver = (*Resolver)(nil)

// call is one look-up, running or done.
type call struct {
	done   chan struct{} // closed when digest and err are set
	digest string
	err    error
	gone   bool // the caller who started it went away: no answer
}

// New checks the options.
func New(o Options) (*Resolver, error) {
	r := &Resolver{
		keychain: o.Keychain,
		mirrors:  map[string]string{},
		plain:    map[string]bool{},
		timeout:  orDefault(o.LookupTimeout, 30*time.Second),
		slots:    make(chan struct{}, max(1, orDefault(o.Concurrency, 8))),
		calls:    map[string]*call{},
	}
	if r.keychain == nil {
		r.keychain = authn.DefaultKeychain
	}
	for host, mirror := range o.Mirrors {
		to, _, _ := strings.Cut(mirror, "/")
		if _, err := name.NewRegistry(to, name.StrictValidation); err != nil || strings.Contains(mirror, "://") {
			return nil, fmt.Errorf("mirror of %q: got %q, want host[:port][/prefix]", host, mirror)
		}
		r.mirrors[canonicalHost(host)] = strings.Trim(mirror, "/")
	}
	for _, host := range o.PlainHTTP {
		if _, err := name.NewRegistry(host, name.StrictValidation); err != nil {
			return nil, fmt.Errorf("plain HTTP: got %q, want host[:port]", host)
		}
		r.plain[host] = true
	}
	base := o.Base
	if base == nil {
		base = cleanhttp.DefaultPooledTransport()
	}
	r.transport = newTransport(base, r.plain, orDefault(o.AttemptTimeout, 8*time.Second),
		orDefault(o.MaxRetryAfter, 15*time.Second), max(0, orDefault(o.Retries, 3)))
	return r, nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// Resolve implements pin.Resolver. Its errors wrap one of pin's classes, name
// the host that was asked, and are the same text for the same cause.
func (r *Resolver) Resolve(ctx context.Context, ref pin.Reference) (string, error) {
	tag, host, err := r.target(ref)
	if err != nil {
		return "", err
	}
	for {
		r.mu.Lock()
		c, running := r.calls[tag.Name()]
		if !running {
			c = &call{done: make(chan struct{})}
			r.calls[tag.Name()] = c
		}
		r.mu.Unlock()
		if !running {
			r.run(ctx, c, tag, host)
			return c.digest, c.err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if !c.gone {
			return c.digest, c.err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

func (r *Resolver) run(ctx context.Context, c *call, tag name.Tag, host string) {
	defer close(c.done)
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		limited, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		c.digest, c.err = r.lookup(limited, tag)
		if c.err != nil {
			c.err = r.explain(ctx, c.err, tag, host)
		}
	case <-ctx.Done():
		c.err = ctx.Err()
	}
	if ctx.Err() != nil && c.err != nil {
		c.gone = true
		r.mu.Lock()
		delete(r.calls, tag.Name())
		r.mu.Unlock()
	}
}

// target returns what to ask for ref, after mirrors, and the host that ref
// names.
func (r *Resolver) target(ref pin.Reference) (name.Tag, string, error) {
	written, err := name.NewTag(ref.Name()+":"+ref.LookupTag(), name.WeakValidation)
	if err != nil {
		return name.Tag{}, "", fmt.Errorf("%w: no registry can be asked for %q", pin.ErrNotFound, ref.String())
	}
	host := canonicalHost(written.RegistryStr())
	asked := written.RegistryStr() + "/" + written.RepositoryStr()
	if mirror, ok := r.mirrors[host]; ok {
		asked = mirror + "/" + written.RepositoryStr()
	}
	opts := []name.Option{name.WeakValidation}
	if h, _, _ := strings.Cut(asked, "/"); r.plain[h] || loopback(h) {
		opts = append(opts, name.Insecure)
	}
	tag, err := name.NewTag(asked+":"+ref.LookupTag(), opts...)
	if err != nil {
		return name.Tag{}, "", fmt.Errorf("%w: no registry can be asked for %q", pin.ErrNotFound, ref.String())
	}
	return tag, host, nil
}

// canonicalHost gives Docker Hub one name.
func canonicalHost(host string) string {
	switch host = strings.ToLower(host); host {
	case "index.docker.io", "registry-1.docker.io":
		return "docker.io"
	}
	return host
}
