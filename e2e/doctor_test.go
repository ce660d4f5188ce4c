//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// ward is a webhook in a cluster and the doctor who looks at it.
type ward struct {
	*harness.Cluster
	syncgate string
	webhooks *harness.Webhooks
	config   []byte
}

// kid is the ID of a signer's key.
func kid(t *testing.T, s *harness.Signer) string {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	if err := json.Unmarshal([]byte(s.JWKS), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("key set of %s: %v", s.Name, err)
	}
	return set.Keys[0].Kid
}

// doctor runs "syncgate doctor --webhook" by a policy.
func (w *ward) doctor(policy *harness.Policy, more ...string) harness.Result {
	w.T.Helper()
	return w.Try(w.Dir, nil, w.syncgate, append([]string{"doctor", "--webhook", "--policy", policy.Path(), "--kubeconfig", w.Kubeconfig, "--replicas", fmt.Sprint(len(w.webhooks.Replicas))}, more...)...)
}

// sick wants the gate not to hold, by this check and with this text, and logs
// what the doctor says.
func (w *ward) sick(t *testing.T, policy *harness.Policy, check, text string, more ...string) {
	t.Helper()
	r := w.doctor(policy, more...)
	out := string(r.Stderr)
	last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	if r.Status != 10 || len(r.Stdout) > 0 || !strings.Contains(out, "FAIL  "+check) || !strings.Contains(out, text) {
		t.Errorf("status %d, stdout %q, want 10 and check %q with %q:\n%s", r.Status, r.Stdout, check, text, out)
	}
	t.Logf("status %d: %.300s", r.Status, last)
}

// well wants the gate to hold, perhaps in a while.
func (w *ward) well(t *testing.T, policy *harness.Policy, more ...string) {
	t.Helper()
	r := w.doctor(policy, append([]string{"--wait", "--timeout", "60s"}, more...)...)
	if r.Status != 0 || strings.Contains(string(r.Stdout), "FAIL") {
		t.Fatalf("status %d:\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	t.Logf("converged:\n%s%s", r.Stdout, r.Stderr)
}

// patch changes the installed configuration (JSON patch).
func (w *ward) patch(t *testing.T, patch string) {
	t.Helper()
	if _, err := w.Client().Resource(harness.WebhookConfigs).Patch(context.Background(), "syncgate", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.WaitAdmission()
}

var roles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}

// TestDoctorPassesOnlyWhenConverged: against the real API server, three
// replicas, and each way in which a gate can be there and not hold.
func TestDoctorPassesOnlyWhenConverged(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	release := harness.NewSigner(cluster.Env, b, "release")
	policy := harness.NewPolicy(cluster.Env, "doctor-policy", harness.BasicPolicy("release"), release)
	w := &ward{Cluster: cluster, syncgate: b.Syncgate, webhooks: harness.StartWebhooks(cluster, b, 3, policy.Dir)}
	w.config = harness.WebhookConfiguration(cluster.Env, b, policy.Path())

	w.sick(t, policy, "configuration", "there is no ValidatingWebhookConfiguration syncgate")
	w.webhooks.Install(w.config)
	w.sick(t, policy, "policies", "ValidatingAdmissionPolicyBinding syncgate-own-namespace: missing: the policy refuses nothing")
	printed := installPolicies(cluster, b, policy)
	w.well(t, policy, "--kid", kid(t, release))
	if left := cluster.List(roles, "default", ""); len(left) > 0 {
		t.Errorf("probes left %d Roles", len(left))
	}

	t.Run("failurePolicy Ignore", func(t *testing.T) {
		w.patch(t, `[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
		w.sick(t, policy, "configuration", "failurePolicy: got Ignore, want Fail")
	})
	t.Run("stale conditions", func(t *testing.T) {
		w.webhooks.Install(w.config)
		w.patch(t, `[{"op":"replace","path":"/webhooks/0/matchConditions/0/expression","value":"request.userInfo.username != 'alice'"}]`)
		w.sick(t, policy, "configuration", "got another, want the generated expression")
	})
	t.Run("a narrower selector", func(t *testing.T) {
		w.webhooks.Install(w.config)
		w.patch(t, `[{"op":"replace","path":"/webhooks/0/objectSelector","value":{"matchLabels":{"gate":"on"}}}]`)
		w.sick(t, policy, "configuration", "objectSelector: got gate In [on], want everything")
	})
	w.webhooks.Install(w.config)
	w.patch(t, `[{"op":"replace","path":"/webhooks/0/objectSelector","value":{}}]`) // nobody who applies the configuration owns it
	w.well(t, policy)

	for _, tt := range []struct{ name, object, patch, want string }{
		{"a policy fails open", "validatingadmissionpolicy/syncgate-own-namespace", `[{"op":"replace","path":"/spec/failurePolicy","value":"Ignore"}]`,
			"ValidatingAdmissionPolicy syncgate-own-namespace failurePolicy: got Ignore, want Fail"},
		{"a policy looks at some objects alone", "validatingadmissionpolicy/syncgate-digests", `[{"op":"replace","path":"/spec/matchConstraints/objectSelector","value":{"matchLabels":{"gate":"on"}}}]`,
			"ValidatingAdmissionPolicy syncgate-digests matchConstraints: got "},
		{"a policy has a way out", "validatingadmissionpolicy/syncgate-digests", `[{"op":"add","path":"/spec/matchConditions/-","value":{"name":"friends","expression":"request.userInfo.username != 'mallory'"}}]`,
			"ValidatingAdmissionPolicy syncgate-digests matchConditions[friends]: got there, want missing"},
		{"a policy has one more administrator", "validatingadmissionpolicy/syncgate-accounts", `[{"op":"replace","path":"/spec/variables/0/expression","value":"true"}]`,
			"ValidatingAdmissionPolicy syncgate-accounts variables[administrator]: got another, want the generated one"},
		{"a policy only warns", "validatingadmissionpolicybinding/syncgate-namespace", `[{"op":"replace","path":"/spec/validationActions","value":["Warn"]}]`,
			"ValidatingAdmissionPolicyBinding syncgate-namespace validationActions: got "},
		{"a namespace is left out", "validatingadmissionpolicybinding/syncgate-digests", `[{"op":"add","path":"/spec/matchResources/namespaceSelector/matchExpressions/-","value":{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["shop"]}}]`,
			"ValidatingAdmissionPolicyBinding syncgate-digests matchResources: got "},
		{"another policy is bound", "validatingadmissionpolicybinding/syncgate-accounts", `[{"op":"replace","path":"/spec/policyName","value":"syncgate-digests"}]`,
			"ValidatingAdmissionPolicyBinding syncgate-accounts policyName: got syncgate-digests, want syncgate-accounts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kind, name, _ := strings.Cut(tt.object, "/")
			cluster.Kubectl(nil, "patch", kind, name, "--type=json", "--patch", tt.patch)
			w.sick(t, policy, "policies", tt.want)
			// kubectl reads before it replaces; the controller that checks types may write in between.
			cluster.Eventually("the policies to be replaced", func() (string, bool) {
				r := cluster.TryKubectl(printed, "replace", "-f", "-")
				return string(r.Stderr), r.Status == 0
			})
			w.well(t, policy)
		})
	}
	t.Run("a policy is gone", func(t *testing.T) {
		cluster.Kubectl(nil, "delete", "validatingadmissionpolicy", "syncgate-namespace")
		w.sick(t, policy, "policies", "ValidatingAdmissionPolicy syncgate-namespace: missing: what it refuses passes while the webhook is dead")
		cluster.Kubectl(printed, "apply", "-f", "-")
		w.well(t, policy)
	})
	t.Run("policies of another policy", func(t *testing.T) {
		narrower := harness.NewPolicy(cluster.Env, "doctor-narrower", harness.BasicPolicy("release")+"scope: {admission: {namespaces: {include: [default]}}}\n", release)
		cluster.Kubectl(cluster.Run(cluster.Dir, nil, b.Syncgate, "manifests", "policies", "--policy", narrower.Path()), "apply", "-f", "-")
		w.sick(t, policy, "policies", "ValidatingAdmissionPolicyBinding syncgate-digests matchResources: got ")
		cluster.Kubectl(printed, "apply", "-f", "-")
		w.well(t, policy)
	})

	t.Run("a second configuration", func(t *testing.T) {
		second := strings.Replace(string(w.config), "name: syncgate\n", "name: syncgate-old\n", 1)
		if second == string(w.config) {
			t.Fatal("the configuration's name is written in another way")
		}
		w.webhooks.Install([]byte(second))
		w.sick(t, policy, "alone", "configuration syncgate-old asks too")
		cluster.Kubectl(nil, "delete", "validatingwebhookconfiguration", "syncgate-old")
		cluster.WaitAdmission()
	})

	next := harness.NewSigner(cluster.Env, b, "next")
	renewed := harness.NewPolicy(cluster.Env, "doctor-renewed", harness.BasicPolicy("release", "next"), release, next)
	t.Run("an old key, until the new one arrives", func(t *testing.T) {
		w.sick(t, renewed, "keys", "has no key "+kid(t, next), "--kid", kid(t, next))
		w.sick(t, renewed, "policy", "the file at hand is sha256:")

		// What the new key signed comes in by the same merge: refused at first,
		// then let in with no more than another try.
		ns := cluster.NewNamespace("doctor")
		signed := []byte(next.Sign(renewed, string(deployment("web", ns, harness.Image("web:1"), 1)), ns))
		if r := cluster.TryApply(signed); r.Status == 0 || !strings.Contains(string(r.Stderr), "[IssuerUnknown]") {
			t.Errorf("with the old policy: status %d: %s", r.Status, r.Stderr)
		}
		policy.SwapPolicy(harness.BasicPolicy("release", "next"), release, next)
		w.webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, policy.Path()))
		w.well(t, renewed, "--kid", kid(t, next))
		if r := cluster.TryApply(signed); r.Status != 0 {
			t.Errorf("after the reload: %s", r.Stderr)
		}
	})
	t.Run("files that do not load", func(t *testing.T) {
		policy.Swap(map[string]string{"policy.yaml": "kind: Nothing\n"})
		cluster.Eventually("the doctor to notice", func() (string, bool) {
			out := string(w.doctor(renewed).Stderr)
			return out, strings.Contains(out, "FAIL  reload")
		})
		policy.SwapPolicy(harness.BasicPolicy("release", "next"), release, next)
		w.well(t, renewed)
	})
	t.Run("a lagging replica", func(t *testing.T) {
		stale := harness.NewPolicy(cluster.Env, "doctor-stale", harness.BasicPolicy("release"), release)
		r := w.webhooks.Add(b.Webhook(cluster.Env), stale.Dir)
		w.webhooks.Cut()
		w.sick(t, renewed, "policy", "the file at hand is sha256:")
		r.Stop()
		w.sick(t, renewed, "replicas", "3 of 4 answered")
	})
	t.Run("unreachable", func(t *testing.T) {
		w.webhooks.Close()
		w.sick(t, renewed, "path", "the webhook is unreachable: ")
		w.webhooks.Open()
	})
	t.Run("who may not look", func(t *testing.T) {
		mallory := &ward{Cluster: cluster.As("mallory"), syncgate: w.syncgate, webhooks: w.webhooks}
		r := mallory.doctor(renewed)
		if r.Status != 30 || !strings.HasPrefix(string(r.Stderr), "GATE ERROR [ClusterUnavailable] listing webhook configurations: ") {
			t.Errorf("status %d: %s", r.Status, r.Stderr)
		}
	})
}

// TestTheOffSwitchIsTheAdministratorsAndEnds: only those that policy names can
// use it, what passes by it is audited, and it is over when it is over.
func TestTheOffSwitchIsTheAdministratorsAndEnds(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	gate := cluster.NewNamespace("gate")
	release := harness.NewSigner(cluster.Env, b, "off")
	policy := harness.NewPolicy(cluster.Env, "off-policy", harness.BasicPolicy("off")+"namespace: "+gate+"\n", release)
	off := harness.NewMount(cluster.Env, "off-switches", map[string]string{})
	webhooks := harness.StartWebhooks(cluster, b, 2, policy.Dir, "--off", off.Dir)
	webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, policy.Path()))
	ns := cluster.NewNamespace("shop")

	// Everybody here may write ConfigMaps there, as far as RBAC goes.
	cluster.Bind("admin", gate, "mallory", "group:syncgate:administrators")
	run := func(as *harness.Cluster, args ...string) harness.Result {
		t.Helper()
		return as.Try(as.Dir, nil, b.Syncgate, append(args, "--gate-namespace", gate, "--kubeconfig", as.Kubeconfig)...)
	}
	alice, mallory := cluster.As("alice", "syncgate:administrators"), cluster.As("mallory")
	start := []string{"off", "--namespace", ns, "--for", "1h", "--reason", "incident 7"}
	if r := run(mallory, start...); r.Status != 1 || !strings.Contains(string(r.Stderr), "is no administrator of the gate") {
		t.Errorf("mallory switches the gate off: status %d: %s", r.Status, r.Stderr)
	}
	unsigned := deployment("web", ns, harness.Image("web:1"), 1)
	cluster.WaitRefused(unsigned, "ReceiptMissing")

	r := run(alice, start...)
	if r.Status != 0 || !strings.Contains(string(r.Stdout), "by alice; end it with: syncgate on --namespace "+ns) {
		t.Fatalf("alice switches the gate off: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	t.Logf("%s", r.Stdout)
	project(t, cluster, gate, off)
	cluster.Eventually("the switch to count", func() (string, bool) {
		r := cluster.TryApply(unsigned, "--dry-run=server")
		return string(r.Stderr), r.Status == 0 && strings.Contains(string(r.Stderr), "syncgate is off until ")
	})
	if r := run(mallory, "on", "--namespace", ns); r.Status != 1 {
		t.Errorf("mallory switches it on: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	if r := run(alice, "off", "--list"); r.Status != 0 || !strings.Contains(string(r.Stdout), "off      namespace "+ns) {
		t.Errorf("list: status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}

	if r := run(alice, "on", "--namespace", ns); r.Status != 0 {
		t.Errorf("alice switches it on: status %d: %s", r.Status, r.Stderr)
	}
	project(t, cluster, gate, off)
	cluster.WaitRefused(unsigned, "ReceiptMissing")
}

// project does what the kubelet does with the ConfigMap of the off-switches.
func project(t *testing.T, c *harness.Cluster, namespace string, into *harness.Mount) {
	t.Helper()
	u := c.Get(harness.ConfigMaps, namespace, "syncgate-off")
	if u == nil {
		t.Fatal("no ConfigMap syncgate-off")
	}
	files := map[string]string{}
	data, _ := u.Object["data"].(map[string]any)
	for key, value := range data {
		files[key] = fmt.Sprint(value)
	}
	into.Swap(files)
}
