package controller

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
)

var modes = []application.Mode{application.PostBuild, application.Artifact}

// released is a world in which the first revision is signed and handed over.
func released(t *testing.T, mode application.Mode) *world {
	t.Helper()
	w := newWorld(t, mode)
	w.write("1", nil)
	w.sign()
	w.push("main@sha1:1")
	w.reconcile()
	w.is(metav1.ConditionTrue, "Approved", "main@sha1:1: 1 objects, 1 gated, all allowed in prod")
	if diff := cmp.Diff([]string{"Normal Approved"}, w.said()); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	return w
}

func TestWhatIsApprovedIsHandedOver(t *testing.T) {
	w := released(t, application.PostBuild)
	values := w.values()
	if values["syncgate_pin_web"] != digestOf("1") || !strings.HasPrefix(values["syncgate_receipt_web"], "eyJ") || len(values[hook.Latch]) != 64 || len(values) != 3 {
		t.Errorf("values: got %v", values)
	}
	cm := &corev1.ConfigMap{}
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "syncgate-flux-shop"}, cm))
	if cm.Labels[watchLabel] != watchEnabled || len(cm.OwnerReferences) != 1 || cm.OwnerReferences[0].UID != "u1" {
		t.Errorf("metadata: got labels %v, owners %v", cm.Labels, cm.OwnerReferences)
	}

	w = released(t, application.Artifact)
	a := w.published().Status.Artifact
	if !strings.HasPrefix(a.Revision, "main@sha1:1@sha256:") || a.Metadata[originKey] != "main@sha1:1" || !strings.HasPrefix(a.URL, "http://gate.test/externalartifact/shop/syncgate-flux-shop/") {
		t.Errorf("artifact: got %+v", a)
	}
	must(t, w.Storage.VerifyArtifact(*a))
	dir := t.TempDir()
	if err := w.Storage.CopyToPath(a, "manifests.yaml", filepath.Join(dir, "manifests.yaml")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "manifests.yaml"))
	must(t, err)
	if text := string(data); !strings.Contains(text, "ghcr.io/acme/web:1@"+digestOf("1")) || !strings.Contains(text, `"syncgate.io/receipt":"eyJ`) {
		t.Errorf("manifests: got %s", text)
	}
}

func TestWhatIsRefusedIsNotHandedOver(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		before := w.published()
		w.write("2", nil)
		w.push("main@sha1:2")
		w.reconcile()
		w.is(metav1.ConditionFalse, "DigestMismatch", "SYNC REFUSED [DigestMismatch]", "Pod shop/web", "ghcr.io/acme/web:2@")
		if diff := cmp.Diff([]string{"Warning DigestMismatch"}, w.said()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", mode, diff)
		}
		if w.values() != nil {
			t.Errorf("%s: the ConfigMap is still there: %v", mode, w.values())
		}
		if mode == application.Artifact {
			after := w.published()
			if diff := cmp.Diff(before.Status.Artifact, after.Status.Artifact); diff != "" {
				t.Errorf("what was approved before (-before +after):\n%s", diff)
			}
			if c := after.Status.Conditions[0]; c.Status != metav1.ConditionFalse || c.Reason != "DigestMismatch" {
				t.Errorf("Ready of the ExternalArtifact: got %+v", c)
			}
		}
		w.sign()
		w.push("main@sha1:3")
		w.reconcile()
		w.is(metav1.ConditionTrue, "Approved", "main@sha1:3")
		switch {
		case mode == application.PostBuild && w.values()["syncgate_pin_web"] != digestOf("2"):
			t.Errorf("values after signing: %v", w.values())
		case mode == application.Artifact && w.published().Status.Artifact.Metadata[originKey] != "main@sha1:3":
			t.Errorf("artifact after signing: %+v", w.published().Status.Artifact)
		}
	}
}

// TestNothingIsDoneTwice: while nothing changes, a reconciliation fetches and
// writes nothing; what a verdict follows from makes it new.
func TestNothingIsDoneTwice(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		if writes, fetches := w.reconcile(); len(writes) > 0 || fetches > 0 {
			t.Errorf("%s: unchanged: writes %q, %d fetches", mode, writes, fetches)
		}
		changes := map[string]func(){
			"another revision": func() { w.push("main@sha1:9") },
			"a request": func() {
				u := w.kustomization()
				annotations := u.GetAnnotations()
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations["reconcile.fluxcd.io/requestedAt"] = "now"
				u.SetAnnotations(annotations)
				w.replace(u)
			},
			"another policy": func() {
				must(t, os.WriteFile(w.policy, []byte(prod+"help: ask\n"), 0o600))
				w.Loader.Reload()
				if !w.Loader.Reload() {
					t.Fatal("the policy was not loaded")
				}
			},
			"time": func() { w.now = w.now.Add(anew) },
		}
		for name, change := range changes {
			change()
			if _, fetches := w.reconcile(); fetches != 1 {
				t.Errorf("%s: %s: %d fetches, want 1", mode, name, fetches)
			}
		}
	}
}

// TestWhatCannotBeJudgedIsRefused: nothing of the gate is left, but for what was
// approved before in artifact mode.
func TestWhatCannotBeJudgedIsRefused(t *testing.T) {
	status := func(w *world, change func(*meta.Artifact)) {
		w.push("main@sha1:2")
		a, err := w.artifactOf(t.Context(), application.Reference{Kind: "GitRepository", Namespace: "shop", Name: "shop"})
		must(t, err)
		change(a)
		w.source(a)
	}
	for name, c := range map[string]struct {
		spoil  func(*world)
		status metav1.ConditionStatus
		reason string
		want   string
	}{
		"no artifact": {func(w *world) { w.source(nil) }, metav1.ConditionUnknown, "SourceNotReady", "no artifact"},
		"a wrong digest": {func(w *world) { status(w, func(a *meta.Artifact) { a.Digest = digestOf("x") }) },
			metav1.ConditionUnknown, "FetchFailed", "the digest does not match"},
		"no file": {func(w *world) { status(w, func(a *meta.Artifact) { a.URL += "x" }) },
			metav1.ConditionUnknown, "FetchFailed", "no such artifact"},
		"no manifests": {func(w *world) {
			must(t, os.RemoveAll(w.repo))
			must(t, os.MkdirAll(w.repo, 0o755))
			w.push("main@sha1:2")
		},
			metav1.ConditionFalse, "RenderFailed", `"app" is not a directory`},
		"no objects": {func(w *world) {
			must(t, os.Remove(filepath.Join(w.repo, "app/web.yaml")))
			must(t, os.WriteFile(filepath.Join(w.repo, "app/kustomization.yaml"), []byte("resources: []\n"), 0o600))
			w.push("main@sha1:2")
		}, metav1.ConditionFalse, "", ""},
		"force": {func(w *world) { w.replace(kustomizationOf(t, w.mode, "  force: true\n")) }, metav1.ConditionFalse, "ForceNotAllowed", "spec.force"},
		"an annotation that would relax": {func(w *world) {
			u := w.kustomization()
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["syncgate.io/mode"] = "Warn"
			u.SetAnnotations(annotations)
			w.replace(u)
		}, metav1.ConditionFalse, "PolicyInvalid", "Warn would relax it"},
	} {
		for _, mode := range modes {
			t.Run(name+" in "+string(mode)+" mode", func(t *testing.T) {
				w := released(t, mode)
				c.spoil(w)
				w.reconcile()
				if got := w.condition(); c.reason != "" {
					w.is(c.status, c.reason, c.want)
				} else if got.Status != c.status {
					t.Errorf("condition: got %+v", got)
				}
				if w.values() != nil {
					t.Errorf("the ConfigMap is still there: %v", w.values())
				}
				want := "main@sha1:1@"
				if name == "force" { // setAfterwards
					want = ""
				}
				if got := w.handedOver(); mode == application.Artifact && (!strings.HasPrefix(got, want) || want == "" && got != "") {
					t.Errorf("artifact: got %q", got)
				}
			})
		}
	}
}

// TestWarningsLetPassWhatFluxCanBuild: a placeholder without a pin it cannot.
func TestWarningsLetPassWhatFluxCanBuild(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		must(t, os.WriteFile(w.policy, []byte(prod+"mode: {render: Warn}\n"), 0o600))
		w.Loader.Reload()
		if !w.Loader.Reload() {
			t.Fatal("the policy was not loaded")
		}
		w.write("2", nil)
		w.push("main@sha1:2")
		w.reconcile()
		w.is(metav1.ConditionTrue, "Warned", "SYNC WOULD BE REFUSED [DigestMismatch]")
		if diff := cmp.Diff([]string{"Warning Warned"}, w.said()); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", mode, diff)
		}
		if mode == application.Artifact {
			continue
		}
		w.write("3", map[string]string{"app/.syncgate/images/ghcr.io+acme+web.lock": "- {name: ghcr.io/acme/web, tag: \"0\", digest: " + digestOf("0") + "}\n"})
		w.push("main@sha1:3")
		w.reconcile()
		w.is(metav1.ConditionFalse, "ImageNotPinned", "SYNC REFUSED [ImageNotPinned]")
		if w.values() != nil {
			t.Errorf("values: got %v", w.values())
		}
	}
}

// TestASourceOfAnotherNamespace: the gate would copy what is another tenant's, in
// artifact mode past kustomize-controller's own --no-cross-namespace-refs.
func TestASourceOfAnotherNamespace(t *testing.T) {
	for _, mode := range modes {
		w := newWorld(t, mode)
		w.write("1", nil)
		w.sign()
		w.push("main@sha1:1")
		g := &sourcev1.GitRepository{}
		must(t, w.Client.Get(t.Context(), key, g))
		theirs := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "shop"}}
		must(t, w.Client.Create(t.Context(), theirs))
		theirs.Status = g.Status
		must(t, w.Client.Status().Update(t.Context(), theirs))
		u := w.kustomization()
		if mode == application.Artifact {
			u.SetAnnotations(map[string]string{hook.SourceAnnotation: "GitRepository/theirs/shop", hook.PathAnnotation: "app"})
		} else {
			must(t, unstructured.SetNestedField(u.Object, "theirs", "spec", "sourceRef", "namespace"))
		}
		w.replace(u)
		if _, fetches := w.reconcile(); fetches != 0 {
			t.Errorf("%s: %d fetches, want none", mode, fetches)
		}
		w.is(metav1.ConditionFalse, "PolicyInvalid", "GitRepository/theirs/shop is in another namespace", "Fix: name a source of the namespace shop", "--no-cross-namespace-refs")
		if ea := w.published(); w.values() != nil || ea != nil && ea.Status.Artifact != nil {
			t.Errorf("%s: values %v, ExternalArtifact %+v", mode, w.values(), ea)
		}
		w.CrossNamespaceRefs = true
		w.reconcile()
		w.is(metav1.ConditionTrue, "Approved", "main@sha1:1")
	}
}

func TestWithoutStorageThereIsNoArtifactMode(t *testing.T) {
	w := newWorld(t, application.Artifact)
	w.Storage = nil
	w.reconcile()
	w.is(metav1.ConditionFalse, "PolicyInvalid", "artifact mode is off")
}

// TestOneThatSaysItIsGatedAndIsNot is told so: the annotation alone does nothing.
func TestOneThatSaysItIsGatedAndIsNot(t *testing.T) {
	w := newWorld(t, application.PostBuild)
	u := kustomizationOf(t, application.Plain, "")
	u.SetAnnotations(map[string]string{hook.SourceAnnotation: "GitRepository/shop"})
	w.replace(u)
	w.reconcile()
	w.is(metav1.ConditionFalse, "PolicyInvalid", "the gate is not in the path")
}

func TestAKustomizationThatIsNotGatedIsLeftAlone(t *testing.T) {
	w := newWorld(t, application.Plain)
	w.write("1", nil)
	w.push("main@sha1:1")
	if writes, fetches := w.reconcile(); len(writes) > 0 || fetches > 0 || w.condition() != nil {
		t.Errorf("writes %q, %d fetches, condition %+v", writes, fetches, w.condition())
	}
}

func TestOneThatIsNotGatedAnyMoreIsReleased(t *testing.T) {
	for _, mode := range modes {
		w := released(t, mode)
		w.replace(kustomizationOf(t, application.Plain, ""))
		w.reconcile()
		if w.condition() != nil || w.values() != nil || w.published() != nil {
			t.Errorf("%s: condition %+v, values %v, ExternalArtifact %+v", mode, w.condition(), w.values(), w.published())
		}
		if files := w.files(); len(files) > 0 {
			t.Errorf("%s: stored: %q", mode, files)
		}
	}
}

// files are what is stored.
func (w *world) files() []string {
	w.t.Helper()
	var all []string
	must(w.t, filepath.WalkDir(w.Storage.BasePath, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".lock") {
			all = append(all, strings.TrimPrefix(path, w.Storage.BasePath+"/"))
		}
		return err
	}))
	slices.Sort(all)
	return all
}
