//go:build e2e

package e2e

// Who is refreshed for what, among two hundred Applications: the real controller
// and a real API server. What Argo CD would make of a refresh is no part of it
// (TestTheControllerKeepsArgoCDsCacheHonest), so a stand-in takes the
// annotations away and counts them.

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// installArgoKinds makes Argo CD's kinds known, and the namespaces that its
// Applications are in.
func installArgoKinds(c *harness.Cluster, b harness.Binaries, namespaces ...string) {
	c.T.Helper()
	for _, crd := range []string{"application-crd.yaml", "appproject-crd.yaml"} {
		data, err := os.ReadFile(filepath.Join(b.ArgoCDManifests, "crds", crd))
		if err != nil {
			c.T.Fatal(err)
		}
		c.Apply(data)
	}
	for _, ns := range namespaces {
		c.Kubectl(nil, "create", "namespace", ns)
		c.Eventually("Argo CD's kinds", func() (string, bool) {
			r := c.TryKubectl(nil, "get", "applications", "--namespace", ns)
			return string(r.Stderr), r.Status == 0
		})
	}
}

const manyPolicy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- name: release
  keys: {file: release.jwks.json}
  subjects: ["*/*/*/*"]
- name: security
  keys: {file: security.jwks.json}
  subjects: ["*/*/*/*"]
revocations: {file: list.jwt, issuers: [release]}
`

// manyApp is an Application that is Synced, with one Deployment, as Argo CD
// leaves it.
func manyApp(name, plugin string) string {
	return fmt.Sprintf(`---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %[1]s, namespace: argocd}
spec:
  project: default
  source: {repoURL: "https://git.example.com/shop.git", path: apps/%[1]s, targetRevision: main, %[2]s}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
status:
  sync: {status: Synced, revision: "0"}
  resources: [{group: apps, version: v1, kind: Deployment, namespace: shop, name: %[1]s, status: Synced}]
`, name, plugin)
}

func TestOfTwoHundredApplicationsThoseAreRefreshedThatAChangeConcerns(t *testing.T) {
	const all = 200
	e := harness.New(t)
	b := harness.Build(e)
	c := harness.StartCluster(e, b)
	installArgoKinds(c, b, "argocd", "shop")
	c.ControllerManager().Stop() // two hundred Deployments need no ReplicaSets here
	release, security := harness.NewSigner(e, b, "release"), harness.NewSigner(e, b, "security")
	list := e.Path("list.jwt")
	revoke := func(flags ...string) string {
		e.Run(e.Dir, nil, b.Syncgate, append([]string{"revoke", "--list", list, "--key", release.Key, "--issuer", "release"}, flags...)...)
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	policy := harness.NewPolicy(e, "policy", harness.BasicPolicy("release"), release)
	policy.Extra = map[string]string{"list.jwt": revoke("--release", "long-ago")}
	policy.SwapPolicy(manyPolicy, release, security)

	name := func(i int) string { return fmt.Sprintf("app-%03d", i) }
	leaked := map[string]int{} // those of release 1.5
	var good, bad, apps strings.Builder
	everyone := map[string]int{}
	for i := range all {
		everyone["argocd/"+name(i)] = 1
		to := &good
		if i%70 == 7 { // 7, 77 and 147
			to, leaked["argocd/"+name(i)] = &bad, 1
		}
		fmt.Fprintf(to, "---\n%s", workload(name(i))["apps/"+name(i)+"/web.yaml"])
		apps.WriteString(manyApp(name(i), "plugin: {name: syncgate}"))
	}
	for i := range 5 {
		apps.WriteString(manyApp(fmt.Sprintf("native-%d", i), "directory: {recurse: true}")) // is never asked for
	}
	c.Apply([]byte(release.Sign(policy, good.String(), "shop", "--release", "1.4")), "--namespace", "shop")
	c.Apply([]byte(release.Sign(policy, bad.String(), "shop", "--release", "1.5")), "--namespace", "shop")
	c.Apply([]byte(apps.String()))
	refreshes := c.StandInForArgoCD()
	controller := harness.StartController(c, b, harness.NewMount(e, "settings", nil), policy.Dir, "--settle=0s", "--refresh-rate=1000", "--refresh-burst=1000")

	// wanted waits until so many are refreshed; then until somebody is whose change
	// came later, for then everybody is whose change came before: a sweep looks at
	// all of them, and makes all due at once.
	last := "argocd/" + name(all-1)
	asks := 0
	wanted := func(what string, want map[string]int, change func()) {
		t.Helper()
		start := time.Now()
		change()
		e.Eventually(what, func() (string, bool) {
			n := refreshes.Seen()
			return fmt.Sprintf("%d refreshed, want %d", n, len(want)), n >= len(want)
		})
		took := time.Since(start)
		got := refreshes.Take()
		asks++
		c.Patch(harness.Applications, "argocd", name(all-1), map[string]any{"metadata": map[string]any{"annotations": map[string]any{"syncgate.io/categories": fmt.Sprintf("x-%d", asks)}}})
		e.Eventually("refresh of the last, after "+what, func() (string, bool) {
			for name, n := range refreshes.Take() {
				got[name] += n
			}
			return fmt.Sprint(got[last]), got[last] > want[last]
		})
		if got[last]--; got[last] == 0 {
			delete(got, last)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: refreshed (-want +got):\n%s", what, diff)
		}
		t.Logf("%s: %d of %d refreshed within %.1f s", what, len(want), all, took.Seconds())
	}
	one := func(i int) map[string]int { return map[string]int{"argocd/" + name(i): 1} }
	mount := func(text string, signers ...*harness.Signer) func() {
		return func() { policy.SwapPolicy(text, signers...) }
	}
	annotate := func(i int, key string, value any) func() {
		return func() {
			c.Patch(harness.Applications, "argocd", name(i), map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
		}
	}
	wanted("a new controller", everyone, func() {})
	wanted("the list signed anew", map[string]int{}, func() {
		loaded := func() int { return strings.Count(controller.Log(), `"msg":"loaded"`) }
		before := loaded()
		policy.Extra["list.jwt"] = revoke("--reissue")
		policy.SwapPolicy(manyPolicy, release, security)
		e.Eventually("the new list in the controller", func() (string, bool) { return "", loaded() > before })
	})
	wanted("a release revoked", leaked, func() {
		policy.Extra["list.jwt"] = revoke("--release", "1.5")
		policy.SwapPolicy(manyPolicy, release, security)
	})
	wanted("an image revoked", one(42), func() {
		_, digest, _ := strings.Cut(harness.Image(name(42)+":1"), "@")
		policy.Extra["list.jwt"] = revoke("--image", digest)
		policy.SwapPolicy(manyPolicy, release, security)
	})
	wanted("an annotation of the gate", one(3), annotate(3, "syncgate.io/categories", "service"))
	wanted("an annotation of somebody else", map[string]int{}, annotate(4, "example.com/note", "hello"))
	wanted("another project", one(5), func() {
		c.Patch(harness.Applications, "argocd", name(5), map[string]any{"spec": map[string]any{"project": "other"}})
	})
	wanted("a sync", map[string]int{}, func() {
		c.Patch(harness.Applications, "argocd", name(6), map[string]any{"status": map[string]any{"sync": map[string]any{"revision": "1"}}})
	})
	wanted("a key removed", maps.Clone(everyone), mount(strings.Replace(manyPolicy, "- name: security\n  keys: {file: security.jwks.json}\n  subjects: [\"*/*/*/*\"]\n", "", 1), release))
	wanted("the policy changed", maps.Clone(everyone), mount(harness.BasicPolicy("release")+"revocations: {file: list.jwt, issuers: [release]}\ncategories: [{name: service}]\n", release))
}
