//go:build e2e

package e2e

// Every subresource that a real API server has of a gated kind is written to: a
// new one in a later Kubernetes fails this test until somebody has looked.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// otherSubresources are those that take no object of the kind.
var otherSubresources = map[string]string{
	"attach": "connects", "exec": "connects", "portforward": "connects", "proxy": "connects", "log": "is read",
	"scale":    "takes a replica count alone (TestStatusWritesOfWhatCountsAreRefused)",
	"binding":  "takes a Binding (TestStatusWritesOfWhatCountsAreRefused)",
	"eviction": "deletes",
	"token":    "stores nothing",
}

// gatedMetadata counts in one kind or another.
var gatedMetadata = map[string][]string{
	"labels":      {fluxForces, podSecurity, "azure.workload.identity/use", "argocd.argoproj.io/secret-type"},
	"annotations": {snippet, "tailscale.com/expose", networks, "linkerd.io/inject", "deprecated.deployment.rollback.to", fluxForces, argoForces, "eks.amazonaws.com/role-arn"},
}

func TestEverySubresourceThatWritesWhatCountsIsAskedAbout(t *testing.T) {
	c := &calls{Cluster: harness.SharedCluster(t), t: t, rejected: map[string]int{}}
	c.binaries = harness.Build(c.Env)
	c.ns = c.NewNamespace("subresources")
	c.Apply([]byte(statusDefinition))
	t.Cleanup(func() { c.Kubectl(nil, "delete", "customresourcedefinition", "fleets.example.test", "--wait=false") })
	c.Kubectl(nil, "wait", "--for=condition=Established", "customresourcedefinition/fleets.example.test", "--timeout=60s")
	c.Apply([]byte("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: calls}, value: 1}"))
	t.Cleanup(func() { c.Kubectl(nil, "delete", "priorityclass", "calls") })
	c.Kubectl(nil, "create", "serviceaccount", "robot", "--namespace", c.ns)

	signer := harness.NewSigner(c.Env, c.binaries, "release")
	policy := harness.NewPolicy(c.Env, "policy", harness.BasicPolicy("release")+fmt.Sprintf(statusPolicy, c.ns), signer)
	configuration := harness.WebhookConfiguration(c.Env, c.binaries, policy.Path())
	c.recorder = harness.StartRecorder(c.Cluster)
	c.recorder.Install(configuration)
	c.user = c.As("e2e:caller", "system:masters")

	all := []specimen{
		of("", "v1", "namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {team: shop}}}", c.ns)),
		of("", "v1", "persistentvolumes", "{apiVersion: v1, kind: PersistentVolume, metadata: {name: calls, labels: {team: shop}}, spec: {storageClassName: other, accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /data}, claimRef: {namespace: nowhere, name: x}}}"),
		of("certificates.k8s.io", "v1", "certificatesigningrequests", fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: calls}, spec: {signerName: example.test/s, request: %s, usages: [digital signature]}}", certificateRequest(t))),
		of("example.test", "v1", "fleets", fmt.Sprintf("{apiVersion: example.test/v1, kind: Fleet, metadata: {name: calls, labels: {team: shop}}, spec: {image: %q}}", harness.Image("web:1"))),
	}
	for _, s := range specimens() {
		if !s.custom {
			all = append(all, s)
		}
	}
	tried, writable := 0, map[string]bool{}
	for i, s := range all {
		if i > 0 { // the namespace is there
			c.Apply([]byte(s.manifest), namespaceOf(s, c.ns)...)
		}
		if i == 1 || i == 2 {
			name := s.resource.Resource + "/calls"
			t.Cleanup(func() {
				c.Kubectl(nil, "patch", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
				c.Kubectl(nil, "delete", name, "--wait=false")
			})
		}
		for _, subresource := range c.subresources(s) {
			if otherSubresources[subresource] != "" {
				continue
			}
			tried++
			c.changeBeside(s, subresource, writable)
		}
	}
	c.judgeBeside()
	listed := map[string]bool{}
	for _, w := range listedSubresources(t, configuration) {
		listed[w] = true
	}
	// A custom resource keeps its metadata; another API server may serve it.
	if !listed["fleets/status"] || writable["fleets/status"] {
		t.Errorf("fleets/status: listed %t, writes metadata %t", listed["fleets/status"], writable["fleets/status"])
	}
	delete(listed, "fleets/status")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(writable)), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("subresources that write metadata (-API server +rules):\n%s", diff)
	}
	t.Logf("%d subresources written to, %d of them write labels or annotations, %d pairs", tried, len(writable), len(c.pairs))
}

func namespaceOf(s specimen, ns string) []string {
	switch s.resource.Resource {
	case "namespaces", "persistentvolumes", "certificatesigningrequests":
		return nil
	}
	return []string{"--namespace", ns}
}

// subresources are those of a kind that the API server serves for writing.
func (c *calls) subresources(s specimen) []string {
	c.t.Helper()
	path := "/apis/" + s.resource.Group + "/" + s.resource.Version
	if s.resource.Group == "" {
		path = "/api/" + s.resource.Version
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(c.Kubectl(nil, "get", "--raw", path), &list); err != nil {
		c.t.Fatal(err)
	}
	var out []string
	for _, r := range list.APIResources {
		if name, ok := strings.CutPrefix(r.Name, s.resource.Resource+"/"); ok {
			out = append(out, name)
		}
	}
	return out
}

// changeBeside tries changes of the whole object through a subresource, as dry
// runs, and notes whether labels or annotations come with them.
func (c *calls) changeBeside(s specimen, subresource string, writable map[string]bool) {
	c.t.Helper()
	ctx, objects := context.Background(), c.user.Client().Resource(s.resource)
	client := objects.Namespace(c.ns)
	name := s.decode(c.t).GetName()
	get, update := client.Get, client.Update
	if namespaceOf(s, c.ns) == nil {
		get, update = objects.Get, objects.Update
	}
	live, err := get(ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range slices.Concat(metadataMutations(live.Object), sample(mutations(live.Object))) {
		u := &unstructured.Unstructured{Object: m.object}
		if s.resource.Group != "example.test" {
			u.SetResourceVersion("")
		}
		c.recorder.Take()
		updated, err := update(ctx, u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}, subresource)
		if err != nil {
			c.rejected[live.GetKind()]++
			continue
		}
		if updated.GetKind() != live.GetKind() {
			c.t.Errorf("%s/%s takes a %s: say in otherSubresources what that can do", s.resource.Resource, subresource, updated.GetKind())
			return
		}
		c.pairs = append(c.pairs, pair{live.GetKind(), subresource + " " + m.path, m.how, live.Object, updated.Object, c.asked()})
		if !maps.Equal(updated.GetLabels(), live.GetLabels()) || !maps.Equal(updated.GetAnnotations(), live.GetAnnotations()) {
			writable[s.resource.Resource+"/"+subresource] = true
		}
	}
}

// metadataMutations adds what counts somewhere, one at a time.
func metadataMutations(object map[string]any) []mutation {
	var out []mutation
	for part, keys := range gatedMetadata {
		for _, key := range keys {
			o := (&unstructured.Unstructured{Object: object}).DeepCopy()
			values, _, _ := unstructured.NestedStringMap(o.Object, "metadata", part)
			if values == nil {
				values = map[string]string{}
			}
			values[key] = "x"
			if key == argoForces {
				values[key] = "Replace=true"
			}
			metadata := o.Object["metadata"].(map[string]any)
			metadata[part] = map[string]any{}
			for k, v := range values {
				metadata[part].(map[string]any)[k] = v
			}
			out = append(out, mutation{"metadata." + part + "[" + key + "]", "with", o.Object})
		}
	}
	return out
}

// judgeBeside compares what was asked with what differs, or forces.
func (c *calls) judgeBeside() {
	objects := make([]map[string]any, 0, 2*len(c.pairs))
	for _, p := range c.pairs {
		for _, o := range []map[string]any{p.old, p.object} {
			u := (&unstructured.Unstructured{Object: o}).DeepCopy()
			for _, part := range []string{"annotations", "labels"} {
				for _, force := range []string{fluxForces, argoForces} { // refused in any application; compared below
					unstructured.RemoveNestedField(u.Object, "metadata", part, force)
				}
			}
			objects = append(objects, u.Object)
		}
	}
	var leaves []string
	for some := range slices.Chunk(objects, 300) { // bounded files
		leaves = append(leaves, c.gated(some)...)
	}
	differ, kinds := 0, map[string]bool{}
	forces := func(o map[string]any) string {
		u := &unstructured.Unstructured{Object: o}
		return u.GetLabels()[fluxForces] + u.GetAnnotations()[fluxForces] + u.GetAnnotations()[argoForces]
	}
	for i, p := range c.pairs {
		differs := leaves[2*i] != leaves[2*i+1] || forces(p.old) != forces(p.object)
		if differs {
			differ++
			kinds[p.kind] = true
		}
		if differs != p.asked {
			c.t.Errorf("%s: %s %s: asked %t: %s", p.kind, p.how, p.path, p.asked, cmp.Diff(leaves[2*i], leaves[2*i+1]))
		}
	}
	c.t.Logf("%d pairs, %d differ, of %v", len(c.pairs), differ, slices.Sorted(maps.Keys(kinds)))
	if differ < 40 || len(kinds) < 10 {
		c.t.Error("too small a sample")
	}
}

// listedSubresources are those of whole objects in a configuration's rules.
func listedSubresources(t *testing.T, configuration []byte) []string {
	t.Helper()
	var c struct {
		Webhooks []struct {
			Rules []struct{ Resources []string }
		}
	}
	if err := yaml.Unmarshal(configuration, &c); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, w := range c.Webhooks {
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				if _, subresource, found := strings.Cut(resource, "/"); found && otherSubresources[subresource] == "" && subresource != "ephemeralcontainers" {
					out = append(out, resource)
				}
			}
		}
	}
	return out
}
