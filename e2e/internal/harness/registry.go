package harness

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is an image registry in this process, plain HTTP on loopback.
type Registry struct {
	*Env
	// Host is "127.0.0.1:PORT", the first part of its images' names.
	Host string

	server *httptest.Server
	again  int // how often a tag was moved
}

// StartRegistry serves an empty registry until the test ends.
func StartRegistry(e *Env) *Registry {
	e.T.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	e.T.Cleanup(server.Close)
	return &Registry{Env: e, Host: strings.TrimPrefix(server.URL, "http://"), server: server}
}

// Stop ends the registry before the test does: from now on look-ups fail.
func (r *Registry) Stop() { r.server.Close() }

// Push puts an image at name:tag and returns its reference without digest and
// its digest. Each tag has content of its own.
func (r *Registry) Push(repository, tag string) (ref, digest string) {
	r.T.Helper()
	ref = r.Host + "/" + repository + ":" + tag
	return ref, r.push(ref, repository+":"+tag)
}

// PushAgain moves a tag to another image each time, and returns its digest.
func (r *Registry) PushAgain(repository, tag string) (digest string) {
	r.T.Helper()
	r.again++
	return r.push(r.Host+"/"+repository+":"+tag, fmt.Sprintf("%s:%s again %d", repository, tag, r.again))
}

// push puts an image whose content is what is given.
func (r *Registry) push(ref, content string) (digest string) {
	r.T.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"ref": content}})
	if err != nil {
		r.T.Fatal(err)
	}
	parsed, err := name.NewTag(ref)
	if err != nil {
		r.T.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		r.T.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		r.T.Fatal(err)
	}
	return hash.String()
}
