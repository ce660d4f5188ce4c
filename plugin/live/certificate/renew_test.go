package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var start = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// fake is a cluster that keeps objects by resource and name, and the order of
// what was written.
type fake struct {
	objects map[string]map[string]any
	writes  []string
	fail    string // a write that is refused once, as by somebody who was faster
	appears map[string]map[string]any
	sleeps  []time.Duration
}

func (f *fake) Get(_ context.Context, gvr schema.GroupVersionResource, _, name string) (map[string]any, error) {
	if o, ok := f.objects[gvr.Resource+"/"+name]; ok {
		return maps.Clone(o), nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (f *fake) CreateObject(_ context.Context, gvr schema.GroupVersionResource, o map[string]any) error {
	return f.write("create", gvr, o)
}

func (f *fake) UpdateObject(_ context.Context, gvr schema.GroupVersionResource, o map[string]any) error {
	return f.write("update", gvr, o)
}

func (f *fake) write(verb string, gvr schema.GroupVersionResource, o map[string]any) error {
	key := gvr.Resource + "/" + o["metadata"].(map[string]any)["name"].(string)
	if f.fail == verb+" "+key {
		f.fail = ""
		return apierrors.NewConflict(gvr.GroupResource(), key, errors.New("somebody was faster"))
	}
	f.writes = append(f.writes, verb+" "+key)
	f.objects[key] = o
	return nil
}

func configuration(annotations map[string]any, clients ...map[string]any) map[string]any {
	var webhooks []any
	for _, c := range clients {
		webhooks = append(webhooks, map[string]any{"name": "x", "clientConfig": c})
	}
	return map[string]any{"metadata": map[string]any{"name": "syncgate", "annotations": annotations}, "webhooks": webhooks}
}

func service(namespace, name string) map[string]any {
	return map[string]any{"service": map[string]any{"namespace": namespace, "name": name}}
}

const configKey = "validatingwebhookconfigurations/syncgate"

func ours() map[string]any {
	return configuration(nil, service("syncgate-system", "syncgate-webhook"), service("syncgate-system", "syncgate-webhook"))
}

func (f *fake) options(now time.Time) Options {
	return Options{
		Namespace: "syncgate-system", Service: "syncgate-webhook", Secret: "tls", Configuration: "syncgate",
		Now: func() time.Time { return now },
		Sleep: func(_ context.Context, d time.Duration) error {
			f.sleeps = append(f.sleeps, d)
			maps.Copy(f.objects, f.appears)
			return nil
		},
		Log: &bytes.Buffer{},
	}
}

// trusted is the bundle of an entry of the configuration.
func (f *fake) trusted(t *testing.T, i int) []byte {
	t.Helper()
	client := f.objects[configKey]["webhooks"].([]any)[i].(map[string]any)["clientConfig"].(map[string]any)
	text, _ := client["caBundle"].(string)
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// verifies reports whether a client that trusts a bundle takes what is served.
func verifies(t *testing.T, p pair, bundle []byte, host string, now time.Time) error {
	t.Helper()
	served, err := tls.X509KeyPair(p.certificate, p.key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err = served.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: now})
	return err
}

func TestRenewMakesACertificateThatTheConfigurationTrusts(t *testing.T) {
	f := &fake{objects: map[string]map[string]any{configKey: ours()}}
	o := f.options(start)
	o.Hosts = []string{"gate.example.test", "10.0.0.9"}
	if err := Renew(t.Context(), f, o); err != nil {
		t.Fatal(err)
	}
	served := readPair(f.objects["secrets/tls"])
	for _, host := range []string{"syncgate-webhook.syncgate-system.svc", "syncgate-webhook.syncgate-system.svc.cluster.local", "gate.example.test", "10.0.0.9"} {
		for i := range 2 {
			if err := verifies(t, served, f.trusted(t, i), host, start.Add(Lifetime-time.Minute)); err != nil {
				t.Errorf("%s by entry %d: %v", host, i, err)
			}
		}
	}
	if err := verifies(t, served, f.trusted(t, 0), "other.syncgate-system.svc", start); err == nil {
		t.Error("the certificate is good for another Service")
	}
	if err := verifies(t, served, f.trusted(t, 0), o.hosts()[0], start.Add(Lifetime+time.Minute)); err == nil {
		t.Error("the certificate does not expire")
	}
	if got := f.objects["secrets/tls"]["type"]; got != "kubernetes.io/tls" {
		t.Errorf("type of the Secret: got %v", got)
	}
	for _, key := range []string{"ca.key", "ca.pem"} {
		if f.objects["secrets/tls"]["data"].(map[string]any)[key] != nil {
			t.Errorf("%s is kept: nothing may be left that vouches for another certificate", key)
		}
	}
	// Nothing of a first installation has to wait.
	if len(f.sleeps) != 0 {
		t.Errorf("waited %v", f.sleeps)
	}
}

func TestRenewAgainDoesNothing(t *testing.T) {
	f := &fake{objects: map[string]map[string]any{configKey: ours()}}
	for _, now := range []time.Time{start, start.Add(time.Hour), start.Add(Lifetime*2/3 - time.Hour)} {
		if err := Renew(t.Context(), f, f.options(now)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"update " + configKey, "create secrets/tls"}, f.writes); diff != "" {
		t.Errorf("writes of three runs (-want +got):\n%s", diff)
	}
}

func TestRotationKeepsTheOldAuthorityAndTellsTheConfigurationFirst(t *testing.T) {
	f := &fake{objects: map[string]map[string]any{configKey: ours()}}
	if err := Renew(t.Context(), f, f.options(start)); err != nil {
		t.Fatal(err)
	}
	before := readPair(f.objects["secrets/tls"])
	f.writes = nil
	later := start.Add(Lifetime*2/3 + time.Hour) // less than a third is left
	if err := Renew(t.Context(), f, f.options(later)); err != nil {
		t.Fatal(err)
	}
	after := readPair(f.objects["secrets/tls"])
	if bytes.Equal(before.certificate, after.certificate) || bytes.Equal(before.key, after.key) {
		t.Fatal("the certificate and its key were not renewed")
	}
	for name, p := range map[string]pair{"old": before, "new": after} {
		if err := verifies(t, p, f.trusted(t, 0), "syncgate-webhook.syncgate-system.svc", later); err != nil {
			t.Errorf("a replica with the %s certificate: %v", name, err)
		}
	}
	if diff := cmp.Diff([]string{"update " + configKey, "update secrets/tls"}, f.writes); diff != "" {
		t.Errorf("order of writes (-want +got):\n%s", diff)
	}
	if !slices.Contains(f.sleeps, settle) {
		t.Error("API servers get no time to learn the new authority")
	}
	// The rotation after the next finds the first authority expired.
	if err := Renew(t.Context(), f, f.options(start.Add(Lifetime+Lifetime/2))); err != nil {
		t.Fatal(err)
	}
	if n := len(certificates(f.trusted(t, 0))); n != 2 {
		t.Errorf("authorities in the bundle after a third rotation: got %d, want 2", n)
	}
}

func TestRenewMendsWhatIsNotRight(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, f *fake, o *Options){
		"a configuration applied anew without caBundle": func(_ *testing.T, f *fake, _ *Options) { f.objects[configKey] = ours() },
		"a key of another certificate": func(t *testing.T, f *fake, _ *Options) {
			other, err := issue([]string{"x"}, start)
			if err != nil {
				t.Fatal(err)
			}
			f.objects["secrets/tls"]["data"].(map[string]any)["tls.key"] = base64.StdEncoding.EncodeToString(other.key)
		},
		"no base64": func(_ *testing.T, f *fake, _ *Options) {
			f.objects["secrets/tls"]["data"].(map[string]any)["tls.crt"] = "!"
		},
		"no authority": func(_ *testing.T, f *fake, _ *Options) {
			delete(f.objects["secrets/tls"]["data"].(map[string]any), "ca.crt")
		},
		"one more host":      func(_ *testing.T, _ *fake, o *Options) { o.Hosts = []string{"new.example.test"} },
		"an empty Secret":    func(_ *testing.T, f *fake, _ *Options) { delete(f.objects["secrets/tls"], "data") },
		"expired altogether": func(_ *testing.T, _ *fake, o *Options) { o.Now = func() time.Time { return start.Add(2 * Lifetime) } },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{objects: map[string]map[string]any{configKey: ours()}}
			o := f.options(start)
			if err := Renew(t.Context(), f, o); err != nil {
				t.Fatal(err)
			}
			f.writes = nil
			spoil(t, f, &o)
			if err := Renew(t.Context(), f, o); err != nil {
				t.Fatal(err)
			}
			if len(f.writes) == 0 {
				t.Fatal("nothing was written")
			}
			for _, host := range o.hosts() {
				if err := verifies(t, readPair(f.objects["secrets/tls"]), f.trusted(t, 1), host, o.Now()); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
		})
	}
}

func TestRenewWaitsForTheConfigurationAndNoLongerThanTold(t *testing.T) {
	f := &fake{objects: map[string]map[string]any{}, appears: map[string]map[string]any{configKey: ours()}}
	o := f.options(start)
	o.Wait = time.Minute
	if err := Renew(t.Context(), f, o); err != nil {
		t.Fatal(err)
	}
	if err := verifies(t, readPair(f.objects["secrets/tls"]), f.trusted(t, 0), o.hosts()[0], start); err != nil {
		t.Error(err)
	}

	f = &fake{objects: map[string]map[string]any{}}
	o = f.options(start)
	o.Wait = 3 * poll
	if err := Renew(t.Context(), f, o); err != nil {
		t.Fatalf("no configuration yet: got %v, want the certificate alone", err)
	}
	if len(f.sleeps) != 3 {
		t.Errorf("waited %d times, want 3", len(f.sleeps))
	}
	if f.objects["secrets/tls"] == nil {
		t.Error("no certificate was made")
	}
	if log := o.Log.(*bytes.Buffer).String(); !strings.Contains(log, "run this again") {
		t.Errorf("the log does not say what is left to do: %q", log)
	}
}

func TestRenewRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		config map[string]any
		fail   string
		want   string
	}{
		"a configuration that cert-manager fills in": {configuration(map[string]any{injected: "a/b"}, service("syncgate-system", "syncgate-webhook")), "", "cert-manager"},
		"a configuration of another Service":         {configuration(nil, service("other", "syncgate-webhook"), map[string]any{"url": "https://elsewhere.example.test"}), "", "no entry for Service"},
		"a configuration that somebody else changes": {ours(), "update " + configKey, "somebody was faster"},
		"a Secret that somebody else makes":          {ours(), "create secrets/tls", "somebody was faster"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{objects: map[string]map[string]any{configKey: tt.config}, fail: tt.fail}
			err := Renew(t.Context(), f, f.options(start))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if tt.fail == "" && len(f.writes) > 0 {
				t.Errorf("wrote %v", f.writes)
			}
			if tt.fail == "" {
				return
			}
			if err := Renew(t.Context(), f, f.options(start)); err != nil {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

// Foreign entries keep what they trust, and so do ours what is no PEM of ours.
func TestRenewLeavesTheRestOfTheConfigurationAlone(t *testing.T) {
	other, err := issue([]string{"x"}, start)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(other.authority)
	mine, foreign := service("syncgate-system", "syncgate-webhook"), service("shop", "policy")
	mine["caBundle"], foreign["caBundle"] = text, text
	f := &fake{objects: map[string]map[string]any{configKey: configuration(nil, mine, foreign)}}
	if err := Renew(t.Context(), f, f.options(start)); err != nil {
		t.Fatal(err)
	}
	if got := f.trusted(t, 1); !bytes.Equal(got, other.authority) {
		t.Errorf("the bundle of a foreign entry changed: %s", got)
	}
	if n := len(certificates(f.trusted(t, 0))); n != 2 {
		t.Errorf("authorities of our entry: got %d, want the one of before and ours", n)
	}
}
