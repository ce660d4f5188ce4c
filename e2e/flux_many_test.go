//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxOneOfManyIsRefused: the others go on, but for one that depends on it.
func TestFluxOneOfManyIsRefused(t *testing.T) {
	const many = 50
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	namespace := w.NewNamespace("many")
	repo := harness.NewGitRepoAt(e, namespace)
	w.CreateGitRepository(namespace, "many", repo)
	name := func(i int) string { return fmt.Sprintf("app-%02d", i) }
	spec := func(i int) string {
		more := ""
		if i == many-1 {
			more = "  dependsOn: [{name: app-00}]\n"
		}
		return fmt.Sprintf(`  targetNamespace: %s
  path: ./apps/%s
  sourceRef: {kind: GitRepository, name: many}
  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-%[2]s}]}
%s`, namespace, name(i), more)
	}
	write := func(i int, tag, more string) {
		image, _, _ := strings.Cut(harness.Image(name(i)+":"+tag), "@")
		repo.Write(map[string]string{
			"apps/" + name(i) + "/web.yaml": fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}%[3]s}
    spec: {containers: [{name: web, image: "%[2]s@${syncgate_pin_web}"}]}
`, name(i), image, more),
			"apps/" + name(i) + "/.syncgate/images/registry.example.test+" + name(i) + ".lock": locked(name(i) + ":" + tag),
			"clusters/" + name(i) + ".yaml": fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: %s}\nspec:\n  interval: 1h\n  prune: true\n%s", name(i), namespace, spec(i)),
		})
	}
	for i := range many {
		write(i, "1", "")
		w.Run(repo.Work, nil, w.b.Syncgate, "sign", "--policy", w.policy.Path(), "--key", w.signer.Key, "--issuer", "release",
			"--application", filepath.Join("clusters", name(i)+".yaml"), "--yes", ".")
	}
	first := w.PushTo(namespace, "many", repo, "Release all")
	var all []*harness.Kustomization
	for i := range many {
		all = append(all, w.CreateKustomization(namespace, name(i), spec(i), nil))
	}
	for _, k := range all {
		k.WaitApplied(first)
	}

	// The next revision changes what is free in all, and an image in one.
	for i := range many {
		tag := "1"
		if i == 0 {
			tag = "2"
		}
		write(i, tag, ", annotations: {round: two}")
	}
	second := w.PushTo(namespace, "many", repo, "Annotate all, and change an image in one")
	report(t, "the refused one", all[0].WaitRefused("DigestMismatch", "app-00:2"))
	for _, k := range all[1 : many-1] {
		k.WaitApplied(second)
	}
	report(t, "one that depends on it", all[many-1].WaitNotReady("dependency"))
	if st := all[0].Status(); st.Applied != first {
		t.Errorf("the refused one: %s", st)
	}
	for i, k := range all[1:] {
		if st := k.Status(); st.Approved != "True" {
			t.Errorf("%s is not approved: %s", name(i+1), st)
		}
	}
}

// TestFluxPruneIsNoWayAround: a refused revision prunes nothing, and what must
// not go without a signature does not.
func TestFluxPruneIsNoWayAround(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release")+"gatedDeletes: [NetworkPolicy]\n")
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) {
			s := w.newShop(mode)
			lock := map[string]string{"apps/shop/deny.yaml": strings.ReplaceAll(`apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, annotations: RECEIPT}
spec: {podSelector: {}, policyTypes: [Ingress]}
`, "RECEIPT", map[string]string{byPostBuild: `{syncgate.io/receipt: "${syncgate_receipt_deny}"}`, byArtifact: "{}"}[mode])}
			s.write("1", 1, "hello", lock)
			kustomization := string(e.Run(s.repo.Work, nil, "cat", "apps/shop/kustomization.yaml"))
			with := strings.Replace(kustomization, "config.yaml]", "config.yaml, deny.yaml]", 1)
			s.repo.Write(map[string]string{"apps/shop/kustomization.yaml": with})
			s.sign()
			s.create()
			first := s.push("Release the shop")
			s.WaitApplied(first)

			// A refused revision that leaves things out prunes nothing.
			s.write("2", 1, "hello", nil)
			s.repo.Write(map[string]string{"apps/shop/kustomization.yaml": strings.Replace(kustomization, ", config.yaml]", "]", 1)})
			s.push("Leave things out, with an image that nobody signed")
			s.WaitRefused("DigestMismatch")
			s.Reconcile()
			for _, kind := range []string{"networkpolicy/deny", "configmap/greeting", "deployment/web"} {
				w.Kubectl(nil, "get", kind, "--namespace", s.Namespace)
			}

			// Leaving out the NetworkPolicy alone needs no receipt of what is rendered; its
			// DELETE does.
			s.write("1", 1, "hello", nil)
			s.push("Leave out the NetworkPolicy")
			report(t, mode+": Ready when the NetworkPolicy is left out", s.WaitNotReady("NetworkPolicy/"+s.Namespace+"/deny", "SYNC REFUSED ["))
			w.Kubectl(nil, "get", "networkpolicy/deny", "--namespace", s.Namespace)
			s.repo.Write(map[string]string{"apps/shop/kustomization.yaml": with})
			s.WaitApplied(s.push("Take it back"))
		})
	}
}
