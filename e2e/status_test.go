//go:build e2e

package e2e

// Writes that reach labels and annotations by a subresource: of a status, of a
// Namespace's finalizers, and Bindings.

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// statusPolicy judges one namespace, and the cluster-scoped kinds with a status.
const statusPolicy = `scope:
  admission:
    namespaces: {include: [%s]}
    clusterScoped: [Namespace, PersistentVolume, CertificateSigningRequest]
kinds:
- {group: example.test, kind: Fleet, path: spec.image, category: x-fleet}
`

var (
	fleets   = schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "fleets"}
	requests = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
	bindings = schema.GroupVersionResource{Version: "v1", Resource: "bindings"}
	rcs      = schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}
)

const (
	snippet     = "nginx.ingress.kubernetes.io/configuration-snippet"
	podSecurity = "pod-security.kubernetes.io/enforce"
	networks    = "k8s.v1.cni.cncf.io/networks"
	fluxForces  = "kustomize.toolkit.fluxcd.io/force"
	argoForces  = "argocd.argoproj.io/sync-options"
)

// statuses is the cluster, and who writes there with every right but those of an
// administrator of the gate.
type statuses struct {
	*harness.Cluster
	ns       string
	policy   *harness.Policy
	release  *harness.Signer
	webhooks *harness.Webhooks
	writer   *harness.Cluster
}

func (s *statuses) on(t testing.TB) *statuses {
	view := *s
	view.Cluster, view.writer = s.Cluster.On(t), s.writer.On(t)
	return &view
}

// statusWrite is one that must not pass.
type statusWrite struct {
	resource    schema.GroupVersionResource
	name        string // "": the namespace's
	subresource string
	part, key   string // of the metadata
	value       string
	code        string
}

var statusWrites = []statusWrite{
	{harness.Ingresses, "web", "status", "annotations", snippet, "return 200;", "DigestMismatch"},
	{harness.Services, "web", "status", "annotations", "tailscale.com/expose", "true", "ReceiptMissing"},
	{harness.Namespaces, "", "status", "labels", podSecurity, "privileged", "ReceiptMissing"},
	{harness.Namespaces, "", "finalize", "labels", podSecurity, "privileged", "ReceiptMissing"},
	{harness.Namespaces, "", "finalize", "annotations", "linkerd.io/inject", "disabled", "ReceiptMissing"},
	{harness.Pods, "waits", "status", "annotations", networks, "storage", "DigestMismatch"},
	{harness.Pods, "waits", "status", "labels", "azure.workload.identity/use", "true", "DigestMismatch"},
	{harness.Deployments, "web", "status", "annotations", argoForces, "Replace=true,Force=true", "ForceNotAllowed"},
	{harness.StatefulSets, "web", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.DaemonSets, "web", "status", "labels", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.ReplicaSets, "web", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{rcs, "web", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.CronJobs, "web", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.VolumeClaims, "web", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.PersistentVolumes, "status-writes", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{requests, "status-writes", "status", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{requests, "status-writes", "approval", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
	{harness.Pods, "waits", "binding", "annotations", networks, "storage", "ReceiptMissing"},
	{harness.Pods, "waits", "binding", "labels", "azure.workload.identity/use", "true", "ReceiptMissing"},
	{bindings, "waits", "", "annotations", networks, "storage", "ReceiptMissing"},
	{bindings, "waits", "", "annotations", fluxForces, "enabled", "ForceNotAllowed"},
}

// statusObjects are what is written to, in the namespace.
func statusObjects() string {
	return stream(
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {rules: [{host: shop.example.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`,
		statusPod("waits"), statusPod("bound"), webOf("web"),
		statusWorkload("apps/v1", "StatefulSet", "serviceName: web, replicas: 0, "+selectsWeb), statusWorkload("apps/v1", "DaemonSet", selectsWeb),
		statusWorkload("apps/v1", "ReplicaSet", "replicas: 0, "+selectsWeb), statusWorkload("v1", "ReplicationController", "replicas: 0"),
		fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: web}, spec: {schedule: "0 0 1 1 *", suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: %q}]}}}}}}`, harness.Image("web:1")),
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, selector: {matchLabels: {disk: fast}}}}`,
		fmt.Sprintf(`{apiVersion: example.test/v1, kind: Fleet, metadata: {name: web}, spec: {image: %q}}`, harness.Image("web:1")))
}

const selectsWeb = "selector: {matchLabels: {app: other}}"

func statusWorkload(api, kind, more string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: web}, spec: {%s, template: {metadata: {labels: {app: other}}, spec: {nodeSelector: {nowhere: "true"}, containers: [{name: web, image: %q}]}}}}`,
		api, kind, more, harness.Image("web:1"))
}

// statusPod is bound by nobody but the tests.
func statusPod(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {schedulerName: nobody, containers: [{name: web, image: %q}]}}`, name, harness.Image("web:1"))
}

const statusDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {kind: Fleet, plural: fleets}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// newStatuses makes the objects, signed, and installs the gate.
func newStatuses(t *testing.T) *statuses {
	t.Helper()
	s := &statuses{Cluster: harness.SharedCluster(t)}
	b := harness.Build(s.Env)
	s.ns = s.NewNamespace("status")
	s.Apply([]byte(statusDefinition))
	t.Cleanup(func() { s.Kubectl(nil, "delete", "customresourcedefinition", "fleets.example.test", "--wait=false") })
	s.Kubectl(nil, "wait", "--for=condition=Established", "customresourcedefinition/fleets.example.test", "--timeout=60s")
	s.Apply([]byte(stream(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: status-writes}, spec: {storageClassName: other, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /data}}}`,
		fmt.Sprintf(`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: status-writes}, spec: {signerName: example.test/s, request: %s, usages: [digital signature]}}`, certificateRequest(t)))))
	t.Cleanup(func() {
		s.Kubectl(nil, "delete", "persistentvolume/status-writes", "certificatesigningrequest/status-writes", "--wait=false")
		s.Patch(harness.PersistentVolumes, "", "status-writes", map[string]any{"metadata": map[string]any{"finalizers": nil}}) // of a controller that is not here
	})

	s.release = harness.NewSigner(s.Env, b, "release")
	s.policy = harness.NewPolicy(s.Env, "policy", harness.BasicPolicy("release")+fmt.Sprintf(statusPolicy, s.ns), s.release)
	s.Apply([]byte(s.release.Sign(s.policy, statusObjects(), s.ns)), "--namespace", s.ns)
	s.beforeTheGate()
	s.webhooks = harness.StartWebhooks(s.Cluster, b, 1, s.policy.Dir)
	s.webhooks.Install(harness.WebhookConfiguration(s.Env, b, s.policy.Path()))
	s.writer = s.As("e2e:writer", "system:masters")
	return s
}

func (s *statuses) client(r schema.GroupVersionResource) interface {
	Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
	Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error)
	Update(context.Context, *unstructured.Unstructured, metav1.UpdateOptions, ...string) (*unstructured.Unstructured, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error)
} {
	all := s.writer.Client().Resource(r)
	switch r {
	case harness.Namespaces, harness.PersistentVolumes, requests:
		return all
	}
	return all.Namespace(s.ns)
}

// write does one of them.
func (s *statuses) write(w statusWrite) error {
	s.T.Helper()
	ctx := context.Background()
	if w.subresource == "binding" || w.resource == bindings {
		binding := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": w.name, "namespace": s.ns},
			"target": map[string]any{"kind": "Node", "name": "nowhere"}}}
		if w.key != "" {
			binding.Object["metadata"].(map[string]any)[w.part] = map[string]any{w.key: w.value}
		}
		var subresources []string
		if w.subresource != "" {
			subresources = []string{w.subresource}
		}
		_, err := s.client(w.resource).Create(ctx, binding, metav1.CreateOptions{}, subresources...)
		return err
	}
	live := s.live(w)
	if w.subresource != "finalize" { // as kubectl --subresource does it
		_, err := s.client(w.resource).Patch(ctx, live.GetName(), types.MergePatchType, fmt.Appendf(nil, `{"metadata":{%q:{%q:%q}}}`, w.part, w.key, w.value), metav1.PatchOptions{}, w.subresource)
		return err
	}
	if w.key != "" {
		values, _, _ := unstructured.NestedStringMap(live.Object, "metadata", w.part)
		if values == nil {
			values = map[string]string{}
		}
		values[w.key] = w.value
		if err := unstructured.SetNestedStringMap(live.Object, values, "metadata", w.part); err != nil {
			s.T.Fatal(err)
		}
	}
	_, err := s.client(w.resource).Update(ctx, live, metav1.UpdateOptions{}, w.subresource)
	return err
}

func (s *statuses) live(w statusWrite) *unstructured.Unstructured {
	s.T.Helper()
	r, name := w.resource, w.name
	if name == "" {
		name = s.ns
	}
	if r == bindings {
		r = harness.Pods
	}
	live, err := s.client(r).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		s.T.Fatal(err)
	}
	return live
}

// metadata is what a write must not change.
func (s *statuses) metadata(w statusWrite) map[string]string {
	s.T.Helper()
	live := s.live(w)
	out := maps.Clone(live.GetLabels())
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, live.GetAnnotations())
	return out
}

// refused does them all, and looks whether anything has changed.
func (s *statuses) refused(t *testing.T, want func(statusWrite) []string) {
	for _, w := range statusWrites {
		name := strings.TrimSuffix(w.resource.Resource+"/"+w.subresource, "/")
		t.Run(name+" "+w.key, func(t *testing.T) {
			at := s.on(t)
			before := at.metadata(w)
			err := at.write(w)
			if text := fmt.Sprint(err); err == nil || !harness.ContainsAll(text, want(w)) {
				t.Errorf("got %v, want %q", err, want(w))
			} else {
				t.Logf("%.420s", text)
			}
			if after := at.metadata(w); !maps.Equal(before, after) {
				t.Errorf("refused, and changed from %v to %v", before, after)
			}
		})
	}
}

func TestStatusWritesOfWhatCountsAreRefused(t *testing.T) {
	s := newStatuses(t)
	t.Run("webhook up", func(t *testing.T) {
		s.refused(t, func(w statusWrite) []string {
			return []string{"denied the request: SYNC REFUSED [" + w.code + "]", w.key, "Fix: "}
		})
	})
	t.Run("what does not count is not asked about", func(t *testing.T) {
		at := s.on(t)
		before := at.webhooks.Metric("syncgate_admission_requests_total", nil)
		at.free(t, "up")
		if n := at.webhooks.Metric("syncgate_admission_requests_total", nil) - before; n != 0 {
			t.Errorf("reviews: got %v, want none", n)
		}
	})
	t.Run("what was written before the gate is put right", func(t *testing.T) { s.on(t).heal() })
	for _, r := range s.webhooks.Replicas {
		r.Kill()
	}
	s.webhooks.Close()
	t.Run("webhook down", func(t *testing.T) {
		s.refused(t, func(statusWrite) []string { return deadAnswer })
	})
	t.Run("webhook down, what does not count passes", func(t *testing.T) { s.on(t).free(t, "down") })
	t.Run("webhook down, the scheduler, the kubelet and controllers go on", func(t *testing.T) {
		at := s.on(t)
		at.Kubectl(nil, "scale", "deployment/web", "--replicas=3", "--namespace", at.ns)
		at.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", at.ns)
		doomed := at.NewNamespace("doomed")
		at.Kubectl(nil, "delete", "namespace", doomed, "--timeout=120s") // finalized
	})
}
