package controller

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncgate/syncgate/plugin/application"
)

// forge makes the status of the ExternalArtifact say a.
func (w *world) forge(a *meta.Artifact) {
	w.t.Helper()
	ea := w.published()
	ea.Status.Artifact = a
	must(w.t, w.Client.Status().Update(w.t.Context(), ea))
}

func TestWhatSomebodyElseWroteIsUndone(t *testing.T) {
	w := released(t, application.Artifact)
	good := w.published().Status
	forged := &meta.Artifact{URL: "http://evil.test/x.tar.gz", Path: "x.tar.gz", Revision: "evil", Digest: digestOf("evil")}
	for name, spoil := range map[string]func(){
		"a forged status":      func() { w.forge(forged) },
		"an emptied status":    func() { w.forge(nil) },
		"another address":      func() { a := good.Artifact.DeepCopy(); a.URL = forged.URL; w.forge(a) },
		"more metadata":        func() { a := good.Artifact.DeepCopy(); a.Metadata["x"] = "y"; w.forge(a) },
		"a deleted object":     func() { must(t, w.Client.Delete(t.Context(), w.published())) },
		"a changed file":       func() { must(t, os.WriteFile(w.Storage.LocalPath(*good.Artifact), []byte("x"), 0o600)) },
		"a file that is gone":  func() { must(t, os.Remove(w.Storage.LocalPath(*good.Artifact))) },
		"all files gone":       func() { w.wipe() },
		"a restart":            func() { w.memory = newMemory() },
		"a restart and forged": func() { w.memory = newMemory(); w.forge(forged) },
	} {
		t.Run(name, func(t *testing.T) {
			spoil()
			w.reconcile()
			got := w.published().Status
			if diff := cmp.Diff(good.Artifact, got.Artifact); diff != "" {
				t.Errorf("artifact (-before +after):\n%s", diff)
			}
			must(t, w.Storage.VerifyArtifact(*got.Artifact))
		})
	}
}

// TestNothingPublishedIsKeptInMemory: what is on the disk is not remembered as
// well, and is there again, the same to the byte, when the disk has lost it.
func TestNothingPublishedIsKeptInMemory(t *testing.T) {
	w := released(t, application.Artifact)
	if kept := w.memory.all[key].out; !kept.approved || kept.manifests != nil {
		t.Errorf("approved %v, %d bytes are kept", kept.approved, len(kept.manifests))
	}
	if writes, fetches := w.reconcile(); len(writes) > 0 || fetches > 0 {
		t.Errorf("unchanged: writes %q, %d fetches", writes, fetches)
	}
	good := w.published().Status.Artifact
	w.wipe()
	if _, fetches := w.reconcile(); fetches != 1 {
		t.Errorf("%d fetches after the disk was lost, want 1", fetches)
	}
	if diff := cmp.Diff(good, w.published().Status.Artifact); diff != "" {
		t.Errorf("artifact (-before +after):\n%s", diff)
	}
	// And where that cannot be built once more nothing is served.
	w.wipe()
	w.mu.Lock()
	clear(w.served)
	w.mu.Unlock()
	w.reconcile()
	if a := w.published().Status.Artifact; a != nil {
		t.Errorf("published: %+v", a)
	}
}

// wipe removes all that is stored.
func (w *world) wipe() {
	w.t.Helper()
	entries, err := os.ReadDir(w.Storage.BasePath)
	must(w.t, err)
	for _, e := range entries {
		must(w.t, os.RemoveAll(filepath.Join(w.Storage.BasePath, e.Name())))
	}
}

// TestWhatIsRefusedIsNotServedWithoutItsFile: a status that nobody can vouch for
// says nothing.
func TestWhatIsRefusedIsNotServedWithoutItsFile(t *testing.T) {
	for name, spoil := range map[string]func(*world){
		"all files gone": func(w *world) { w.wipe() },
		"a record that cannot be read": func(w *world) {
			must(t, os.WriteFile(w.recordFile(key), []byte("x"), 0o600))
		},
		"forged, and all files gone": func(w *world) {
			w.wipe()
			w.forge(&meta.Artifact{URL: "http://evil.test/x.tar.gz", Path: "x.tar.gz", Revision: "evil", Digest: digestOf("evil")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := released(t, application.Artifact)
			w.write("2", nil)
			w.push("main@sha1:2")
			spoil(w)
			w.memory = newMemory()
			w.reconcile()
			w.is(metav1.ConditionFalse, "DigestMismatch")
			if a := w.published().Status.Artifact; a != nil {
				t.Errorf("artifact: got %+v, want none", a)
			}
		})
	}
}

// TestADiskThatIsBehindIsNotGoneBackTo: another gate has approved something
// since, which this one has not; and what was forged is told from that once this
// one has published something.
func TestADiskThatIsBehindIsNotGoneBackTo(t *testing.T) {
	other := func(after time.Duration) *meta.Artifact {
		return &meta.Artifact{URL: "http://other.test/x.tar.gz", Path: "x.tar.gz", Revision: "main@sha1:2@sha256:2", Digest: digestOf("2"), LastUpdateTime: metav1.NewTime(start.Add(after))}
	}
	for name, c := range map[string]struct {
		published *meta.Artifact
		restarted bool
		approved  bool
		want      string // revision that is published
	}{
		"published since, by another":          {other(time.Minute), true, false, ""},
		"published before":                     {other(-time.Minute), true, false, "main@sha1:1@"},
		"published since, while this one runs": {other(time.Minute), false, false, "main@sha1:1@"},
		"nothing published":                    {nil, true, false, "main@sha1:1@"},
		"and what is there now is approved":    {other(time.Minute), true, true, "main@sha1:3@"},
	} {
		t.Run(name, func(t *testing.T) {
			w := released(t, application.Artifact)
			w.reconcile()
			w.write("3", nil)
			if c.approved {
				w.sign()
			}
			w.push("main@sha1:3")
			w.forge(c.published)
			if c.restarted {
				w.memory = newMemory()
			}
			for range 2 {
				w.reconcile()
				w.is(map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[c.approved], w.condition().Reason)
				got := w.handedOver()
				if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
					t.Errorf("got %q published, want %q", got, c.want)
				}
			}
		})
	}
}

func TestOldArtifactsAreCollected(t *testing.T) {
	w := released(t, application.Artifact)
	for i := 2; i < 8; i++ {
		w.write(strconv.Itoa(i), nil)
		w.sign()
		w.push("main@sha1:" + strconv.Itoa(i))
		w.reconcile()
		w.is(metav1.ConditionTrue, "Approved")
	}
	var archives []string
	for _, f := range w.files() {
		if strings.HasSuffix(f, ".tar.gz") {
			archives = append(archives, f)
		}
	}
	if len(archives) != 2 {
		t.Errorf("archives: got %q, want those of the last two revisions", archives)
	}
	must(t, w.Storage.VerifyArtifact(*w.published().Status.Artifact))
}

// TestRevisionsAreOnesOfContent: another revision is another one for Flux, and so
// is another content of the same revision.
func TestRevisionsAreOnesOfContent(t *testing.T) {
	w := released(t, application.Artifact)
	first := w.published().Status.Artifact
	w.push("main@sha1:2")
	w.reconcile()
	second := w.published().Status.Artifact
	if second.Revision == first.Revision || second.Digest != first.Digest || second.Metadata[originKey] != "main@sha1:2" {
		t.Errorf("the same content of another revision: got %+v after %+v", second, first)
	}
	w.write("3", nil)
	w.sign()
	w.push("main@sha1:2")
	w.reconcile()
	if third := w.published().Status.Artifact; third.Revision == second.Revision || third.Digest == second.Digest || !strings.HasPrefix(third.Revision, "main@sha1:2@sha256:") {
		t.Errorf("other content of the same revision: got %+v after %+v", third, second)
	}
}

func TestWhatBelongsToNobodyIsRemoved(t *testing.T) {
	w := released(t, application.Artifact)
	must(t, w.sweep(t.Context()))
	if files := w.files(); len(files) != 2 {
		t.Fatalf("after a sweep: %q, want an archive and its record", files)
	}
	must(t, w.Client.Delete(t.Context(), w.kustomization()))
	must(t, w.sweep(t.Context()))
	if files := w.files(); len(files) > 0 {
		t.Errorf("after a sweep without the Kustomization: %q", files)
	}

	w = released(t, application.Artifact)
	must(t, w.Client.Delete(t.Context(), w.kustomization()))
	w.reconcile()
	if files := w.files(); len(files) > 0 {
		t.Errorf("after the Kustomization went: %q", files)
	}
}
