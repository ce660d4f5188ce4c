package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/syncgate/syncgate/plugin/application"
)

// withVariables is a world whose Kustomization takes a variable from an object of
// the kind, by the name of vars.
func withVariables(t *testing.T, kind string) *world {
	t.Helper()
	w := newWorld(t, application.PostBuild)
	u := kustomizationOf(t, application.PostBuild, "")
	must(t, unstructured.SetNestedSlice(u.Object, []any{
		map[string]any{"kind": kind, "name": "vars"}, map[string]any{"kind": "ConfigMap", "name": "syncgate-flux-shop"},
	}, "spec", "postBuild", "substituteFrom"))
	w.replace(u)
	w.write("1", map[string]string{"app/config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {a: \"${greeting}\"}}\n"})
	return w
}

// TestAVariableThatChangesIsJudgedAnew: without a commit, and by what the API
// server has.
func TestAVariableThatChangesIsJudgedAnew(t *testing.T) {
	for kind, object := range map[string]func(string) client.Object{
		"ConfigMap": func(v string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vars"}, Data: map[string]string{"greeting": v}}
		},
		"Secret": func(v string) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vars"}, Data: map[string][]byte{"greeting": []byte(v)}}
		},
	} {
		w := withVariables(t, kind)
		w.push("main@sha1:1")
		w.reconcile()
		w.is(metav1.ConditionFalse, "RenderFailed", "vars")
		must(t, w.Client.Create(t.Context(), object("hello")))
		w.reconcile()
		w.is(metav1.ConditionFalse, "ReceiptMissing", "Pod shop/web") // it can be built
		if _, fetches := w.reconcile(); fetches > 0 {
			t.Errorf("%s: unchanged: %d fetches", kind, fetches)
		}
		must(t, w.Client.Update(t.Context(), object("bye")))
		if _, fetches := w.reconcile(); fetches != 1 {
			t.Errorf("%s: changed: %d fetches, want 1", kind, fetches)
		}
	}
}

// TestASecretThatMayNotBeRead is a refusal that says what right is missing; an
// API server that does not answer is none.
func TestASecretThatMayNotBeRead(t *testing.T) {
	for want, err := range map[string]error{
		"which the gate may not read": apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "vars", errors.New("no")),
		"":                            apierrors.NewTimeoutError("late", 1),
	} {
		w := withVariables(t, "Secret")
		w.push("main@sha1:1")
		watched, ok := w.Client.(client.WithWatch)
		if !ok {
			t.Fatal("the client cannot watch")
		}
		w.Client = interceptor.NewClient(watched, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				return err
			}
			return c.Get(ctx, k, o, opts...)
		}})
		_, got := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
		if want == "" {
			if !apierrors.IsTimeout(got) || w.condition() != nil {
				t.Errorf("no answer: got error %v, condition %+v", got, w.condition())
			}
			continue
		}
		must(t, got)
		w.is(metav1.ConditionFalse, "RenderFailed", "Secret shop/vars, "+want, "Fix: give the gate's service account the right to get it by a Role")
	}
}

// TestEveryKindOfSourceIsRead, and no other is.
func TestEveryKindOfSourceIsRead(t *testing.T) {
	w := newWorld(t, application.PostBuild)
	a := &meta.Artifact{URL: "http://x.test/a", Path: "a", Revision: "r", Digest: digestOf("a"), LastUpdateTime: metav1.NewTime(start)}
	named := metav1.ObjectMeta{Namespace: "shop", Name: "other"}
	for kind, object := range map[string]client.Object{
		"GitRepository":    &sourcev1.GitRepository{ObjectMeta: named, Status: sourcev1.GitRepositoryStatus{Artifact: a}},
		"OCIRepository":    &sourcev1.OCIRepository{ObjectMeta: named, Status: sourcev1.OCIRepositoryStatus{Artifact: a}},
		"Bucket":           &sourcev1.Bucket{ObjectMeta: named, Status: sourcev1.BucketStatus{Artifact: a}},
		"ExternalArtifact": &sourcev1.ExternalArtifact{ObjectMeta: named, Status: sourcev1.ExternalArtifactStatus{Artifact: a}},
	} {
		from := application.Reference{Kind: kind, Namespace: "shop", Name: "other"}
		if _, err := w.artifactOf(t.Context(), from); !errors.Is(err, errNotReady) {
			t.Errorf("%s that is not there: got error %v", kind, err)
		}
		status := object.DeepCopyObject().(client.Object)
		must(t, w.Client.Create(t.Context(), object))
		status.SetResourceVersion(object.GetResourceVersion())
		if kind == "GitRepository" || kind == "ExternalArtifact" { // the fake client keeps their status apart
			must(t, w.Client.Status().Update(t.Context(), status))
		}
		if got, err := w.artifactOf(t.Context(), from); err != nil || got.Digest != a.Digest {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
	if _, err := w.artifactOf(t.Context(), application.Reference{Kind: "HelmChart", Namespace: "shop", Name: "other"}); !errors.Is(err, errNotReady) {
		t.Errorf("HelmChart: got error %v", err)
	}
}

// TestWhatIsLookedAtAnew: all but what Flux itself writes into the status, of
// which only counts what it has applied.
func TestWhatIsLookedAtAnew(t *testing.T) {
	condition := func(kind, message string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": kind, "status": "True", "reason": "R", "message": message}}, "status", "conditions"))
		}
	}
	history := func(digest, status string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedSlice(u.Object, []any{
				map[string]any{"digest": digest, "lastReconciled": "2026-12-02T04:00:00Z", "lastReconciledStatus": status},
				map[string]any{"digest": "a", "lastReconciled": "2026-12-02T03:00:00Z", "lastReconciledStatus": "ReconciliationSucceeded"},
			}, "status", "history"))
		}
	}
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"nothing":          {func(*unstructured.Unstructured) {}, false},
		"Flux's condition": {condition("Ready", "a"), false},
		"what it tries": {func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(u.Object, "r", "status", "lastAttemptedRevision"))
		}, false},
		"what it has applied": {func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(u.Object, "r", "status", "lastAppliedRevision"))
		}, true},
		"what it could not apply": {history("b", "ReconciliationFailed"), false},
		"another content":         {history("b", "ReconciliationSucceeded"), true},
		"the same once more":      {history("a", "ReconciliationSucceeded"), false},
		"the same of another spec": {func(u *unstructured.Unstructured) {
			must(t, unstructured.SetNestedField(u.Object, int64(2), "status", "observedGeneration"))
		}, true},
		"the gate's condition": {condition("syncgate.io/Approved", "forged"), true},
		"the spec":             {func(u *unstructured.Unstructured) { u.SetGeneration(7) }, true},
		"an annotation":        {func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) }, true},
		"a label":              {func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, true},
		"another of that name": {func(u *unstructured.Unstructured) { u.SetUID("other") }, true},
		"its end":              {func(u *unstructured.Unstructured) { now := metav1.Now(); u.SetDeletionTimestamp(&now) }, true},
	} {
		before := kustomizationOf(t, application.PostBuild, "")
		history("a", "ReconciliationFailed")(before)
		after := before.DeepCopy()
		if name == "what it has applied" { // by one that keeps no history
			unstructured.RemoveNestedField(before.Object, "status", "history")
			unstructured.RemoveNestedField(after.Object, "status", "history")
		}
		c.change(after)
		if got := asksAnew.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
			t.Errorf("%s: looked at %v, want %v", name, got, c.want)
		}
	}
	one, other := &sourcev1.GitRepository{}, &sourcev1.GitRepository{}
	other.Status.ObservedGeneration = 3
	if newArtifact.Update(event.UpdateEvent{ObjectOld: one, ObjectNew: other}) {
		t.Error("a source without another artifact is looked at")
	}
	other.Status.Artifact = &meta.Artifact{Revision: "r"}
	if !newArtifact.Update(event.UpdateEvent{ObjectOld: one, ObjectNew: other}) {
		t.Error("another artifact is not looked at")
	}
}
