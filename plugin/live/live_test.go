package live_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/live/apitest"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

func connect(t *testing.T) (*apitest.Server, *live.Cluster) {
	t.Helper()
	s := apitest.New(t)
	c, err := live.New(s.Config())
	must(t, err)
	return s, c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func service(extra map[string]any) map[string]any {
	spec := map[string]any{"type": "ClusterIP"}
	for k, v := range extra {
		spec[k] = v
	}
	return map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": spec}
}

const services = "/api/v1/namespaces/shop/services"

func TestATryStoresNothing(t *testing.T) {
	t.Run("an object that is not there is created", func(t *testing.T) {
		s, c := connect(t)
		s.Admit(func(q apitest.Request) *apitest.Status {
			q.Object["spec"].(map[string]any)["clusterIP"] = "10.0.0.1"
			return nil
		})
		trial, err := c.Try(t.Context(), service(nil))
		must(t, err)
		if trial.Operation != live.Create || trial.Live != nil || trial.Namespace != "shop" {
			t.Errorf("got %+v, want a creation in shop of what is not there", trial)
		}
		if got := trial.Stored["spec"].(map[string]any)["clusterIP"]; got != "10.0.0.1" {
			t.Errorf("stored clusterIP: got %v, want what admission made of it", got)
		}
		wantDry(t, s, "POST "+services)
	})
	t.Run("an object that is there is replaced", func(t *testing.T) {
		s, c := connect(t)
		s.Put(services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":{"old":true}}`)
		trial, err := c.Try(t.Context(), service(nil))
		must(t, err)
		if trial.Operation != live.Update || trial.Live == nil || trial.Merged {
			t.Errorf("got %+v, want an update of what is there", trial)
		}
		if diff := cmp.Diff(map[string]any{"type": "ClusterIP"}, trial.Stored["spec"]); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		wantDry(t, s, "PUT "+services+"/web")
		if got := s.Requests()[0].Object["metadata"].(map[string]any)["resourceVersion"]; got != "7" {
			t.Errorf("resourceVersion: got %v, want that of the object that is there", got)
		}
	})
	t.Run("one that cannot be replaced is applied", func(t *testing.T) {
		s, c := connect(t)
		s.Put(services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"old":true}}`)
		s.Admit(func(q apitest.Request) *apitest.Status {
			if q.Method == "PUT" {
				return &apitest.Status{Code: 422, Reason: "Invalid", Message: "field is fixed"}
			}
			return nil
		})
		trial, err := c.Try(t.Context(), service(nil))
		must(t, err)
		if !trial.Merged || trial.Stored["spec"].(map[string]any)["old"] != true {
			t.Errorf("got %+v, want both merged", trial)
		}
		wantDry(t, s, "PUT "+services+"/web", "PATCH "+services+"/web")
	})
	t.Run("what is refused is an answer", func(t *testing.T) {
		s, c := connect(t)
		s.Admit(func(apitest.Request) *apitest.Status {
			return &apitest.Status{Code: 403, Reason: "Forbidden", Message: "no"}
		})
		_, err := c.Try(t.Context(), service(nil))
		if !live.Answered(err) {
			t.Errorf("got %v, want an answer of the API server", err)
		}
	})
	t.Run("a kind that is not served", func(t *testing.T) {
		_, c := connect(t)
		for _, kind := range []string{"Scale", "Nothing"} { // Scale is a subresource
			_, err := c.Try(t.Context(), map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "shop"}})
			if !errors.Is(err, live.ErrNotServed) {
				t.Errorf("%s: got %v, want %v", kind, err, live.ErrNotServed)
			}
		}
	})
}

// wantDry wants these writes, every one a dry run.
func wantDry(t *testing.T, s *apitest.Server, want ...string) {
	t.Helper()
	var got []string
	for _, q := range s.Requests() {
		got = append(got, q.Method+" "+q.Path)
		if !q.DryRun {
			t.Errorf("%s %s is no dry run", q.Method, q.Path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestAnsweredTellsTheObjectsFaultsFromTheWays(t *testing.T) {
	gr := schema.GroupResource{Resource: "services"}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"nobody there", errors.New("dial tcp: connection refused"), false},
		{"nobody let in", apierrors.NewUnauthorized("who are you"), false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), false},
		{"not ready", apierrors.NewServiceUnavailable("starting"), false},
		{"timed out", apierrors.NewTimeoutError("slow", 1), false},
		{"forbidden", apierrors.NewForbidden(gr, "a", errors.New("no")), true},
		{"not found", apierrors.NewNotFound(gr, "a"), true},
		{"a webhook that fails", apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		{"wrapped", fmt.Errorf("trying: %w", apierrors.NewNotFound(gr, "a")), true},
	} {
		if got := live.Answered(tt.err); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

var noon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

func off(namespace string, hours int) offswitch.Switch {
	return offswitch.Switch{Namespace: namespace, Until: noon.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339), Reason: "incident 7", By: "alice"}
}

const switchMap = "/api/v1/namespaces/gate/configmaps/" + offswitch.ConfigMap

func TestOneSwitchIsWrittenAndTheOthersStay(t *testing.T) {
	s, c := connect(t)
	ctx := t.Context()
	must(t, c.SetSwitch(ctx, "gate", off("shop", 4), noon))
	if s.Get(switchMap) == nil {
		t.Fatal("the ConfigMap is not made")
	}
	must(t, c.SetSwitch(ctx, "gate", off("web", 2), noon))
	must(t, c.SetSwitch(ctx, "gate", off("shop", 5), noon)) // replaces the first
	want := map[string]string{"namespace.shop": "2026-12-02T17:00:00Z", "namespace.web": "2026-12-02T14:00:00Z"}
	if diff := cmp.Diff(want, kept(t, c)); diff != "" {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
	must(t, c.RemoveSwitch(ctx, "gate", off("shop", 0)))
	delete(want, "namespace.shop")
	if diff := cmp.Diff(want, kept(t, c)); diff != "" {
		t.Errorf("after removing one (-want +got):\n%s", diff)
	}
	if err := c.RemoveSwitch(ctx, "gate", off("shop", 0)); !errors.Is(err, live.ErrNoSwitch) {
		t.Errorf("removing it again: got %v, want %v", err, live.ErrNoSwitch)
	}
}

func kept(t *testing.T, c *live.Cluster) map[string]string {
	t.Helper()
	list, err := c.Switches(context.Background(), "gate", noon)
	must(t, err)
	out := map[string]string{}
	for _, k := range list {
		out[k.Key] = k.Until + k.Problem
	}
	return out
}

func TestASwitchIsWrittenAnewWhenSomebodyElseWasFirst(t *testing.T) {
	s, c := connect(t)
	must(t, c.SetSwitch(t.Context(), "gate", off("web", 1), noon))
	first := true
	s.Admit(func(q apitest.Request) *apitest.Status {
		if first && q.Method == "PATCH" {
			first = false
			return &apitest.Status{Code: 409, Reason: "Conflict", Message: "modified"}
		}
		return nil
	})
	must(t, c.SetSwitch(t.Context(), "gate", off("shop", 4), noon))
	if got := len(kept(t, c)); got != 2 || first {
		t.Errorf("%d switches after a conflict, want 2", got)
	}
	s.Admit(func(apitest.Request) *apitest.Status {
		return &apitest.Status{Code: 409, Reason: "Conflict", Message: "modified"}
	})
	if err := c.SetSwitch(t.Context(), "gate", off("shop", 5), noon); !apierrors.IsConflict(err) {
		t.Errorf("conflicts without end: got %v, want one of them", err)
	}
}

func TestASwitchThatTheWebhookWouldNotTakeIsNotWritten(t *testing.T) {
	s, c := connect(t)
	if err := c.SetSwitch(t.Context(), "gate", off("shop", 30), noon); err == nil || !strings.Contains(err.Error(), "more than 24h") {
		t.Errorf("got %v, want that 30 h are too long", err)
	}
	if len(s.Requests()) > 0 {
		t.Errorf("wrote %v", s.Requests())
	}
}

func TestSwitchesSaysWhatIsWrongWithOne(t *testing.T) {
	s, c := connect(t)
	s.Put("/api/v1/namespaces/gate/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"syncgate-off","namespace":"gate"},"data":{
		"namespace.shop":"{\"namespace\":\"shop\",\"until\":\"2026-12-09T12:00:00Z\",\"reason\":\"a\",\"by\":\"b\"}",
		"namespace.web":"{\"namespace\":\"else\",\"until\":\"2026-12-02T13:00:00Z\",\"reason\":\"a\",\"by\":\"b\"}"}}`)
	want := map[string]string{
		"namespace.shop": "2026-12-09T12:00:00Zuntil 2026-12-09T12:00:00Z is more than 24h0m0s ahead",
		"namespace.web":  "2026-12-02T13:00:00Zit is for namespace.else",
	}
	if diff := cmp.Diff(want, kept(t, c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoAmIIsWhomTheAPIServerKnows(t *testing.T) {
	_, c := connect(t)
	got, err := c.WhoAmI(t.Context())
	must(t, err)
	other, err := c.As("bob")
	must(t, err)
	bob, err := other.WhoAmI(t.Context())
	must(t, err)
	if got != apitest.User || bob != "bob" {
		t.Errorf("got %q and %q, want %q and bob", got, bob, apitest.User)
	}
}
