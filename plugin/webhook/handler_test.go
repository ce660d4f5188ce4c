package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func handler(t testing.TB, more string) (*Handler, *bytes.Buffer) {
	t.Helper()
	l, err := NewLoader(Source{Policy: policyDir(t, minimal+more)})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	h := NewHandler(l, NewMetrics(), slog.New(slog.NewJSONHandler(&log, nil)))
	h.now = at(now)
	return h, &log
}

func post(h http.Handler, path, contentType string, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, body)
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func answerOf(t testing.TB, w *httptest.ResponseRecorder) review {
	t.Helper()
	var out review
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("status %d, body %.200q: %v", w.Code, w.Body.String(), err)
	}
	return out
}

func TestAnAnswerIsAReviewThatKubernetesReads(t *testing.T) {
	h, log := handler(t, "")
	signed := sign(t, tree(t, deployment(pinned, "")), "release", nil)
	got := answerOf(t, post(h, admission.ValidatePath, "application/json; charset=utf-8", bytes.NewReader(body(t, ask("CREATE", person, signed, nil)))))
	want := review{"admission.k8s.io/v1", "AdmissionReview", response{UID: "u", Allowed: true, AuditAnnotations: map[string]string{
		"how": "receipt", "receipt": "01J9releasexxxxxxxxxxxxxxxxxxxxxx", "issuer": "release", "key-id": "release"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
	if log.Len() > 0 {
		t.Errorf("an ordinary allow is logged: %s", log)
	}

	got = answerOf(t, post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, ask("CREATE", person, tree(t, deployment(pinned, "")), nil)))))
	if got.Response.Allowed || got.Response.Status == nil {
		t.Fatalf("got %+v, want a refusal", got.Response)
	}
	s := *got.Response.Status
	if s.Code != 403 || s.Reason != "Forbidden" || s.Status != "Failure" || s.Details != nil {
		t.Errorf("status: got %+v, want 403 Forbidden Failure", s)
	}
	if !strings.HasPrefix(s.Message, "SYNC REFUSED [ReceiptMissing] 1 of 1 gated objects: Deployment shop/web: no receipt for ") || !strings.Contains(s.Message, "; Fix: syncgate sign --key FILE --issuer release --environment prod, commit .syncgate") {
		t.Errorf("message: got %q", s.Message)
	}
	if got.Response.AuditAnnotations["code"] != "ReceiptMissing" {
		t.Errorf("audit annotations: got %v", got.Response.AuditAnnotations)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `"code":"ReceiptMissing"`) || strings.Contains(log.String(), "containers:") {
		t.Errorf("want one line for a denial, without the object, got %s", log)
	}
}

func TestExceptionsAreLoud(t *testing.T) {
	pod := func() map[string]any { return tree(t, object("v1", "Pod", "p", pinned, "")) }
	for _, tt := range []struct {
		name, policy string
		obj          map[string]any
		warning      string
		annotation   string
		metric       string
	}{
		{"break-glass", "", sign(t, pod(), "glass", func(c *receipt.Claims) { c.IssuedAt, c.Expires = now-60, now+60 }), "break-glass receipt", "break-glass", `syncgate_admission_exceptional_receipts_total{exception="break-glass",issuer="glass"} 1`},
		{"grace", "", sign(t, pod(), "release", func(c *receipt.Claims) { c.IssuedAt, c.Expires = now-2*day, now-day }), "counts by grace alone", "grace", `syncgate_admission_exceptional_receipts_total{exception="grace",issuer="release"} 1`},
		{"Warn", "mode: {admission: Warn}\n", pod(), "SYNC WOULD BE REFUSED [ReceiptMissing]", "code", `syncgate_admission_requests_total{code="ReceiptMissing",how="warned",kind="Pod",operation="CREATE"} 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, log := handler(t, tt.policy)
			got := answerOf(t, post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, ask("CREATE", person, tt.obj, nil)))))
			if !got.Response.Allowed {
				t.Fatalf("refused: %+v", got.Response.Status)
			}
			if len(got.Response.Warnings) != 1 || !strings.Contains(got.Response.Warnings[0], tt.warning) {
				t.Errorf("warnings: got %q, want one with %q", got.Response.Warnings, tt.warning)
			}
			if got.Response.AuditAnnotations[tt.annotation] == "" {
				t.Errorf("audit annotations: got %v, want %q", got.Response.AuditAnnotations, tt.annotation)
			}
			if !strings.Contains(log.String(), `"level":"WARN"`) {
				t.Errorf("log: got %q, want a warning", log)
			}
			w := httptest.NewRecorder()
			h.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if !strings.Contains(w.Body.String(), tt.metric) {
				t.Errorf("metrics lack %s", tt.metric)
			}
		})
	}
}

func TestADoctorIsToldWhoAnswers(t *testing.T) {
	h, _ := handler(t, "")
	obj := tree(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x, namespace: shop, annotations: {syncgate.io/doctor: "1"}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`)
	got := answerOf(t, post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, ask("CREATE", person, obj, nil)))))
	if got.Response.Allowed || got.Response.Status.Details == nil {
		t.Fatalf("got %+v, want a refusal with details", got.Response)
	}
	want := []cause{{"Replica", h.replica}, {"PolicyHash", h.loader.State().policy.Hash()}, {"KeyID", "glass"}, {"KeyID", "release"}}
	if diff := cmp.Diff(want, got.Response.Status.Details.Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}

	// In Warn mode nothing but a dry run of a doctor is refused.
	h, _ = handler(t, "mode: {admission: Warn}\n")
	for _, dry := range []bool{true, false} {
		q := ask("CREATE", person, obj, nil)
		q.DryRun = dry
		got := answerOf(t, post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, q))))
		if got.Response.Allowed == dry {
			t.Errorf("Warn, dry run %t: allowed %t", dry, got.Response.Allowed)
		}
	}
}

func TestTheGuardKnowsAdministrators(t *testing.T) {
	h, _ := handler(t, "administrators: {users: [alice], groups: [platform]}\n")
	config := tree(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: syncgate-policy, namespace: syncgate-system}, data: {a: b}}`)
	for _, tt := range []struct {
		user   string
		groups []string
		path   string
		want   bool
	}{
		{"alice", nil, admission.GuardPath, true},
		{"bob", []string{"platform"}, admission.GuardPath, true},
		{"mallory", []string{"system:authenticated"}, admission.GuardPath, false},
		{"system:serviceaccount:argocd:argocd-application-controller", nil, admission.GuardPath, false},
	} {
		q := ask("UPDATE", tt.user, config, config)
		q.Groups = tt.groups
		got := answerOf(t, post(h, tt.path, "application/json", bytes.NewReader(body(t, q))))
		if got.Response.Allowed != tt.want {
			t.Errorf("%s %v: got %t %+v, want %t", tt.user, tt.groups, got.Response.Allowed, got.Response.Status, tt.want)
		}
	}
}

// TestWhatIsNoReviewIsNeverAllowed: an HTTP error refuses by failurePolicy
// Fail, a well-formed answer by itself.
func TestWhatIsNoReviewIsNeverAllowed(t *testing.T) {
	good := string(body(t, ask("CREATE", person, sign(t, tree(t, deployment(pinned, "")), "release", nil), nil)))
	uid := func(s string) string { return strings.Replace(good, `"uid":"u"`, s, 1) }
	for _, tt := range []struct {
		name, body, contentType, path string
		want                          int // 200: a refusal as a review
	}{
		{"nothing", "", "application/json", "", 400},
		{"not JSON", "{", "application/json", "", 400},
		{"a list", "[]", "application/json", "", 400},
		{"null", "null", "application/json", "", 400},
		{"truncated", good[:len(good)-1], "application/json", "", 400},
		{"two reviews", good + good, "application/json", "", 400},
		{"without a request", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, "application/json", "", 400},
		{"a response", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"u","allowed":true}}`, "application/json", "", 400},
		{"without a uid", uid(`"uid":""`), "application/json", "", 400},
		{"a uid that is a number", uid(`"uid":1`), "application/json", "", 400},
		{"a member twice", strings.Replace(good, `"operation":"CREATE"`, `"operation":"CREATE","operation":"DELETE"`, 1), "application/json", "", 400},
		{"a member twice in the object", strings.Replace(good, `"kind":"Deployment","metadata"`, `"kind":"Deployment","kind":"ConfigMap","metadata"`, 1), "application/json", "", 400},
		{"invalid UTF-8", strings.Replace(good, "mallory", "mallory\xff", 1), "application/json", "", 400},
		{"another version of the API", strings.Replace(good, "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), "application/json", "", 200},
		{"another content type", good, "text/plain", "", 415},
		{"no content type", good, "", "", 415},
		{"another path", good, "application/json", "/", 404},
		{"an object that is a string", strings.Replace(good, `"object":{`, `"object":"","x":{`, 1), "application/json", "", 200},
		{"groups that are a string", strings.Replace(good, `"groups":null`, `"groups":"system:masters"`, 1), "application/json", "", 200},
		{"a kind that is a list", strings.Replace(good, `"kind":{"group"`, `"kind":[],"x":{"group"`, 1), "application/json", "", 200},
		{"another kind than the object's", strings.Replace(good, `"kind":{"group":"apps","kind":"Deployment"`, `"kind":{"group":"autoscaling","kind":"Scale"`, 1), "application/json", "", 200},
		{"an unknown subresource", strings.Replace(good, `"subResource":""`, `"subResource":"scale"`, 1), "application/json", "", 200},
		{"an unknown operation", strings.Replace(good, `"operation":"CREATE"`, `"operation":"PROXY"`, 1), "application/json", "", 200},
		{"another namespace than the object's", strings.Replace(good, `"namespace":"shop","object"`, `"namespace":"other","object"`, 1), "application/json", "", 200},
		{"deep", strings.Replace(good, `"dryRun":false`, `"dryRun":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000), 1), "application/json", "", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.body == good && tt.contentType == "application/json" && tt.path == "" {
				t.Fatal("the case changes nothing")
			}
			h, _ := handler(t, "")
			path := tt.path
			if path == "" {
				path = admission.ValidatePath
			}
			w := post(h, path, tt.contentType, strings.NewReader(tt.body))
			if w.Code != tt.want {
				t.Fatalf("status: got %d %.200s, want %d", w.Code, w.Body, tt.want)
			}
			if tt.want == 200 && answerOf(t, w).Response.Allowed {
				t.Errorf("allowed: %s", w.Body)
			}
		})
	}
	h, _ := handler(t, "")
	if w := post(h, admission.ValidatePath, "application/json", strings.NewReader(good)); !answerOf(t, w).Response.Allowed {
		t.Fatalf("the review that the cases are made from is refused: %s", w.Body)
	}
	if w := post(h, admission.ValidatePath, "application/json", io.LimitReader(spaces{}, MaxBody+1)); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body without end: got %d, want 413", w.Code)
	}
}

// spaces is a body without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestTheSameQuestionHasTheSameAnswer(t *testing.T) {
	objects := []map[string]any{
		sign(t, tree(t, deployment(pinned, "")), "release", nil), tree(t, deployment(pinned, "hostPID: true, ")),
		carry(tree(t, deployment(other, "")), receiptFor(t, tree(t, deployment(pinned, "")), "release", nil)),
	}
	for i, obj := range objects {
		question := body(t, ask("CREATE", person, obj, nil))
		want := map[string]bool{}
		for range 3 { // three replicas, each cold
			h, _ := handler(t, "")
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 100 {
						w := post(h, admission.ValidatePath, "application/json", bytes.NewReader(question))
						mu.Lock()
						want[w.Body.String()] = true
						mu.Unlock()
					}
				})
			}
			wg.Wait()
		}
		if len(want) != 1 {
			t.Errorf("object %d: got %d different answers, want 1", i, len(want))
		}
	}
}

func TestMemoryForBodiesIsGivenBack(t *testing.T) {
	h, _ := handler(t, "")
	for i := range 200 {
		post(h, admission.ValidatePath, "application/json", io.LimitReader(spaces{}, 1<<20))
		r := httptest.NewRequest(http.MethodPost, admission.ValidatePath, strings.NewReader("short"))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = 4 << 20 // more than comes
		h.ServeHTTP(httptest.NewRecorder(), r)
		if err := h.memory.Acquire(context.Background(), 0); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	if !h.memory.TryAcquire(maxInFlight) {
		t.Error("after bad requests the memory of some is still taken")
	}
}

func TestReasonsAreCodes(t *testing.T) {
	known := map[gate.Reason]bool{}
	for _, r := range gate.Reasons() {
		known[r] = true
	}
	h, _ := handler(t, "")
	got := answerOf(t, post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, ask("CREATE", person, tree(t, deployment("x", "")), nil)))))
	if code := gate.Reason(got.Response.AuditAnnotations["code"]); !known[code] {
		t.Errorf("code %q is none", code)
	}
	if !strings.Contains(fmt.Sprint(got.Response.Status.Message), "SYNC REFUSED [") {
		t.Errorf("message: got %q", got.Response.Status.Message)
	}
}
