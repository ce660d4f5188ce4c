package registry_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/registry"
)

func TestWhatPassesIsRetried(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first func(w http.ResponseWriter)
	}{
		{"a rate limit is waited for as told", func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
		{"a server error", func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var n atomic.Int32
			host, seen := serve(t, stub(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) <= 2 {
					tc.first(w)
					return
				}
				manifest(w, someHash)
			}))
			got, err := resolver(t, registry.Options{}).Resolve(t.Context(), parse(t, host+"/app:1"))
			if err != nil || got != someHash {
				t.Errorf("got %q, %v; want %q", got, err, someHash)
			}
			head := "HEAD /v2/app/manifests/1"
			if diff := cmp.Diff([]string{head, head, head}, seen.manifests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHangingRegistryIsGivenUp(t *testing.T) {
	quit := make(chan struct{})
	host, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-quit:
		case <-r.Context().Done():
		}
	}))
	defer close(quit)
	r := resolver(t, registry.Options{AttemptTimeout: 50 * time.Millisecond, LookupTimeout: 400 * time.Millisecond})
	_, err := r.Resolve(t.Context(), parse(t, host+"/app:1"))
	if !errors.Is(err, pin.ErrUnavailable) {
		t.Fatalf("got error %v, want %v", err, pin.ErrUnavailable)
	}
	if want := host + ": registry unavailable: no answer in time (400ms for one reference)"; err.Error() != want {
		t.Errorf("got error %q, want %q", err, want)
	}
}
