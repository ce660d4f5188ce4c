package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/registry"
)

// loopback is a registry that has every image: the digest of a tag is that of
// its name. It is asked as the mirror of every host.
type loopback struct {
	host   string
	server *http.Server
}

func newLoopback() (*loopback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &loopback{host: l.Addr().String()}
	b.server = &http.Server{Handler: http.HandlerFunc(b.serve)}
	go b.server.Serve(l)
	return b, nil
}

func (b *loopback) close() { b.server.Close() }

func (b *loopback) serve(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.URL.Path))))
		w.Header().Set("Content-Length", "2")
	}
	w.WriteHeader(http.StatusOK)
}

// resolver returns the registry adapter with this registry as the mirror of
// every host that the application names.
func (b *loopback) resolver(ctx context.Context, s app.Settings) (pin.Resolver, error) {
	s.LeaveUnpinned = true
	build, err := app.New(ctx, s)
	if err != nil {
		return nil, err
	}
	mirrors := map[string]string{}
	for _, o := range build.Objects {
		_ = projection.EachImage(o.Tree, func(_, ref string) (string, error) {
			if r, err := pin.Parse(ref); err == nil {
				if t, err := name.NewTag(r.Name()+":x", name.WeakValidation); err == nil {
					host := t.RegistryStr()
					if host == name.DefaultRegistry {
						host = "docker.io"
					}
					mirrors[host] = b.host + "/" + strings.NewReplacer(":", "-", ".", "-").Replace(host)
				}
			}
			return ref, nil
		})
	}
	return registry.New(registry.Options{Mirrors: mirrors})
}
