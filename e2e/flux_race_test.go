//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// pushes is how many a race has: an even number, enough to see each order of
// events now and then. "make flux-race" has 200.
func pushes(t *testing.T) int {
	text := os.Getenv("SYNCGATE_E2E_FLUX_PUSHES")
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n%2 != 0 {
		t.Fatalf("SYNCGATE_E2E_FLUX_PUSHES=%s: want an even number", text)
	}
	return n
}

// TestFluxRace: while signed and unsigned revisions alternate as fast as
// source-controller takes them, no version of the object ever has what nobody
// signed.
func TestFluxRace(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) { w.race(t, mode, images) })
	}
	w.Kubectl(nil, "delete", "validatingwebhookconfigurations", "--all")
	w.WaitAdmission()
	t.Run("artifact without the webhook", func(t *testing.T) { w.race(t, byArtifact, images) })
}

// TestFluxRaceForRights: so it is with who gets rights across the cluster, in
// postBuild mode where policy has the webhook judge ClusterRoleBindings, and in
// artifact mode by itself.
func TestFluxRaceForRights(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release")+"scope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]}}\n")
	t.Run(byPostBuild, func(t *testing.T) { w.race(t, byPostBuild, rights) })
	w.Kubectl(nil, "delete", "validatingwebhookconfigurations", "--all")
	w.WaitAdmission()
	t.Run("artifact without the webhook", func(t *testing.T) { w.race(t, byArtifact, rights) })
}

// prize is what a race is about: something gated that each revision has another
// one of.
type prize struct {
	kind string
	// write makes revision i of a shop, and returns what it has.
	write func(s *fluxShop, i int) string
	// of is what an object has of it, if it is that of the shop in a namespace.
	of         func(u *unstructured.Unstructured, namespace string) []string
	objects    schema.GroupVersionResource
	namespaced bool
}

var images = prize{
	kind: "Deployment", objects: harness.Deployments, namespaced: true, of: func(u *unstructured.Unstructured, _ string) []string { return harness.Images(u) },
	write: func(s *fluxShop, i int) string {
		s.write(strconv.Itoa(i), 1+i%3, fmt.Sprint(i), nil)
		return harness.Image("web:" + strconv.Itoa(i))
	},
}

var rights = prize{
	kind: "ClusterRoleBinding", objects: harness.ClusterRoleBindings,
	write: func(s *fluxShop, i int) string {
		user := fmt.Sprintf("%s-%d", s.Namespace, i)
		receipt, namespace := "", "namespace: "+s.Namespace+"\n"
		if s.mode == byPostBuild {
			receipt, namespace = `, annotations: {syncgate.io/receipt: "${syncgate_receipt_rights}"}`, ""
		}
		s.write("1", 1, fmt.Sprint(i), map[string]string{
			"apps/shop/kustomization.yaml": namespace + "resources: [web.yaml, config.yaml, rights.yaml]\n",
			"apps/shop/rights.yaml": fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s%s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, s.Namespace, receipt, user),
		})
		return user
	},
	of: func(u *unstructured.Unstructured, namespace string) []string {
		if u.GetName() != namespace {
			return nil // another's
		}
		var users []string
		list, _, _ := unstructured.NestedSlice(u.Object, "subjects")
		for _, x := range list {
			name, _ := x.(map[string]any)["name"].(string)
			users = append(users, name)
		}
		return users
	},
}

func (w *fluxWorld) race(t *testing.T, mode string, p prize) {
	n := pushes(t)
	s := w.newShop(mode)
	signed := map[string]bool{}
	var commits []string
	for i := range n + 1 {
		has := p.write(s, i)
		if i%2 == 0 { // the first and the last
			s.sign()
			signed[has] = true
		}
		commits = append(commits, s.repo.Record(fmt.Sprintf("Revision %d", i)))
	}
	s.repo.Push(commits[0])
	w.Request(harness.GitRepositories, s.Namespace, "shop")
	s.create()
	s.WaitApplied("main@sha1:" + commits[0])

	seen := w.watch(p, s.Namespace)
	log := len(w.gate.Log())
	for _, commit := range commits[1:] {
		s.repo.Push(commit)
		w.Request(harness.GitRepositories, s.Namespace, "shop")
		w.Eventually("artifact of "+commit, func() (string, bool) {
			revision := harness.Field(w.Get(harness.GitRepositories, s.Namespace, "shop"), "status", "artifact", "revision")
			return revision, revision == "main@sha1:"+commit
		})
	}
	s.WaitApplied("main@sha1:" + commits[n])
	versions := seen()
	different := map[string]bool{}
	for _, v := range versions {
		for _, x := range v.has {
			if different[x] = true; !signed[x] {
				t.Errorf("version %s of the %s has %s, which nobody signed", v.version, p.kind, x)
			}
		}
	}
	if len(different) < 2 {
		t.Errorf("of the %s %d versions were seen, with %v", p.kind, len(versions), different)
	}
	refused := strings.Count(w.gate.Log()[log:], `"approved":false`)
	if refused == 0 {
		t.Error("the gate refused nothing: no race was run")
	}
	t.Logf("%s: %d pushes; the gate refused %d revisions; %d versions of the %s with %d different", mode, n, refused, len(versions), p.kind, len(different))
}

// version is one of an object, and what it has of a prize.
type version struct {
	version string
	has     []string
}

// watch keeps every version of what the shop of a namespace has of p, as the API
// server tells of it, until the function that it returns is called.
func (w *fluxWorld) watch(p prize, namespace string) func() []version {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	objects := w.Client().Resource(p.objects).Namespace(namespace)
	if !p.namespaced {
		objects = w.Client().Resource(p.objects).Namespace(metav1.NamespaceAll)
	}
	watch, err := objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		w.T.Fatal(err)
	}
	var versions []version
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watch.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if has := p.of(u, namespace); len(has) > 0 {
				versions = append(versions, version{u.GetResourceVersion(), has})
			}
		}
	}()
	return func() []version {
		w.T.Helper()
		select {
		case <-ended:
			w.T.Error("the watch ended before the race: not every version was seen")
		default:
		}
		cancel()
		<-ended
		return versions
	}
}
