package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	fake "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/registry"
)

const (
	imageType = "application/vnd.oci.image.manifest.v1+json"
	someHash  = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

// requests records "METHOD path" of what a server was asked.
type requests struct {
	mu   sync.Mutex
	list []string
}

func (r *requests) note(req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, req.Method+" "+req.URL.Path)
}

func (r *requests) manifests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, s := range r.list {
		if strings.Contains(s, "/manifests/") {
			out = append(out, s)
		}
	}
	return out
}

// serve starts a registry on loopback and returns its host:port.
func serve(t *testing.T, h http.Handler) (string, *requests) {
	t.Helper()
	var seen requests
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.note(r)
		h.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // failed TLS handshakes
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), &seen
}

// stub answers the ping and hands manifests to h.
func stub(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			w.WriteHeader(http.StatusOK)
			return
		}
		h(w, r)
	})
}

func manifest(w http.ResponseWriter, digest string) {
	w.Header().Set("Content-Type", imageType)
	if digest != "" {
		w.Header().Set("Docker-Content-Digest", digest)
	}
	w.WriteHeader(http.StatusOK)
}

func resolver(t *testing.T, o registry.Options) *registry.Resolver {
	t.Helper()
	if o.Keychain == nil {
		o.Keychain = keychain{}
	}
	r, err := registry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(t *testing.T, s string) pin.Reference {
	t.Helper()
	r, err := pin.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keychain holds user names by host; the password is "secret".
type keychain map[string]string

func (k keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	user, ok := k[r.RegistryStr()]
	if !ok {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: user, Password: "secret"}), nil
}

func push(t *testing.T, ref string) v1.Hash {
	t.Helper()
	tag, err := name.NewTag(ref)
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
	h, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAMultiPlatformTagResolvesToItsIndexByOneHead(t *testing.T) {
	host, seen := serve(t, fake.New(fake.Logger(log.New(io.Discard, "", 0))))
	want := push(t, host+"/app:1.5")
	seen.list = nil
	r := resolver(t, registry.Options{})

	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got, err := r.Resolve(t.Context(), parse(t, host+"/app:1.5"))
			if err != nil || got != want.String() {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{"HEAD /v2/app/manifests/1.5"}, seen.manifests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestATagThatIsNotWrittenIsLookedUpAsLatest(t *testing.T) {
	host, seen := serve(t, stub(func(w http.ResponseWriter, r *http.Request) { manifest(w, someHash) }))
	r := resolver(t, registry.Options{})
	if _, err := r.Resolve(t.Context(), parse(t, host+"/app")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"HEAD /v2/app/manifests/latest"}, seen.manifests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	const body = `{"schemaVersion":2}`
	for _, tc := range []struct {
		name     string
		handler  http.HandlerFunc
		want     string // digest
		class    error
		contains []string
	}{
		{
			name: "without a digest header the manifest itself is hashed",
			handler: func(w http.ResponseWriter, r *http.Request) {
				manifest(w, "")
				if r.Method == http.MethodGet {
					fmt.Fprint(w, body)
				}
			},
			want: hash(body),
		},
		{
			name: "where HEAD is not allowed GET is tried",
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				manifest(w, "")
				fmt.Fprint(w, body)
			},
			want: hash(body),
		},
		{
			name: "a header that contradicts the manifest is refused",
			handler: func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					manifest(w, "")
					return
				}
				manifest(w, someHash)
				fmt.Fprint(w, body+" ")
			},
			class: pin.ErrBadAnswer,
		},
		{
			name:     "a digest of another shape is refused",
			handler:  func(w http.ResponseWriter, r *http.Request) { manifest(w, "sha256:"+strings.Repeat("A", 64)) },
			class:    pin.ErrBadAnswer,
			contains: []string{"want sha256: and 64 lower-case hex digits"},
		},
		{
			name:    "another algorithm is refused",
			handler: func(w http.ResponseWriter, r *http.Request) { manifest(w, "sha512:"+strings.Repeat("a", 128)) },
			class:   pin.ErrBadAnswer,
		},
		{
			name: "a web page with status 200 is not pinned",
			handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, "<html>Please log in</html>")
			},
			class:    pin.ErrBadAnswer,
			contains: []string{`got content type "text/html; charset=utf-8"`},
		},
		{
			name:     "a missing tag",
			handler:  func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) },
			class:    pin.ErrNotFound,
			contains: []string{`repository "team/app" has no tag "1"`},
		},
		{
			name:     "a repository that is not for us",
			handler:  func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) },
			class:    pin.ErrUnauthorized,
			contains: []string{"DOCKER_CONFIG", "has no credentials for it", "imagePullSecrets of Pods are not used"},
		},
		{
			name: "a rate limit without end",
			handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			class:    pin.ErrRateLimited,
			contains: []string{"rate limit"},
		},
		{
			name: "a rate limit that asks for an hour is not waited for",
			handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", "3600")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			class: pin.ErrRateLimited,
		},
		{
			name:     "a server error without end",
			handler:  func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			class:    pin.ErrUnavailable,
			contains: []string{"status 500"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, seen := serve(t, stub(tc.handler))
			got, err := resolver(t, registry.Options{}).Resolve(t.Context(), parse(t, host+"/team/app:1"))
			if got != tc.want {
				t.Errorf("got digest %q, want %q", got, tc.want)
			}
			if !errors.Is(err, tc.class) {
				t.Fatalf("got error %v, want %v", err, tc.class)
			}
			if err == nil {
				return
			}
			for _, part := range append(tc.contains, host) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got error %q, want it to contain %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "://") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %q, want one line without URL", err)
			}
			if n := len(seen.manifests()); n > 8 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func hash(s string) string {
	h, _, _ := v1.SHA256(strings.NewReader(s))
	return h.String()
}

func TestACallerWhoGoesAwayLeavesNoAnswerBehind(t *testing.T) {
	host, _ := serve(t, stub(func(w http.ResponseWriter, r *http.Request) { manifest(w, someHash) }))
	r := resolver(t, registry.Options{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Resolve(gone, parse(t, host+"/app:1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	got, err := r.Resolve(t.Context(), parse(t, host+"/app:1"))
	if err != nil || got != someHash {
		t.Errorf("got %q, %v; want %q", got, err, someHash)
	}
}

func TestFailuresAreKeptForTheRun(t *testing.T) {
	host, seen := serve(t, stub(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) }))
	r := resolver(t, registry.Options{})
	for range 3 {
		if _, err := r.Resolve(t.Context(), parse(t, host+"/app:1")); !errors.Is(err, pin.ErrNotFound) {
			t.Errorf("got error %v, want %v", err, pin.ErrNotFound)
		}
	}
	if got := len(seen.manifests()); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

func TestLookUpsAtATimeAreBounded(t *testing.T) {
	var now, most atomic.Int32
	host, _ := serve(t, stub(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(5 * time.Millisecond) // so that look-ups would overlap
		manifest(w, someHash)
	}))
	r := resolver(t, registry.Options{Concurrency: 2})
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), parse(t, fmt.Sprintf("%s/app:%d", host, i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := most.Load(); got > 2 {
		t.Errorf("%d look-ups ran at once, want at most 2", got)
	}
}
