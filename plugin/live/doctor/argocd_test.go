package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/argocd/controller"
	"github.com/syncgate/syncgate/plugin/live/doctor"
)

const (
	argoApps    = "/apis/argoproj.io/v1alpha1/applications"
	argoMaps    = "/api/v1/namespaces/argocd/configmaps"
	argoGroups  = "/apis/argoproj.io/v1alpha1/appprojects"
	argoDeploys = "/apis/apps/v1/namespaces/argocd/deployments"
	repoServer  = `{"metadata":{"name":"argocd-repo-server","generation":2},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1},
		"spec":{"replicas":1,"template":{"spec":{"automountServiceAccountToken":false,"containers":[
		{"name":"argocd-repo-server","env":[{"name":"ARGOCD_PAUSE_GEN_AFTER_FAILED_ATTEMPTS","value":"1"},{"name":"ARGOCD_PAUSE_GEN_REQUESTS","value":"1"}]},
		{"name":"syncgate","image":"syncgate:v1","env":[{"name":"SYNCGATE_APPS","value":"/etc/syncgate-apps"}]}],
		"volumes":[{"name":"syncgate-policy","configMap":{"name":"syncgate-policy"}}]}}}}`
	parameters = `{"metadata":{"name":"argocd-cmd-params-cm"},"data":{"reposerver.repo.cache.expiration":"30m","controller.repo.server.timeout.seconds":"120"}}`
	plugged    = `"source":{"repoURL":"https://git/shop","path":"web","plugin":{"name":"syncgate"}}`
)

// argoStage is a cluster with an Argo CD in which the gate holds.
func argoStage(t *testing.T) (*stage, doctor.ArgoCD) {
	t.Helper()
	s := newStage(t, prod)
	s.Put(argoDeploys, repoServer)
	s.Put(argoMaps, parameters)
	s.Put(argoMaps, `{"metadata":{"name":"argocd-cm"},"data":{"resource.customizations.ignoreDifferences.apps_Deployment":"jsonPointers: [/spec/replicas]","resource.exclusions":"- {apiGroups: [coordination.k8s.io], kinds: [Lease]}"}}`)
	s.Put(argoMaps, `{"metadata":{"name":"syncgate-apps"},"data":{"web":"{}"}}`)
	s.mount(t, func(map[string]string) {})
	s.application(plugged)
	s.project("shop", shopDestination)
	return s, doctor.ArgoCD{Options: controller.Options{ArgoNamespace: "argocd"}, Policy: s.options.Policy, Policies: s.options.Policies, RepoServer: "argocd-repo-server", Version: "v1"}
}

// mount makes the ConfigMap of the sidecar's policy.
func (s *stage) mount(t *testing.T, change func(map[string]string)) {
	t.Helper()
	data := map[string]string{}
	for _, name := range []string{"policy.yaml", "jwks.json"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(s.file), name))
		must(t, err)
		data[name] = string(b)
	}
	change(data)
	b, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "syncgate-policy"}, "data": data})
	must(t, err)
	s.Put(argoMaps, string(b))
}

func (s *stage) application(spec string, beside ...string) {
	s.Put(argoApps, fmt.Sprintf(`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"web","namespace":"argocd"},"spec":{"project":"shop",%s}%s}`, spec, strings.Join(append([]string{""}, beside...), ",")))
}

func TestAnArgoCDWithTheGatePasses(t *testing.T) {
	s, o := argoStage(t)
	r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
	must(t, err)
	if !r.Converged() || len(r.Warnings) > 0 {
		t.Errorf("failed: %v, warnings %q", failures(r), r.Warnings)
	}
	var got []string
	for _, c := range r.Checks {
		got = append(got, c.Name)
	}
	want := []string{"sidecar", "policy", "image", "sources", "operations", "differences", "annotations", "mode", "settings", "switches", "projects", "namespaces", "timeouts", "cache", "hidden", "policies"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	for _, q := range s.Requests() {
		t.Errorf("wrote: %s %s", q.Method, q.Path)
	}
}

func TestWhatIsWrongWithAnArgoCD(t *testing.T) {
	deployment := func(s *stage, from, to string) { s.Put(argoDeploys, strings.Replace(repoServer, from, to, 1)) }
	argoCM := func(s *stage, key, value string) {
		s.Put(argoMaps, fmt.Sprintf(`{"metadata":{"name":"argocd-cm"},"data":{%q:%q}}`, key, value))
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *stage)
		check  string
		text   string
	}{
		{"no repo-server", func(_ *testing.T, s *stage) { s.Delete(argoDeploys + "/argocd-repo-server") }, "sidecar", "there is none"},
		{"no sidecar", func(_ *testing.T, s *stage) { deployment(s, `"name":"syncgate"`, `"name":"other"`) }, "sidecar", "no container syncgate"},
		{"a token", func(_ *testing.T, s *stage) { deployment(s, `:false`, `:true`) }, "sidecar", "automountServiceAccountToken"},
		{"no word about a token", func(_ *testing.T, s *stage) { deployment(s, `"automountServiceAccountToken":false,`, ``) }, "sidecar", "automountServiceAccountToken"},
		{"an old replica", func(_ *testing.T, s *stage) { deployment(s, `"updatedReplicas":1`, `"updatedReplicas":0`) }, "sidecar", "0 of the newest"},
		{"no policy", func(_ *testing.T, s *stage) { s.Delete(argoMaps + "/syncgate-policy") }, "policy", "there is none"},
		{"another policy", func(t *testing.T, s *stage) {
			s.mount(t, func(d map[string]string) { d["policy.yaml"] += "mode: {render: Warn}\n" })
		}, "policy", "want sha256"},
		{"a policy without its keys", func(t *testing.T, s *stage) {
			s.mount(t, func(d map[string]string) { delete(d, "jwks.json") })
		}, "policy", "does not load"},
		{"no plugin", func(_ *testing.T, s *stage) { s.application(`"source":{"path":"web"}`) }, "sources", "[PluginMissing]"},
		{"a second source", func(_ *testing.T, s *stage) {
			s.application(`"sources":[{"path":"web","plugin":{"name":"syncgate"}},{"path":"more"}]`)
		}, "sources", "[UngatedSource]"},
		{"a hydrator", func(_ *testing.T, s *stage) { s.application(`"sourceHydrator":{"syncSource":{}}`) }, "sources", "[SourceHydrator]"},
		{"a local sync", func(_ *testing.T, s *stage) {
			s.application(plugged, `"operation":{"sync":{"manifests":["{}"]}}`)
		}, "operations", "[LocalSync]"},
		{"a rollback", func(_ *testing.T, s *stage) {
			s.application(plugged, `"status":{"operationState":{"operation":{"sync":{"source":{"path":"web"}}}}}`)
		}, "operations", "[UngatedOperation]"},
		{"live values", func(_ *testing.T, s *stage) {
			s.application(plugged + `,"syncPolicy":{"syncOptions":["RespectIgnoreDifferences=true"]},"ignoreDifferences":[{"kind":"Deployment","jsonPointers":["/spec/template"]}]`)
		}, "differences", "/spec/template"},
		{"nothing published", func(_ *testing.T, s *stage) { s.Delete(argoMaps + "/syncgate-apps") }, "settings", "every Application is refused"},
		{"an Application is not published", func(_ *testing.T, s *stage) {
			s.Put(argoMaps, `{"metadata":{"name":"syncgate-apps"},"data":{}}`)
		}, "settings", "nothing is published"},
		{"another entry is published", func(_ *testing.T, s *stage) {
			s.Put(argoMaps, `{"metadata":{"name":"syncgate-apps"},"data":{"web":"{\"mode\":\"Enforce\"}"}}`)
		}, "settings", "it asks for {}"},
		{"no patience", func(_ *testing.T, s *stage) {
			s.Put(argoMaps, strings.Replace(parameters, `"120"`, `"45"`, 1))
		}, "timeouts", "controller.repo.server.timeout.seconds is 45s"},
		{"no number", func(_ *testing.T, s *stage) {
			s.Put(argoMaps, strings.Replace(parameters, `"120"`, `"2m"`, 1))
		}, "timeouts", "want a number"},
		{"a longer render", func(_ *testing.T, s *stage) {
			deployment(s, `"env":[{"name":"SYNCGATE_APPS"`, `"env":[{"name":"SYNCGATE_TIMEOUT","value":"90s"},{"name":"SYNCGATE_APPS"`)
		}, "timeouts", "server.repo.server.timeout.seconds is 1m0s"},
		{"errors are not cached", func(_ *testing.T, s *stage) {
			deployment(s, `PAUSE_GEN_REQUESTS","value":"1"`, `PAUSE_GEN_REQUESTS","value":"0"`)
		}, "cache", "ARGOCD_PAUSE_GEN_REQUESTS"},
		{"part of the repository", func(_ *testing.T, s *stage) {
			s.Put(argoMaps, strings.Replace(parameters, `"data":{`, `"data":{"reposerver.plugin.use.manifest.generate.paths":"true",`, 1))
		}, "cache", "generate.paths is true"},
		{"no argocd-cm", func(_ *testing.T, s *stage) { s.Delete(argoMaps + "/argocd-cm") }, "hidden", "argocd-cm"},
		{"hidden for a kind", func(_ *testing.T, s *stage) {
			argoCM(s, "resource.customizations.ignoreDifferences.all", "jqPathExpressions: ['.spec.template.spec.containers[].image']")
		}, "hidden", "containers[].image"},
		{"hidden in the older form", func(_ *testing.T, s *stage) {
			argoCM(s, "resource.customizations", "apps/Deployment: {ignoreDifferences: 'managedFieldsManagers: [kubectl]'}")
		}, "hidden", "fields of kubectl"},
		{"unreadable", func(_ *testing.T, s *stage) {
			argoCM(s, "resource.customizations.ignoreDifferences.all", "jsonPointers: {")
		}, "hidden", "cannot be read"},
		{"a kind left out", func(_ *testing.T, s *stage) {
			argoCM(s, "resource.exclusions", "- {apiGroups: [apps], kinds: [Deployment]}")
		}, "hidden", "leaves out \"Deployment\""},
		{"a group left out", func(_ *testing.T, s *stage) {
			argoCM(s, "resource.exclusions", "- {apiGroups: ['*'], kinds: ['*']}")
		}, "hidden", "leaves out \"*\""},
		{"no binding", func(_ *testing.T, s *stage) {
			s.Delete(admissionAPI + "validatingadmissionpolicybindings/syncgate-x")
		}, "policies", "the policy refuses nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, o := argoStage(t)
			tt.change(t, s)
			r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
			must(t, err)
			got := failures(r)
			if !strings.Contains(got[tt.check], tt.text) {
				t.Errorf("check %s: %q, want %q; all: %v", tt.check, got[tt.check], tt.text, got)
			}
			if r.Converged() {
				t.Error("converged")
			}
			for _, c := range r.Checks {
				if !c.OK && c.Fix == "" {
					t.Errorf("check %s has no next step", c.Name)
				}
			}
		})
	}
}

// TestApplicationsElsewhereAreNotOverlooked: those that Argo CD serves fail a
// check until they are named, and then they are looked at.
func TestApplicationsElsewhereAreNotOverlooked(t *testing.T) {
	for _, tt := range []struct {
		served, named string
		failed        string // checks
		warned        bool
	}{
		{"", "", "", true},
		{"team-b", "", "", true},
		{"team-a", "", "namespaces", false},
		{"x, team-*", "", "namespaces", false},
		{"/^team-[a-c]$/", "", "namespaces", false},
		{"/(/", "", "namespaces", false},
		{"[", "", "namespaces", false},
		{"team-*", "team-a", "sources settings", false},
	} {
		s, o := argoStage(t)
		s.Put(argoMaps, strings.Replace(parameters, `"data":{`, fmt.Sprintf(`"data":{"application.namespaces":%q,`, tt.served), 1))
		for _, x := range []string{"web", "api"} {
			s.Put(argoApps, fmt.Sprintf(`{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":%q,"namespace":"team-a"},"spec":{"project":"shop",%s}}`, "in-a-"+x,
				map[string]string{"web": plugged, "api": `"source":{"path":"api"}`}[x]))
		}
		if tt.named != "" {
			o.Namespaces = []string{tt.named}
		}
		r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
		must(t, err)
		var failed []string
		for _, c := range r.Checks {
			if !c.OK {
				failed = append(failed, c.Name)
			}
		}
		if got := strings.Join(failed, " "); got != tt.failed {
			t.Errorf("%q serves, %q is named: %q failed, want %q", tt.served, tt.named, got, tt.failed)
		}
		if warned := strings.Contains(strings.Join(r.Warnings, " "), "namespace team-a has 2 Applications, which"); warned != tt.warned {
			t.Errorf("%q serves: warnings %q", tt.served, r.Warnings)
		}
	}
}

func TestWhatIsNotGatedIsNoFault(t *testing.T) {
	s, o := argoStage(t)
	o.Projects = []string{"pay*"}
	s.application(`"source":{"path":"web"}`)
	r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
	must(t, err)
	if !r.Converged() {
		t.Errorf("failed: %v", failures(r))
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "nothing is judged yet") {
		t.Errorf("warnings: %q, want that no Application names the plugin", r.Warnings)
	}
}

func TestNoPoliciesForArgoCDAreNotAllPolicies(t *testing.T) {
	s, o := argoStage(t)
	o.Policies = nil
	r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
	must(t, err)
	if failures(r)["policies"] == "" {
		t.Error("a doctor who expects nothing found everything well")
	}
}
