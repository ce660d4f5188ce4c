package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestARevocationRefreshesWhomItConcerns(t *testing.T) {
	const other = "sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
	tests := []struct {
		name  string
		entry receipt.Revocation
		claim func(*receipt.Claims) // of those that are concerned
	}{
		{"by nonce", receipt.Revocation{ID: "nJ8w3Qe5R1uXz0aB7cD9fg"}, func(c *receipt.Claims) { c.ID = "nJ8w3Qe5R1uXz0aB7cD9fg" }},
		{"by release", receipt.Revocation{Release: "1.5"}, func(c *receipt.Claims) { c.Release = "1.5" }},
		{"by day", receipt.Revocation{Floor: &receipt.Floor{IssuedBefore: 1_699_000_000}}, func(c *receipt.Claims) { c.IssuedAt = 1_698_000_000 }},
		{"by environment and day", receipt.Revocation{Floor: &receipt.Floor{Environment: "eu", IssuedBefore: 1_900_000_000}}, func(c *receipt.Claims) { c.Environment = "eu" }},
		{"by category and day", receipt.Revocation{Floor: &receipt.Floor{Category: "rbac", IssuedBefore: 1_900_000_000}}, func(c *receipt.Claims) { c.Covers = []string{"image", "rbac"} }},
		{"by subject and day", receipt.Revocation{Floor: &receipt.Floor{Subject: "apps/*/other/*", IssuedBefore: 1_900_000_000}}, func(c *receipt.Claims) { c.Subject = "apps/Deployment/other/x" }},
		{"by image", receipt.Revocation{Image: other}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var objects []client.Object
			for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
				var change func(*receipt.Claims)
				d := deployment(t, name, "")
				if i < 3 {
					change = tt.claim
					if tt.entry.Image != "" {
						d = object(t, strings.ReplaceAll(encoded(t, d), digest, other))
					}
				}
				d = annotated(d, "syncgate.io/receipt", "noise "+signed(t, "apps/Deployment/shop/"+name, nil)+" "+signed(t, "apps/Deployment/shop/"+name, change))
				objects = append(objects, app(t, name), d)
			}
			w := settled(t, files(t, ""), append(objects, native(t, "old"), deployment(t, "old", ""))...)
			w.reload("", tt.entry)
			w.sweep()
			if diff := cmp.Diff(map[string]string{"a": "revocation", "b": "revocation", "c": "revocation"}, w.refreshAll()); diff != "" {
				t.Errorf("refreshed (-want +got):\n%s", diff)
			}
			w.sweep()
			if w.pace.size() != 0 || len(w.writes) != 0 {
				t.Errorf("%d are due, wrote %q; want nothing more", w.pace.size(), w.writes)
			}
			// What was taken back before is no news with the next list.
			w.reload("", tt.entry, receipt.Revocation{ID: "pJ8w3Qe5R1uXz0aB7cD9fg"})
			w.sweep()
			if got := w.refreshAll(); len(got) != 0 {
				t.Errorf("refreshed %v for an entry about nobody", got)
			}
			// A list that is only signed anew is none either.
			w.reload("# again\n", tt.entry, receipt.Revocation{ID: "pJ8w3Qe5R1uXz0aB7cD9fg"})
			w.sweep()
			if got := w.refreshAll(); got["d"] != "policy" {
				t.Errorf("refreshed %v, want all for the policy", got)
			}
		})
	}
}

func TestAKeyIsRevokedWithAllThatItSigned(t *testing.T) {
	u := parse(signed(t, "apps/Deployment/shop/web", nil))[0]
	for key, want := range map[string]bool{"k1": true, "k2": false} {
		if got := takesBack(receipt.Revocation{KeyID: key}, u); got != want {
			t.Errorf("key %s: got %v, want %v", key, got, want)
		}
	}
}

func encoded(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	data, err := json.Marshal(u.Object)
	must(t, err)
	return string(data)
}

// TestWhoCannotBeReadIsConcerned: one refresh too few leaves a revoked approval.
func TestWhoCannotBeReadIsConcerned(t *testing.T) {
	tests := []struct {
		name   string
		app    *unstructured.Unstructured
		forbid string
		want   string
	}{
		{"everything is known", app(t, "web"), "", ""},
		{"nothing may be listed", app(t, "web"), "Deployment", "revocation, perhaps"},
		{"what kinds that carry no receipts are like does not matter", app(t, "web"), "ConfigMap", ""},
		{"another cluster", with(t, app(t, "web"), "https://eu.example", "spec", "destination", "server"), "", "revocation, perhaps"},
		{"another cluster by name", with(t, with(t, app(t, "web"), "", "spec", "destination", "server"), "eu", "spec", "destination", "name"), "", "revocation, perhaps"},
		{"this cluster by name", with(t, with(t, app(t, "web"), "", "spec", "destination", "server"), "in-cluster", "spec", "destination", "name"), "", ""},
		{"not synced", with(t, app(t, "web"), "OutOfSync", "status", "sync", "status"), "", "revocation, perhaps"},
		{"no resources yet", without(app(t, "web"), "status", "resources"), "", "revocation, perhaps"},
		{"a Secret", with(t, app(t, "web"), []any{map[string]any{"version": "v1", "kind": "Secret", "namespace": "shop", "name": "x"}}, "status", "resources"), "", "revocation, perhaps"},
		{"an object that is gone", with(t, app(t, "web"), []any{map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "gone"}}, "status", "resources"), "", "revocation, perhaps"},
		{"a kind that is not served", with(t, app(t, "web"), []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Tool", "namespace": "shop", "name": "x"}}, "status", "resources"), "", "revocation, perhaps"},
		{"ignored annotations", with(t, app(t, "web"), []any{map[string]any{"kind": "*", "jsonPointers": []any{"/metadata/annotations"}}}, "spec", "ignoreDifferences"), "", "revocation, perhaps"},
		{"ignored by jq", with(t, app(t, "web"), []any{map[string]any{"kind": "*", "jqPathExpressions": []any{".metadata"}}}, "spec", "ignoreDifferences"), "", "revocation, perhaps"},
		{"ignored replicas", with(t, app(t, "web"), []any{map[string]any{"kind": "*", "jsonPointers": []any{"/spec/replicas"}}}, "spec", "ignoreDifferences"), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := settled(t, files(t, ""), tt.app, deployment(t, "web", signed(t, "apps/Deployment/shop/web", nil)))
			if tt.forbid != "" {
				w.forbid[tt.forbid] = true
			}
			w.reload("", receipt.Revocation{ID: "pJ8w3Qe5R1uXz0aB7cD9fg"})
			w.sweep()
			if got := w.refreshAll()["web"]; got != tt.want {
				t.Errorf("refreshed for %q, want %q", got, tt.want)
			}
		})
	}
}
