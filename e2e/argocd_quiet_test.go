//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// tenTags is a Deployment of ten images, none of which has a digest.
func tenTags(repository string) string {
	var containers []string
	for tag := range 10 {
		containers = append(containers, fmt.Sprintf("      - {name: c%d, image: %q}\n", tag, fmt.Sprintf("%s:%d", repository, tag)))
	}
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
` + strings.Join(containers, "")
}

// quiet: what is signed and synced stays so, whichever way Argo CD compares.
// Neither the pins nor the receipts are a difference, and another receipt is a
// change of metadata alone.
func (w *world) quiet(t *testing.T, images pushed) {
	together(t,
		part{"client-side diff", func(t *testing.T) { w.on(t).quietBy(t, images, "client") }},
		part{"server-side diff", func(t *testing.T) { w.on(t).quietBy(t, images, "server") }},
	)
}

func (w *world) quietBy(t *testing.T, images pushed, side string) {
	name := "quiet-" + side
	s := w.newShop(t, "apps/"+name, name)
	options := harness.ApplicationOptions{Name: name, RepoURL: s.repo.URL, Path: s.path, Namespace: name}
	if side == "server" {
		options.Annotations = map[string]string{"argocd.argoproj.io/compare-options": "ServerSideDiff=true"}
	}
	s.repo.Write(map[string]string{s.path + "/web.yaml": tenTags(images.repository)})
	s.pin()
	s.sign()
	app := w.Create(options)
	app.WaitSynced(s.repo.Commit("Release ten images"))
	live := w.Get(harness.Deployments, name, "web")
	if diff := cmp.Diff(images.pinned, harness.Images(live)); diff != "" {
		t.Fatalf("images (-want +got):\n%s", diff)
	}
	receipts := func() []string {
		return strings.Fields(w.Get(harness.Deployments, name, "web").GetAnnotations()["syncgate.io/receipt"])
	}
	first := receipts()
	if len(first) != 1 {
		t.Fatalf("receipts on the Deployment: %q, want one", first)
	}

	// Once the Deployment's own controller has written what it writes, and Argo CD
	// has seen it: a server-side diff shows that as a difference for a moment.
	w.Kubectl(nil, "rollout", "status", "deployment/web", "--namespace", name)
	w.Eventually("Argo CD at rest", func() (string, bool) {
		st := app.Refresh("normal")
		return st.String(), st.Sync == "Synced"
	})

	// Argo CD compares three times more, the last time with a render of its own,
	// and does nothing.
	finished, writes := app.Status().Finished, w.Writes(harness.ArgoCDUser, name)
	for _, kind := range []string{"normal", "normal", "hard"} {
		if st := app.Refresh(kind); st.Sync != "Synced" || st.Condition != "" || st.Finished != finished {
			t.Errorf("after a %s refresh: %s finished %s, want Synced since %s", kind, st, st.Finished, finished)
		}
	}
	if diff := cmp.Diff(writes, w.Writes(harness.ArgoCDUser, name)); diff != "" {
		t.Errorf("Argo CD wrote while nothing had changed (-before +after):\n%s", diff)
	}
	asked := w.Audit(func(a harness.AuditEvent) bool {
		return a.User.Username == harness.ArgoCDUser && a.ObjectRef.Namespace == name && a.DryRun()
	})
	if (len(asked) > 0) != (side == "server") {
		t.Errorf("%d dry runs for a %s-side diff", len(asked), side)
	}

	// Signed anew: the Deployment's own metadata changes, and nothing else.
	s.sign("--renew-within", "2161h")
	app.WaitSynced(s.repo.Commit("Renew the receipts"))
	renewed := w.Get(harness.Deployments, name, "web")
	if diff := cmp.Diff(live.Object["spec"], renewed.Object["spec"]); diff != "" {
		t.Errorf("signing anew changed the spec (-before +after):\n%s", diff)
	}
	if second := receipts(); len(second) != 1 || second[0] == first[0] {
		t.Errorf("%d receipts after signing anew, the first of them the old one: %t; want a new one in its place", len(second), second[0] == first[0])
	}
	if replicaSets := w.List(harness.ReplicaSets, name, ""); len(replicaSets) != 1 {
		t.Errorf("%d ReplicaSets, want 1: signing anew restarted the Pods", len(replicaSets))
	}
	if diff := cmp.Diff(append(writes, "patch deployments/web"), w.Writes(harness.ArgoCDUser, name)); diff != "" {
		t.Errorf("Argo CD's writes (-want +got):\n%s", diff)
	}
}
