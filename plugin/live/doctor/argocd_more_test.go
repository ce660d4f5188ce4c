package doctor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/live/doctor"
)

const (
	shopDestination = `"destinations":[{"server":"https://kubernetes.default.svc","namespace":"shop"}]`
	inShop          = `,"destination":{"server":"https://kubernetes.default.svc","namespace":"shop"}`
)

func (s *stage) project(name, spec string) {
	s.Put(argoGroups, fmt.Sprintf(`{"apiVersion":"argoproj.io/v1alpha1","kind":"AppProject","metadata":{"name":%q,"namespace":"argocd"},"spec":{%s}}`, name, spec))
}

// off makes the ConfigMap of off-switches with one entry.
func (s *stage) off(t *testing.T, key, namespace, app string, until time.Time) {
	t.Helper()
	value, err := json.Marshal(map[string]string{"namespace": namespace, "app": app, "until": until.UTC().Format(time.RFC3339), "reason": "INC-1", "by": "alice"})
	must(t, err)
	data, err := json.Marshal(map[string]string{key: strings.ReplaceAll(string(value), `"namespace":"",`, "")})
	must(t, err)
	s.Put(argoMaps, fmt.Sprintf(`{"metadata":{"name":"syncgate-off"},"data":%s}`, data))
}

// sidecar is the repo-server with more in the plugin's container.
func (s *stage) sidecar(image, env, more string) {
	text := strings.Replace(repoServer, `"image":"syncgate:v1","env":[`, fmt.Sprintf(`"image":%q,%s"env":[%s`, image, more, env), 1)
	s.Put(argoDeploys, text)
}

const withOff = `{"name":"SYNCGATE_OFF","value":"/etc/syncgate-off"},`

// TestWhatElseIsWrongWithAnArgoCD: fails are the checks that fail, and text is in
// one of them or in a warning.
func TestWhatElseIsWrongWithAnArgoCD(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *stage, *doctor.ArgoCD)
		fails  string
		text   string
	}{
		{"an off-switch in force", func(t *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", withOff, "")
			s.off(t, "app.web", "", "web", soon)
		}, "switches", "application web: what policy refuses passes until"},
		{"an off-switch that nothing reads", func(t *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.off(t, "app.web", "", "web", soon)
		}, "", "has no SYNCGATE_OFF: it is refused all the same"},
		{"an off-switch that has ended", func(t *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", withOff, "")
			s.off(t, "app.web", "", "web", time.Now().Add(-time.Hour))
		}, "", ""},
		{"an off-switch of the webhook's", func(t *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", withOff, "")
			s.off(t, "namespace.shop", "shop", "", soon)
		}, "", ""},
		{"an off-switch that is none", func(t *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", withOff, "")
			s.off(t, "app.other", "", "web", soon)
		}, "", "key app.other: no off-switch: it is for app.web"},

		{"an ungated project of the same namespace", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"*","namespace":"*"}]`)
		}, "projects", "AppProject default is not gated, and may deploy to where 1 gated Applications are, such as argocd/web"},
		{"by the cluster's name", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"name":"in-cluster","namespace":"sh*"}]`)
		}, "projects", "AppProject default"},
		{"the gate's own project of the same namespace", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.application(plugged + inShop)
			s.project("syncgate", `"destinations":[{"server":"*","namespace":"*"}]`)
		}, "projects", "AppProject syncgate is not gated"},
		{"an ungated project of another namespace", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"*","namespace":"team-*"}]`)
		}, "", ""},
		{"a pattern that cannot be read here", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"https://*","namespace":"{shop,pay}"}]`)
		}, "projects", "AppProject default"},
		{"leaves it out by a pattern that cannot be read here", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"*","namespace":"*"},{"server":"*","namespace":"!{shop,pay}"}]`)
		}, "projects", "AppProject default"},
		{"an ungated project of another cluster", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"https://other","namespace":"*"}]`)
		}, "", ""},
		{"an ungated project that leaves it out", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"*","namespace":"*"},{"server":"*","namespace":"!shop"}]`)
		}, "", ""},
		{"leaves it out for a cluster that may be another", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			o.Projects = []string{"shop"}
			s.application(plugged + inShop)
			s.project("default", `"destinations":[{"server":"*","namespace":"*"},{"name":"remote","namespace":"!shop"}]`)
		}, "projects", "AppProject default"},
		{"the gate's configuration in another project", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.application(plugged, `"status":{"resources":[{"version":"v1","kind":"ConfigMap","namespace":"argocd","name":"syncgate-policy"}]}`)
		}, "projects", "Application argocd/web of project shop deploys ConfigMap argocd/syncgate-policy"},
		{"a ConfigMap of that name elsewhere", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.application(plugged, `"status":{"resources":[{"version":"v1","kind":"ConfigMap","namespace":"shop","name":"syncgate-policy"}]}`)
		}, "", ""},
		{"the gate's project takes any repository", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.project("syncgate", `"sourceRepos":["*"]`)
		}, "projects", "takes any repository"},
		{"admission kinds", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.project("shop", shopDestination+`,"clusterResourceWhitelist":[{"group":"*","kind":"*"}]`)
		}, "", "gated AppProjects may write kinds of admissionregistration.k8s.io"},
		{"all but admission kinds", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.project("shop", shopDestination+`,"clusterResourceWhitelist":[{"group":"*","kind":"*"}],"clusterResourceBlacklist":[{"group":"admissionregistration.k8s.io","kind":"*"}]`)
		}, "", ""},

		{"another version", func(_ *testing.T, _ *stage, o *doctor.ArgoCD) { o.Version = "v2" }, "image", "the sidecar is syncgate v1, and this is syncgate v2"},
		{"a program without a version", func(_ *testing.T, _ *stage, o *doctor.ArgoCD) { o.Version = "(devel)" }, "", "cannot be seen: name what it should be with --image"},
		{"a digest alone", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("registry:5000/syncgate@sha256:aa", "", "")
		}, "", "cannot be seen"},
		{"the digest that is wanted", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			s.sidecar("mirror/syncgate@sha256:aa", "", "")
			o.Image = "ghcr.io/syncgate/syncgate@sha256:aa"
		}, "", ""},
		{"another digest", func(_ *testing.T, s *stage, o *doctor.ArgoCD) {
			s.sidecar("ghcr.io/syncgate/syncgate:v1@sha256:bb", "", "")
			o.Image = "ghcr.io/syncgate/syncgate@sha256:aa"
		}, "image", "want ghcr.io/syncgate/syncgate@sha256:aa"},
		{"no digest", func(_ *testing.T, _ *stage, o *doctor.ArgoCD) { o.Image = "syncgate@sha256:aa" }, "image", "the sidecar is syncgate:v1, want"},
		{"another reference", func(_ *testing.T, _ *stage, o *doctor.ArgoCD) { o.Image = "syncgate:v2" }, "image", "want syncgate:v2"},

		{"variables of a ConfigMap", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", "", `"envFrom":[{"prefix":"SYNCGATE_","configMapRef":{"name":"more"}}],`)
			s.Put(argoMaps, `{"metadata":{"name":"more"},"data":{"TIMEOUT":"90s"}}`)
		}, "timeouts", "SYNCGATE_TIMEOUT, 1m30s"},
		{"a variable of a ConfigMap's key", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"SYNCGATE_TIMEOUT","valueFrom":{"configMapKeyRef":{"name":"more","key":"t","optional":true}}},`, "")
			s.Put(argoMaps, `{"metadata":{"name":"more"},"data":{"t":"90s"}}`)
		}, "timeouts", "SYNCGATE_TIMEOUT, 1m30s"},
		{"one that is there itself comes before", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"SYNCGATE_TIMEOUT","value":"30s"},`, `"envFrom":[{"configMapRef":{"name":"more"}}],`)
			s.Put(argoMaps, `{"metadata":{"name":"more"},"data":{"SYNCGATE_TIMEOUT":"90s"}}`)
		}, "", ""},
		{"variables of a Secret", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", "", `"envFrom":[{"secretRef":{"name":"hidden"}}],`)
		}, "", "takes variables from Secret hidden, which is not looked at"},
		{"a variable of a Secret", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"SYNCGATE_TIMEOUT","valueFrom":{"secretKeyRef":{"name":"hidden","key":"t"}}},`, "")
		}, "", "takes variable SYNCGATE_TIMEOUT from elsewhere"},
		{"a Secret that has none of ours", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"GITHUB_TOKEN","valueFrom":{"secretKeyRef":{"name":"hidden","key":"t"}}},`, `"envFrom":[{"prefix":"APP_","secretRef":{"name":"hidden"}}],`)
		}, "", ""},
		{"another policy file", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"SYNCGATE_POLICY","value":"/tmp/policy.yaml"},`, `"volumeMounts":[{"name":"syncgate-policy","mountPath":"/etc/syncgate"}],`)
		}, "policy", "it goes by another file"},
		{"that policy file", func(_ *testing.T, s *stage, _ *doctor.ArgoCD) {
			s.sidecar("syncgate:v1", `{"name":"SYNCGATE_POLICY","value":"/etc/syncgate/policy.yaml"},`, `"volumeMounts":[{"name":"syncgate-policy","mountPath":"/etc/syncgate/"}],`)
		}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, o := argoStage(t)
			tt.change(t, s, &o)
			r, err := doctor.LookArgoCD(t.Context(), s.cluster, o)
			must(t, err)
			var failed, said []string
			for _, c := range r.Checks {
				if !c.OK {
					failed = append(failed, c.Name)
					said = append(said, c.Details...)
					if c.Fix == "" {
						t.Errorf("check %s has no next step", c.Name)
					}
				}
			}
			said = append(said, r.Warnings...)
			if got := strings.Join(failed, " "); got != tt.fails {
				t.Errorf("failed: %q, want %q; said: %q", got, tt.fails, said)
			}
			if all := strings.Join(said, "\n"); !strings.Contains(all, tt.text) || tt.text == "" && all != "" {
				t.Errorf("said: %q, want %q", all, tt.text)
			}
		})
	}
}
