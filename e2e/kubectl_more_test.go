//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// decodeInto reads the one object of a manifest.
func (g *gated) decodeInto(u *unstructured.Unstructured, manifest string) {
	g.T.Helper()
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		g.T.Fatal(err)
	}
}

// undo goes back one step, and not two. A StatefulSet's and a DaemonSet's undo
// restores no annotations: the receipt before is there because render stamps two.
func (g *gated) undo() {
	kinds := map[string]schema.GroupVersionResource{"Deployment": harness.Deployments, "StatefulSet": harness.StatefulSets, "DaemonSet": harness.DaemonSets}
	all := func(image string) string {
		return stream(one("Deployment", "web", image), one("StatefulSet", "web", image), one("DaemonSet", "web", image))
	}
	release := func(tag string) {
		signed := g.release.SignApp(g.policy, "undo", all(harness.Image(tag)), g.ns)
		if n := strings.Count(signed, ".eyJ"); tag != "web:1" && n != 6 {
			g.T.Errorf("receipts on three objects after %s: got %d, want two each", tag, n)
		}
		g.Apply([]byte(signed), "--force-conflicts", "--namespace", g.ns)
		g.rolledOut(tag)
	}
	release("web:1")
	release("web:2")
	for kind, resource := range kinds {
		g.passed(g.as(developer, "rollout", "undo", strings.ToLower(kind)+"/web"))
		if got := harness.Images(g.Get(resource, g.ns, "web")); !cmp.Equal(got, []string{harness.Image("web:1")}) {
			g.T.Errorf("%s: got images %q, want the first", kind, got)
		}
	}
	g.rolledOut("web:1")
	release("web:2")
	release("web:3")
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		text := g.refused(g.as(developer, "rollout", "undo", strings.ToLower(kind)+"/web", "--to-revision="+g.revisionOf(kind, "web:1")), "DigestMismatch",
			kind+" %s/web: containers[web].image is registry.example.test/web:1@", "was signed for another image")
		if n := strings.Count(text, "receipt "); n < 1 {
			g.T.Errorf("got %q, want a receipt named", text)
		}
	}
	// The Deployment's undo brings the receipt of that revision back: a rollback
	// to a receipt that is still good is what a rollback is.
	g.passed(g.as(developer, "rollout", "undo", "deployment/web", "--to-revision="+g.revisionOf("Deployment", "web:1")))
}

// rolledOut waits until the Pods of all three run an image.
func (g *gated) rolledOut(tag string) {
	g.T.Helper()
	g.Eventually("three Pods of "+tag, func() (string, bool) {
		var images []string
		for _, p := range g.List(harness.Pods, g.ns, "app=web") {
			if p.GetDeletionTimestamp() == nil && condition(&p, "Ready") == "True" {
				images = append(images, fmt.Sprint(harness.Maps(&p, "spec", "containers")[0]["image"]))
			}
		}
		return fmt.Sprint(images), cmp.Equal(images, []string{harness.Image(tag), harness.Image(tag), harness.Image(tag)})
	})
}

// revisionOf is the revision at which a workload had an image.
func (g *gated) revisionOf(kind, tag string) string {
	g.T.Helper()
	if kind == "Deployment" {
		for _, set := range g.List(harness.ReplicaSets, g.ns, "app=web") {
			if cmp.Equal(harness.Images(&set), []string{harness.Image(tag)}) {
				return set.GetAnnotations()["deployment.kubernetes.io/revision"]
			}
		}
	}
	for _, r := range g.List(controllerRevisions, g.ns, "app=web") {
		data, _, err := unstructured.NestedMap(r.Object, "data")
		if err != nil {
			g.T.Fatal(err)
		}
		if r.GetOwnerReferences()[0].Kind == kind && cmp.Equal(harness.Images(&unstructured.Unstructured{Object: data}), []string{harness.Image(tag)}) {
			return fmt.Sprint(r.Object["revision"])
		}
	}
	g.T.Fatalf("%s/web has no revision of %s", kind, tag)
	return ""
}

var controllerRevisions = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}

// rollout is a custom resource that policy names: the API server asks about it.
func (g *gated) rollout() {
	g.customKind("rollouts", "Rollout", "argoproj.io")
	manifest := func(image, workload string) string {
		return fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web}, spec: {replicas: 1, workloadRef: {name: %s},
  template: {spec: {containers: [{name: web, image: %q}]}}}}`+"\n", workload, image)
	}
	apply := func(text string) harness.Result {
		return g.send(deployer, text, "apply", "--filename", "-")
	}
	g.refused(apply(manifest(harness.Image("web:1"), "old")), "ReceiptMissing", "Rollout %s/web: no receipt for ", "image (containers[web].image)", "x-rollouts (spec.workloadRef.name)")
	g.passed(apply(g.sign(manifest(harness.Image("web:1"), "old"))))
	before := g.asked()
	g.passed(g.as(deployer, "label", "rollout.argoproj.io/web", "team=shop"))
	if n := g.asked() - before; n != 0 {
		g.T.Errorf("reviews of a label: got %v, want none", n)
	}
	g.passed(g.as(deployer, "patch", "rollout.argoproj.io/web", "--type=merge", "--patch", `{"spec":{"replicas":5}}`))
	signed := g.sign(manifest(harness.Image("web:1"), "old"))
	g.refused(apply(strings.ReplaceAll(signed, harness.Image("web:1"), harness.Image("web:2"))), "DigestMismatch",
		"Rollout %s/web: containers[web].image is registry.example.test/web:2@", "was signed for another image")
	g.refused(g.as(deployer, "patch", "rollout.argoproj.io/web", "--type=merge", "--patch", `{"spec":{"workloadRef":{"name":"evil"}}}`), "DigestMismatch",
		"Rollout %s/web: spec.workloadRef.name is changed")
}

// customKind registers a kind without a schema and waits until it is served.
func (g *gated) customKind(plural, kind, group string) {
	g.T.Helper()
	g.Apply(fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.%[3]s},
  spec: {group: %[3]s, scope: Namespaced, names: {plural: %[1]s, singular: %[4]s, kind: %[2]s, listKind: %[2]sList},
    versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		plural, kind, group, strings.ToLower(kind)))
	g.T.Cleanup(func() {
		g.Kubectl(nil, "delete", "customresourcedefinition", plural+"."+group, "--wait=true", "--timeout=60s")
	})
	g.Kubectl(nil, "wait", "--for=condition=Established", "customresourcedefinition/"+plural+"."+group, "--timeout=60s")
	resource := schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: plural}
	g.Eventually(kind+" to be served", func() (string, bool) {
		r := g.TryKubectl(nil, "get", resource.Resource+"."+group, "--namespace", g.ns)
		return string(r.Stderr), r.Status == 0
	})
}

// inject has the API server put a sidecar and a volume into Pods, as a mesh's
// injector does. (T14: what a person's bare Pod holds then is judged.)
func (g *gated) inject() {
	plain := g.sign(barePod("plain", harness.Image("web:1"), ""))
	g.passed(g.send(developer, plain, "create", "--filename", "-"))
	stored := g.Get(harness.Pods, g.ns, "plain")
	if volumes := harness.Maps(stored, "spec", "volumes"); len(volumes) != 1 || !strings.HasPrefix(fmt.Sprint(volumes[0]["name"]), "kube-api-access-") {
		g.T.Errorf("volumes of the stored Pod: got %v, want the API server's token alone", volumes)
	}

	g.injector(harness.Image("proxy:1"))
	g.refused(g.send(developer, strings.ReplaceAll(g.sign(barePod("meshed", harness.Image("web:1"), "")), "name: meshed", "name: meshed\n  labels: {inject: \"true\"}"), "create", "--filename", "-"),
		"DigestMismatch", "Pod %s/meshed: spec.containers[proxy].image is registry.example.test/proxy:1@", `spec.containers[proxy].volumeMounts["/var/run/mesh"].name is mesh-token`, written(developer))
	// What a controller makes is not judged: that is where injection belongs.
	labelled := strings.Replace(one("Deployment", "web", harness.Image("web:1")), "labels: {app: web}", `labels: {app: web, inject: "true"}`, 1)
	g.deploy(labelled)
	g.Eventually("an injected Pod of the Deployment", func() (string, bool) {
		pods := g.List(harness.Pods, g.ns, "app=web")
		if len(pods) != 1 {
			return fmt.Sprintf("%d Pods", len(pods)), false
		}
		n := len(harness.Maps(&pods[0], "spec", "containers"))
		return fmt.Sprintf("%d containers", n), n == 2 && condition(&pods[0], "Ready") == "True"
	})
}

// injector is a policy of the API server that adds a container and a token to
// Pods with a label. It counts when injector returns.
func (g *gated) injector(image string) {
	g.T.Helper()
	g.Apply(fmt.Appendf(nil, `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    objectSelector: {matchLabels: {inject: "true"}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  reinvocationPolicy: Never
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "proxy", image: %[2]q,
           volumeMounts: [Object.spec.containers.volumeMounts{name: "mesh-token", mountPath: "/var/run/mesh"}]}},
         JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "mesh-token",
           projected: Object.spec.volumes.projected{sources: [Object.spec.volumes.projected.sources{serviceAccountToken:
             Object.spec.volumes.projected.sources.serviceAccountToken{path: "token", audience: "mesh"}}]}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`, g.ns, image))
	g.T.Cleanup(func() {
		g.Kubectl(nil, "delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", g.ns)
	})
	probe := strings.Replace(barePod("probe", harness.Image("web:1"), ""), "name: probe", `name: probe, labels: {inject: "true"}`, 1)
	g.Eventually("the injector to count", func() (string, bool) {
		r := g.send(developer, probe, "create", "--dry-run=server", "--filename", "-")
		return string(r.Stderr), strings.Contains(string(r.Stderr), "proxy")
	})
}
