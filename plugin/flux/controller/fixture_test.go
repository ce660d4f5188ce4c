package controller

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/artifact/config"
	"github.com/fluxcd/pkg/artifact/storage"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/events"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	prod = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\nissuers: [{name: release, keys: {file: jwks.json}}]\n"
	day  = 86400
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

// world is a Kustomization, its repository and its gate.
type world struct {
	*Reconciler
	t      *testing.T
	mode   application.Mode
	repo   string // the checkout
	policy string // file
	now    time.Time
	events *events.FakeRecorder

	mu      sync.Mutex
	served  map[string][]byte // by path
	fetches int
	writes  []string
	server  *httptest.Server
}

var key = client.ObjectKey{Namespace: "shop", Name: "shop"}

// kustomizationOf is the Kustomization shop/shop; more is the rest of its spec
// (YAML, indented by two spaces).
func kustomizationOf(t *testing.T, mode application.Mode, more string) *unstructured.Unstructured {
	t.Helper()
	annotations, spec := "{}", "  path: ./app\n  targetNamespace: shop\n  sourceRef: {kind: GitRepository, name: shop}\n"
	switch mode {
	case application.PostBuild:
		spec += "  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-shop}]}\n"
	case application.Artifact:
		annotations = "{syncgate.io/source: GitRepository/shop, syncgate.io/path: app}"
		spec = "  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-shop}\n"
	}
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop, namespace: shop, uid: u1, generation: 1, annotations: "+annotations+"}\nspec:\n  interval: 1h\n  prune: true\n"+spec+more), &u.Object))
	return u
}

func newWorld(t *testing.T, mode application.Mode) *world {
	t.Helper()
	w := &world{t: t, mode: mode, repo: t.TempDir(), now: start, served: map[string][]byte{}, events: events.NewFakeRecorder(100, false)}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fetches++
		data, there := w.served[r.URL.Path]
		if !there {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write(data)
	}))
	t.Cleanup(w.server.Close)
	w.policy = filepath.Join(t.TempDir(), "policy.yaml")
	k, err := receipt.NewKey("k1", ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	must(t, err)
	set, err := keys.PublicJWKS([]receipt.Key{k})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(w.policy), "jwks.json"), set, 0o600))
	must(t, os.WriteFile(w.policy, []byte(prod), 0o600))
	loader, err := policy.NewLoader(w.policy)
	must(t, err)
	scheme, err := Scheme()
	must(t, err)
	wrote := func(verb string, o client.Object) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes = append(w.writes, fmt.Sprintf("%s %T", verb, o))
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}, kustomizationOf(t, mode, "")).
		WithStatusSubresource(&kustomizev1.Kustomization{}, &sourcev1.GitRepository{}, &sourcev1.ExternalArtifact{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				wrote("create", o)
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				wrote("update", o)
				return c.Update(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				wrote("delete", o)
				return c.Delete(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				wrote("update "+sub, o)
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				wrote("patch "+sub, o)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	m, err := NewMetrics(prometheus.NewRegistry())
	must(t, err)
	st, err := storage.New(&config.Options{StoragePath: t.TempDir(), StorageAddress: "127.0.0.1:1", StorageAdvAddress: "gate.test", ArtifactRetentionRecords: 2, ArtifactRetentionTTL: time.Hour})
	must(t, err)
	w.Reconciler = &Reconciler{
		Client: c, Cache: c, Events: w.events, Loader: loader, Fetcher: artifact.New(artifact.Limits{Time: 5 * time.Second}), Storage: st, Metrics: m,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.now }, FluxNamespace: "flux-system", memory: newMemory(),
	}
	w.Fetcher.Close() // what is read is not kept: each verdict is a fetch
	return w
}

// write puts a version of the application into the checkout.
func (w *world) write(tag string, more map[string]string) {
	w.t.Helper()
	image, annotations := "ghcr.io/acme/web:"+tag, "{}"
	if w.mode == application.PostBuild {
		image, annotations = image+"@${syncgate_pin_web}", `{syncgate.io/receipt: "${syncgate_receipt_web}"}`
	}
	files := map[string]string{
		"app/web.yaml": fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, annotations: %s}, spec: {containers: [{name: web, image: %q}]}}\n", annotations, image),
		"app/.syncgate/images/ghcr.io+acme+web.lock": fmt.Sprintf("- {name: ghcr.io/acme/web, tag: %q, digest: %s}\n", tag, digestOf(tag)),
	}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		file := filepath.Join(w.repo, name)
		must(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(w.t, os.WriteFile(file, []byte(text), 0o600))
	}
}

func digestOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

// sign approves what the checkout is built to, as the command line does.
func (w *world) sign() {
	w.t.Helper()
	source, err := application.FromObject(w.kustomization().Object)
	must(w.t, err)
	p, _ := w.Loader.Policy()
	source.App.Environment = "prod"
	e, err := p.For(source.App)
	must(w.t, err)
	o, err := source.Options(w.repo)
	must(w.t, err)
	b, err := app.New(w.t.Context(), app.Settings{Render: o, Namespace: source.App.Namespace, Effective: e})
	must(w.t, err)
	s := app.Signing{Issuer: "release", Environment: "prod", Now: w.now.Unix(), Lifetime: 30 * day, Signer: signer(w.t)}
	drafts, err := b.Drafts(s, e)
	must(w.t, err)
	must(w.t, b.Write(drafts, s))
}

// push packs the checkout as source-controller does, and returns the revision.
func (w *world) push(revision string) string {
	w.t.Helper()
	data := packed(w.t, w.repo)
	path := "/" + strings.ReplaceAll(revision, ":", "-") + ".tar.gz"
	w.mu.Lock()
	w.served[path] = data
	w.mu.Unlock()
	w.source(&meta.Artifact{URL: w.server.URL + path, Path: path, Revision: revision, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), LastUpdateTime: metav1.NewTime(start)})
	return revision
}

// source makes the status of the GitRepository say a.
func (w *world) source(a *meta.Artifact) {
	w.t.Helper()
	g := &sourcev1.GitRepository{}
	must(w.t, w.Client.Get(w.t.Context(), key, g))
	g.Status.Artifact = a
	must(w.t, w.Client.Status().Update(w.t.Context(), g))
}

func packed(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	tw := tar.NewWriter(g)
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = tw.Write(data)
		return err
	}))
	must(t, tw.Close())
	must(t, g.Close())
	return b.Bytes()
}

// reconcile runs once, and takes the writes and fetches of that run.
func (w *world) reconcile() (writes []string, fetches int) {
	w.t.Helper()
	w.mu.Lock()
	w.writes, w.fetches = nil, 0
	w.mu.Unlock()
	_, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	must(w.t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.fetches
}

func (w *world) kustomization() *unstructured.Unstructured {
	w.t.Helper()
	u := kustomization()
	must(w.t, w.Client.Get(w.t.Context(), key, u))
	return u
}

// replace gives the Kustomization another spec and annotations.
func (w *world) replace(u *unstructured.Unstructured) {
	w.t.Helper()
	have := w.kustomization()
	u.SetResourceVersion(have.GetResourceVersion())
	u.SetGeneration(have.GetGeneration() + 1)
	must(w.t, w.Client.Update(w.t.Context(), u))
}

// condition is the gate's, nil if there is none.
func (w *world) condition() *metav1.Condition {
	w.t.Helper()
	return conditions.Get(conditions.UnstructuredGetter(w.kustomization()), hook.Condition)
}

// is asserts the state of the condition, and what its message has.
func (w *world) is(status metav1.ConditionStatus, reason string, want ...string) {
	w.t.Helper()
	c := w.condition()
	if c == nil || c.Status != status || c.Reason != reason {
		w.t.Fatalf("condition: got %+v, want %s %s", c, status, reason)
	}
	for _, x := range want {
		if !strings.Contains(c.Message, x) {
			w.t.Fatalf("condition: got %q, want %q in it", c.Message, x)
		}
	}
}

// values are the data of the gate's ConfigMap, nil if there is none.
func (w *world) values() map[string]string {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "syncgate-flux-shop"}, cm)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w.t, err)
	return cm.Data
}

// published is the gate's ExternalArtifact, nil if there is none.
func (w *world) published() *sourcev1.ExternalArtifact {
	w.t.Helper()
	ea := &sourcev1.ExternalArtifact{}
	err := w.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "shop", Name: "syncgate-flux-shop"}, ea)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w.t, err)
	return ea
}

// said takes the events since the last time.
func (w *world) said() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, fmt.Sprintf("%s %s", e.Type, e.Reason))
		default:
			return all
		}
	}
}
