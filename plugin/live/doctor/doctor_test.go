package doctor_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/live/apitest"
	"github.com/syncgate/syncgate/plugin/live/doctor"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/webhook"
)

const (
	admissionAPI = "/apis/admissionregistration.k8s.io/v1/"
	deployments  = "/apis/apps/v1/namespaces/syncgate-system/deployments"
	prod         = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\n"
)

// stage is a cluster with the generated configuration, and a policy.
type stage struct {
	*apitest.Server
	cluster *live.Cluster
	file    string
	options doctor.Options
}

func newStage(t *testing.T, settings string) *stage {
	t.Helper()
	dir := t.TempDir()
	key, err := receipt.NewKey("", ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	must(t, err)
	set, err := keys.PublicJWKS([]receipt.Key{key})
	must(t, err)
	s := &stage{Server: apitest.New(t), file: filepath.Join(dir, "policy.yaml")}
	must(t, os.WriteFile(filepath.Join(dir, "jwks.json"), set, 0o600))
	must(t, os.WriteFile(s.file, []byte(settings+"issuers: [{name: release, keys: {file: jwks.json}}]\n"), 0o600))
	p, err := policy.Load(s.file)
	must(t, err)
	s.cluster, err = live.New(s.Config())
	must(t, err)
	config, err := admission.NewConfiguration(p, admission.Place{Service: admission.ServiceReference{Namespace: "syncgate-system", Name: "syncgate-webhook"}, CABundle: []byte("ca")})
	must(t, err)
	data, err := json.Marshal(config)
	must(t, err)
	s.options = doctor.Options{Policy: p, Want: parse(t, string(data)), KeyIDs: []string{key.ID}}
	s.Put(admissionAPI+"validatingwebhookconfigurations", string(data))
	s.options.Policies = []map[string]any{parse(t, generatedPolicy), parse(t, generatedBinding)}
	s.Put(admissionAPI+"validatingadmissionpolicies", generatedPolicy)
	s.Put(admissionAPI+"validatingadmissionpolicybindings", generatedBinding)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *stage) look(t *testing.T) doctor.Report {
	t.Helper()
	r, err := doctor.Look(t.Context(), s.cluster, s.options)
	must(t, err)
	return r
}

// replica is what the webhook says of itself, in its own words.
func (s *stage) replica(name, hash string, more ...string) *apitest.Status {
	causes := []any{cause("Replica", name), cause("PolicyHash", hash)}
	for _, kid := range s.options.Policy.KeyIDs() {
		causes = append(causes, cause("KeyID", kid))
	}
	for _, m := range more {
		causes = append(causes, cause("ReloadFailed", m))
	}
	return refusal(causes...)
}

func cause(reason, message string) any { return map[string]any{"reason": reason, "message": message} }

func refusal(causes ...any) *apitest.Status {
	return &apitest.Status{Code: 403, Reason: "Forbidden", Causes: causes,
		Message: `admission webhook "roles.syncgate.io" denied the request: SYNC REFUSED [ReceiptMissing] no`}
}

// good is a webhook of n replicas that has loaded everything.
func (s *stage) good(n int) {
	var turn atomic.Int64
	s.Admit(func(apitest.Request) *apitest.Status {
		return s.replica(fmt.Sprintf("host/%d", int(turn.Add(1))%n), s.options.Policy.Hash())
	})
}

// failures are the checks that did not pass, with their first detail.
func failures(r doctor.Report) map[string]string {
	out := map[string]string{}
	for _, c := range r.Checks {
		if !c.OK {
			out[c.Name] = c.Details[0]
		}
	}
	return out
}

func TestAConvergedGatePasses(t *testing.T) {
	s := newStage(t, prod)
	s.good(3)
	s.Put(deployments, `{"metadata":{"name":"syncgate-webhook","generation":4},"spec":{"replicas":3},"status":{"observedGeneration":4,"replicas":3,"updatedReplicas":3,"readyReplicas":3}}`)
	r := s.look(t)
	if !r.Converged() {
		t.Errorf("failed: %v", failures(r))
	}
	var got []string
	for _, c := range r.Checks {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff([]string{"configuration", "alone", "policies", "rollout", "path", "replicas", "policy", "keys", "reload"}, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	if len(r.Replicas) != 3 || len(r.Warnings) != 1 { // ClusterRoles, by default
		t.Errorf("replicas %v, warnings %v; want three and one", r.Replicas, r.Warnings)
	}
	names := map[string]bool{}
	for _, q := range s.Requests() {
		meta := q.Object["metadata"].(map[string]any)
		name := meta["name"].(string)
		if !q.DryRun || q.Path != "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles" || !strings.HasPrefix(name, "syncgate-doctor-") || names[name] {
			t.Errorf("probe %s %s %q: want dry runs of Roles of different names", q.Method, q.Path, name)
		}
		names[name] = true
	}
}

// TestTheWebhookAnswersProbesAsTheDoctorUnderstands runs the real handler where
// the API server would call it.
func TestTheWebhookAnswersProbesAsTheDoctorUnderstands(t *testing.T) {
	if doctor.Annotation != webhook.ProbeAnnotation {
		t.Fatalf("annotation: got %q, the webhook goes by %q", doctor.Annotation, webhook.ProbeAnnotation)
	}
	for name, settings := range map[string]string{
		"Role":                          prod,
		"PodTemplate, if not rbac":      prod + "categories: [{name: rbac, required: false}]\n",
		"NetworkPolicy, if neither":     prod + "categories: [{name: rbac, required: false}, {name: image, required: false}, {name: identity, required: false}, {name: secret, required: false}, {name: privilege, required: false}, {name: command, required: false}]\n",
		"a namespace that is included":  prod + "scope: {admission: {namespaces: {include: [shop]}}}\n",
		"a namespace that is not first": prod + "scope: {admission: {namespaces: {exclude: [default, kube-system]}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, settings)
			for _, n := range []string{"default", "kube-system", "shop"} {
				s.Put("/api/v1/namespaces", `{"metadata":{"name":"`+n+`"}}`)
			}
			loader, err := webhook.NewLoader(webhook.Source{Policy: s.file})
			must(t, err)
			h := webhook.NewHandler(loader, webhook.NewMetrics(), slog.New(slog.DiscardHandler))
			s.Admit(func(q apitest.Request) *apitest.Status { return review(t, h, q) })
			r := s.look(t)
			if !r.Converged() {
				t.Errorf("failed: %v", failures(r))
			}
			if len(r.Replicas) != 1 || r.Replicas[0].PolicyHash != s.options.Policy.Hash() || len(r.Replicas[0].KeyIDs) != 1 {
				t.Errorf("replicas: got %+v", r.Replicas)
			}
		})
	}
}

// review asks a webhook as the API server does, and puts its answer into the
// words of one (k8s.io/apiserver, webhook/errors).
func review(t *testing.T, h http.Handler, q apitest.Request) *apitest.Status {
	version, _ := q.Object["apiVersion"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		group = ""
	}
	meta := q.Object["metadata"].(map[string]any)
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "1", "operation": "CREATE", "dryRun": true, "kind": map[string]any{"group": group, "version": "v1", "kind": q.Object["kind"]},
		"namespace": meta["namespace"], "name": meta["name"], "userInfo": map[string]any{"username": apitest.User}, "object": q.Object,
	}})
	if err != nil {
		t.Error(err)
	}
	request := httptest.NewRequest(http.MethodPost, admission.ValidatePath, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	var answer struct {
		Response struct {
			Allowed bool
			Status  struct {
				Message string
				Details struct{ Causes []any }
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Errorf("%v: %s", err, w.Body)
	}
	if answer.Response.Allowed {
		return nil
	}
	return &apitest.Status{Code: 403, Reason: "Forbidden", Message: `admission webhook "x.syncgate.io" denied the request: ` + answer.Response.Status.Message, Causes: answer.Response.Status.Details.Causes}
}

func TestAGateThatDoesNotHoldIsNamed(t *testing.T) {
	fail := func(s *stage, code int, reason, message string) {
		s.Admit(func(apitest.Request) *apitest.Status {
			return &apitest.Status{Code: code, Reason: reason, Message: message}
		})
	}
	entry := func(s *stage, change func(map[string]any)) {
		config := s.Get(admissionAPI + "validatingwebhookconfigurations/syncgate")
		change(config["webhooks"].([]any)[0].(map[string]any))
	}
	for _, tt := range []struct {
		name   string
		change func(*stage)
		want   map[string]string // check -> a part of its first detail
	}{
		{"no configuration", func(s *stage) {
			s.Delete(admissionAPI + "validatingwebhookconfigurations/syncgate")
			s.Admit(nil)
		}, map[string]string{"configuration": "there is no ValidatingWebhookConfiguration syncgate", "path": "the webhook is not in the path"}},
		{"failurePolicy Ignore", func(s *stage) { entry(s, func(e map[string]any) { e["failurePolicy"] = "Ignore" }) },
			map[string]string{"configuration": "failurePolicy: got Ignore, want Fail"}},
		{"stale conditions", func(s *stage) {
			entry(s, func(e map[string]any) {
				e["matchConditions"].([]any)[1].(map[string]any)["expression"] = "true"
			})
		}, map[string]string{"configuration": "got another, want the generated expression"}},
		{"a second configuration at the same Service", func(s *stage) {
			s.Put(admissionAPI+"validatingwebhookconfigurations", `{"metadata":{"name":"old"},"webhooks":[{"name":"gate.example.test","failurePolicy":"Ignore","clientConfig":{"service":{"namespace":"syncgate-system","name":"syncgate-webhook","path":"/old"}}}]}`)
		}, map[string]string{"alone": "configuration old asks too: entries 1, such as gate.example.test at service syncgate-system/syncgate-webhook, failurePolicy Ignore"}},
		{"a second configuration of ours elsewhere", func(s *stage) {
			s.Put(admissionAPI+"validatingwebhookconfigurations", `{"metadata":{"name":"old"},"webhooks":[{"name":"roles.syncgate.io","failurePolicy":"Fail","clientConfig":{"url":"https://10.0.0.9/validate"}}]}`)
		}, map[string]string{"alone": "configuration old asks too: entries 1, such as roles.syncgate.io at 10.0.0.9, failurePolicy Fail"}},
		{"a rollout", func(s *stage) {
			s.options.Replicas = 0
			s.Put(deployments, `{"metadata":{"name":"syncgate-webhook","generation":5},"spec":{"replicas":1},"status":{"observedGeneration":5,"replicas":2,"updatedReplicas":1,"readyReplicas":2}}`)
		}, map[string]string{"rollout": "wants 1 replicas: 2 run, 1 of the newest template, 2 ready"}},
		{"a Deployment that its controller has not seen", func(s *stage) {
			s.options.Replicas = 0
			s.Put(deployments, `{"metadata":{"name":"syncgate-webhook","generation":5},"spec":{"replicas":1},"status":{"observedGeneration":4,"replicas":1,"updatedReplicas":1,"readyReplicas":1}}`)
		}, map[string]string{"rollout": "wants 1 replicas"}},

		{"nobody asks", func(s *stage) { s.Admit(nil) }, map[string]string{"path": "the webhook is not in the path"}},
		{"only warned", func(s *stage) {
			s.Admit(nil)
			s.Warn("SYNC WOULD BE REFUSED [ReceiptMissing] a")
		}, map[string]string{"path": "the webhook is asked, but only warns: SYNC WOULD BE REFUSED"}},
		{"switched off", func(s *stage) {
			s.Admit(nil)
			s.Warn("syncgate is off until 2026-12-02T17:00:00Z by alice: a; otherwise: SYNC REFUSED")
		}, map[string]string{"path": "the webhook is asked, but syncgate is off until"}},
		{"somebody else's warning", func(s *stage) {
			s.Admit(nil)
			s.Warn("this API is old")
		}, map[string]string{"path": "the webhook is not in the path"}},
		{"unreachable", func(s *stage) {
			fail(s, 500, "InternalError", `Internal error occurred: failed calling webhook "roles.syncgate.io": failed to call webhook: Post "https://x": dial tcp: connection refused`)
		}, map[string]string{"path": "the webhook is unreachable: "}},
		{"another webhook is unreachable", func(s *stage) {
			fail(s, 500, "InternalError", `Internal error occurred: failed calling webhook "other.example.test": failed to call webhook`)
		}, map[string]string{"path": "another webhook fails before ours is heard"}},
		{"another webhook denies", func(s *stage) {
			fail(s, 403, "Forbidden", `admission webhook "other.example.test" denied the request: no`)
		}, map[string]string{"path": "the probe was denied by another webhook, other.example.test"}},
		{"RBAC denies", func(s *stage) {
			fail(s, 403, "Forbidden", `roles.rbac.authorization.k8s.io is forbidden: User "alice" cannot create resource`)
		}, map[string]string{"path": "the probe was denied before any webhook was asked"}},
		{"no such namespace", func(s *stage) { fail(s, 404, "NotFound", `namespaces "default" not found`) },
			map[string]string{"path": "the probe found no place"}},
		{"a webhook that says nothing of itself", func(s *stage) { s.Admit(func(apitest.Request) *apitest.Status { return refusal() }) },
			map[string]string{"path": "the webhook does not say which replica it is"}},

		{"a lagging replica", func(s *stage) {
			var turn atomic.Int64
			s.Admit(func(apitest.Request) *apitest.Status {
				if turn.Add(1)%3 == 0 {
					return s.replica("c/1", "sha256:old")
				}
				return s.replica("a/1", s.options.Policy.Hash())
			})
		}, map[string]string{"policy": "replica c/1 has policy sha256:old"}},
		{"an old key", func(s *stage) { s.options.KeyIDs = []string{"new-key"} }, map[string]string{"keys": "replica host/0 has no key new-key"}},
		{"files that do not load", func(s *stage) {
			s.Admit(func(apitest.Request) *apitest.Status {
				return s.replica("a/1", s.options.Policy.Hash(), "policy.yaml:3: no")
			})
		}, map[string]string{"reload": "replica a/1 cannot load its newest files: policy.yaml:3: no"}},
		{"a replica that nobody hears of", func(s *stage) { s.options.Replicas = 2 }, map[string]string{"replicas": "1 of 2 answered: host/0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, prod)
			s.options.Replicas = 1
			s.good(1)
			tt.change(s)
			got := failures(s.look(t))
			for check, text := range tt.want {
				if !strings.Contains(got[check], text) {
					t.Errorf("check %s: got %q, want %q in it", check, got[check], text)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("failed checks: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWhereOnlyTheAuthorityIsMissingApplyingAgainDoesNotHelp(t *testing.T) {
	for _, tt := range []struct{ change, want string }{
		{`"caBundle":`, "certificate Job or cert-manager"},
		{`"failurePolicy":`, "kubectl apply --server-side"},
	} {
		s := newStage(t, prod)
		s.good(1)
		data, err := json.Marshal(s.options.Want)
		must(t, err)
		s.Put(admissionAPI+"validatingwebhookconfigurations", strings.ReplaceAll(string(data), tt.change, `"timeoutless":`))
		got := s.look(t).First()
		if got.Name != "configuration" || !strings.Contains(got.Fix, tt.want) {
			t.Errorf("without %s: got %+v, want %q as the next step", tt.change, got, tt.want)
		}
	}
}

func TestWarnModeIsNoGate(t *testing.T) {
	s := newStage(t, prod+"mode: {admission: Warn}\n")
	s.Warn("SYNC WOULD BE REFUSED [ReceiptMissing] a")
	want := map[string]string{"mode": "policy says Warn: ordinary requests are only warned of, nothing is refused yet"}
	if diff := cmp.Diff(want, failures(s.look(t))); diff != "" {
		t.Errorf("asked, and warning (-want +got):\n%s", diff)
	}
	s.Warn("")
	if got := failures(s.look(t)); got["path"] == "" || got["mode"] == "" {
		t.Errorf("not asked: got %v", got)
	}

	s = newStage(t, prod+"mode: {admission: Warn}\n") // of this version, which tells a probe who answers
	s.options.Replicas = 2
	s.good(1)
	r := s.look(t)
	if r.Settled() || r.Converged() {
		t.Error("a replica is missing, and nobody waits for it")
	}
	s.options.Replicas = 1
	if r := s.look(t); !r.Settled() || r.Converged() {
		t.Error("nothing is left to wait for but the policy's word, and somebody does")
	}
	if got := r.First(); got.Name != "replicas" {
		t.Errorf("the first that is wrong: got %+v, want the replica that is missing, not the mode that is meant", got)
	}
	if got := r.Checks[len(r.Checks)-1]; got.Name != "mode" || got.OK {
		t.Errorf("the last check: got %+v, want the mode", got)
	}
	for _, c := range r.Checks {
		if c.Name == "path" && (!c.OK || !strings.Contains(c.Details[0], "it refuses this probe")) {
			t.Errorf("path: got %+v, want that the probe alone is refused", c)
		}
	}
}
