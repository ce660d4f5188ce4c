package fixedpoint_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/live/apitest"
	"github.com/syncgate/syncgate/plugin/live/fixedpoint"
)

const (
	admissionAPI = "/apis/admissionregistration.k8s.io/v1/"
	deployment   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","annotations":{"syncgate.io/receipt":"r","kubectl.kubernetes.io/last-applied-configuration":"{}"}},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`
	ingress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"web","namespace":"shop"},"spec":{"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var tree map[string]any
	must(t, d.Decode(&tree))
	return tree
}

func serve(t *testing.T) *apitest.Server {
	t.Helper()
	s := apitest.New(t)
	s.Put("/api/v1/namespaces", `{"metadata":{"name":"shop","labels":{"kubernetes.io/metadata.name":"shop"}}}`)
	return s
}

// webhook registers a mutating webhook for a resource of namespace shop.
func webhook(s *apitest.Server, name, group, resource string) {
	s.Put(admissionAPI+"mutatingwebhookconfigurations", `{"metadata":{"name":"`+name+`"},"webhooks":[{"name":"`+name+`.example.test","namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"shop"}},
		"rules":[{"apiGroups":["`+group+`"],"apiVersions":["*"],"operations":["CREATE","UPDATE"],"resources":["`+resource+`"]}]}]}`)
}

// edit changes objects of one kind at admission.
func edit(kind string, change func(object map[string]any)) func(apitest.Request) *apitest.Status {
	return func(q apitest.Request) *apitest.Status {
		if q.Object["kind"] == kind {
			change(q.Object)
		}
		return nil
	}
}

func spec(object map[string]any) map[string]any { return object["spec"].(map[string]any) }

func podSpec(object map[string]any) map[string]any {
	return spec(spec(object)["template"].(map[string]any))
}

func container(pod map[string]any) map[string]any {
	return pod["containers"].([]any)[0].(map[string]any)
}

func find(t *testing.T, s *apitest.Server, o fixedpoint.Options, manifest, name string) []fixedpoint.Finding {
	t.Helper()
	c, err := live.New(s.Config())
	must(t, err)
	f, err := fixedpoint.New(t.Context(), c, o)
	must(t, err)
	got, err := f.Find(t.Context(), parse(t, manifest), name)
	must(t, err)
	return got
}

func TestWhatTheClusterWouldStoreAsItIsHasNoFindings(t *testing.T) {
	s := serve(t)
	webhook(s, "labels", "*", "*")
	s.Admit(func(q apitest.Request) *apitest.Status {
		q.Object["metadata"].(map[string]any)["finalizers"] = []any{"example.test/f"}
		if q.Object["kind"] == "Pod" { // as the API server does
			spec(q.Object)["runtimeClassName"] = "default"
			spec(q.Object)["tolerations"] = []any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}}
		}
		return nil
	})
	if got := find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web"); len(got) > 0 {
		t.Errorf("got %+v, want none", got)
	}
	var tried []string
	for _, q := range s.Requests() {
		tried = append(tried, q.As+" "+q.Object["kind"].(string))
		if !q.DryRun {
			t.Errorf("%s %s is no dry run", q.Method, q.Path)
		}
	}
	want := []string{" Deployment", "system:serviceaccount:kube-system:deployment-controller ReplicaSet", "system:serviceaccount:kube-system:replicaset-controller Pod"}
	if diff := cmp.Diff(want, tried); diff != "" {
		t.Errorf("tried (-want +got):\n%s", diff)
	}
}

func TestTheReplicaSetIsWhatTheControllerWouldMake(t *testing.T) {
	s := serve(t)
	find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web")
	got := s.Requests()[1].Object
	want := parse(t, `{"apiVersion":"apps/v1","kind":"ReplicaSet",
		"metadata":{"name":"web-syncgate","namespace":"shop","uid":"uid-of-web-syncgate","labels":{"app":"web","pod-template-hash":"syncgate"},"annotations":{"syncgate.io/receipt":"r"},
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"uid-of-web","controller":true}]},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web","pod-template-hash":"syncgate"}},
			"template":{"metadata":{"labels":{"app":"web","pod-template-hash":"syncgate"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`)
	want["spec"].(map[string]any)["replicas"] = 2.0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWebhookThatPinsReplicaSetsIsTheLoop(t *testing.T) {
	s := serve(t)
	webhook(s, "pinning", "apps", "replicasets")
	webhook(s, "elsewhere", "apps", "deployments/scale")
	s.Admit(edit("ReplicaSet", func(o map[string]any) { container(podSpec(o))["image"] = "web:1@sha256:ab" }))
	got := find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web")
	want := []fixedpoint.Finding{{
		Object: "ReplicaSet of Deployment shop/web", Reason: gate.DigestMismatch, Category: "image", Path: "spec.template.spec.containers[web].image",
		Before: "web:1", After: "web:1@sha256:ab", By: "webhook pinning.example.test (configuration pinning)",
		Text: "webhook pinning.example.test (configuration pinning) changes spec.template.spec.containers[web].image: web:1 -> web:1@sha256:ab; its controller will make ReplicaSets without end",
		Fix:  "pin it before it is applied: syncgate pin, commit .syncgate, apply what syncgate renders",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnyChangeOfAReplicaSetsTemplateIsTheLoop(t *testing.T) {
	s := serve(t)
	s.Admit(edit("ReplicaSet", func(o map[string]any) { podSpec(o)["terminationGracePeriodSeconds"] = 5 }))
	got := find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web")
	want := []fixedpoint.Finding{{
		Object: "ReplicaSet of Deployment shop/web", Reason: gate.DigestMismatch, Path: "spec.template.spec.terminationGracePeriodSeconds", Before: "nothing", After: "(not shown)",
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(fixedpoint.Finding{}, "Text", "Fix")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAGatedFieldThatMovesIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name, manifest, object string
		prepare                func(*apitest.Server)
		want                   []string // reason, object, text; and the fix
	}{
		{"filled in by the cluster", ingress, "Ingress shop/web",
			func(s *apitest.Server) {
				s.Admit(edit("Ingress", func(o map[string]any) { spec(o)["ingressClassName"] = "nginx" }))
			},
			[]string{"FieldDefaulted Ingress shop/web: the cluster fills in spec.ingressClassName: nginx | write it into the manifest: spec.ingressClassName: nginx"}},
		{"filled in by a webhook", ingress, "Ingress shop/web",
			func(s *apitest.Server) {
				webhook(s, "classes", "networking.k8s.io", "ingresses")
				s.Admit(edit("Ingress", func(o map[string]any) { spec(o)["ingressClassName"] = "nginx" }))
			},
			[]string{"FieldDefaulted Ingress shop/web: webhook classes.example.test (configuration classes) fills in spec.ingressClassName: nginx | write it into the manifest: spec.ingressClassName: nginx"}},
		{"filled in when it was created", ingress, "Ingress shop/web",
			func(s *apitest.Server) {
				s.Put("/apis/networking.k8s.io/v1/namespaces/shop/ingresses", strings.Replace(ingress, `"spec":{`, `"spec":{"ingressClassName":"nginx",`, 1))
			},
			[]string{"FieldDefaulted Ingress shop/web: the cluster fills in spec.ingressClassName: nginx | write it into the manifest: spec.ingressClassName: nginx"}},
		{"dropped", strings.Replace(deployment, `"containers"`, `"hostPID":true,"containers"`, 1), "Deployment shop/web",
			func(s *apitest.Server) {
				s.Admit(edit("Deployment", func(o map[string]any) { delete(podSpec(o), "hostPID") }))
			},
			[]string{"FieldDropped Deployment shop/web: the API server drops spec.template.spec.hostPID: true | remove it from the manifest, or enable the feature that it needs"}},
		{"changed by one of two", deployment, "Deployment shop/web",
			func(s *apitest.Server) {
				webhook(s, "a", "apps", "deployments")
				webhook(s, "b", "*", "*")
				s.Admit(edit("Deployment", func(o map[string]any) { container(podSpec(o))["image"] = "mirror/web:1" }))
			},
			[]string{"DigestMismatch Deployment shop/web: one of webhook a.example.test (configuration a), webhook b.example.test (configuration b) changes spec.template.spec.containers[web].image: web:1 -> mirror/web:1 | write into the manifest what the cluster makes of it, or exempt the object from who changes it"}},
		{"a value that is nobody's business", strings.Replace(deployment, `"image"`, `"command":["a"],"image"`, 1), "Deployment shop/web",
			func(s *apitest.Server) {
				s.Admit(edit("Deployment", func(o map[string]any) { container(podSpec(o))["command"] = []any{"s3cret"} }))
			},
			[]string{"DigestMismatch Deployment shop/web: the API server changes spec.template.spec.containers[web].command: (not shown) -> (not shown) | write into the manifest what the cluster makes of it, or exempt the object from who changes it"}},
		{"known by its position", strings.Replace(deployment, `"image"`, `"envFrom":[{"configMapRef":{"name":"a"}}],"image"`, 1), "Deployment shop/web",
			func(s *apitest.Server) {
				s.Admit(edit("Deployment", func(o map[string]any) {
					container(podSpec(o))["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "b"}}}
				}))
			},
			[]string{"DigestMismatch Deployment shop/web: the API server changes spec.template.spec.containers[web].envFrom[#0].configMapRef.name: (not shown) -> (not shown) | write into the manifest what the cluster makes of it, or exempt the object from who changes it"}},
		{"what was there before and stays", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{}}`, "Deployment shop/web",
			func(s *apitest.Server) {
				s.Put("/apis/apps/v1/namespaces/shop/deployments", deployment)
				s.Admit(func(q apitest.Request) *apitest.Status {
					if q.Method == "PUT" {
						return &apitest.Status{Code: 422, Reason: "Invalid", Message: "spec.selector: Required value"}
					}
					return nil
				})
			}, nil},
		{"refused", deployment, "Deployment shop/web",
			func(s *apitest.Server) {
				s.Admit(func(apitest.Request) *apitest.Status {
					return &apitest.Status{Code: 403, Reason: "Forbidden", Message: "no"}
				})
			},
			[]string{"ClusterUnavailable Deployment shop/web: could not be tried: the API server refuses it: no | mend what it says; syncgate check tells what the gate would refuse"}},
		{"not served", `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"shop"}}`, "Thing shop/a", func(*apitest.Server) {},
			[]string{"ClusterUnavailable Thing shop/a: could not be tried: the cluster does not serve its kind | install what defines the kind first"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t)
			tt.prepare(s)
			var got []string
			for _, d := range find(t, s, fixedpoint.Options{}, tt.manifest, tt.object) {
				if !d.Note {
					got = append(got, string(d.Reason)+" "+d.Object+": "+d.Text+" | "+d.Fix)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodOfAControllerIsANote(t *testing.T) {
	s := serve(t)
	webhook(s, "sidecar", "", "pods")
	s.Admit(edit("Pod", func(o map[string]any) {
		spec(o)["containers"] = append(spec(o)["containers"].([]any), map[string]any{"name": "proxy", "image": "proxy:1"})
	}))
	got := find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web")
	want := []fixedpoint.Finding{{Object: "Pod of Deployment shop/web", Reason: gate.FieldDefaulted, Category: "image", Path: "spec.containers[proxy].image",
		Before: "nothing", After: "proxy:1", By: "webhook sidecar.example.test (configuration sidecar)", Note: true}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(fixedpoint.Finding{}, "Text", "Fix")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoMayNotImpersonateTriesAsThemselves(t *testing.T) {
	s := serve(t)
	s.Admit(func(q apitest.Request) *apitest.Status {
		switch {
		case q.As != "":
			return &apitest.Status{Code: 403, Reason: "Forbidden", Message: `users "` + q.As + `" is forbidden: User "alice" cannot impersonate resource "users"`}
		case q.Object["kind"] == "Pod":
			return &apitest.Status{Code: 403, Reason: "Forbidden", Message: "no Pods from you"}
		}
		return nil
	})
	got := find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web")
	want := []fixedpoint.Finding{{Object: "Pod of Deployment shop/web", Note: true, Text: "could not be tried: no Pods from you"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACronJobIsTriedDownToItsPods(t *testing.T) {
	s := serve(t)
	find(t, s, fixedpoint.Options{SharedControllerIdentity: "system:kube-controller-manager"},
		`{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"tick","namespace":"shop"},"spec":{"schedule":"* * * * *","jobTemplate":{"metadata":{"annotations":{"syncgate.io/receipt":"r"}},"spec":{"template":{"spec":{"containers":[{"name":"a","image":"a"}]}}}}}}`, "CronJob shop/tick")
	var got []string
	for _, q := range s.Requests() {
		got = append(got, q.As+" "+q.Object["kind"].(string))
	}
	want := []string{" CronJob", "system:kube-controller-manager Job", "system:kube-controller-manager Pod"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a := s.Requests()[1].Object["metadata"].(map[string]any)["annotations"]; !cmp.Equal(a, map[string]any{"syncgate.io/receipt": "r"}) {
		t.Errorf("annotations of the Job: got %v, want those of its template", a)
	}
}

func TestAllFieldsCountIfAsked(t *testing.T) {
	s := serve(t)
	s.Admit(edit("Deployment", func(o map[string]any) {
		spec(o)["replicas"] = 3
		spec(o)["paused"] = true
		delete(o["metadata"].(map[string]any), "annotations")
		container(podSpec(o))["image"] = "web:2"
		o["status"] = map[string]any{"replicas": 0}
	}))
	var got []string
	for _, d := range find(t, s, fixedpoint.Options{All: true}, deployment, "Deployment shop/web") {
		got = append(got, strings.TrimSpace(map[bool]string{true: "note", false: ""}[d.Note]+" "+d.Path))
	}
	want := []string{"spec.template.spec.containers[web].image", "metadata.annotations", "note spec.paused", "spec.replicas"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, d := range find(t, s, fixedpoint.Options{}, deployment, "Deployment shop/web") {
		if d.Category == "" {
			t.Errorf("not asked for: %+v", d)
		}
	}
}

func TestAClusterThatCannotBeAskedIsAnError(t *testing.T) {
	s := serve(t)
	s.Admit(func(apitest.Request) *apitest.Status {
		return &apitest.Status{Code: 401, Reason: "Unauthorized", Message: "who are you"}
	})
	c, err := live.New(s.Config())
	must(t, err)
	f, err := fixedpoint.New(t.Context(), c, fixedpoint.Options{})
	must(t, err)
	if got, err := f.Find(t.Context(), parse(t, deployment), "Deployment shop/web"); err == nil {
		t.Errorf("got %v, want an error", got)
	}
}
