//go:build e2e

package e2e

// Reports of webhooks that took a cluster down with them, each with a dead
// webhook under the configuration that a policy means which says nothing about
// admission.

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// deadWebhook is a cluster in which no webhook answers. prepare comes before
// there is one.
func deadWebhook(t *testing.T, prepare func(c *harness.Cluster, namespace string)) (c *harness.Cluster, namespace string) {
	t.Helper()
	c = harness.SharedCluster(t)
	b := harness.Build(c.Env)
	namespace = c.NewNamespace("dead")
	prepare(c, namespace)
	signer := harness.NewSigner(c.Env, b, "release")
	policy := harness.NewPolicy(c.Env, "policy", harness.BasicPolicy("release"), signer)
	recorder := harness.StartRecorder(c)
	recorder.Install(harness.WebhookConfiguration(c.Env, b, policy.Path()))
	recorder.Close()
	r := c.TryApply([]byte(`{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: probe, image: probe}]}}`), "--namespace", namespace)
	if text := string(r.Stderr); r.Status == 0 || !harness.ContainsAll(text, deadAnswer) {
		t.Fatalf("the webhook is not dead: status %d: %s", r.Status, text)
	}
	return c, namespace
}

// network is the definition of a CNI plugin's resource.
const network = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: endpoints.cni.example.test}
spec:
  group: cni.example.test
  scope: Namespaced
  names: {kind: Endpoint, plural: endpoints}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// https://github.com/open-policy-agent/gatekeeper/issues/2423
func TestCase043ADeadWebhookIsNotAskedAboutKindsThatAreNotGated(t *testing.T) {
	c, ns := deadWebhook(t, func(*harness.Cluster, string) {})
	t.Cleanup(func() {
		c.Kubectl(nil, "delete", "customresourcedefinition", "endpoints.cni.example.test", "--ignore-not-found", "--wait=false")
	})
	c.Apply([]byte(network)) // such as a plugin brings along
	c.Kubectl(nil, "wait", "--for=condition=Established", "customresourcedefinition/endpoints.cni.example.test", "--timeout=60s")
	n := 0
	for _, namespace := range []string{ns, "kube-system", "default"} {
		for _, manifest := range []string{
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: case043, namespace: %s}, data: {a: %q}}`,
			`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: case043, namespace: %s}, spec: {holderIdentity: %q}}`,
			`{apiVersion: v1, kind: Event, metadata: {name: case043, namespace: %[1]s}, involvedObject: {kind: Pod, name: web, namespace: %[1]s}, message: %[2]q}`,
			`{apiVersion: cni.example.test/v1, kind: Endpoint, metadata: {name: case043, namespace: %s}, spec: {address: %q}}`,
		} {
			for _, value := range []string{"created", "updated"} {
				c.Apply(fmt.Appendf(nil, manifest, namespace, value))
				n++
			}
		}
		c.Kubectl(nil, "delete", "configmap/case043", "lease/case043", "event/case043", "endpoints.cni.example.test/case043", "--namespace", namespace)
		n += 4
	}
	node := c.As("system:node:shared", "system:nodes")
	_, err := node.Client().Resource(harness.Nodes).Patch(context.Background(), "shared", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"CNI","status":"True","reason":"case043"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Errorf("status of the Node: %v", err)
	}
	t.Logf("%d writes of ConfigMap, Lease, Event, a CNI's resource and Node status: all passed", n+1)
}

// https://github.com/k3s-io/k3s/issues/6815
func TestCase045ADeadWebhookLetsANamespaceComeToLife(t *testing.T) {
	c, _ := deadWebhook(t, func(*harness.Cluster, string) {})
	ns := c.NewNamespace("case045") // waits for the ServiceAccount
	for _, w := range []struct{ user, resource string }{
		{"system:serviceaccount:kube-system:service-account-controller", "serviceaccounts"},
		{"system:serviceaccount:kube-system:root-ca-cert-publisher", "configmaps"},
	} {
		event := c.WaitAudit(w.resource+" by "+w.user, func(a harness.AuditEvent) bool {
			return a.User.Username == w.user && a.Verb == "create" && a.ObjectRef.Namespace == ns && a.ObjectRef.Resource == w.resource
		})
		if event.ResponseStatus.Code != http.StatusCreated {
			t.Errorf("%s by %s: got %d %s, want 201", event.Write(), w.user, event.ResponseStatus.Code, event.ResponseStatus.Message)
		}
		t.Logf("%s by %s: %d", event.Write(), w.user, event.ResponseStatus.Code)
	}
	// A token for its Pods is no write of an object.
	c.Kubectl(nil, "create", "token", "default", "--namespace", ns)
}

// https://github.com/kyverno/kyverno/issues/4686
func TestCase047ADeadWebhookKeepsNoPodFromBeingDeleted(t *testing.T) {
	const pods = 3
	c, ns := deadWebhook(t, func(c *harness.Cluster, namespace string) {
		for i := range pods {
			c.Kubectl(nil, "run", fmt.Sprintf("pod-%d", i), "--image="+harness.Image("web:1"), "--namespace", namespace)
		}
		c.Kubectl(nil, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s", "--namespace", namespace)
	})
	collector := c.AsServiceAccount("kube-system", "pod-garbage-collector")
	kubelet := c.As("system:node:shared", "system:nodes")
	for i, d := range []struct {
		name string
		as   *harness.Cluster
	}{{"the Pod garbage collector", collector}, {"the kubelet", kubelet}, {"an administrator", c}} {
		pod := fmt.Sprintf("pod-%d", i)
		err := d.as.Client().Resource(harness.Pods).Namespace(ns).Delete(context.Background(), pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		if err != nil {
			t.Errorf("DELETE by %s: %v", d.name, err)
		}
		if u := c.Get(harness.Pods, ns, pod); u != nil {
			t.Errorf("the Pod that %s deleted is there: %v", d.name, u.Object["status"])
		}
	}
	t.Logf("%d Pods deleted with grace period 0, by Pod garbage collector, kubelet and administrator", pods)
}
