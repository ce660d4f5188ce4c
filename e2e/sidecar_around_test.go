//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const sidecarProjects = `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: %s, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`

// movedApplication is the red team's F22: what was rendered under a rule that
// relaxes is in Argo CD's cache, for the same revision, when the application
// moves to a gated project.
func (w *sidecarWorld) movedApplication(t *testing.T) {
	t.Helper()
	move := func(project string, env any) {
		w.Patch(harness.Applications, "argocd", "moved", map[string]any{"spec": map[string]any{
			"project": project, "source": map[string]any{"plugin": map[string]any{"env": env}},
		}})
	}
	move("gated", nil)
	report(t, "condition after the move", w.waitRefused("moved", "SYNC REFUSED [ReceiptMissing]", "Deployment moved/web"))
	s := w.apps["moved"].Sync(w.head)
	if s.Phase != "Error" || !strings.Contains(s.Operation, "SYNC REFUSED [ReceiptMissing]") {
		t.Errorf("a sync by hand after the move: %s", s)
	}

	// It was in the cache all the time: back in the sandbox it is served, though
	// nothing can be rendered now.
	if err := os.Rename(w.policy, w.policy+".away"); err != nil {
		t.Fatal(err)
	}
	move("sandbox", []any{map[string]any{"name": "TIER", "value": "sandbox"}})
	w.wait("moved from the cache", func() (string, bool) {
		s := w.apps["moved"].Status()
		return s.String(), s.Sync == "Synced" && s.Condition == ""
	})
	if err := os.Rename(w.policy+".away", w.policy); err != nil {
		t.Fatal(err)
	}
}

// nested are applications that render what would get around the gate.
var nested = []struct {
	app, object string
	want        []string
}{
	{"nested-application", `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: free, namespace: team}
spec: {project: default, source: {repoURL: "https://git.example.com/x.git", path: ., targetRevision: main}, destination: {server: "https://kubernetes.default.svc", namespace: shop}}
`, []string{"SYNC REFUSED [ReceiptMissing]", "Application team/free: no receipt for delivery"}},
	{"nested-argocd", `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: free, namespace: argocd}
spec: {project: default, source: {repoURL: "https://git.example.com/x.git", path: ., targetRevision: main}, destination: {server: "https://kubernetes.default.svc", namespace: shop}}
`, []string{"SYNC REFUSED [ProtectedTarget]", "Application argocd/free", "namespace argocd is protected"}},
	{"nested-protected", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\n", []string{"SYNC REFUSED [ProtectedTarget]", "ConfigMap kube-system/aws-auth", "namespace kube-system is protected"}},
	{"nested-admin", grant, []string{"SYNC REFUSED [ReceiptMissing]", "ClusterRoleBinding shop-admin: no receipt for rbac"}},
}

// labels would take a namespace out of a gate that selects by labels.
const labels = `{kubernetes.io/metadata.name: kube-system, syncgate.io/gate: "off", pod-security.kubernetes.io/enforce: privileged}`

// waysAround are those that a plugin cannot see, with the webhook installed.
func (w *sidecarWorld) waysAround(t *testing.T) {
	t.Helper()
	copied := harness.NewPolicy(w.Env, "policy", harness.BasicPolicy("release"), w.signer)
	webhooks := harness.StartWebhooks(w.Cluster, w.binaries, 1, copied.Dir)
	webhooks.Install(harness.WebhookConfiguration(w.Env, w.binaries, copied.Path()))

	files := map[string]string{
		"apps/around/web.yaml": unsignedDeployment("web", harness.Image("web:1")), "apps/through/web.yaml": unsignedDeployment("web", harness.Image("web:1")),
		"apps/labelled/config.yaml": spare,
	}
	for _, x := range nested {
		files["apps/"+x.app+"/all.yaml"] = x.object
	}
	w.repo.Write(files)
	w.repo.Commit("Go around the gate")
	for _, x := range nested {
		w.create(x.app, "default", byPlugin, "")
	}
	w.Kubectl(nil, "create", "namespace", "around")
	w.createIn("through", "around", "default", byPlugin, "")
	w.createIn("around", "around", "default", "directory: {recurse: true}", "")
	w.create("labelled", "default", byPlugin, "")
	for _, app := range []string{"labelled", "asked-renderer"} { // a new namespace, and one that is there
		w.Kubectl(nil, "patch", "application", app, "--namespace", "argocd", "--type=merge", "--patch",
			`{"spec": {"syncPolicy": {"managedNamespaceMetadata": {"labels": `+asJSON(labels)+`}}}}`)
	}

	for _, x := range nested {
		report(t, "condition of "+x.app, w.waitRefused(x.app, x.want...))
	}
	// The same words from the plugin and from the webhook, about one object.
	const object = "Deployment around/web: "
	through := w.waitRefused("through", "SYNC REFUSED [ReceiptMissing]", object)
	around := w.waitFailed("around", "admission webhook", "SYNC REFUSED [ReceiptMissing]", object)
	report(t, "refused by the webhook", around)
	if diff := cmp.Diff(sentence(through, object), sentence(around, object)); diff != "" {
		t.Errorf("what is said (-plugin +webhook):\n%s", diff)
	}
	w.waitStatus("around", "[PluginMissing] ")

	// Its own manifests in an operation (app sync --local).
	w.Patch(harness.Applications, "argocd", "term", map[string]any{"operation": map[string]any{"sync": map[string]any{
		"manifests": []any{asJSON(inNamespace(unsignedDeployment("local", harness.Image("local:1")), "local", "term"))},
	}}})
	report(t, "a local sync", w.waitFailed("term", "SYNC REFUSED [ReceiptMissing]", "Deployment term/local: "))
	w.waitStatus("term", "[LocalSync] ")

	// Labels of a namespace that Argo CD manages need a receipt, and take
	// nothing out.
	for _, app := range []string{"labelled", "asked-renderer"} {
		if app == "asked-renderer" {
			w.Patch(harness.Applications, "argocd", app, map[string]any{"operation": map[string]any{"sync": map[string]any{"syncOptions": []any{"CreateNamespace=true"}}}})
		}
		report(t, "labels of "+app, w.waitFailed(app, "SYNC REFUSED [", "Namespace "+app))
		if u := w.Get(harness.Namespaces, "", app); u != nil {
			for key := range u.GetLabels() {
				if key != "kubernetes.io/metadata.name" && !strings.HasPrefix(key, "app.kubernetes.io/") && !strings.HasPrefix(key, "argocd.argoproj.io/") {
					t.Errorf("namespace %s has the label %s", app, key)
				}
			}
		}
	}
	w.WaitRefused([]byte(inNamespace(unsignedDeployment("more", harness.Image("more:1")), "more", "asked-renderer")),
		"admission webhook", "SYNC REFUSED [ReceiptMissing]", "Deployment asked-renderer/more")
}

func inNamespace(manifest, name, namespace string) string {
	return strings.Replace(manifest, "metadata: {name: "+name+"}", "metadata: {name: "+name+", namespace: "+namespace+"}", 1)
}

// deletedApplication takes its objects along, signed or not.
func (w *sidecarWorld) deletedApplication(t *testing.T, app string) {
	t.Helper()
	w.Patch(harness.Applications, "argocd", app, map[string]any{"metadata": map[string]any{"finalizers": []any{"resources-finalizer.argocd.argoproj.io"}}})
	w.Kubectl(nil, "delete", "application", app, "--namespace", "argocd", "--wait=false")
	w.wait("the end of "+app, func() (string, bool) {
		a, d := w.Get(harness.Applications, "argocd", app), w.Get(harness.Deployments, app, "web")
		return fmt.Sprintf("application there %t, Deployment there %t", a != nil, d != nil), a == nil && d == nil
	})
}

// waitStatus waits until the controller names something on an Application.
func (w *sidecarWorld) waitStatus(app, finding string) {
	w.T.Helper()
	w.wait("finding "+finding+" on "+app, func() (string, bool) {
		status := w.Get(harness.Applications, "argocd", app).GetAnnotations()["syncgate.io/status"]
		return status, strings.Contains(status, finding)
	})
}

// sentence is what a text says of an object, without the fix.
func sentence(text, object string) string {
	_, rest, _ := strings.Cut(text, object)
	says, _, _ := strings.Cut(rest, "; Fix: ")
	return object + says
}

// asJSON is YAML of one object in JSON.
func asJSON(text string) string {
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		panic(err) // a constant of this test
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(err, " of ", text))
	}
	return string(data)
}
