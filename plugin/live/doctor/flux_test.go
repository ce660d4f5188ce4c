package doctor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/live/doctor"
)

const (
	fluxDeploys = "/apis/apps/v1/namespaces/flux-system/deployments"
	gateDeploys = "/apis/apps/v1/namespaces/syncgate-system/deployments"
	gateMaps    = "/api/v1/namespaces/syncgate-system/configmaps"
	fluxLeases  = "/apis/coordination.k8s.io/v1/namespaces/flux-system/leases"
	fluxKs      = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
	shopMaps    = "/api/v1/namespaces/shop/configmaps"
	shopEAs     = "/apis/source.toolkit.fluxcd.io/v1/namespaces/shop/externalartifacts"
	rbacAPI     = "/apis/rbac.authorization.k8s.io/v1/"
	fluxGateway = `{"metadata":{"name":"syncgate-flux","generation":2},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1},"spec":{"replicas":1,"template":{"spec":{"containers":[
		{"name":"controller","command":["syncgate-controller"],"args":["--argocd=false","--flux","--flux-namespace=flux-system","--storage-path=/data"]}],
		"volumes":[{"name":"policy","configMap":{"name":"syncgate-policy"}}]}}}}`
	fluxOwnController = `{"metadata":{"name":"kustomize-controller"},"spec":{"template":{"spec":{"containers":[{"name":"manager","args":["--default-service-account=default","--feature-gates=StrictPostBuildSubstitutions=true,ExternalArtifact=true"]}]}}}}`
	fluxLease         = `{"metadata":{"name":"syncgate-controller"},"spec":{"holderIdentity":"gate_1","leaseDurationSeconds":15,"renewTime":"2026-12-02T12:00:00.000000Z"}}`
	webPath           = `"sourceRef":{"kind":"GitRepository","name":"shop"},"postBuild":{"substituteFrom":[{"kind":"ConfigMap","name":"syncgate-flux-web"}]}`
	apiPath           = `"sourceRef":{"kind":"ExternalArtifact","name":"syncgate-flux-api"}`
	apiSays           = `"syncgate.io/source":"GitRepository/shop"`
	yes               = `{"type":"syncgate.io/Approved","status":"True","reason":"Approved","message":"ok"}`
	no                = `{"type":"syncgate.io/Approved","status":"False","reason":"DigestMismatch","message":"SYNC REFUSED [DigestMismatch] it is another image"}`
)

var noon = time.Date(2026, 12, 2, 12, 0, 5, 0, time.UTC)

// kustomization stores one of the namespace shop.
func (s *stage) kustomization(name, annotations, spec, conditions string) {
	s.Put(fluxKs, fmt.Sprintf(`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":%q,"namespace":"shop","annotations":{%s}},"spec":{"interval":"1h","prune":true,%s},"status":{"conditions":[%s]}}`,
		name, annotations, spec, conditions))
}

// fluxStage is a cluster with a Flux in which the gate holds: web is in postBuild
// mode, api in artifact mode.
func fluxStage(t *testing.T) (*stage, doctor.Flux) {
	t.Helper()
	return fluxStageBy(t, prod+judgesGrants+"gatedDeletes: [NetworkPolicy]\n")
}

// judgesGrants is of a policy whose webhook judges who gets which rights.
const judgesGrants = "scope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]}}\n"

func fluxStageBy(t *testing.T, settings string) (*stage, doctor.Flux) {
	t.Helper()
	s := newStage(t, settings)
	s.Put(fluxDeploys, fluxOwnController)
	s.Put(gateDeploys, fluxGateway)
	s.Put(fluxLeases, fluxLease)
	s.gateMount(t, func(map[string]string) {})
	s.kustomization("web", "", webPath, yes)
	s.Put(shopMaps, `{"metadata":{"name":"syncgate-flux-web"},"data":{"syncgate_latch":"a"}}`)
	s.kustomization("api", apiSays, apiPath, yes)
	s.artifact("main@sha1:1@sha256:" + strings.Repeat("a", 64))
	s.Put(rbacAPI+"clusterroles", `{"metadata":{"name":"syncgate-flux"},"rules":[{"apiGroups":["source.toolkit.fluxcd.io"],"resources":["externalartifacts/status"],"verbs":["update"]}]}`)
	s.Put(rbacAPI+"clusterroles", `{"metadata":{"name":"view"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch"]}]}`)
	s.Put(rbacAPI+"clusterrolebindings", `{"metadata":{"name":"syncgate-flux"},"roleRef":{"kind":"ClusterRole","name":"syncgate-flux"},"subjects":[{"kind":"ServiceAccount","namespace":"syncgate-system","name":"syncgate-flux"}]}`)
	s.Put(rbacAPI+"clusterrolebindings", `{"metadata":{"name":"view"},"roleRef":{"kind":"ClusterRole","name":"view"},"subjects":[{"kind":"User","name":"bob"}]}`)
	return s, doctor.Flux{Policy: s.options.Policy, Policies: s.options.Policies, Want: s.options.Want, FluxNamespace: "flux-system", Now: noon}
}

func (s *stage) artifact(revision string) {
	s.Put(shopEAs, fmt.Sprintf(`{"metadata":{"name":"syncgate-flux-api"},"status":{"artifact":{"revision":%q}}}`, revision))
}

// gateMount makes the ConfigMap of the gate's policy.
func (s *stage) gateMount(t *testing.T, change func(map[string]string)) {
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
	s.Put(gateMaps, string(b))
}

// editors gives the right to write ExternalArtifacts, as Flux's own roles do.
func (s *stage) editors(rule string) {
	s.Put(rbacAPI+"clusterroles", `{"metadata":{"name":"edit"},"rules":[{"apiGroups":["apps"],"resources":["*"],"verbs":["*"]},`+rule+`]}`)
	s.Put(rbacAPI+"rolebindings", `{"metadata":{"name":"edit","namespace":"shop"},"roleRef":{"kind":"ClusterRole","name":"edit"},"subjects":[{"kind":"Group","name":"shop-team"},{"kind":"ServiceAccount","namespace":"shop","name":"ci"}]}`)
}

const fluxEdit = `{"apiGroups":["source.toolkit.fluxcd.io"],"resources":["*"],"verbs":["create","delete","deletecollection","patch","update"]}`

func TestAFluxWithTheGatePasses(t *testing.T) {
	s, o := fluxStage(t)
	s.editors(fluxEdit) // which the policies make good
	r, err := doctor.LookFlux(t.Context(), s.cluster, o)
	must(t, err)
	if !r.Converged() || len(r.Warnings) > 0 {
		t.Errorf("failed: %v, warnings %q", failures(r), r.Warnings)
	}
	var got []string
	for _, c := range r.Checks {
		got = append(got, c.Name)
		if c.Name == "writers" && !strings.Contains(c.Details[0], "Group shop-team, ServiceAccount shop/ci") {
			t.Errorf("writers: %q", c.Details)
		}
	}
	want := []string{"gate", "leader", "policy", "artifacts", "kustomizations", "fields", "rights", "annotations", "mode", "verdicts", "applied", "published", "switches", "policies", "writers", "configuration"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	for _, q := range s.Requests() {
		t.Errorf("wrote: %s %s", q.Method, q.Path)
	}
}

func TestWhatIsWrongWithAFlux(t *testing.T) {
	gate := func(from, to string) func(*testing.T, *stage) {
		return func(t *testing.T, s *stage) {
			if !strings.Contains(fluxGateway, from) {
				t.Fatalf("no %q", from)
			}
			s.Put(gateDeploys, strings.Replace(fluxGateway, from, to, 1))
		}
	}
	controller := func(from, to string) func(*testing.T, *stage) {
		return func(_ *testing.T, s *stage) {
			s.Put(fluxDeploys, strings.Replace(fluxOwnController, from, to, 1))
		}
	}
	lease := func(from, to string) func(*testing.T, *stage) {
		return func(_ *testing.T, s *stage) { s.Put(fluxLeases, strings.Replace(fluxLease, from, to, 1)) }
	}
	web := func(annotations, spec, conditions string) func(*testing.T, *stage) {
		return func(_ *testing.T, s *stage) { s.kustomization("web", annotations, spec, conditions) }
	}
	api := func(annotations, spec string) func(*testing.T, *stage) {
		return func(_ *testing.T, s *stage) { s.kustomization("api", annotations, spec, yes) }
	}
	unguarded := func(rule string) func(*testing.T, *stage) {
		return func(_ *testing.T, s *stage) {
			s.Delete(admissionAPI + "validatingadmissionpolicybindings/syncgate-x")
			s.editors(rule)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *stage)
		check  string
		text   string
	}{
		{"no gate", func(_ *testing.T, s *stage) { s.Delete(gateDeploys + "/syncgate-flux") }, "gate", "there is none"},
		{"the gate for something else", gate(`"--flux",`, ``), "gate", "--flux"},
		{"the gate switched off", gate(`"--flux",`, `"--flux=false",`), "gate", "--flux"},
		{"another container", gate(`"name":"controller"`, `"name":"other"`), "gate", "--flux"},
		{"none is ready", gate(`"readyReplicas":1`, `"readyReplicas":0`), "gate", "0 ready"},
		{"scaled to none", gate(`"replicas":1,"template"`, `"replicas":0,"template"`), "gate", "wants 0 replicas"},
		{"an old one runs", gate(`"updatedReplicas":1`, `"updatedReplicas":0`), "gate", "0 of the newest"},
		{"a change that nobody has seen", gate(`"generation":2`, `"generation":3`), "gate", "wants 1"},
		{"another namespace of Flux", gate(`=flux-system`, `=flux`), "gate", "--flux-namespace"},
		{"no lease", func(_ *testing.T, s *stage) { s.Delete(fluxLeases + "/syncgate-controller") }, "leader", "there is none"},
		{"nobody leads", lease(`gate_1`, ``), "leader", "held by nobody"},
		{"a leader that is gone", lease(`T12:00:00`, `T11:55:00`), "leader", "renewed last by gate_1"},
		{"a lease without a time", lease(`,"renewTime":"2026-12-02T12:00:00.000000Z"`, ``), "leader", "held by nobody"},
		{"no policy", func(_ *testing.T, s *stage) { s.Delete(gateMaps + "/syncgate-policy") }, "policy", "there is none"},
		{"another policy", func(t *testing.T, s *stage) {
			s.gateMount(t, func(d map[string]string) { d["policy.yaml"] += "help: ask\n" })
		}, "policy", "want sha256"},
		{"a policy without its keys", func(t *testing.T, s *stage) {
			s.gateMount(t, func(d map[string]string) { delete(d, "jwks.json") })
		}, "policy", "does not load"},
		{"no feature gate", controller(`,ExternalArtifact=true`, ``), "artifacts", "ExternalArtifact=true"},
		{"the feature gate off", controller(`ExternalArtifact=true`, `ExternalArtifact=false`), "artifacts", "ExternalArtifact=true"},
		{"another feature gate", controller(`ExternalArtifact=true`, `NoExternalArtifact=true`), "artifacts", "ExternalArtifact=true"},
		{"no storage", gate(`,"--storage-path=/data"`, ``), "artifacts", "--storage-path"},
		{"around the gate", web("", `"sourceRef":{"kind":"GitRepository","name":"shop"}`, ""), "kustomizations", "Kustomization shop/web goes around the gate"},
		{"another's ConfigMap", web("", strings.Replace(webPath, "flux-web", "flux-api", 1), ""), "kustomizations", "Kustomization shop/web goes around"},
		{"optional", web("", strings.Replace(webPath, `flux-web"`, `flux-web","optional":true`, 1), yes), "fields", "optional"},
		{"not the last one", web("", strings.Replace(webPath, `flux-web"}`, `flux-web"},{"kind":"ConfigMap","name":"more"}`, 1), yes), "fields", "Kustomization shop/web is refused"},
		{"force", web("", webPath+`,"force":true`, yes), "fields", "ForceNotAllowed"},
		{"patches after the gate", api(apiSays, apiPath+`,"patches":[{"patch":"a"}]`), "fields", "patches"},
		{"a field that nobody knows", api(apiSays, apiPath+`,"shiny":true`), "fields", "shiny"},
		{"no source", api("", apiPath), "fields", "syncgate.io/source"},
		{"an annotation that relaxes", web(`"syncgate.io/mode":"Warn"`, webPath, yes), "annotations", "would relax"},
		{"an annotation that nobody knows", web(`"syncgate.io/moed":"Enforce"`, webPath, yes), "annotations", "moed"},
		{"nobody has looked at one", web("", webPath, ""), "verdicts", "Kustomization shop/web has no condition"},
		{"applied anyway", func(_ *testing.T, s *stage) {
			s.kustomization("web", "", webPath, strings.Replace(no, "DigestMismatch\",\"message\":\"", "AppliedAnyway\",\"message\":\"APPLIED ANYWAY main@sha1:2; ", 1))
			s.Delete(shopMaps + "/syncgate-flux-web")
		}, "applied", "Kustomization shop/web: APPLIED ANYWAY main@sha1:2"},
		{"approved without a ConfigMap", func(_ *testing.T, s *stage) { s.Delete(shopMaps + "/syncgate-flux-web") }, "published", "there is no ConfigMap"},
		{"a ConfigMap of somebody else", func(_ *testing.T, s *stage) {
			s.Put(shopMaps, `{"metadata":{"name":"syncgate-flux-web"},"data":{"a":"b"}}`)
		}, "published", "it is not the gate's"},
		{"refused, and a ConfigMap", web("", webPath, no), "published", "somebody else has made it"},
		{"approved without an artifact", func(_ *testing.T, s *stage) { s.Delete(shopEAs + "/syncgate-flux-api") }, "published", "has no artifact"},
		{"a forged artifact", func(_ *testing.T, s *stage) { s.artifact("main@sha1:2") }, "published", "none of the gate's"},
		{"switched off", func(_ *testing.T, s *stage) {
			s.Put(gateMaps, `{"metadata":{"name":"syncgate-off"},"data":{"app.shop_web":"{\"app\":\"shop_web\",\"until\":\"2026-12-02T13:00:00Z\",\"by\":\"alice\",\"reason\":\"INC-4711\"}"}}`)
		}, "switches", "Kustomization shop/web: what policy refuses passes until 2026-12-02T13:00:00Z, by alice: INC-4711"},
		{"no binding", func(_ *testing.T, s *stage) {
			s.Delete(admissionAPI + "validatingadmissionpolicybindings/syncgate-x")
		}, "policies", "the policy refuses nothing"},
		{"editors and no policy", unguarded(fluxEdit), "writers", "Group shop-team, ServiceAccount shop/ci"},
		{"the status alone", unguarded(`{"apiGroups":["*"],"resources":["*/status"],"verbs":["patch"]}`), "writers", "Group shop-team"},
		{"by name", unguarded(`{"apiGroups":["source.toolkit.fluxcd.io"],"resources":["externalartifacts/status"],"resourceNames":["syncgate-flux-api"],"verbs":["update"]}`), "writers", "Group shop-team"},
		{"no webhook", func(_ *testing.T, s *stage) {
			s.Delete(admissionAPI + "validatingwebhookconfigurations/syncgate")
		}, "configuration", "nothing asks the webhook"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, o := fluxStage(t)
			tt.change(t, s)
			r, err := doctor.LookFlux(t.Context(), s.cluster, o)
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

// TestWhatIsNoFaultOfTheGate is said, and passes.
func TestWhatIsNoFaultOfTheGate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*stage, *doctor.Flux)
		said   string // in a warning; empty: there is none
	}{
		"a refusal": {func(s *stage, _ *doctor.Flux) {
			s.kustomization("web", "", webPath, no)
			s.Delete(shopMaps + "/syncgate-flux-web")
		}, "it is another image"},
		"what Flux cannot do": {func(s *stage, _ *doctor.Flux) {
			s.kustomization("web", "", webPath, yes+`,{"type":"Ready","status":"False","message":"health check failed"}`)
		}, "health check failed"},
		"no default account": {func(s *stage, _ *doctor.Flux) {
			s.Put(fluxDeploys, strings.Replace(fluxOwnController, `"--default-service-account=default",`, "", 1))
		}, "--default-service-account"},
		"Flux cannot be seen": {func(s *stage, _ *doctor.Flux) { s.Delete(fluxDeploys + "/kustomize-controller") }, "cannot be read"},
		"a policy elsewhere": {func(s *stage, _ *doctor.Flux) {
			s.Put(gateDeploys, strings.Replace(fluxGateway, `"name":"policy"`, `"name":"x"`, 1))
		}, "cannot be seen"},
		"no lease is wanted": {func(s *stage, _ *doctor.Flux) {
			s.Put(gateDeploys, strings.Replace(fluxGateway, `"--flux",`, `"--flux","--leader-elect=false",`, 1))
		}, "--leader-elect=false"},
		"an off-switch that ended": {func(s *stage, _ *doctor.Flux) {
			s.Put(gateMaps, `{"metadata":{"name":"syncgate-off"},"data":{"app.shop_web":"{\"app\":\"shop_web\",\"until\":\"2026-12-02T11:00:00Z\",\"by\":\"alice\",\"reason\":\"INC-4711\"}"}}`)
		}, ""},
		"one that is not gated": {func(s *stage, o *doctor.Flux) {
			s.kustomization("free", "", `"sourceRef":{"kind":"GitRepository","name":"shop"}`, "")
			o.Ungated = []string{"shop/free"}
		}, ""},
		"another namespace": {func(s *stage, o *doctor.Flux) {
			s.Put(fluxKs, `{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"free","namespace":"free"},"spec":{"sourceRef":{"kind":"GitRepository","name":"shop"}}}`)
			o.Namespaces = []string{"shop"}
		}, ""},
		"one that is suspended": {func(s *stage, _ *doctor.Flux) {
			s.kustomization("free", "", `"suspend":true,"sourceRef":{"kind":"GitRepository","name":"shop"}`, "")
		}, ""},
		"the feature gate in two words": {func(s *stage, _ *doctor.Flux) {
			s.Put(fluxDeploys, strings.Replace(fluxOwnController, `--feature-gates=`, `--feature-gates","`, 1))
		}, ""},
		"other artifacts by name": {func(s *stage, _ *doctor.Flux) {
			s.editors(`{"apiGroups":["source.toolkit.fluxcd.io"],"resources":["externalartifacts"],"resourceNames":["other"],"verbs":["update"]}`)
		}, ""},
		"a webhook that nothing needs": {func(s *stage, _ *doctor.Flux) {
			s.Delete(fluxKs + "/web")
			s.Delete(admissionAPI + "validatingwebhookconfigurations/syncgate")
		}, "nobody else is asked"},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := fluxStage(t)
			c.change(s, &o)
			r, err := doctor.LookFlux(t.Context(), s.cluster, o)
			must(t, err)
			if !r.Converged() {
				t.Errorf("failed: %v", failures(r))
			}
			if said := strings.Join(r.Warnings, "\n"); c.said == "" && said != "" || !strings.Contains(said, c.said) {
				t.Errorf("warnings %q, want %q", said, c.said)
			}
		})
	}
}
