//go:build e2e

package e2e

// An object whose deletion policy gates is not given an owner, whose deletion
// the real garbage collector would let it follow, without the receipt that its
// deletion needs.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

var (
	networkPolicies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	statefulSets    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

func TestAnOwnerIsNoWayAroundAGatedDeletion(t *testing.T) {
	cluster := harness.SharedCluster(t)
	b := harness.Build(cluster.Env)
	ns := cluster.NewNamespace("owners")
	release := harness.NewSigner(cluster.Env, b, "owners")
	policy := harness.NewPolicy(cluster.Env, "owners-policy", harness.BasicPolicy("owners")+"gatedDeletes: [NetworkPolicy, StatefulSet]\nscope: {admission: {namespaces: {include: ["+ns+"]}}}\n", release)
	cluster.Bind("cluster-admin", ns, "mallory") // before a binding needs a receipt
	webhooks := harness.StartWebhooks(cluster, b, 1, policy.Dir)
	webhooks.Install(harness.WebhookConfiguration(cluster.Env, b, policy.Path()))
	mallory := cluster.As("mallory")

	const deny = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s, namespace: %s}, spec: {podSelector: {}, policyTypes: [Ingress, Egress]}}\n---\n"
	set := fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: %s}, spec: {replicas: 0, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: %q}]}}}}\n---\n", ns, harness.Image("db:1"))
	unsigned := fmt.Sprintf(deny, "deny", ns) + fmt.Sprintf(deny, "other", ns) + set + string(deployment("web", ns, harness.Image("web:1"), 0))
	cluster.WaitRefused([]byte(unsigned), "ReceiptMissing")
	cluster.Apply([]byte(release.Sign(policy, unsigned, ns)))
	mallory.Kubectl(nil, "create", "configmap", "owner", "--namespace", ns)
	uid := string(cluster.Get(harness.ConfigMaps, ns, "owner").GetUID())
	ref := func(uid string) string {
		return fmt.Sprintf(`[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]`, uid)
	}
	patch := func(object, refs string, more ...string) harness.Result {
		return mallory.TryKubectl(nil, append([]string{"patch", object, "--namespace", ns, "--type=merge", "--patch", `{"metadata":{"ownerReferences":` + refs + `}}`}, more...)...)
	}
	refused := func(what string, r harness.Result, want ...string) {
		t.Helper()
		for _, w := range append(want, "SYNC REFUSED [") {
			if r.Status == 0 || !strings.Contains(string(r.Stderr), w) {
				t.Errorf("%s: got status %d, %s, want a refusal with %q", what, r.Status, r.Stderr, w)
			}
		}
	}
	passes := func(what string, r harness.Result) {
		t.Helper()
		if r.Status != 0 {
			t.Errorf("%s: got status %d, %s, want it to pass", what, r.Status, r.Stderr)
		}
	}

	const owned = "metadata.ownerReferences would have it deleted with ConfigMap owner, and its deletion is gated: "
	refused("an owner", patch("networkpolicy/deny", ref(uid)), "NetworkPolicy "+ns+"/deny: "+owned)
	refused("one that is not there", patch("networkpolicy/deny", ref("6a0a7b52-0000-4000-8000-000000000000")), owned)
	refused("by JSON patch", mallory.TryKubectl(nil, "patch", "networkpolicy/deny", "--namespace", ns, "--type=json", "--patch", `[{"op":"add","path":"/metadata/ownerReferences","value":`+ref(uid)+`}]`), owned)
	partial := fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: %s, ownerReferences: %s}}", ns, ref(uid))
	refused("by an apply of nothing else", mallory.TryApply([]byte(partial), "--server-side", "--field-manager=mine"), owned)
	refused("of a StatefulSet", patch("statefulset/db", ref(uid)), "StatefulSet "+ns+"/db: "+owned)
	refused("through its status", patch("statefulset/db", ref(uid), "--subresource=status"), "StatefulSet "+ns+"/db: "+owned)
	created := release.Sign(policy, strings.Replace(fmt.Sprintf(deny, "third", ns), "name: third", "ownerReferences: "+ref(uid)+", name: third", 1), ns)
	refused("of a signed object that is new", mallory.TryApply([]byte(created)), "NetworkPolicy "+ns+"/third: "+owned)
	refused("the deletion itself", mallory.TryKubectl(nil, "delete", "networkpolicy", "deny", "--namespace", ns), " | syncgate sign - --deletion ")
	err := mallory.Client().Resource(networkPolicies).Namespace(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "SYNC REFUSED [") {
		t.Errorf("deletion of all of them: got %v, want a refusal", err)
	}

	// What is free stays free, and nobody is asked: the webhook is dead.
	webhooks.Close()
	passes("an owner of a kind whose deletion is free", patch("deployment/web", ref(uid)))
	passes("a label", mallory.TryKubectl(nil, "label", "networkpolicy", "deny", "a=b", "--namespace", ns))
	passes("a scale", mallory.TryKubectl(nil, "scale", "statefulset/db", "--replicas=1", "--namespace", ns))
	cluster.Eventually("its controller's status", func() (string, bool) { // written while nobody is asked
		s := cluster.Get(statefulSets, ns, "db")
		n := harness.Int(s, "status", "observedGeneration")
		return fmt.Sprintf("generation %d, seen %d", s.GetGeneration(), n), n == s.GetGeneration()
	})
	r := patch("networkpolicy/deny", ref(uid))
	if r.Status == 0 || !strings.Contains(string(r.Stderr), "failed calling webhook") {
		t.Errorf("an owner while the webhook is dead: got status %d, %s", r.Status, r.Stderr)
	}
	webhooks.Open()

	// The owner goes, and takes only what is free to go along.
	mallory.Kubectl(nil, "delete", "configmap", "owner", "--namespace", ns)
	cluster.Eventually("the collector to delete the Deployment", func() (string, bool) {
		gone := cluster.Get(harness.Deployments, ns, "web") == nil
		return fmt.Sprintf("gone: %t", gone), gone
	})
	for _, name := range []string{"deny", "other"} {
		if cluster.Get(networkPolicies, ns, name) == nil {
			t.Errorf("NetworkPolicy %s is gone", name)
		}
	}

	// The refusal says how it is done: sign the deletion, put it there, then.
	file := filepath.Join(cluster.Dir, "live.yaml")
	if err := os.WriteFile(file, cluster.Kubectl(nil, "get", "-o", "yaml", "networkpolicies", "other", "--namespace", ns), 0o600); err != nil {
		t.Fatal(err)
	}
	annotate := string(cluster.Run(cluster.Dir, nil, "sh", "-c", fmt.Sprintf("%s sign - --deletion --policy %s --key %s --issuer %s --yes <%s", b.Syncgate, policy.Path(), release.Key, release.Name, file)))
	value := strings.Trim(annotate[strings.LastIndex(annotate, "'syncgate.io/receipt=")+1:], "'\n")
	if !strings.HasPrefix(value, "syncgate.io/receipt=") {
		t.Fatalf("sign --deletion printed %q", annotate)
	}
	mallory.Kubectl(nil, "annotate", "--namespace", ns, "networkpolicies.networking.k8s.io", "other", "--overwrite", value)
	mallory.Kubectl(nil, "create", "configmap", "owner", "--namespace", ns)
	uid = string(cluster.Get(harness.ConfigMaps, ns, "owner").GetUID())
	passes("an owner of what may be deleted", patch("networkpolicy/other", ref(uid)))
	refused("of what may not", patch("networkpolicy/deny", ref(uid)), owned)
	passes("an owner less", patch("networkpolicy/other", "null"))
	passes("and again", patch("networkpolicy/other", ref(uid)))
	mallory.Kubectl(nil, "delete", "configmap", "owner", "--namespace", ns)
	cluster.Eventually("the collector to delete the NetworkPolicy", func() (string, bool) {
		gone := cluster.Get(networkPolicies, ns, "other") == nil
		return fmt.Sprintf("gone: %t", gone), gone
	})
}
