package controller

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

const (
	prod   = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\n"
	issuer = "issuers: [{name: release, keys: {file: jwks.json}}]\n"
	listed = "revocations: {file: list.jwt, issuers: [release]}\n"
	digest = "sha256:abababababababababababababababababababababababababababababababab"
)

var start = time.Date(2026, 12, 2, 3, 0, 0, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func signer(t *testing.T) *receipt.KeySigner {
	t.Helper()
	s, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)), "k1", "EdDSA")
	must(t, err)
	return s
}

// files is a policy in a directory; more is what it says beside its issuer.
func files(t *testing.T, more string, entries ...receipt.Revocation) string {
	t.Helper()
	dir := t.TempDir()
	key, err := receipt.NewKey("k1", ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	must(t, err)
	set, err := keys.PublicJWKS([]receipt.Key{key})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "jwks.json"), set, 0o600))
	write(t, dir, more, entries...)
	return dir
}

func write(t *testing.T, dir, more string, entries ...receipt.Revocation) {
	t.Helper()
	list, err := receipt.SignRevocations(receipt.RevocationList{Issued: 1000, Serial: int64(len(entries)) + 1, Entries: append([]receipt.Revocation{}, entries...)}, "release", signer(t))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "list.jwt"), []byte(list), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(prod+more+issuer+listed), 0o600))
}

func load(t *testing.T, dir string) *policy.Policy {
	t.Helper()
	p, err := policy.Load(filepath.Join(dir, "policy.yaml"))
	must(t, err)
	return p
}

// signed is the annotation of an object with one receipt.
func signed(t *testing.T, subject string, change func(*receipt.Claims)) string {
	t.Helper()
	c := receipt.Claims{Issuer: "release", Subject: subject, Environment: "prod", Profile: "v1", Covers: []string{"image"},
		Digest: digest, IssuedAt: 1_700_000_000, Expires: 1_800_000_000, ID: "mJ8w3Qe5R1uXz0aB7cD9fg", Release: "1.0"}
	if change != nil {
		change(&c)
	}
	compact, err := receipt.Sign(c, signer(t))
	must(t, err)
	return compact
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

// app is an Application in namespace argocd of one source, through the plugin.
func app(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: `+name+`, namespace: argocd}
spec:
  project: default
  source: {repoURL: "https://git.example/shop.git", path: apps/`+name+`, plugin: {name: syncgate}}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
status:
  sync: {status: Synced}
  resources:
  - {group: apps, version: v1, kind: Deployment, namespace: shop, name: `+name+`}
  - {version: v1, kind: ConfigMap, namespace: shop, name: `+name+`}
`)
}

// with puts a value at a path of an Application.
func with(t *testing.T, u *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.Marshal(value)
	must(t, err)
	var plain any
	must(t, yaml.Unmarshal(data, &plain))
	must(t, unstructured.SetNestedField(u.Object, plain, path...))
	return u
}

// without takes one out.
func without(u *unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	unstructured.RemoveNestedField(u.Object, path...)
	return u
}

func annotated(u *unstructured.Unstructured, kv ...string) *unstructured.Unstructured {
	all := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		all[kv[i]] = kv[i+1]
	}
	u.SetAnnotations(all)
	return u
}

func deployment(t *testing.T, name, receipts string) *unstructured.Unstructured {
	t.Helper()
	return annotated(object(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`, namespace: shop}
spec: {template: {spec: {containers: [{name: a, image: "ghcr.io/shop/`+name+`:1@`+digest+`"}]}}}
`), "syncgate.io/receipt", receipts)
}

// world is a controller over a fake API server.
type world struct {
	*Controller
	t         *testing.T
	dir       string
	events    *events.FakeRecorder
	now       time.Time
	forbid    map[string]bool // kinds that must not be listed
	fail      map[string]bool // kinds whose list fails
	meanwhile func()          // called once while the record of refreshes is on its way
	lists     []string        // kinds that were listed, with the namespace
	writes    []string        // "patch Application web"

	registry *prometheus.Registry
}

func newWorld(t *testing.T, dir string, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	metav1.AddMetaToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range []schema.GroupVersionKind{applicationKind, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"}} {
		mapper.Add(k, meta.RESTScopeNamespace)
		if k.Version != "v1" || k.Group != "" {
			scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	w := &world{t: t, dir: dir, now: start, events: events.NewFakeRecorder(100), forbid: map[string]bool{}, fail: map[string]bool{}}
	for _, name := range []string{settings.ConfigMap, Refreshed} {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}})
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			kind := strings.TrimSuffix(list.GetObjectKind().GroupVersionKind().Kind, "List")
			if w.forbid[kind] {
				return forbidden(kind)
			}
			if w.fail[kind] {
				return errors.New("no answer")
			}
			if kind != "Application" {
				o := &client.ListOptions{}
				o.ApplyOptions(opts)
				w.lists = append(w.lists, kind+" in "+o.Namespace)
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if f := w.meanwhile; f != nil && key.Name == Refreshed {
				w.meanwhile = nil
				f()
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.wrote("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			w.wrote("update", o)
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	loader, err := policy.NewLoader(filepath.Join(dir, "policy.yaml"))
	must(t, err)
	w.registry = prometheus.NewRegistry()
	m, err := NewMetrics(w.registry)
	must(t, err)
	w.Controller = &Controller{Client: c, Reader: c, Events: w.events, Loader: loader, Metrics: m, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return w.now }, ArgoNamespace: "argocd", Settle: time.Minute, pace: newPacer(1000, 1000)}
	return w
}

func (w *world) wrote(verb string, o client.Object) {
	kind := "ConfigMap"
	if u, ok := o.(*unstructured.Unstructured); ok {
		kind = u.GetKind()
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s", verb, kind, o.GetName()))
}

func (w *world) sweep() {
	w.t.Helper()
	w.writes, w.lists = nil, nil
	must(w.t, w.Sweep(context.Background()))
}

// refreshAll does what is due, whenever it is, and returns who was refreshed
// and why, in the order of their names.
func (w *world) refreshAll() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for {
		key, r, _, any := w.pace.next(w.now)
		if !any {
			return out
		}
		must(w.t, w.Refresh(context.Background(), key, r))
		w.pace.done(key, r)
		out[key] = r.cause
	}
}

func (w *world) configMap(name string) map[string]string {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	must(w.t, w.Reader.Get(context.Background(), types.NamespacedName{Namespace: "argocd", Name: name}, cm))
	return cm.Data
}

// change edits an Application as somebody else would.
func (w *world) change(name string, edit func(*unstructured.Unstructured)) {
	w.t.Helper()
	u := w.get(name)
	edit(u)
	must(w.t, w.Client.Update(context.Background(), u))
}

func (w *world) get(name string) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(applicationKind)
	must(w.t, w.Client.Get(context.Background(), types.NamespacedName{Namespace: "argocd", Name: name}, u))
	return u
}

// told drains the events.
func (w *world) said() []string {
	var out []string
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

// reload is what the watch of the files does.
func (w *world) reload(more string, entries ...receipt.Revocation) {
	w.t.Helper()
	write(w.t, w.dir, more, entries...)
	w.Loader.Reload()
	if !w.Loader.Reload() {
		_, err := w.Loader.Policy()
		w.t.Fatalf("nothing new was loaded: %v", err)
	}
}

// metric sums a metric over those that have all of the values as labels.
func (w *world) metric(name string, labels ...string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	must(w.t, err)
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			found := 0
			for _, l := range m.GetLabel() {
				if slices.Contains(labels, l.GetValue()) {
					found++
				}
			}
			if f.GetName() == name && found == len(labels) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
