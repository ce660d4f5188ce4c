//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestBreakGlassAndOffSwitchWorkWithTheControllersDead: at 3 a.m. nothing runs
// but the API server and the webhook. Those who may get a change in, others do
// not, it is in the audit log, and it ends by itself.
func TestBreakGlassAndOffSwitchWorkWithTheControllersDead(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	gate := cluster.NewNamespace("gate")
	release, glass := harness.NewSigner(cluster.Env, b, "release"), harness.NewSigner(cluster.Env, b, "glass")
	text := harness.BasicPolicy("release") + "- {name: glass, keys: {file: glass.jwks.json}, subjects: [\"*/*/*/*\"], breakGlass: true, maxLifetime: 4h}\n" +
		"requirements: [{categories: [privilege], issuers: [release]}]\nnamespace: " + gate + "\n"
	policy := harness.NewPolicy(cluster.Env, "glass-policy", text, release, glass)
	webhooks := harness.StartWebhooks(cluster, b, 1, policy.Dir)
	webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, policy.Path()))
	ns := cluster.NewNamespace("night")
	cluster.Bind("admin", gate, "group:syncgate:administrators", "mallory")
	manager := cluster.ControllerManager()
	manager.Kill()
	t.Cleanup(func() { manager.Start() })

	// Break-glass: the key is what counts, and it counts for every requirement.
	object := string(deployment("web", ns, harness.Image("web:1"), 1))
	privileged := strings.Replace(object, "containers:", "hostPID: true, containers:", 1)
	signed := glass.Sign(policy, privileged, ns, "--lifetime", "1m")
	r := cluster.TryApply([]byte(signed))
	if r.Status != 0 || !strings.Contains(string(r.Stderr), "allowed by break-glass receipt") {
		t.Fatalf("break-glass: status %d: %s", r.Status, r.Stderr)
	}
	t.Logf("break-glass: %s", r.Stderr)
	event := cluster.WaitAudit("the break-glass", func(a harness.AuditEvent) bool {
		return a.ObjectRef.Namespace == ns && a.ObjectRef.Resource == "deployments" && a.Annotations["workloads.syncgate.io/break-glass"] == "true"
	})
	for _, key := range []string{"receipt", "issuer", "key-id", "how"} {
		if event.Annotations["workloads.syncgate.io/"+key] == "" {
			t.Errorf("the audit event lacks %s: %v", key, event.Annotations)
		}
	}
	if got := webhooks.Metric("syncgate_admission_exceptional_receipts_total", map[string]string{"exception": "break-glass", "issuer": "glass"}); got < 1 {
		t.Errorf("break-glass receipts in the metrics: got %v, want at least 1", got)
	}
	forged := harness.NewSigner(cluster.Env, b, "forged")
	forged.Name = "glass"
	if r := cluster.TryApply([]byte(forged.Sign(harness.NewPolicy(cluster.Env, "forged-policy", text, release, forged),
		strings.ReplaceAll(privileged, "name: web", "name: forged"), ns, "--lifetime", "1m"))); r.Status == 0 || !strings.Contains(string(r.Stderr), "KeyUnknown") {
		t.Errorf("another key under the name of glass: status %d: %s", r.Status, r.Stderr)
	}

	// Off-switch: the group is what counts.
	run := func(as *harness.Cluster, args ...string) harness.Result {
		t.Helper()
		return as.Try(as.Dir, nil, b.Syncgate, append(args, "--gate-namespace", gate, "--kubeconfig", as.Kubeconfig)...)
	}
	start := []string{"off", "--namespace", ns, "--for", "1m", "--reason", "incident 7"}
	if r := run(cluster.As("mallory"), start...); r.Status == 0 {
		t.Errorf("mallory switches the gate off: %s", r.Stdout)
	}
	if r := run(cluster.As("alice", "syncgate:administrators"), start...); r.Status != 0 {
		t.Fatalf("alice switches the gate off: %s%s", r.Stdout, r.Stderr)
	}
	project(t, cluster, gate, webhooks.Off)
	unsigned := deployment("unsigned", ns, harness.Image("web:2"), 1)
	cluster.Eventually("the switch to count", func() (string, bool) {
		r := cluster.TryApply(unsigned)
		return string(r.Stderr), r.Status == 0 && strings.Contains(string(r.Stderr), "syncgate is off until ")
	})
	cluster.WaitAudit("what passed by the switch", func(a harness.AuditEvent) bool {
		return a.ObjectRef.Namespace == ns && strings.Contains(a.Annotations["workloads.syncgate.io/note"], "incident 7") && a.Annotations["workloads.syncgate.io/code"] == "ReceiptMissing"
	})
	cluster.WaitAudit("the switch itself", func(a harness.AuditEvent) bool {
		return a.ObjectRef.Namespace == gate && a.ObjectRef.Name == "syncgate-off" && a.User.Username == "alice"
	})

	// Both end by themselves, nobody touches anything.
	cluster.WaitRefused([]byte(strings.ReplaceAll(string(unsigned), "unsigned", "later")), "ReceiptMissing")
	cluster.Kubectl(nil, "delete", "deployment", "web", "--namespace", ns, "--cascade=background", "--wait=false")
	t.Logf("afterwards: %s", cluster.WaitRefused([]byte(signed), "ReceiptExpired"))
}
