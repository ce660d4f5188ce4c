package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/live/apitest"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/policy"
)

// cluster serves an API and returns it with the flags that lead there.
func cluster(t *testing.T) (*apitest.Server, []string) {
	t.Helper()
	s := apitest.New(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+s.URL+`"}}]
users: [{name: u, user: {}}]
contexts: [{name: one, context: {cluster: c, user: u}}]
current-context: one
`)
	return s, []string{"--kubeconfig", file, "--context", "one"}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// policyFile writes a policy whose issuer has one key, and returns its name and
// the key's ID.
func policyFile(t *testing.T) (file, kid string) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "release.pem")
	if status, _, stderr := answer(t, nil, "keys", "new", "--out", key); status != 0 {
		t.Fatal(stderr)
	}
	status, set, stderr := answer(t, nil, "keys", "jwks", key)
	if status != 0 {
		t.Fatal(stderr)
	}
	write(t, filepath.Join(dir, "jwks.json"), set)
	file = filepath.Join(dir, "policy.yaml")
	write(t, file, "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\nissuers: [{name: release, keys: {file: jwks.json}}]\n")
	p, err := policy.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, p.KeyIDs()[0]
}

func TestDoctorEndsAsTheGateHolds(t *testing.T) {
	s, at := cluster(t)
	file, kid := policyFile(t)
	run := func(more ...string) (int, string, string) {
		return answer(t, nil, append(append([]string{"doctor", "--webhook", "--policy", file, "--kid", kid}, at...), more...)...)
	}
	status, stdout, stderr := run()
	if status != 10 || stdout != "" || !strings.Contains(stderr, "FAIL  configuration  there is no ValidatingWebhookConfiguration syncgate") ||
		!strings.HasSuffix(stderr, "syncgate: the gate does not hold (configuration): there is no ValidatingWebhookConfiguration syncgate: nothing asks the webhook; Fix: syncgate manifests webhook --configuration --policy FILE | kubectl apply --server-side -f -\n") {
		t.Errorf("without a webhook: got %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = run("-o", "json")
	var report struct{ Converged bool }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Converged || status != 10 {
		t.Errorf("as JSON: got %d, %v, %+v", status, err, report)
	}

	install(t, s, file)
	status, stdout, stderr = run()
	if status != 0 || strings.Contains(stdout, "FAIL") || !strings.Contains(stdout, "ok    keys           every replica has key "+kid) {
		t.Errorf("with one: got %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = run("-o", "json")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || !report.Converged || status != 0 {
		t.Errorf("as JSON: got %d, %v, %+v", status, err, report)
	}

	s.Admit(func(apitest.Request) *apitest.Status {
		return &apitest.Status{Code: 401, Reason: "Unauthorized", Message: "who are you"}
	})
	status, stdout, stderr = run()
	if status != 30 || stdout != "" || !strings.HasPrefix(stderr, "GATE ERROR [ClusterUnavailable] probing: who are you; Fix: ") {
		t.Errorf("not let in: got %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

// install puts the generated configuration and a webhook that has loaded the
// policy into the cluster.
func install(t *testing.T, s *apitest.Server, file string) {
	t.Helper()
	p, err := policy.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := admission.NewConfiguration(p, admission.Place{URL: "https://10.0.0.1:8443", CABundle: []byte("ca")})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", string(data))
	own, err := policyObjects(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, object := range own {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		s.Put("/apis/admissionregistration.k8s.io/v1/"+[]string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"}[i%2], string(data))
	}
	said := func(reason, message string) any { return map[string]any{"reason": reason, "message": message} }
	s.Admit(func(apitest.Request) *apitest.Status {
		return &apitest.Status{Code: 403, Reason: "Forbidden", Message: `admission webhook "roles.syncgate.io" denied the request: no`,
			Causes: []any{said("Replica", "a/1"), said("PolicyHash", p.Hash()), said("KeyID", p.KeyIDs()[0])}}
	})
}

func TestDoctorWaitsUntilTheGateHolds(t *testing.T) {
	s, at := cluster(t)
	file, kid := policyFile(t)
	asked := 0
	s.Admit(func(q apitest.Request) *apitest.Status { // runs while the doctor looks for the first time
		if asked++; asked == 1 {
			install(t, s, file)
		}
		return nil
	})
	status, stdout, stderr := answer(t, nil, append([]string{"doctor", "--webhook", "--wait", "--policy", file, "--kid", kid}, at...)...)
	if status != 0 || !strings.Contains(stdout, "ok    path") {
		t.Errorf("got %d, stdout %q", status, stdout)
	}
	if n := strings.Count(stderr, "waiting: "); n != 1 || !strings.HasPrefix(stderr, "waiting: configuration: there is no ValidatingWebhookConfiguration syncgate") {
		t.Errorf("stderr: got %q, want one line that says what it waits for", stderr)
	}
}

func TestDoctorThatWaitsInVainSaysWhatIsMissing(t *testing.T) {
	_, at := cluster(t)
	file, _ := policyFile(t)
	status, _, stderr := answer(t, nil, append([]string{"doctor", "--webhook", "--wait", "--timeout", "100ms", "--policy", file}, at...)...)
	if status != 10 || !strings.Contains(stderr, "\nsyncgate: the gate does not hold (configuration): ") {
		t.Errorf("got %d, stderr %q", status, stderr)
	}
}

const webDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

func TestFixedpointEndsAsTheClusterStores(t *testing.T) {
	s, at := cluster(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "web.yaml"), webDeployment)
	run := func(more ...string) (int, string, string) {
		return answer(t, nil, append(append([]string{"fixedpoint", dir, "--namespace", "shop", "--policy", ""}, at...), more...)...)
	}
	status, stdout, stderr := run()
	if status != 0 || stdout != "1 objects, all fixed points\n" || stderr != "" {
		t.Errorf("a fixed point: got %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	s.Admit(func(q apitest.Request) *apitest.Status {
		if q.Object["kind"] == "ReplicaSet" {
			q.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "web:1@sha256:ab"
		}
		return nil
	})
	s.Put("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", `{"metadata":{"name":"pinning"},"webhooks":[{"name":"pinning.example.test","rules":[{"apiGroups":["apps"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["replicasets"]}]}]}`)
	status, stdout, stderr = run()
	want := "SYNC REFUSED [DigestMismatch] ReplicaSet of Deployment shop/web: webhook pinning.example.test (configuration pinning) changes spec.template.spec.containers[web].image: " +
		"web:1 -> web:1@sha256:ab; its controller will make ReplicaSets without end; Fix: pin it before it is applied: syncgate pin, commit .syncgate, apply what syncgate renders\n"
	if status != 10 || stdout != "" || !strings.HasSuffix(stderr, want) {
		t.Errorf("a loop: got %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	status, stdout, _ = run("-o", "json")
	var report struct {
		FixedPoint bool
		Findings   []struct{ Path, By string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 10 || report.FixedPoint || len(report.Findings) != 1 || report.Findings[0].By != "webhook pinning.example.test (configuration pinning)" {
		t.Errorf("as JSON: got %d, %v, %s", status, err, stdout)
	}
	for _, q := range s.Requests() {
		if ns := q.Object["metadata"].(map[string]any)["namespace"]; ns != "shop" {
			t.Errorf("%s in namespace %v, want the destination's", q.Object["kind"], ns)
		}
	}
}

func TestOffAndOnWriteOneSwitch(t *testing.T) {
	s, at := cluster(t)
	run := func(args ...string) (int, string, string) { return answer(t, nil, append(args, at...)...) }
	in := func(namespace string) map[string]any {
		data, _ := s.Get("/api/v1/namespaces/" + namespace + "/configmaps/syncgate-off")["data"].(map[string]any)
		return data
	}
	// Each is kept where what it is for can mount it.
	switches, apps := func() map[string]any { return in("syncgate-system") }, func() map[string]any { return in("argocd") }
	status, stdout, stderr := run("off", "--list")
	if status != 0 || stdout != "no switches: the gate is on everywhere\n" {
		t.Errorf("none: got %d, %q, %q", status, stdout, stderr)
	}
	status, stdout, stderr = run("off", "--namespace", "shop", "--for", "4h", "--reason", "incident 7")
	if status != 0 || !strings.HasPrefix(stdout, "off for namespace shop until ") || !strings.HasSuffix(stdout, ", by alice; end it with: syncgate on --namespace shop\n") {
		t.Errorf("off: got %d, %q, %q", status, stdout, stderr)
	}
	if status, _, stderr = run("off", "--app", "web", "--for", "1h", "--reason", "drill"); status != 0 {
		t.Errorf("off for an application: got %d, %q", status, stderr)
	}
	if status, stdout, stderr = run("off", "--app", "team/web", "--for", "1h", "--reason", "drill"); status != 0 || apps()["app.team_web"] == nil || !strings.HasSuffix(stdout, "; end it with: syncgate on --app team/web\n") {
		t.Errorf("off for an application of another namespace: got %d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, _ = run("off", "--app", "b", "--gate-namespace", "gitops", "--for", "1h", "--reason", "drill"); status != 0 || in("gitops")["app.b"] == nil || !strings.HasSuffix(stdout, "syncgate on --app b --gate-namespace gitops\n") {
		t.Errorf("off in another namespace: got %d, %q", status, stdout)
	}
	if status, _, stderr = run("on", "--app", "team/web"); status != 0 || apps()["app.team_web"] != nil {
		t.Errorf("on again: got %d, %q", status, stderr)
	}
	for kustomization, key := range map[string]string{"shop/web": "app.shop_web", "flux-system/apps": "app.apps"} {
		status, stdout, stderr = run("off", "--kustomization", kustomization, "--for", "1h", "--reason", "drill")
		if status != 0 || switches()[key] == nil || !strings.HasPrefix(stdout, "off for Kustomization "+kustomization+" until ") || !strings.HasSuffix(stdout, "; end it with: syncgate on --kustomization "+kustomization+"\n") {
			t.Errorf("off for a Kustomization: got %d, %q, %q, %v", status, stdout, stderr, keysOf(switches()))
		}
		if status, _, stderr = run("on", "--kustomization", kustomization); status != 0 || switches()[key] != nil {
			t.Errorf("on again: got %d, %q", status, stderr)
		}
	}
	for _, wrong := range [][]string{{}, {"--kustomization", "web"}, {"--kustomization", "shop/web", "--app", "web"}, {"--list", "--kustomization", "shop/web"}} {
		if status, stdout, _ = run(append([]string{"off", "--for", "1h", "--reason", "drill"}, wrong...)...); status != 2 || stdout != "" {
			t.Errorf("off %q: got %d, %q, want usage", wrong, status, stdout)
		}
	}
	text, _ := switches()["namespace.shop"].(string)
	got, err := offswitch.Decode([]byte(text))
	if err != nil || got.By != "alice" || got.Reason != "incident 7" || got.Namespace != "shop" || len(switches()) != 1 {
		t.Errorf("kept: got %+v (%v) of %v", got, err, switches())
	}
	status, stdout, _ = run("off", "--list")
	if status != 0 || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, "off      application web until ") || !strings.Contains(stdout, ", by alice: incident 7\n") {
		t.Errorf("list: got %d, %q", status, stdout)
	}
	for _, want := range []string{"the gate is on again for namespace shop as soon as the kubelet has brought the ConfigMap\n", "the gate is on for namespace shop: there was no switch\n"} {
		if status, stdout, _ = run("on", "--namespace", "shop"); status != 0 || stdout != want {
			t.Errorf("on: got %d, %q, want %q", status, stdout, want)
		}
	}
	if diff := cmp.Diff([]string{"app.web"}, keysOf(apps())); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	s.Admit(func(apitest.Request) *apitest.Status {
		return &apitest.Status{Code: 403, Reason: "Forbidden", Message: `configmaps "syncgate-off" is forbidden`}
	})
	status, stdout, stderr = run("off", "--namespace", "shop", "--for", "4h", "--reason", "incident 7")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "only those that policy names under administrators may") {
		t.Errorf("not an administrator: got %d, %q, %q", status, stdout, stderr)
	}
}

// A switch is the webhook's: what else refuses is said, with the way to open it.
func TestOffSaysWhatItDoesNotOpen(t *testing.T) {
	s, at := cluster(t)
	off := func(target ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := answer(t, nil, append(append([]string{"off", "--for", "1h", "--reason", "r"}, target...), at...)...)
		if status != 0 {
			t.Fatalf("got %d, %q", status, stderr)
		}
		return stdout, stderr
	}
	const bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	for _, tt := range []struct {
		name, binding, target string
		want                  bool
	}{
		{"no policy", "", "--namespace=shop", false},
		{"one that only warns", `["Warn","Audit"]`, "--namespace=shop", false},
		{"one that refuses", `["Deny","Audit"]`, "--namespace=shop", true},
		{"an application", `["Deny"]`, "--app=web", false},
	} {
		if tt.binding != "" {
			s.Put(bindings, `{"metadata":{"name":"syncgate-digests"},"spec":{"validationActions":`+tt.binding+`}}`)
		}
		stdout, stderr := off(tt.target)
		if strings.Contains(stderr, "images without a digest stay refused") != tt.want || strings.Contains(stderr, `"operator":"NotIn","values":["shop"]`) != tt.want {
			t.Errorf("%s: stderr %q, want a note: %t", tt.name, stderr, tt.want)
		}
		if strings.Count(stdout, "\n") != 1 {
			t.Errorf("%s: stdout %q, want one line", tt.name, stdout)
		}
	}
}

func keysOf(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
