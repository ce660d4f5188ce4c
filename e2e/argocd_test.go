//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// refusals are commits that must not sync, each on top of a signed one. What
// the beginning of each sentence must contain is its code, the object and the
// field.
var refusals = []struct {
	name   string
	change change
	pin    bool
	want   []string
}{
	{
		name: "an image whose tag nobody looked up", change: change{tag: "2"},
		want: []string{"SYNC REFUSED [ImageNotPinned]", "Deployment shop/web", "containers[web].image"},
	},
	{
		name: "a pinned image that nobody signed", change: change{tag: "2"}, pin: true,
		want: []string{"SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "containers[web].image"},
	},
	{
		name: "the signed image in a privileged container", change: change{tag: "1", more: `patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: web, securityContext: {privileged: true}}]}}}
`}, pin: true,
		want: []string{"SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "containers[web].securityContext.privileged"},
	},
	{
		name: "a new binding to cluster-admin", change: change{tag: "1", resource: "grant.yaml"}, pin: true,
		want: []string{"SYNC REFUSED [ReceiptMissing]", "ClusterRoleBinding shop-admin", "roleRef.kind"},
	},
	{
		name: "a kustomization that does not build", change: change{tag: "1", resource: "absent.yaml"},
		want: []string{"RENDER FAILED [RenderFailed]", appPath + "/kustomization.yaml", "resources"},
	},
}

const grant = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shop-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
`

// glance is how much of our sentence everybody reads: Argo CD's panels cut.
const glance = 200

// ours is the beginning of our sentence in a text of Argo CD's.
func ours(t *testing.T, text string) string {
	t.Helper()
	for _, words := range []string{"SYNC REFUSED [", "RENDER FAILED [", "GATE ERROR ["} {
		if _, sentence, found := strings.Cut(text, words); found {
			sentence = words + sentence
			return sentence[:min(len(sentence), glance)]
		}
	}
	t.Errorf("no sentence of ours in %q", text)
	return ""
}

// fresh is a text of Argo CD's without its mark of one that it had kept.
func fresh(text string) string {
	return strings.Replace(text, "Manifest generation error (cached): ", "", 1)
}

// TestArgoCDSyncsWhatIsSignedAndNothingElse: on each version, with everything
// installed that people install. Each Argo CD also has the other's cluster.
func TestArgoCDSyncsWhatIsSignedAndNothingElse(t *testing.T) {
	e := harness.New(t)
	images := pushImages(harness.StartRegistry(e))
	release := harness.NewSigner(e, harness.Build(e), "release")
	two, three := newWorld(t, harness.ArgoCD2, release), newWorld(t, harness.ArgoCD3, release)
	two.AddCluster("remote", three.Cluster)
	three.AddCluster("remote", two.Cluster)
	two.guard()
	three.guard()
	versions := func(w, remote *world) part {
		return part{w.version, func(t *testing.T) {
			s := w.newShop(t, appPath, namespace)
			together(t,
				part{"story", func(t *testing.T) { w.on(t).story(t, s.on(t), images) }},
				part{"quiet", func(t *testing.T) { w.on(t).quiet(t, images) }},
				part{"expired", func(t *testing.T) { w.on(t).expired(t, images, "expired", w.on(t)) }},
				part{"expired, remote", func(t *testing.T) { w.on(t).expired(t, images, "remote-"+w.version[:2], remote.on(t)) }},
				part{"warned", func(t *testing.T) { w.on(t).warned(t, images) }},
			)
			t.Run("a gate that cannot judge", func(t *testing.T) { w.on(t).broken(t) })
		}}
	}
	together(t, versions(two, three), versions(three, two))
}

// pushed is what the registry has.
type pushed struct {
	repository string   // "127.0.0.1:PORT/shop/web"
	pinned     []string // reference with digest, by tag
}

func pushImages(registry *harness.Registry) pushed {
	p := pushed{repository: registry.Host + "/shop/web"}
	for tag := range 10 {
		ref, digest := registry.Push("shop/web", fmt.Sprint(tag))
		p.pinned = append(p.pinned, ref+"@"+digest)
	}
	return p
}

// story is what a release engineer lives through.
func (w *world) story(t *testing.T, s *shop, images pushed) {
	argo, cluster := w.ArgoCD, w.Cluster
	write := func(c change, files map[string]string) {
		c.image = images.repository
		s.repo.Write(merge(c.files(), files))
	}
	running := func() []string { return harness.Images(cluster.Get(harness.Deployments, namespace, "web")) }

	// 1. Signed: the application syncs by itself.
	write(change{tag: "1", replicas: 1}, base)
	s.pin()
	s.sign()
	signed := s.repo.Commit("Release the shop")
	app := argo.CreateApplication("shop", s.repo.URL, appPath, "syncgate", namespace)
	app.WaitSynced(signed)
	if diff := cmp.Diff([]string{images.pinned[1]}, running()); diff != "" {
		t.Fatalf("images of the signed commit (-want +got):\n%s", diff)
	}
	if cluster.Get(harness.Deployments, namespace, "web").GetAnnotations()["syncgate.io/receipt"] == "" {
		t.Error("the Deployment carries no receipt")
	}

	// The lock is in nobody's way: Argo CD's own directory source, which looks
	// into every folder, finds the objects beside it and nothing else. What goes
	// around the plugin like this is for the webhook to refuse, in our words.
	s.repo.Write(map[string]string{"apps/plain/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: plain}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`})
	plain := filepath.Join(s.repo.Work, "apps/plain")
	s.Run(plain, nil, s.syncgate, "sign", "--policy", s.policy, "--key", s.key, "--issuer", "release", "--namespace", "plain", "--yes")
	if locked, err := filepath.Glob(filepath.Join(plain, ".syncgate", environment, "*.jwt")); err != nil || len(locked) != 1 {
		t.Fatalf("the lock of apps/plain holds %q, %v", locked, err)
	}
	s.repo.Commit("Release the plain application")
	around := []string{"SYNC REFUSED [ReceiptMissing]", "Role plain/plain", "rules"}
	message := argo.CreateDirectoryApplication("plain", s.repo.URL, "apps/plain", "plain").WaitFailed(around...)
	report(t, "operation of a native application", message)
	if sentence := ours(t, message); !harness.ContainsAll(sentence, around) {
		t.Errorf("the beginning of the webhook's sentence lacks one of %q: %s", around, sentence)
	}

	before, writes := w.snapshot(), cluster.Writes(harness.ArgoCDUser, namespace)
	if !slices.Contains(writes, "create deployments/web") && !slices.Contains(writes, "patch deployments/web") {
		t.Fatalf("the audit log does not show Argo CD's writes of the first sync, got %q", writes)
	}

	// 2. Refused: Unknown with a reason, and nothing of the commit arrives,
	// not even its harmless part.
	for _, r := range refusals {
		harmless := map[string]string{
			"apps/shop/base/config.yaml": strings.Replace(base["apps/shop/base/config.yaml"], "hello", r.name, 1),
			appPath + "/grant.yaml":      grant,
		}
		r.change.replicas = 5
		write(r.change, harmless)
		if r.pin {
			s.pin()
		}
		revision := s.repo.Commit("Try " + r.name)
		condition := app.WaitRefused(r.want...)
		if sentence := ours(t, condition); !harness.ContainsAll(sentence, r.want) {
			t.Errorf("the beginning of the sentence about %s lacks one of %q: %s", r.name, r.want, sentence)
		}
		report(t, "condition after "+r.name, condition)
		status := app.Sync(revision)
		report(t, "manual sync of "+r.name, "phase "+status.Phase+": "+status.Operation)
		if status.Phase != "Error" {
			t.Errorf("manual sync of %s: got phase %q, want Error", r.name, status.Phase)
		}
		// The same words from another render in another folder: Argo CD would
		// otherwise write a new condition at each refresh.
		if diff := cmp.Diff("ComparisonError: "+fresh(condition), fresh(status.Operation)); diff != "" {
			t.Errorf("manual sync of %s: message (-condition +operation):\n%s", r.name, diff)
		}
	}
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		t.Errorf("refused commits changed the namespace (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(writes, cluster.Writes(harness.ArgoCDUser, namespace)); diff != "" {
		t.Errorf("Argo CD wrote into the namespace after refusals (-before +after):\n%s", diff)
	}
	if u := cluster.Get(harness.ClusterRoleBindings, "", "shop-admin"); u != nil {
		t.Error("the refused ClusterRoleBinding is in the cluster")
	}
	if text := strings.Join(app.Events(), "\n"); !strings.Contains(text, "SYNC REFUSED [DigestMismatch]") {
		t.Errorf("no event tells of the refusal, got:\n%s", text)
	}

	// 3. Signed at last: no button, no refresh.
	write(change{tag: "2", replicas: 1}, base)
	s.pin()
	s.sign()
	app.WaitSynced(s.repo.Commit("Release the new image"))
	if diff := cmp.Diff([]string{images.pinned[2]}, running()); diff != "" {
		t.Fatalf("images after signing (-want +got):\n%s", diff)
	}

	// 4. What nobody needs to sign: replicas and configuration.
	write(change{tag: "2", replicas: 3}, map[string]string{
		"apps/shop/base/config.yaml": strings.Replace(base["apps/shop/base/config.yaml"], "hello", "welcome", 1),
	})
	scaled := s.repo.Commit("Scale and greet")
	app.WaitSynced(scaled)
	if got := harness.Int(cluster.Get(harness.Deployments, namespace, "web"), "spec", "replicas"); got != 3 {
		t.Errorf("replicas: got %d, want 3", got)
	}
	if got := harness.Field(cluster.Get(harness.ConfigMaps, namespace, "web"), "data", "greeting"); got != "welcome" {
		t.Errorf("greeting: got %q, want welcome", got)
	}
}

// snapshot is what is in the story's namespace.
func (w *world) snapshot() map[string]any {
	w.T.Helper()
	return w.Cluster.Snapshot(namespace, harness.Deployments, harness.ConfigMaps, harness.Secrets, harness.Services)
}

// broken: a gate that cannot judge refuses, and recovers by itself. It comes
// after the story, because it is the gate of all applications.
func (w *world) broken(t *testing.T) {
	cluster := w.Cluster
	app := &harness.Application{ArgoCD: w.ArgoCD, Name: "shop", Namespace: namespace}
	revision := app.Status().Synced
	before, writes := w.snapshot(), cluster.Writes(harness.ArgoCDUser, namespace)
	if err := os.Rename(w.policy, w.policy+".away"); err != nil {
		t.Fatal(err)
	}
	condition := app.WaitRefusedAfresh("GATE ERROR [")
	report(t, "condition without a policy", condition)
	if want := []string{"GATE ERROR [PolicyInvalid]", w.policy}; !harness.ContainsAll(ours(t, condition), want) {
		t.Errorf("the beginning of the sentence lacks one of %q", want)
	}
	if err := os.Rename(w.policy+".away", w.policy); err != nil {
		t.Fatal(err)
	}
	app.WaitSynced(revision)
	if diff := cmp.Diff(before, w.snapshot()); diff != "" {
		t.Errorf("the broken gate changed the namespace (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(writes, cluster.Writes(harness.ArgoCDUser, namespace)); diff != "" {
		t.Errorf("Argo CD wrote while the gate was broken (-before +after):\n%s", diff)
	}
}
