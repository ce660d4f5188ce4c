//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// teamProject lets Applications of two namespaces be in it.
const teamProject = `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: teams, namespace: argocd}
spec: {sourceRepos: ["*"], sourceNamespaces: [team-a, team-b], destinations: [{namespace: "*", server: "*"}], clusterResourceWhitelist: [{group: "*", kind: "*"}]}
`

// teamPolicy warns for one application of team-a. That of the same name in Argo
// CD's own namespace is another one.
const teamPolicy = policy + `apps:
- match: {name: team-a_lenient}
  mode: {render: Warn}
`

// served is what the doctor sees of the installation.
const served = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server, namespace: argocd}, spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {
  automountServiceAccountToken: false, containers: [{name: argocd-repo-server, image: a}, {name: syncgate, image: syncgate, env: [{name: SYNCGATE_APPS, value: /etc/syncgate-apps}]}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cmd-params-cm, namespace: argocd}, data: {application.namespaces: "team-*"}}
`

// TestApplicationsInOtherNamespaces: Argo CD serves two of them, the controller
// was told of one.
func TestApplicationsInOtherNamespaces(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e).With(harness.ArgoCD3)
	s := newShop(e, b)
	e.Write("etc/policy.yaml", []byte(teamPolicy))
	cluster := harness.StartCluster(e, b)
	for _, ns := range []string{"team-a", "team-b"} {
		cluster.CreateNamespace(ns)
	}
	// As manifests/argocd/controller/README.md says.
	cluster.Kubectl(nil, "create", "rolebinding", "syncgate-controller", "--namespace", "team-a",
		"--clusterrole", "syncgate-controller-applications", "--serviceaccount", "syncgate-system:syncgate-controller")
	mounted := harness.NewMount(e, "settings", nil)
	argo := harness.StartArgoCDWith(cluster, b, harness.ArgoCDOptions{
		Plugin:     filepath.Join(b.Manifests, "argocd"),
		Sidecar:    []string{"SYNCGATE_POLICY=" + s.policy, "SYNCGATE_APPS=" + mounted.Dir},
		Controller: []string{"ARGOCD_APPLICATION_NAMESPACES=team-a,team-b"},
	})
	cluster.Apply([]byte(teamProject))
	controller := harness.StartController(cluster, b, mounted, filepath.Dir(s.policy), "--settle=2s", "--refresh-rate=20", "--application-namespaces=team-a")
	wait := func(what string, check func() (string, bool)) {
		t.Helper()
		e.Eventually(what, func() (string, bool) {
			controller.Mount()
			return check()
		})
	}

	files := workload("lenient")
	maps.Copy(files, workload("web"))
	s.repo.Write(files)
	e.Run(filepath.Join(s.repo.Work, "apps", "web"), nil, s.syncgate, "sign", "--policy", s.policy, "--key", s.key, "--issuer", "release",
		"--environment", environment, "--namespace", namespace, "--yes")
	revision := s.repo.Commit("Release web, and not lenient")
	create := func(home, name, destination string) *harness.Application {
		project := "teams"
		if home == "argocd" {
			project = ""
		}
		return argo.Create(harness.ApplicationOptions{Home: home, Project: project, Name: name, RepoURL: s.repo.URL, Path: "apps/" + name, Namespace: destination})
	}
	web, lenient := create("team-a", "web", namespace), create("team-a", "lenient", "lenient-a")
	own, unknown := create("argocd", "lenient", "lenient"), create("team-b", "web", "other")
	refused := func(app *harness.Application, want ...string) {
		t.Helper()
		wait("refusal of "+app.Home+"/"+app.Name, func() (string, bool) {
			st := app.Status()
			return st.String(), st.Sync == "Unknown" && harness.ContainsAll(st.Condition, want)
		})
	}
	for _, app := range []*harness.Application{web, lenient} {
		wait("sync of "+app.Name, func() (string, bool) {
			st := app.Status()
			return st.String(), st.Sync == "Synced" && st.Synced == revision && !st.Annotated && refreshes(controller.Log())["team-a_"+app.Name] == "new"
		})
	}
	refused(own, "SYNC REFUSED [ReceiptMissing]", "Deployment lenient/lenient")
	// Argo CD serves it, and nobody told the controller.
	const want = `GATE ERROR [PolicyInvalid] no settings are published for application "team-b_web"`
	refused(unknown, want, "see whether syncgate-controller runs with --application-namespaces=team-b")
	report(t, "condition of an Application that the controller was not told of", unknown.Status().Condition)

	// What is said, is said there.
	status := func(app *harness.Application) string {
		return cluster.Get(harness.Applications, app.Home, app.Name).GetAnnotations()["syncgate.io/status"]
	}
	wait("status of team-a/lenient", func() (string, bool) {
		return status(lenient), harness.ContainsAll(status(lenient), []string{"[OnlyWarned] ", "[WouldBeRefused] ", "Deployment lenient-a/lenient: no receipt for image"})
	})
	wait("event of team-a/lenient", func() (string, bool) {
		text := strings.Join(lenient.Events(), "\n")
		return text, strings.Contains(text, "Warning WouldBeRefused: ")
	})
	if text := status(own) + status(unknown); text != "" {
		t.Errorf("status of the others: %q, want none", text)
	}
	data, _ := cluster.Get(harness.ConfigMaps, "argocd", "syncgate-apps").Object["data"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"lenient": "{}", "team-a_lenient": "{}", "team-a_web": "{}"}, data); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}

	// An annotation tightens that one, without a commit.
	annotate := func(key string, value any) {
		cluster.Patch(harness.Applications, "team-a", "lenient", map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	}
	annotate("syncgate.io/mode", "Enforce")
	refused(lenient, "SYNC REFUSED [ReceiptMissing]", "Deployment lenient-a/lenient")
	if cause := refreshes(controller.Log())["team-a_lenient"]; cause != "annotations" {
		t.Errorf("team-a_lenient was refreshed for %q, want its annotations", cause)
	}
	annotate("syncgate.io/mode", nil)

	// The controller's rights are no more there than elsewhere.
	thief := cluster.AsServiceAccount("syncgate-system", "syncgate-controller")
	if err := thief.TryPatch(harness.Applications, "team-a", "web", map[string]any{"spec": map[string]any{"source": map[string]any{"plugin": nil}}}); err == nil || !strings.Contains(err.Error(), "SYNC REFUSED [ProtectedTarget]") {
		t.Errorf("with the controller's token somebody could take the plugin out: %v", err)
	}
	if err := thief.TryPatch(harness.Applications, "team-b", "web", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("with the controller's token somebody could write in team-b: %v", err)
	}

	// The doctor does not overlook what the controller does.
	cluster.Apply([]byte(served))
	wait("lenient as it was", func() (string, bool) { return lenient.Status().String(), lenient.Status().Sync == "Synced" })
	checks := func(flags ...string) map[string]string { // details of those that fail, by name
		t.Helper()
		r := e.Try(e.Dir, nil, b.Syncgate, append([]string{"doctor", "--argocd", "--policy", s.policy, "--kubeconfig", cluster.Kubeconfig, "-o", "json"}, flags...)...)
		var report struct {
			Checks []struct {
				Name    string
				OK      bool
				Details []string
			}
		}
		if err := json.Unmarshal(r.Stdout, &report); err != nil {
			t.Fatalf("status %d: %v\n%s%s", r.Status, err, r.Stdout, r.Stderr)
		}
		out := map[string]string{}
		for _, c := range report.Checks {
			if !c.OK {
				out[c.Name] = strings.Join(c.Details, "\n")
			}
		}
		return out
	}
	got := checks("--application-namespaces=team-a")
	if !strings.Contains(got["mode"], "Application team-a_lenient: [OnlyWarned] ") || !strings.Contains(got["namespaces"], "namespace team-b has 1 Applications that Argo CD serves") || got["settings"] != "" {
		t.Errorf("the doctor, told of team-a: %v", got)
	}
	got = checks("--application-namespaces=team-a,team-b")
	if got["namespaces"] != "" || !strings.Contains(got["settings"], "Application team-b_web: nothing is published, and it is refused") {
		t.Errorf("the doctor, told of both: %v", got)
	}
	got = checks()
	if !strings.Contains(got["namespaces"], "namespace team-a has 2 Applications") || got["mode"] != "" {
		t.Errorf("the doctor, told of neither: %v", got)
	}
}
