//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestHarnessFlux: without any gate, Flux applies what is pushed and tells what
// became of it.
func TestHarnessFlux(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	flux := harness.StartFlux(cluster, b)
	cluster.CreateNamespace("shop")
	repo := harness.NewGitRepo(e)
	repo.Write(workload("web"))
	flux.CreateGitRepository("shop", "shop", repo)
	first := flux.PushTo("shop", "shop", repo, "First")
	k := flux.CreateKustomization("shop", "web", `  targetNamespace: shop
  path: ./apps/web
  sourceRef: {kind: GitRepository, name: shop}
`, nil)
	k.WaitApplied(first)
	if diff := cmp.Diff([]string{harness.Image("web:1")}, harness.Images(cluster.Get(harness.Deployments, "shop", "web"))); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}

	repo.Write(map[string]string{"apps/web/web.yaml": "kind: nothing\n"})
	flux.PushTo("shop", "shop", repo, "Break it")
	const want = "apps/web/web.yaml: missing metadata.name"
	k.WaitNotReady(want)
	e.Eventually("notification of the failure", func() (string, bool) {
		for _, n := range flux.Sink.Notifications("kustomize-controller", "Kustomization", "shop", "web") {
			if n.Severity == "error" && strings.Contains(n.Message, want) {
				return "", true
			}
		}
		return "none", false
	})
	e.Eventually("event of the failure", func() (string, bool) {
		all := strings.Join(k.Events("kustomize-controller"), "\n")
		return all, strings.Contains(all, "Warning BuildFailed: ")
	})
	if s := k.Reconcile(); s.Ready != "False" || s.Applied != first {
		t.Errorf("after another reconciliation: %s", s)
	}
}
