//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// consequential is what must not pass unasked. %s is the namespace.
var consequential = []struct {
	name     string
	args     []string
	manifest string
}{
	{name: "image change", args: []string{"set", "image", "deployment/web", "web=" + harness.Image("web:2")}},
	{name: "command", args: patchWeb(`[{"op":"add","path":"/spec/template/spec/containers/0/command","value":["sh"]}]`)},
	{name: "args", args: patchWeb(`[{"op":"replace","path":"/spec/template/spec/containers/0/args/0","value":"dump"}]`)},
	{name: "hostPath", args: patchWeb(`[{"op":"add","path":"/spec/template/spec/volumes/-","value":{"name":"host","hostPath":{"path":"/"}}}]`)},
	{name: "capability", args: patchWeb(`[{"op":"add","path":"/spec/template/spec/containers/0/securityContext","value":{"capabilities":{"add":["SYS_ADMIN"]}}}]`)},
	{name: "another Secret", args: patchWeb(`[{"op":"replace","path":"/spec/template/spec/containers/0/env/1/valueFrom/secretKeyRef/name","value":"admin"}]`)},
	{name: "a Service made a LoadBalancer", args: []string{"patch", "service/web", "--patch", `{"spec":{"type":"LoadBalancer"}}`}},
	{name: "a new LoadBalancer", args: []string{"create", "service", "loadbalancer", "open", "--tcp=80"}},
	{name: "RoleBinding", args: []string{"create", "rolebinding", "open", "--clusterrole=admin", "--user=mallory"}},
	{name: "Ingress", args: []string{"create", "ingress", "open", "--rule=example.test/=web:80"}},
	{name: "ephemeral container", args: []string{"debug", "bare", "--image=" + harness.Image("debug:1")}},
	{name: "a bare Pod", args: []string{"run", "open", "--image=" + harness.Image("web:1")}},
	{name: "a new Deployment", manifest: webOf("open")},
	{name: "a new Job", manifest: suspended("open", "0", "")},
	{name: "NetworkPolicy", manifest: `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: open}, spec: {podSelector: {}, ingress: [{}]}}`},
	{name: "a token as a Secret", manifest: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: open, annotations: {kubernetes.io/service-account.name: default}}}`},
	{name: "Namespace that lets Pods be privileged", args: []string{"label", "namespace", "%s", "pod-security.kubernetes.io/enforce=privileged"}},
	{name: "ClusterRoleBinding", args: []string{"create", "clusterrolebinding", "open", "--clusterrole=cluster-admin", "--user=mallory"}},
	{name: "PersistentVolume", manifest: `{apiVersion: v1, kind: PersistentVolume, metadata: {name: open}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /}}}`},
}

// deadAnswer is in what the API server says when it cannot call the webhook,
// under whatever name of an entry.
var deadAnswer = []string{"failed calling webhook", `.syncgate.io"`, "connection refused"}

func patchWeb(patch string) []string {
	return []string{"patch", "deployment/web", "--type=json", "--patch", patch}
}

// refused tries them all and looks whether anything has changed.
func (o *outage) refused(t *testing.T) {
	at := o.on(t)
	look := func() map[string]any {
		t.Helper()
		all := at.Snapshot(at.closed, harness.Deployments, harness.ReplicaSets, harness.Pods, harness.Services, harness.Ingresses,
			harness.Jobs, harness.RoleBindings, harness.Secrets, schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"})
		all["namespace"] = at.Get(harness.Namespaces, "", at.closed).GetLabels()
		for _, r := range []schema.GroupVersionResource{harness.ClusterRoleBindings, harness.PersistentVolumes} {
			all[r.Resource+"/open"] = at.Get(r, "", "open") != nil
		}
		return all
	}
	before := look()
	for _, c := range consequential {
		t.Run(c.name, func(t *testing.T) {
			at := o.on(t)
			args := append(c.args, "--namespace", at.closed)
			if c.manifest != "" {
				args = []string{"apply", "--filename", "-", "--namespace", at.closed}
			}
			for i, a := range args {
				if a == "%s" {
					args[i] = at.closed
				}
			}
			r := at.TryKubectl([]byte(c.manifest), args...)
			text := string(r.Stderr)
			if r.Status == 0 || !harness.ContainsAll(text, deadAnswer) {
				t.Errorf("got status %d, %q, want %q", r.Status, text, deadAnswer)
			}
			t.Logf("%.200s", text)
		})
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("refused changes changed something (-before +after):\n%s", diff)
	}
}
