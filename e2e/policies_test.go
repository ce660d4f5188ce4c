//go:build e2e

package e2e

// The ValidatingAdmissionPolicies as a policy of the operator's makes them.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// installPolicies applies what "syncgate manifests policies" prints, and takes
// it away when the test ends.
func installPolicies(c *harness.Cluster, b harness.Binaries, policy *harness.Policy) []byte {
	c.T.Helper()
	printed := c.Run(c.Dir, nil, b.Syncgate, "manifests", "policies", "--policy", policy.Path())
	c.T.Cleanup(func() {
		c.Kubectl(printed, "delete", "--ignore-not-found", "-f", "-")
		c.WaitAdmission()
	})
	c.Kubectl(printed, "apply", "-f", "-")
	c.WaitAdmission()
	return printed
}

// TestDigestsWarnBeforeTheyRefuse: who begins with Warn, as docs/webhook.md
// says, has no refused image on the first day; then trusted writers go on, and a
// namespace is opened by what "syncgate off" prints.
func TestDigestsWarnBeforeTheyRefuse(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	shop, other, gate := cluster.NewNamespace("shop"), cluster.NewNamespace("other"), cluster.NewNamespace("gate")
	release := harness.NewSigner(cluster.Env, b, "digests")
	settings := func(mode string) string {
		return harness.BasicPolicy("digests") + fmt.Sprintf(`namespace: %[1]s
mode: {admission: %[2]s}
administrators: {users: [alice], groups: [system:masters]}
scope: {admission: {namespaces: {include: [%[3]s, %[4]s]}}}
trustedWriters:
- {user: airflow, namespaces: [%[3]s], kinds: [Pod], names: ["run-*"], categories: [image, command], images: ["registry.example.test/airflow:*"]}
- {user: rollouts, namespaces: [%[3]s], kinds: [ReplicaSet], categories: [image, command], exempt: true}
`, gate, mode, shop, other)
	}
	policy := harness.NewPolicy(cluster.Env, "digests", settings("Warn"), release)
	cluster.Bind("cluster-admin", "", "alice", "mallory", "airflow", "rollouts")
	mallory, airflow, rollouts := cluster.As("mallory"), cluster.As("airflow"), cluster.As("rollouts")
	apply := func(as *harness.Cluster, object string) (status int, said string) {
		t.Helper()
		r := as.TryApply([]byte(object), "--dry-run=server")
		return r.Status, string(r.Stderr)
	}
	refused := func(as *harness.Cluster, what, object string) {
		t.Helper()
		if status, said := apply(as, object); status == 0 || !strings.Contains(said, "SYNC REFUSED [ImageNotPinned]") {
			t.Errorf("%s: got status %d, %q, want a refusal", what, status, said)
		}
	}
	passes := func(as *harness.Cluster, what, object string) {
		t.Helper()
		if status, said := apply(as, object); status != 0 || strings.Contains(said, "ImageNotPinned") {
			t.Errorf("%s: got status %d, %q, want it to pass", what, status, said)
		}
	}

	byTag := string(deployment("web", shop, "web:1", 1))
	printed := installPolicies(cluster, b, policy)
	cluster.Eventually("the warning", func() (string, bool) {
		_, said := apply(mallory, byTag)
		return said, strings.Contains(said, "SYNC WOULD BE REFUSED [ImageNotPinned]")
	})
	if status, said := apply(mallory, byTag); status != 0 || strings.Contains(said, "SYNC REFUSED") {
		t.Errorf("in Warn mode: got status %d, %q, want a warning", status, said)
	}
	if !strings.Contains(string(printed), "operator: In") {
		t.Error("the policies are not those of the policy")
	}

	policy.SwapPolicy(settings("Enforce"), release)
	cluster.Kubectl(cluster.Run(cluster.Dir, nil, b.Syncgate, "manifests", "policies", "--policy", policy.Path()), "apply", "-f", "-")
	mallory.WaitRefused([]byte(byTag), "SYNC REFUSED [ImageNotPinned]")
	run := func(name, image string) string {
		return pod(name, shop, "containers: [{name: a, image: '"+image+"'}]")
	}
	replicaSet := strings.Replace(byTag, "Deployment", "ReplicaSet", 1)
	passes(airflow, "a trusted writer's image", run("run-1", "registry.example.test/airflow:2"))
	refused(airflow, "another image of it", run("run-1", "registry.example.test/other:2"))
	refused(airflow, "another name", run("web", "registry.example.test/airflow:2"))
	refused(mallory, "the same by somebody else", run("run-1", "registry.example.test/airflow:2"))
	passes(rollouts, "an exempt writer", replicaSet)
	refused(rollouts, "another kind of it", byTag)
	refused(mallory, "a ReplicaSet by somebody else", replicaSet)

	off := cluster.As("alice").Try(cluster.Dir, nil, b.Syncgate, "off", "--namespace", shop, "--for", "1h", "--reason", "incident 7",
		"--gate-namespace", gate, "--kubeconfig", cluster.As("alice").Kubeconfig)
	_, command, found := strings.Cut(string(off.Stderr), "kubectl patch ")
	command, _, _ = strings.Cut(command, "\n")
	if off.Status != 0 || !found {
		t.Fatalf("off: status %d, %q%q, want a note on images", off.Status, off.Stdout, off.Stderr)
	}
	var args []string
	for _, a := range strings.Fields(command) { // it has no blanks in its quotes
		args = append(args, strings.Trim(a, "'"))
	}
	cluster.Kubectl(nil, append([]string{"patch"}, args...)...)
	cluster.Eventually("the namespace to be open", func() (string, bool) {
		status, said := apply(mallory, byTag)
		return said, status == 0
	})
	refused(mallory, "the namespace beside it", string(deployment("web", other, "web:1", 1)))
	cluster.Kubectl(cluster.Run(cluster.Dir, nil, b.Syncgate, "manifests", "policies", "--policy", policy.Path()), "apply", "-f", "-")
	mallory.WaitRefused([]byte(byTag), "SYNC REFUSED [ImageNotPinned]")
}
