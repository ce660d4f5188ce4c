package app_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	fakeregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/registry"
)

// answers is a registry that says these digests, and fails the test for
// everything else.
type answers struct {
	t       *testing.T
	digests map[string]string // by "name:tag"
}

func (a answers) Resolve(_ context.Context, r pin.Reference) (string, error) {
	key := r.Name() + ":" + r.LookupTag()
	if d, ok := a.digests[key]; ok {
		return d, nil
	}
	a.t.Errorf("the registry was asked for %s", key)
	return "", pin.ErrNotFound
}

// anonymous has no credentials for any host.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

func asking(t *testing.T, o registry.Options) pin.Resolver {
	t.Helper()
	o.Keychain = anonymous{}
	r, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stubRegistry answers the ping, and manifests with h. seen are the methods
// and paths of the latter.
func stubRegistry(t *testing.T, h http.HandlerFunc) (host string, seen *[]string) {
	t.Helper()
	seen = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		*seen = append(*seen, r.Method+" "+r.URL.Path)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), seen
}

func answerDigest(w http.ResponseWriter, digest string) {
	w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	w.Header().Set("Docker-Content-Digest", digest)
}

func TestCase001TwoRendersOfOneCommitAreByteIdentical(t *testing.T) {
	s := newSite(t, "")
	s.write("all.yaml", webOf("busybox:1.36", "", ""))
	s.pin("busybox", "1.36", sha("b"))
	s.signed("release")
	s.allowed()
	first := s.output()
	if !strings.Contains(first, "busybox:1.36@"+sha("b")) {
		t.Errorf("got %s, want the pinned image in it", first)
	}
	if diff := cmp.Diff(first, s.output()); diff != "" {
		t.Errorf("second render (-first +second):\n%s", diff)
	}
	// What was applied, rendered once more, is itself: nothing to sync.
	applied := newSite(t, "")
	applied.write("all.json", first)
	if diff := cmp.Diff(first, applied.output()); diff != "" {
		t.Errorf("render of the render (-first +second):\n%s", diff)
	}
	if got := s.stream(first); got != "" {
		t.Errorf("the applied objects with their receipts: got %q, want them allowed", got)
	}
}

func TestCase003ATagThatMovedChangesNothingThatWasPinned(t *testing.T) {
	s := newSite(t, "images: {pins: Registry}\n")
	s.registry = answers{t, map[string]string{}}
	s.write("all.yaml", webOf("registry.example/web:1", "", "")+
		object("batch/v1", "Job", "name: migrate, namespace: shop", `spec: {template: {spec: {containers: [{name: m, image: "registry.example/web:1"}]}}}`))
	s.pin("registry.example/web", "1", sha("1"))
	s.signed("release")
	before := s.output()
	s.registry = answers{t, map[string]string{"registry.example/web:1": sha("2")}} // the tag has moved
	s.allowed()
	if diff := cmp.Diff(before, s.output()); diff != "" {
		t.Errorf("output after the tag moved (-before +after):\n%s", diff)
	}
	if n := strings.Count(before, "registry.example/web:1@"+sha("1")); n != 2 {
		t.Errorf("got %d pinned images, want that of the Job and that of the Deployment", n)
	}
	// The move becomes an error where a new receipt would be made for it.
	s.pin("registry.example/web", "1", sha("2"))
	s.refused(gate.DigestMismatch, "Job shop/migrate", "was signed for another image")
}

func TestCase009ARegistryThatNeverAnswersIsGivenUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections are accepted by the kernel, and nobody reads
	s := newSite(t, "images: {pins: Registry}\n")
	s.registry = asking(t, registry.Options{LookupTimeout: 300 * time.Millisecond, AttemptTimeout: 100 * time.Millisecond, Retries: -1})
	image := l.Addr().String() + "/team/app:1"
	s.write("deploy.yaml", webOf(image, "", ""))
	s.refused(gate.ImageUnresolvable, "GATE ERROR", image, "Deployment shop/web", "deploy.yaml", "no answer in time", "retrying may help")
}

func TestCase011ARegistryWithoutCredentialsSaysWhoseWereTried(t *testing.T) {
	host, _ := stubRegistry(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) })
	s := newSite(t, "images: {pins: Registry}\n")
	s.registry = asking(t, registry.Options{})
	s.write("all.yaml", webOf(host+"/team/app:1", "imagePullSecrets: [{name: pull}]", ""))
	s.refused(gate.ImageUnresolvable, host, "has no credentials for it", "imagePullSecrets of Pods are not used")
}

func TestCase013ARateLimitIsWaitedForAndThenGivenUp(t *testing.T) {
	limited := func(times int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if times--; times >= 0 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			answerDigest(w, sha("c"))
		}
	}
	t.Run("twice, then an answer", func(t *testing.T) {
		host, seen := stubRegistry(t, limited(2))
		s := newSite(t, "images: {pins: Registry}\n")
		s.registry = asking(t, registry.Options{})
		s.write("all.yaml", webOf(host+"/app:1", "", ""))
		if got := s.output(); !strings.Contains(got, host+"/app:1@"+sha("c")) {
			t.Errorf("got %s, want it pinned", got)
		}
		const head = "HEAD /v2/app/manifests/1"
		if diff := cmp.Diff([]string{head, head, head}, *seen); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
	t.Run("without end", func(t *testing.T) {
		host, seen := stubRegistry(t, limited(1000))
		s := newSite(t, "images: {pins: Registry}\n")
		s.registry = asking(t, registry.Options{})
		s.write("all.yaml", webOf(host+"/app:1", "", ""))
		s.refused(gate.ImageUnresolvable, "rate limit", host)
		if n := len(*seen); n > 8 {
			t.Errorf("asked %d times, want a bounded number", n)
		}
	})
}

func TestCase015AProxyThatDisagreesIsNotSilentlyFixed(t *testing.T) {
	proxy, _ := stubRegistry(t, func(w http.ResponseWriter, r *http.Request) { answerDigest(w, sha("1")) })
	upstream, asked := stubRegistry(t, func(w http.ResponseWriter, r *http.Request) { answerDigest(w, sha("2")) })
	image := upstream + "/app"
	s := newSite(t, "images: {pins: Registry}\n")
	s.write("all.yaml", webOf(image+":1", "", ""))

	through := asking(t, registry.Options{Mirrors: map[string]string{upstream: proxy}})
	ref, err := pin.Parse(image + ":1")
	s.check(err)
	digest, err := through.Resolve(t.Context(), ref)
	s.check(err)
	s.pin(image, "1", digest)
	s.signed("release")
	if len(*asked) > 0 {
		t.Errorf("upstream was asked %q, want the proxy alone", *asked)
	}
	s.registry = asking(t, registry.Options{}) // the mirror is taken out
	s.allowed()
	if got, want := s.output(), image+":1@"+sha("1"); !strings.Contains(got, want) {
		t.Errorf("got %s, want the signed %s", got, want)
	}
	s.pin(image, "1", sha("2")) // as syncgate pin --update would
	s.refused(gate.DigestMismatch, image+":1@sha256:22222", "was signed for another image")
}

func TestCase017AnIndexIsPinnedAndItsChildIsAnotherValue(t *testing.T) {
	server := httptest.NewServer(fakeregistry.New(fakeregistry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "http://") + "/app"
	tag, err := name.NewTag(image + ":1")
	if err != nil {
		t.Fatal(err)
	}
	index, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "images: {pins: Registry}\n")
	s.registry = asking(t, registry.Options{})
	s.write("all.yaml", webOf(image+":1", "", ""))
	s.signed("release")
	s.allowed()
	if got := s.output(); !strings.Contains(got, image+":1@"+digest.String()) {
		t.Errorf("got %s, want the index %s", got, digest)
	}
	s.write("all.yaml", webOf(fmt.Sprintf("%s:1@%s", image, list.Manifests[0].Digest), "", ""))
	s.refused(gate.DigestMismatch, "containers[web].image is "+image)
}

func TestCase019AnExemptImageIsDecidedWithoutARegistry(t *testing.T) {
	s := newSite(t, "images: {pins: Registry, allowUnpinned: ['unreachable.example/*']}\n")
	s.registry = answers{t: t} // fails the test when asked
	s.write("all.yaml", webOf("unreachable.example/tool:1", "", ""))
	s.signed("release")
	s.allowed()
	s.write("all.yaml", webOf("unreachable.example.evil/tool:1", "", ""))
	s.registry = answers{t, map[string]string{"unreachable.example.evil/tool:1": sha("d")}}
	s.refused(gate.DigestMismatch, "unreachable.example.evil/tool:1@sha256:ddddd")
}
