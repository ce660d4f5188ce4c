//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// hooked is an application with a Job that Argo CD makes anew with each sync.
func (s *shop) hooked(image, greeting string) map[string]string {
	return map[string]string{s.path + "/all.yaml": fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: %[2]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: %[1]q}]}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {argocd.argoproj.io/hook: Sync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: %[1]q}]}}}
`, image, greeting)}
}

// expire makes the receipts in the lock those of ten days ago that were good
// until yesterday.
func (s *shop) expire(release *harness.Signer) {
	s.T.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir(), ".syncgate", environment, "*.jwt"))
	if err != nil || len(files) == 0 {
		s.T.Fatalf("receipts in the lock: %q, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.T.Fatal(err)
		}
		old := aged(release, string(data), 10*day, day)
		if old == string(data) {
			s.T.Fatalf("%s holds no receipt", file)
		}
		if err := os.WriteFile(file, []byte(old), 0o644); err != nil {
			s.T.Fatal(err)
		}
	}
}

// expired: a receipt's end is a deadline for changes. What runs goes on, Argo CD
// keeps it as it is, and nobody has to sign that. at is the world in whose
// cluster the application runs: that of this Argo CD, or another, to which the
// sidecar has no way.
func (w *world) expired(t *testing.T, images pushed, name string, at *world) {
	s := w.newShop(t, "apps/"+name, name)
	options := harness.ApplicationOptions{Name: name, RepoURL: s.repo.URL, Path: s.path, Namespace: name, SelfHeal: true}
	if at.Cluster.URL != w.Cluster.URL {
		options.Server = at.Cluster.URL
	}
	web := func() (images []string, replicas int64) {
		u := at.Get(harness.Deployments, name, "web")
		return harness.Images(u), harness.Int(u, "spec", "replicas")
	}
	migration := func() string {
		t.Helper()
		u := at.Get(harness.Jobs, name, "migrate")
		if u == nil || harness.Int(u, "status", "succeeded") != 1 {
			t.Fatalf("the hook's Job has not succeeded: %v", u)
		}
		return string(u.GetUID())
	}

	s.repo.Write(s.hooked(images.repository+":1", "hello"))
	s.pin()
	s.sign()
	app := w.Create(options)
	app.WaitSynced(s.repo.Commit("Release it"))
	migrated := migration()
	s.expire(w.release)
	expired := s.repo.Commit("Let time pass")
	app.WaitSynced(expired)

	if st := app.Refresh("hard"); st.Sync != "Synced" || st.Condition != "" || st.Revision != expired {
		t.Fatalf("with an expired receipt: %s, want Synced at %s", st, expired)
	}
	at.Kubectl(nil, "scale", "deployment/web", "--replicas=4", "--namespace", name)
	w.Eventually("self-heal of the replicas", func() (string, bool) {
		_, replicas := web()
		return fmt.Sprintf("%d replicas, %s", replicas, app.Status()), replicas == 1
	})

	s.repo.Write(s.hooked(images.repository+":1", "welcome"))
	app.WaitSynced(s.repo.Commit("Greet otherwise"))
	if got := harness.Field(at.Get(harness.ConfigMaps, name, "web"), "data", "greeting"); got != "welcome" {
		t.Errorf("greeting: got %q, want welcome", got)
	}
	if again := migration(); again == migrated {
		t.Error("the hook's Job was not made anew")
	}

	// A change needs a receipt that is good today. One for another image is
	// refused before the sync; one for this image, but expired, by the webhook of
	// the cluster where it would change.
	s.repo.Write(s.hooked(images.repository+":2", "welcome"))
	s.pin()
	s.repo.Commit("Change the image")
	want := []string{"SYNC REFUSED [DigestMismatch]", "Deployment " + name + "/web", "containers[web].image"}
	condition := app.WaitRefused(want...)
	report(t, "condition of the same receipt with a changed image", condition)
	if sentence := ours(t, condition); !harness.ContainsAll(sentence, want) {
		t.Errorf("the beginning of the sentence lacks one of %q: %s", want, sentence)
	}
	s.sign()
	s.expire(w.release)
	s.repo.Commit("Change the image with a receipt that has expired")
	want = []string{"SYNC REFUSED [ReceiptExpired]", "Deployment " + name + "/web", "containers[web].image"}
	message := app.WaitFailed(want...)
	report(t, "operation of an expired receipt for a changed image", message)
	if sentence := ours(t, message); !harness.ContainsAll(sentence, want) {
		t.Errorf("the beginning of the webhook's sentence lacks one of %q: %s", want, sentence)
	}
	if got, _ := web(); !cmp.Equal(got, images.pinned[1:2]) {
		t.Errorf("images: got %q, want %q", got, images.pinned[1:2])
	}
}
