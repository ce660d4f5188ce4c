//go:build e2e

package e2e

// Failures of systems of this kind that take a real Argo CD to show. The table
// of all is in plugin/app/peers_test.go.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// importJob is an ordinary Job, whose pod template cannot be changed.
const importJob = `---
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: import, image: %q}]}}}
`

// TestScenarioT08ATagThatIsPushedAgainReachesNoJob: neither between signing and
// the sync nor before a further one. A Job that is made anew with each sync has
// the image that was approved, one that is not stays the same Job.
func TestScenarioT08ATagThatIsPushedAgainReachesNoJob(t *testing.T) {
	e := harness.New(t)
	registry := harness.StartRegistry(e)
	release := harness.NewSigner(e, harness.Build(e), "release")
	w := newWorld(t, harness.ArgoCD3, release)
	w.guard()
	const name = "jobs"
	s := w.newShop(t, "apps/"+name, name)
	tag, digest := registry.Push("shop/web", "1")
	approved := tag + "@" + digest
	write := func(greeting string) {
		files := s.hooked(tag, greeting)
		files[s.path+"/all.yaml"] += fmt.Sprintf(importJob, tag)
		s.repo.Write(files)
	}
	write("hello")
	s.pin()
	s.sign()
	moved := registry.PushAgain("shop/web", "1")
	if moved == digest {
		t.Fatal("the tag has not moved")
	}
	revision := s.repo.Commit("Release it")
	app := w.Create(harness.ApplicationOptions{Name: name, RepoURL: s.repo.URL, Path: s.path, Namespace: name, NoRetry: true})
	app.WaitSynced(revision)

	// state is what each runs, and which Job it is.
	state := func() (images map[string][]string, hook, ordinary string) {
		t.Helper()
		migrate, job := w.Get(harness.Jobs, name, "migrate"), w.Get(harness.Jobs, name, "import")
		if migrate == nil || job == nil {
			t.Fatal("a Job is missing")
		}
		return map[string][]string{
			"migrate": harness.Images(migrate), "import": harness.Images(job), "web": harness.Images(w.Get(harness.Deployments, name, "web")),
		}, string(migrate.GetUID()), string(job.GetUID())
	}
	all := map[string][]string{"migrate": {approved}, "import": {approved}, "web": {approved}}
	images, hook, ordinary := state()
	if diff := cmp.Diff(all, images); diff != "" {
		t.Errorf("after the first sync (-want +got):\n%s", diff)
	}

	// The tag moves again, and everything is rendered anew and synced anew.
	registry.PushAgain("shop/web", "1")
	if st := app.Refresh("hard"); st.Sync != "Synced" || st.Condition != "" {
		t.Errorf("after the tag has moved: %s", st)
	}
	// Argo CD deletes the hook's Job, and sometimes takes the success of the last
	// operation for that of this one: then the next makes it.
	w.Eventually("the hook's Job made anew", func() (string, bool) {
		st := app.Sync(revision)
		if st.Phase != "Succeeded" {
			t.Fatalf("a further sync: %s", st)
		}
		u := w.Get(harness.Jobs, name, "migrate")
		return st.String(), u != nil && string(u.GetUID()) != hook
	})
	images, _, sameJob := state()
	if diff := cmp.Diff(all, images); diff != "" {
		t.Errorf("after a further sync (-want +got):\n%s", diff)
	}
	if sameJob != ordinary {
		t.Error("the ordinary Job was made anew")
	}

	// Who takes the new digest is refused by name until somebody signs it.
	s.Run(s.dir(), nil, s.syncgate, "pin", "--namespace", name, "--update")
	s.repo.Commit("Take what the tag says now")
	condition := app.WaitRefused("SYNC REFUSED [DigestMismatch]", "containers[", ".image is "+tag)
	report(t, "condition of the moved tag", condition)
	if images, _, job := state(); !cmp.Equal(all, images) || job != ordinary {
		t.Errorf("after the refusal: %v, ordinary Job the same: %t", images, job == ordinary)
	}
}

// TestScenarioT17EveryWayAroundIsRefusedInTheClusterAndNamed: the operation
// brings its own manifests, the plugin is taken out, live values win over signed
// ones. The webhook refuses the gated change, the controller says which way it is.
func TestScenarioT17EveryWayAroundIsRefusedInTheClusterAndNamed(t *testing.T) {
	e := harness.New(t)
	images := pushImages(harness.StartRegistry(e))
	w := newWorld(t, harness.ArgoCD3, harness.NewSigner(e, harness.Build(e), "release"))
	w.guard()
	const name = "around"
	s := w.newShop(t, "apps/"+name, name)
	write := func(tag string) {
		s.repo.Write(map[string]string{s.path + "/web.yaml": unsignedDeployment("web", images.repository+":"+tag)})
		s.pin()
	}
	write("1")
	s.sign()
	app := w.Create(harness.ApplicationOptions{Name: name, RepoURL: s.repo.URL, Path: s.path, Namespace: name, NoRetry: true})
	app.WaitSynced(s.repo.Commit("Release it"))

	runs := func(after string, signed ...string) {
		t.Helper()
		got := harness.Images(w.Get(harness.Deployments, name, "web"))
		if len(got) != 1 || !slices.Contains(signed, got[0]) {
			t.Errorf("%s: %q runs, want one of %q", after, got, signed)
		}
	}
	named := func(finding string) {
		t.Helper()
		w.Eventually("finding "+finding, func() (string, bool) {
			status := w.Get(harness.Applications, "argocd", name).GetAnnotations()["syncgate.io/status"]
			return status, strings.Contains(status, finding)
		})
	}
	spec := func(patch map[string]any) {
		t.Helper()
		w.Patch(harness.Applications, "argocd", name, map[string]any{"spec": patch})
	}
	refused := []string{"admission webhook", "SYNC REFUSED [DigestMismatch]", "Deployment around/web: containers[web].image is "}

	// 1. argocd app sync --local.
	local := inNamespace(unsignedDeployment("web", images.pinned[2]), "web", name)
	w.Patch(harness.Applications, "argocd", name, map[string]any{"operation": map[string]any{"sync": map[string]any{"manifests": []any{asJSON(local)}}}})
	w.Eventually("the end of the local sync", func() (string, bool) {
		st := app.Status()
		return st.String(), strings.Contains(st.Operation, "SYNC REFUSED [ReceiptMissing]") && strings.Contains(st.Operation, "admission webhook")
	})
	named("[LocalSync] ")
	runs("a local sync", images.pinned[1])

	// 2. The plugin is taken out, and the image changed.
	write("2")
	s.repo.Commit("Change the image")
	spec(map[string]any{"source": map[string]any{"plugin": nil}})
	if st := app.Refresh("hard"); st.Condition != "" {
		t.Errorf("without the plugin: %s", st)
	}
	w.Eventually("the sync without the plugin refused", func() (string, bool) {
		st := app.Status()
		return st.String(), harness.ContainsAll(st.Operation, []string{"admission webhook", "SYNC REFUSED [", "[ReceiptMissing] Deployment around/web: no receipt for image"})
	})
	named("[PluginMissing] ")
	runs("a sync without the plugin", images.pinned[1])
	spec(map[string]any{"source": map[string]any{"plugin": map[string]any{"name": "syncgate"}}})
	app.WaitRefused("SYNC REFUSED [DigestMismatch]", "Deployment around/web", "containers[web].image")

	// 3. Live values win. Nobody can make a live image of one that is not signed,
	// so whatever Argo CD keeps, it is one that was.
	spec(map[string]any{
		"syncPolicy":        map[string]any{"syncOptions": []any{"CreateNamespace=true", "RespectIgnoreDifferences=true"}},
		"ignoreDifferences": []any{map[string]any{"group": "apps", "kind": "Deployment", "jsonPointers": []any{"/spec/template/spec/containers/0/image"}}},
	})
	named("[RespectIgnoreDifferences] ")
	r := w.TryKubectl(nil, "set", "image", "deployment/web", "web="+images.pinned[3], "--namespace", name)
	if r.Status == 0 || !harness.ContainsAll(string(r.Stderr), refused) {
		t.Errorf("a live image that nobody signed: status %d, %s", r.Status, r.Stderr)
	}
	s.sign()
	revision := s.repo.Commit("Approve the second image")
	app.WaitSynced(revision)
	if st := app.Sync(revision); st.Phase != "Succeeded" {
		t.Errorf("a sync of what is signed: %s", st)
	}
	runs("a sync with live values", images.pinned[1], images.pinned[2])
}
