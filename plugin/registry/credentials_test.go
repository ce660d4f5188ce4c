package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/registry"
)

// tokenServer is a registry with the token flow, whose credentials are
// user:secret. It notes the Authorization of every request.
type tokenServer struct {
	mu    sync.Mutex
	auths []string
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	s.mu.Lock()
	s.auths = append(s.auths, r.URL.Path+" "+auth)
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/token":
		if user, pass, ok := r.BasicAuth(); !ok || user != "user" || pass != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"token": "t0ken"})
	case auth == "Bearer t0ken":
		manifest(w, someHash)
	default:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func TestTheTokenFlowUsesTheHostsOwnCredentials(t *testing.T) {
	host, _ := serve(t, &tokenServer{})
	got, err := resolver(t, registry.Options{Keychain: keychain{host: "user"}}).Resolve(t.Context(), parse(t, host+"/app:1"))
	if err != nil || got != someHash {
		t.Errorf("got %q, %v; want %q", got, err, someHash)
	}
	for _, tc := range []struct{ name, user, want string }{
		{"wrong credentials", "mallory", "were refused"},
		{"no credentials", "", "has no credentials for it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keys := keychain{"other.example": "user"}
			if tc.user != "" {
				keys[host] = tc.user
			}
			_, err := resolver(t, registry.Options{Keychain: keys}).Resolve(t.Context(), parse(t, host+"/app:1"))
			if !errors.Is(err, pin.ErrUnauthorized) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %v with %q", err, pin.ErrUnauthorized, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q names the password", err)
			}
		})
	}
}

// The hard case: net/http, left to itself, passes a header of the first request
// on to another port of the same host, and both servers are on 127.0.0.1.
func TestCredentialsAreNotSentToWhereARegistryRedirects(t *testing.T) {
	var mu sync.Mutex
	var got []string
	other, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		got = append(got, r.Header.Get("Authorization"))
		mu.Unlock()
		manifest(w, someHash)
	}))
	for _, flow := range []string{"basic", "bearer"} {
		t.Run(flow, func(t *testing.T) {
			got = nil
			tokens := &tokenServer{}
			host, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" && strings.Contains(r.URL.Path, "/manifests/") {
					http.Redirect(w, r, "http://"+other+r.URL.Path, http.StatusTemporaryRedirect)
					return
				}
				if flow == "bearer" {
					tokens.ServeHTTP(w, r)
					return
				}
				w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			digest, err := resolver(t, registry.Options{Keychain: keychain{host: "user"}}).Resolve(t.Context(), parse(t, host+"/app:1"))
			if err != nil || digest != someHash {
				t.Fatalf("got %q, %v; want %q", digest, err, someHash)
			}
			if diff := cmp.Diff([]string{""}, got); diff != "" {
				t.Errorf("Authorization at the other host (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARedirectToPlainHTTPElsewhereIsRefused(t *testing.T) {
	host, _ := serve(t, stub(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/latest/meta-data", http.StatusFound)
	}))
	_, err := resolver(t, registry.Options{}).Resolve(t.Context(), parse(t, host+"/app:1"))
	if !errors.Is(err, pin.ErrUnavailable) || !strings.Contains(err.Error(), "plain HTTP is allowed for loopback hosts") {
		t.Errorf("got error %v, want the refusal of plain HTTP", err)
	}
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPlainHTTPIsOnlyForLoopbackAndListedHosts(t *testing.T) {
	for _, tc := range []struct {
		name, image string
		plain       []string
		want        bool
	}{
		{"a private address", "10.1.2.3:5000/app:1", nil, false},
		{"a local name", "registry.local/app:1", nil, false},
		{"a public host", "ghcr.io/acme/app:1", nil, false},
		{"a listed host", "registry.internal:5000/app:1", []string{"registry.internal:5000"}, true},
		{"loopback", "127.0.0.1:5000/app:1", nil, true},
		{"localhost", "localhost:5000/app:1", nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]bool{}
			base := roundTrip(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				seen[r.URL.Scheme] = true
				return nil, http.ErrSchemeMismatch
			})
			r := resolver(t, registry.Options{Base: base, PlainHTTP: tc.plain})
			if _, err := r.Resolve(t.Context(), parse(t, tc.image)); !errors.Is(err, pin.ErrUnavailable) {
				t.Errorf("got error %v, want %v", err, pin.ErrUnavailable)
			}
			if seen["http"] != tc.want || !seen["https"] {
				t.Errorf("got requests by %v, want http: %v, https: true", seen, tc.want)
			}
		})
	}
}
