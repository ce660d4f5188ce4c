package registry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/registry"
)

func TestMirrorsAreAskedInsteadOfTheHost(t *testing.T) {
	host, seen := serve(t, stub(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "missing") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		manifest(w, someHash)
	}))
	r := resolver(t, registry.Options{Mirrors: map[string]string{"docker.io": host + "/hub", "quay.io": host}})
	for _, image := range []string{"nginx:1", "docker.io/acme/web:2", "index.docker.io/acme/web:3", "quay.io/acme/db:4"} {
		if _, err := r.Resolve(t.Context(), parse(t, image)); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
	want := []string{
		"HEAD /v2/hub/library/nginx/manifests/1",
		"HEAD /v2/hub/acme/web/manifests/2",
		"HEAD /v2/hub/acme/web/manifests/3",
		"HEAD /v2/acme/db/manifests/4",
	}
	if diff := cmp.Diff(want, seen.manifests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	_, err := r.Resolve(t.Context(), parse(t, "quay.io/acme/missing:1"))
	if err == nil || !strings.Contains(err.Error(), host+" (mirror of quay.io)") {
		t.Errorf("got error %v, want it to name the mirror and the host", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    registry.Options
	}{
		{"a mirror with a scheme", registry.Options{Mirrors: map[string]string{"docker.io": "https://mirror.example"}}},
		{"an empty mirror", registry.Options{Mirrors: map[string]string{"docker.io": ""}}},
		{"a plain host with a path", registry.Options{PlainHTTP: []string{"registry.example/x"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := registry.New(tc.o); err == nil {
				t.Error("got no error")
			}
		})
	}
}
