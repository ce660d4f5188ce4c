//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// refusals are commits that must not sync, each on top of a signed one. What
// each sentence must contain is its code and what it is about.
var refusals = []struct {
	name   string
	change change
	pin    bool
	want   []string
}{
	{
		name: "an image whose tag nobody looked up", change: change{tag: "2"},
		want: []string{"SYNC REFUSED [ImageNotPinned]", "Deployment shop/web", "/shop/web:2"},
	},
	{
		name: "a pinned image that nobody signed", change: change{tag: "2"}, pin: true,
		want: []string{"SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "/shop/web:2@sha256:"},
	},
	{
		name: "the signed image in a privileged container", change: change{tag: "1", more: `patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: web, securityContext: {privileged: true}}]}}}
`}, pin: true,
		want: []string{"SYNC REFUSED [DigestMismatch]", "Deployment shop/web", "privileged"},
	},
	{
		name: "a new binding to cluster-admin", change: change{tag: "1", resource: "grant.yaml"}, pin: true,
		want: []string{"SYNC REFUSED [ReceiptMissing]", "ClusterRoleBinding shop-admin"},
	},
	{
		name: "a kustomization that does not build", change: change{tag: "1", resource: "absent.yaml"},
		want: []string{"RENDER FAILED [", "absent.yaml"},
	},
}

const grant = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: shop-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
`

func TestArgoCDSyncsWhatIsSignedAndNothingElse(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	registry := harness.StartRegistry(e)
	s := newShop(e, b)
	cluster := harness.StartCluster(e, b)
	argo := harness.StartArgoCD(cluster, b, filepath.Join(b.Manifests, "argocd"), "SYNCGATE_POLICY="+s.policy)
	image := registry.Host + "/shop/web"
	var pinned []string // by tag
	for _, tag := range []string{"0", "1", "2"} {
		ref, digest := registry.Push("shop/web", tag)
		pinned = append(pinned, ref+"@"+digest)
	}
	write := func(c change, files map[string]string) {
		c.image = image
		s.repo.Write(merge(c.files(), files))
	}
	running := func() []string { return harness.Images(cluster.Get(harness.Deployments, namespace, "web")) }
	snapshot := func() map[string]any {
		return cluster.Snapshot(namespace, harness.Deployments, harness.ConfigMaps, harness.Secrets, harness.Services)
	}

	// 1. Signed: the application syncs by itself.
	write(change{tag: "1", replicas: 1}, base)
	s.pin()
	s.sign()
	signed := s.repo.Commit("Release the shop")
	app := argo.CreateApplication("shop", s.repo.URL, appPath, "syncgate", namespace)
	app.WaitSynced(signed)
	if diff := cmp.Diff([]string{pinned[1]}, running()); diff != "" {
		t.Fatalf("images of the signed commit (-want +got):\n%s", diff)
	}
	if cluster.Get(harness.Deployments, namespace, "web").GetAnnotations()["syncgate.io/receipt"] == "" {
		t.Error("the Deployment carries no receipt")
	}

	// The lock is in nobody's way: Argo CD's own directory source, which looks
	// into every folder, takes a signed application as if it were not there.
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
	argo.CreateDirectoryApplication("plain", s.repo.URL, "apps/plain", "plain").WaitSynced(s.repo.Commit("Release the plain application"))

	before, writes := snapshot(), cluster.Writes(harness.ArgoCDUser, namespace)
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
		report(t, "condition after "+r.name, condition)
		status := app.Sync(revision)
		report(t, "manual sync of "+r.name, "phase "+status.Phase+": "+status.Operation)
		if status.Phase != "Error" {
			t.Errorf("manual sync of %s: got phase %q, want Error", r.name, status.Phase)
		}
		// The same words from another render in another folder: Argo CD would
		// otherwise write a new condition at each refresh.
		if diff := cmp.Diff("ComparisonError: "+condition, status.Operation); diff != "" {
			t.Errorf("manual sync of %s: message (-condition +operation):\n%s", r.name, diff)
		}
	}
	if diff := cmp.Diff(before, snapshot()); diff != "" {
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
	if diff := cmp.Diff([]string{pinned[2]}, running()); diff != "" {
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

	// 5. A gate that cannot judge refuses, and recovers by itself.
	before, writes = snapshot(), cluster.Writes(harness.ArgoCDUser, namespace)
	if err := os.Rename(s.policy, s.policy+".away"); err != nil {
		t.Fatal(err)
	}
	report(t, "condition without a policy", app.WaitRefusedAfresh("GATE ERROR ["))
	if err := os.Rename(s.policy+".away", s.policy); err != nil {
		t.Fatal(err)
	}
	app.WaitSynced(scaled)
	if diff := cmp.Diff(before, snapshot()); diff != "" {
		t.Errorf("the broken gate changed the namespace (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(writes, cluster.Writes(harness.ArgoCDUser, namespace)); diff != "" {
		t.Errorf("Argo CD wrote while the gate was broken (-before +after):\n%s", diff)
	}
}
