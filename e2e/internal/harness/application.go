package harness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Application is one Argo CD Application, seen and driven through the API
// objects only, as argocd-server would.
type Application struct {
	*ArgoCD
	Name      string
	Home      string // namespace of the Application itself; empty: Argo CD's
	Namespace string // destination

	operations int
}

// CreateApplication makes an Application whose source is a folder of the
// repository through a plugin, and which syncs by itself and prunes.
func (a *ArgoCD) CreateApplication(name, repoURL, path, plugin, namespace string) *Application {
	a.T.Helper()
	return a.createApplication(name, repoURL, path, "plugin: {name: "+plugin+"}", namespace)
}

// CreateDirectoryApplication is CreateApplication with Argo CD's own directory
// source, every folder below it included.
func (a *ArgoCD) CreateDirectoryApplication(name, repoURL, path, namespace string) *Application {
	a.T.Helper()
	return a.createApplication(name, repoURL, path, "directory: {recurse: true}", namespace)
}

func (a *ArgoCD) createApplication(name, repoURL, path, source, namespace string) *Application {
	a.T.Helper()
	return a.Create(ApplicationOptions{Name: name, RepoURL: repoURL, Path: path, Source: source, Namespace: namespace})
}

// ApplicationOptions are what an Application may be made with. Those that are
// empty have the value that their comment names.
type ApplicationOptions struct {
	Name, RepoURL, Path string
	Source              string            // how to render: "plugin: {name: syncgate}"
	Home                string            // namespace of the Application itself: Argo CD's
	Project             string            // default
	Server              string            // API server: that of Argo CD itself
	Namespace           string            // destination
	SelfHeal            bool              // undo what others change
	NoRetry             bool              // a failed sync is not tried again, five times in the next minutes
	Annotations         map[string]string // none
}

// Create makes an Application that syncs by itself and prunes.
func (a *ArgoCD) Create(o ApplicationOptions) *Application {
	a.T.Helper()
	annotations, err := json.Marshal(o.Annotations)
	if err != nil {
		a.T.Fatal(err)
	}
	home, retry := cmp.Or(o.Home, argoNamespace), ""
	if o.NoRetry {
		retry = "    retry: {limit: 0}\n"
	}
	a.Apply(fmt.Appendf(nil, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: %s, annotations: %s}
spec:
  project: %s
  source: {repoURL: %q, path: %s, targetRevision: main, %s}
  destination: {server: %q, namespace: %s}
  syncPolicy:
    automated: {prune: true, selfHeal: %t}
    syncOptions: [CreateNamespace=true]
%s`, o.Name, home, annotations, cmp.Or(o.Project, "default"), o.RepoURL, o.Path, cmp.Or(o.Source, "plugin: {name: syncgate}"),
		cmp.Or(o.Server, inCluster), o.Namespace, o.SelfHeal, retry))
	return &Application{ArgoCD: a, Name: o.Name, Home: home, Namespace: o.Namespace}
}

func (a *Application) home() string { return cmp.Or(a.Home, argoNamespace) }

// Status is what a person sees of an Application.
type Status struct {
	Sync      string // status.sync.status
	Revision  string // status.sync.revision
	Phase     string // status.operationState.phase
	Operation string // status.operationState.message
	Synced    string // revision of the last operation
	Condition string // message of the ComparisonError condition, "" without one
	Annotated bool   // a requested refresh is still to come
	Finished  string // when the last operation ended
	Compared  string // when Argo CD last compared it
}

func (s Status) String() string {
	return fmt.Sprintf("sync.status=%q sync.revision=%q operation=%q %q at %q condition=%q",
		s.Sync, s.Revision, s.Phase, s.Operation, s.Synced, s.Condition)
}

// Status reads the Application once.
func (a *Application) Status() Status {
	a.T.Helper()
	u := a.Get(Applications, a.home(), a.Name)
	if u == nil {
		a.T.Fatalf("application %q is gone", a.Name)
	}
	s := Status{
		Sync:      Field(u, "status", "sync", "status"),
		Revision:  Field(u, "status", "sync", "revision"),
		Phase:     Field(u, "status", "operationState", "phase"),
		Operation: Field(u, "status", "operationState", "message"),
		Synced:    Field(u, "status", "operationState", "syncResult", "revision"),
		Finished:  Field(u, "status", "operationState", "finishedAt"),
		Compared:  Field(u, "status", "reconciledAt"),
	}
	_, s.Annotated = u.GetAnnotations()["argocd.argoproj.io/refresh"]
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		a.T.Fatal(err)
	}
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "ComparisonError" {
			s.Condition, _ = m["message"].(string)
		}
	}
	return s
}

// WaitSynced waits until the Application has synced a commit.
func (a *Application) WaitSynced(revision string) {
	a.T.Helper()
	a.Eventually("sync of "+revision, func() (string, bool) {
		s := a.Status()
		return s.String(), s.Sync == "Synced" && s.Revision == revision && s.Phase == "Succeeded" && s.Synced == revision && s.Condition == ""
	})
}

// WaitRefused waits until the comparison has failed with a text that contains
// each of want, and returns the whole text. Argo CD leaves the revision out of a
// status that it could not compute, so want must tell this refusal from others.
func (a *Application) WaitRefused(want ...string) string {
	a.T.Helper()
	var text string
	a.Eventually(fmt.Sprintf("refusal with %q", want), func() (string, bool) {
		s := a.Status()
		text = s.Condition
		return s.String(), s.Sync == "Unknown" && ContainsAll(text, want)
	})
	return text
}

// WaitFailed waits until a sync has been refused by the API server with a text
// that contains each of want, and returns what Argo CD says of it. Argo CD tries
// again for a while.
func (a *Application) WaitFailed(want ...string) string {
	a.T.Helper()
	var text string
	a.Eventually(fmt.Sprintf("failed sync with %q", want), func() (string, bool) {
		s := a.Status()
		text = s.Operation
		return s.String(), s.Condition == "" && ContainsAll(text, want)
	})
	return text
}

// Refresh asks for a refresh, "normal" or "hard", and returns the status once
// Argo CD has made it.
func (a *Application) Refresh(kind string) Status {
	a.T.Helper()
	a.Patch(Applications, a.home(), a.Name, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"argocd.argoproj.io/refresh": kind}},
	})
	var s Status
	a.Eventually(kind+" refresh", func() (string, bool) {
		s = a.Status()
		return s.String(), !s.Annotated
	})
	return s
}

// ContainsAll reports whether text contains each of want, and want is not empty.
func ContainsAll(text string, want []string) bool {
	for _, w := range want {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return len(want) > 0
}

// WaitRefusedAfresh waits until a comparison without any cached manifest has
// failed with a text that contains each of want, and returns the whole text.
//
// It asks for hard refreshes until one has failed: from then on the failure
// stands in the cache in place of the good render of before.
func (a *Application) WaitRefusedAfresh(want ...string) string {
	a.T.Helper()
	var text string
	a.Eventually(fmt.Sprintf("refusal of an uncached render with %q", want), func() (string, bool) {
		s := a.Status()
		text = s.Condition
		if s.Sync == "Unknown" && ContainsAll(text, want) {
			return s.String(), true
		}
		if !s.Annotated {
			a.Patch(Applications, a.home(), a.Name, map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"argocd.argoproj.io/refresh": "hard"}},
			})
		}
		return s.String(), false
	})
	return text
}

// Sync asks for a sync by hand, as the button does, and returns the status
// once that operation has ended, however it did.
func (a *Application) Sync(revision string) Status {
	a.T.Helper()
	a.operations++
	id := fmt.Sprintf("e2e-%d", a.operations)
	a.Patch(Applications, a.home(), a.Name, map[string]any{"operation": map[string]any{
		"initiatedBy": map[string]any{"username": "e2e"},
		// How we know this operation from one that Argo CD starts by itself.
		"info": []any{map[string]any{"name": "id", "value": id}},
		"sync": map[string]any{"revision": revision, "prune": true, "syncOptions": []any{"CreateNamespace=true"}},
	}})
	var s Status
	a.Eventually("end of the operation "+id, func() (string, bool) {
		u := a.Get(Applications, a.home(), a.Name)
		info, _, err := unstructured.NestedSlice(u.Object, "status", "operationState", "operation", "info")
		if err != nil {
			a.T.Fatal(err)
		}
		s = a.Status()
		ours := strings.Contains(fmt.Sprint(info), id+"]")
		return s.String(), ours && (s.Phase == "Succeeded" || s.Phase == "Failed" || s.Phase == "Error")
	})
	return s
}

// Events returns the messages of the Application's events, "TYPE REASON: MESSAGE".
func (a *Application) Events() []string {
	a.T.Helper()
	var all []string
	for _, u := range a.List(Events, a.home(), "") {
		if Field(&u, "involvedObject", "name") == a.Name {
			all = append(all, Field(&u, "type")+" "+Field(&u, "reason")+": "+Field(&u, "message"))
		}
	}
	return all
}
