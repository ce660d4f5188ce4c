//go:build e2e

package e2e

// What people install, against the real API server: manifests/policies holds
// while there is no webhook, manifests/webhook can be installed beside it, and
// an API server starts with the static form.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

var (
	admissionPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	budgets           = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

const (
	own    = "syncgate-system"
	pinned = "ghcr.io/acme/web:1.4@sha256:5cba7bc9a0540f7cdc71f169f0d3dde5bd7cf903792a56d069f5382b7ff68286"
)

// guarded is one cluster with the policies and the webhook's objects, but
// nothing that answers as the webhook.
type guarded struct {
	*harness.Cluster
	binaries harness.Binaries
	admin    *harness.Cluster // of syncgate:administrators
	mallory  *harness.Cluster // may do everything by RBAC, and is nobody to the gate
	shop     string           // a gated namespace
}

func TestShippedManifestsOnARealAPIServer(t *testing.T) {
	e := harness.New(t)
	g := &guarded{binaries: harness.Build(e)}
	g.Cluster = harness.StartCluster(e, g.binaries)
	harness.StartNode(g.Cluster, "node-1").WaitReady()
	g.shop = g.NewNamespace("shop")
	g.Bind("cluster-admin", "", "mallory", "group:syncgate:administrators")
	g.mallory = g.As("mallory")
	g.admin = g.As("alice", "syncgate:administrators")

	// From before the gate: by tag.
	g.Apply(fmt.Appendf(nil, deploymentOf, "old", g.shop, 2, "ghcr.io/acme/web:1.0"))
	g.waitAvailable(g.shop, "old", 2)

	g.Kubectl(nil, "apply", "-k", filepath.Join(g.binaries.Manifests, "policies"))
	t.Run("every expression is of the right type", g.typeChecked)
	g.mallory.WaitRefused(fmt.Appendf(nil, `{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: %s}}`, g.namespaceWithPolicies()), "syncgate-own-namespace")

	t.Run("an administrator installs the webhook", g.install)
	t.Run("images by digest", g.digests)
	t.Run("what is older than the policy", g.older)
	t.Run("the gate's own objects", g.ownObjects)
	t.Run("node maintenance", g.maintenance)
	t.Run("certificates", g.certificates)
	t.Run("static manifests", g.static)
	t.Run("an administrator takes it all away", g.uninstall)
}

const deploymentOf = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: %[2]s},
  spec: {replicas: %[3]d, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}},
    spec: {containers: [{name: web, image: %[4]q}]}}}}`

func (g *guarded) waitAvailable(namespace, name string, want int64) {
	g.T.Helper()
	g.Eventually(fmt.Sprintf("%d available of Deployment %s/%s", want, namespace, name), func() (string, bool) {
		n := harness.Int(g.Get(harness.Deployments, namespace, name), "status", "availableReplicas")
		return fmt.Sprintf("%d available", n), n == want
	})
}

// namespaceWithPolicies makes the gate's namespace as an administrator does.
func (g *guarded) namespaceWithPolicies() string {
	g.T.Helper()
	g.admin.Kubectl(nil, "apply", "-f", filepath.Join(g.binaries.Manifests, "webhook", "namespace.yaml"))
	return own
}

func (g *guarded) typeChecked(t *testing.T) {
	g.typeCheckedOf(t, "syncgate-digests", "syncgate-own-namespace", "syncgate-namespace", "syncgate-accounts")
}

// typeCheckedOf waits until the API server has looked at policies by their
// names, and reports what it finds odd in them.
func (g *guarded) typeCheckedOf(t *testing.T, names ...string) {
	for _, name := range names {
		var p *unstructured.Unstructured
		g.Eventually("type check of "+name, func() (string, bool) {
			p = g.Get(admissionPolicies, "", name)
			if p == nil {
				return "no policy", false
			}
			seen := harness.Int(p, "status", "observedGeneration")
			return fmt.Sprintf("observed generation %d", seen), seen == p.GetGeneration()
		})
		for _, w := range harness.Maps(p, "status", "typeChecking", "expressionWarnings") {
			t.Errorf("%s: %v: %v", name, w["fieldRef"], w["warning"])
		}
	}
}

func (g *guarded) install(*testing.T) {
	g.admin.Kubectl([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: syncgate-policy, namespace: "+own+"}, data: {policy.yaml: none}}"), "apply", "-f", "-")
	g.admin.Kubectl(nil, "apply", "-k", filepath.Join(g.binaries.Manifests, "webhook"))
	g.admin.Kubectl(nil, "apply", "-f", filepath.Join(g.binaries.Manifests, "webhook", "certificates", "rbac.yaml"))
	// Kubernetes' controllers make ReplicaSet, Pods, EndpointSlice, and keep the
	// budget and the quota.
	g.waitAvailable(own, "syncgate-webhook", 3)
	g.Eventually("the budget", func() (string, bool) {
		n := harness.Int(g.Get(budgets, own, "syncgate-webhook"), "status", "disruptionsAllowed")
		return fmt.Sprintf("%d disruptions allowed", n), n == 1
	})
	g.admin.Kubectl(nil, "apply", "-f", filepath.Join(g.binaries.Manifests, "webhook", "certificates", "job.yaml"))
	g.Eventually("the certificate Job", func() (string, bool) {
		n := harness.Int(g.Get(harness.Jobs, own, "syncgate-certificates-v0-1-0"), "status", "succeeded")
		return fmt.Sprintf("%d succeeded", n), n == 1
	})
}

// attempt is a write that is refused, or not.
type attempt struct {
	name    string
	as      *harness.Cluster
	stdin   string
	args    []string
	refused string // by which policy; empty: not at all
}

func (g *guarded) try(t *testing.T, attempts []attempt) {
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			var stdin []byte
			if a.stdin != "" {
				stdin = []byte(a.stdin)
			}
			r := a.as.TryKubectl(stdin, a.args...)
			text := string(r.Stderr)
			if a.refused == "" {
				if r.Status != 0 {
					t.Errorf("got %s, want it to pass", text)
				}
				return
			}
			// 403 is what kubectl calls Forbidden.
			for _, want := range []string{"Forbidden", "ValidatingAdmissionPolicy '" + a.refused + "'", "SYNC REFUSED ["} {
				if !strings.Contains(strings.ReplaceAll(text, "forbidden", "Forbidden"), want) {
					t.Errorf("got status %d, %s; want %q", r.Status, text, want)
				}
			}
		})
	}
}

func pod(name, namespace, spec string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s}, spec: {%s}}", name, namespace, spec)
}

func (g *guarded) digests(t *testing.T) {
	const by = "syncgate-digests"
	apply := []string{"apply", "--server-side", "-f", "-"}
	template := func(apiVersion, kind, name, before, after, image string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: %s}, spec: {%s{metadata: {labels: {app: x}}, spec: {restartPolicy: %s, containers: [{name: web, image: %q}]}}%s}}",
			apiVersion, kind, name, g.shop, before, map[bool]string{true: "Never", false: "Always"}[strings.Contains(kind, "Job")], image, after)
	}
	set := "selector: {matchLabels: {app: x}}, template: "
	var attempts []attempt
	for _, x := range []struct{ apiVersion, kind, before, after string }{
		{"apps/v1", "Deployment", set, ""}, {"apps/v1", "ReplicaSet", set, ""}, {"apps/v1", "StatefulSet", "serviceName: x, " + set, ""}, {"apps/v1", "DaemonSet", set, ""},
		{"v1", "ReplicationController", "template: ", ""}, {"batch/v1", "Job", "template: ", ""},
		{"batch/v1", "CronJob", "schedule: '0 0 1 1 *', jobTemplate: {spec: {template: ", "}}"},
	} {
		name := strings.ToLower(x.kind)
		attempts = append(attempts,
			attempt{x.kind + " by tag", g.mallory, template(x.apiVersion, x.kind, name, x.before, x.after, "ghcr.io/acme/web:1.4"), apply, by},
			attempt{x.kind + " by digest", g.mallory, template(x.apiVersion, x.kind, name, x.before, x.after, pinned), apply, ""})
	}
	digestOnly := pinned[strings.Index(pinned, "@"):]
	g.try(t, append(attempts,
		attempt{"PodTemplate by tag", g.mallory, fmt.Sprintf("{apiVersion: v1, kind: PodTemplate, metadata: {name: x, namespace: %s}, template: {spec: {containers: [{name: web, image: x}]}}}", g.shop), apply, by},
		attempt{"Pod by tag", g.mallory, pod("a", g.shop, "containers: [{name: web, image: web:1}]"), apply, by},
		attempt{"Pod by digest", g.mallory, pod("a", g.shop, "containers: [{name: web, image: 'web"+digestOnly+"'}]"), apply, ""},
		attempt{"Pod with a cut digest", g.mallory, pod("b", g.shop, "containers: [{name: web, image: 'web@sha256:5cba'}]"), apply, by},
		attempt{"Pod with an init container by tag", g.mallory, pod("b", g.shop, "initContainers: [{name: i, image: web:1}], containers: [{name: web, image: '"+pinned+"'}]"), apply, by},
		attempt{"Pod with an image volume by tag", g.mallory, pod("b", g.shop, "volumes: [{name: m, image: {reference: 'model:1'}}], containers: [{name: web, image: '"+pinned+"'}]"), apply, by},
		attempt{"Pod with an image volume by digest", g.mallory, pod("b", g.shop, "volumes: [{name: m, image: {reference: '"+pinned+"'}}], containers: [{name: web, image: '"+pinned+"'}]"), apply, ""},
		attempt{"ephemeral container by tag", g.mallory, "", []string{"debug", "--namespace", g.shop, "a", "--image", "busybox:1", "--attach=false"}, by},
		attempt{"ephemeral container by digest", g.mallory, "", []string{"debug", "--namespace", g.shop, "a", "--image", pinned, "--attach=false"}, ""},
		attempt{"another tag on what is there", g.mallory, "", []string{"set", "image", "--namespace", g.shop, "deployment/deployment", "web=ghcr.io/acme/web:1.5"}, by},
		attempt{"a controller's name does not help", g.As("system:serviceaccount:kube-system:replicaset-controller", "system:masters"),
			fmt.Sprintf(deploymentOf, "other", g.shop, 1, "web:1"), apply, by},
		attempt{"an administrator's neither", g.admin, pod("c", g.shop, "containers: [{name: web, image: web:1}]"), apply, by},
		attempt{"in kube-system", g.mallory, pod("a", "kube-system", "containers: [{name: web, image: web:1}]"), apply, ""},
	))
	// The bodies that must not be too dear for an expression.
	var containers []string
	for i := range 50 {
		var env []string
		for j := range 100 {
			env = append(env, fmt.Sprintf("{name: V%d, value: x}", j))
		}
		containers = append(containers, fmt.Sprintf("{name: c%d, image: %q, env: [%s]}", i, pinned, strings.Join(env, ", ")))
	}
	g.try(t, []attempt{{"50 containers with 100 variables each", g.mallory, pod("big", g.shop, "containers: ["+strings.Join(containers, ", ")+"]"), apply, ""}})
}

func (g *guarded) older(t *testing.T) {
	const by = "syncgate-digests"
	at := func(args ...string) []string { return append(args, "--namespace", g.shop) }
	g.try(t, []attempt{
		{"scaled", g.mallory, "", at("scale", "deployment/old", "--replicas=3"), ""},
		{"restarted", g.mallory, "", at("rollout", "restart", "deployment/old"), ""},
		{"edited", g.mallory, "", at("set", "resources", "deployment/old", "--requests=cpu=10m"), ""},
		{"another tag", g.mallory, "", at("set", "image", "deployment/old", "web=ghcr.io/acme/web:1.1"), by},
		{"the digest at last", g.mallory, "", at("set", "image", "deployment/old", "web="+pinned, "--dry-run=server"), ""},
	})
	g.waitAvailable(g.shop, "old", 3)
	var lost string
	g.Eventually("the end of the rollouts", func() (string, bool) { // until then Pods go by themselves
		pods := g.List(harness.Pods, g.shop, "app=old")
		if len(pods) > 0 {
			lost = pods[0].GetName()
		}
		d := g.Get(harness.Deployments, g.shop, "old")
		seen := harness.Int(d, "status", "observedGeneration") == d.GetGeneration()
		return fmt.Sprintf("%d Pods, seen %v", len(pods), seen), seen && len(pods) == 3 && harness.Int(d, "status", "updatedReplicas") == 3
	})
	g.Kubectl(nil, at("delete", "pod", lost, "--wait=false")...)
	g.Eventually("another Pod for one that is lost", func() (string, bool) {
		ready := 0
		for _, p := range g.List(harness.Pods, g.shop, "app=old") {
			if p.GetName() != lost && harness.Field(&p, "status", "phase") == "Running" {
				ready++
			}
		}
		return fmt.Sprintf("%d others", ready), ready == 3
	})
}

func (g *guarded) ownObjects(t *testing.T) {
	const by = "syncgate-own-namespace"
	g.Kubectl(nil, "create", "serviceaccount", "argocd-application-controller", "--namespace", g.shop)
	g.Bind("cluster-admin", "", "system:serviceaccount:"+g.shop+":argocd-application-controller")
	argo := g.AsServiceAccount(g.shop, "argocd-application-controller")
	in := func(args ...string) []string { return append(args, "--namespace", own) }
	webhookPod := g.List(harness.Pods, own, "app.kubernetes.io/component=webhook")[0].GetName()
	binding := func(kind, name, namespace, subject string) string {
		return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s, namespace: %q}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [%s]}",
			kind, name, namespace, subject)
	}
	create := []string{"create", "-f", "-"}
	// What Pod Security lets into the namespace.
	const restricted = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, " +
		"containers: [{name: x, image: '" + pinned + "', securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"
	account := "{kind: ServiceAccount, name: syncgate-webhook, namespace: " + own + "}"
	g.try(t, []attempt{
		{"the policy, by what applies applications", argo, "", in("patch", "configmap", "syncgate-policy", "--patch", "data: {policy.yaml: other}"), by},
		{"the policy", g.mallory, "", in("patch", "configmap", "syncgate-policy", "--patch", "data: {policy.yaml: other}"), by},
		{"the policy, by an administrator", g.admin, "", in("patch", "configmap", "syncgate-policy", "--patch", "data: {policy.yaml: other}"), ""},
		{"an off-switch", g.mallory, "", in("create", "configmap", "syncgate-off", "--from-literal=namespace.shop=x"), by},
		{"the root certificate", g.mallory, "", in("patch", "configmap", "kube-root-ca.crt", "--patch", "data: {x: other}"), by},
		{"a Secret", g.mallory, "", in("create", "secret", "generic", "syncgate-webhook-tls"), by},
		{"all of a kind at once", g.mallory, "", in("delete", "configmaps", "--all"), by},
		{"scaled to nothing", g.mallory, "", in("scale", "deployment/syncgate-webhook", "--replicas=0"), by},
		{"another image", g.mallory, "", in("set", "image", "deployment/syncgate-webhook", "webhook="+pinned), by},
		{"the budget", g.mallory, "", in("delete", "poddisruptionbudget", "syncgate-webhook"), by},
		{"the network policy", g.mallory, "", in("delete", "networkpolicy", "syncgate-webhook"), by},
		{"a Pod of one's own", g.mallory, pod("x", own, "serviceAccountName: syncgate-certificates, "+restricted), create, by},
		{"a Pod goes", g.mallory, "", in("delete", "pod", webhookPod), by},
		{"a token of an account", g.mallory, "", in("create", "token", "syncgate-certificates"), by},
		{"a shell", g.mallory, "", []string{"exec", "--namespace", own, webhookPod, "--", "sh"}, by},
		{"a debug container", g.mallory, "", in("debug", webhookPod, "--image", pinned, "--attach=false", "--profile=restricted"), by},
		{"a binding in its namespace", g.mallory, binding("RoleBinding", "x", own, "{kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}"), create, by},
		{"a custom resource's neighbour: a Lease", g.mallory, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x, namespace: " + own + "}}", create, by},
		{"an event", g.mallory, "{apiVersion: v1, kind: Event, metadata: {name: x, namespace: " + own + "}, involvedObject: {namespace: " + own + "}}", create, ""},
		{"asking what one may", g.mallory, "", in("auth", "can-i", "create", "pods"), ""},
	})
	g.try(t, []attempt{
		{"the namespace goes", g.mallory, "", []string{"delete", "namespace", own, "--wait=false"}, "syncgate-namespace"},
		{"the namespace's labels", g.mallory, "", []string{"label", "namespace", own, "pod-security.kubernetes.io/enforce-"}, "syncgate-namespace"},
		{"another namespace's labels", g.mallory, "", []string{"label", "namespace", g.shop, "a=b"}, ""},
		{"a ClusterRoleBinding for its account", g.mallory, binding("ClusterRoleBinding", "x", "", account), create, "syncgate-accounts"},
		{"one for it as a user", g.mallory, binding("ClusterRoleBinding", "x", "", "{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccount:"+own+":syncgate-webhook'}"), create, "syncgate-accounts"},
		{"one for all of its namespace", g.mallory, binding("RoleBinding", "x", g.shop, "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: 'system:serviceaccounts:"+own+"'}"), create, "syncgate-accounts"},
		{"a binding for somebody else", g.mallory, binding("RoleBinding", "x", g.shop, "{kind: ServiceAccount, name: default, namespace: "+g.shop+"}"), create, ""},
		{"its account added to that", g.mallory, "", []string{"patch", "rolebinding", "x", "--namespace", g.shop, "--type=json",
			"--patch", `[{"op":"add","path":"/subjects/-","value":{"kind":"ServiceAccount","name":"syncgate-webhook","namespace":"` + own + `"}}]`}, "syncgate-accounts"},
		{"what its accounts may", g.mallory, "", []string{"delete", "clusterrole", "syncgate-certificates"}, "syncgate-accounts"},
		{"other cluster roles", g.mallory, "", []string{"create", "clusterrole", "x", "--verb=get", "--resource=pods"}, ""},
		{"a ClusterRoleBinding for its account, by an administrator", g.admin, binding("ClusterRoleBinding", "syncgate-x", "", account), create, ""},
	})
}

// maintenance is what nobody may need an administrator of the gate for.
func (g *guarded) maintenance(t *testing.T) {
	pods := g.List(harness.Pods, own, "app.kubernetes.io/component=webhook")
	gone := pods[0].GetName()
	eviction := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": gone, "namespace": own},
	}}
	if _, err := g.mallory.Client().Resource(harness.Pods).Namespace(own).Create(context.Background(), eviction, metav1.CreateOptions{}, "eviction"); err != nil {
		t.Fatalf("the eviction of a drain: %v", err)
	}
	g.Eventually("another Pod for one that is evicted", func() (string, bool) {
		running := 0
		for _, p := range g.List(harness.Pods, own, "app.kubernetes.io/component=webhook") {
			if p.GetName() != gone && harness.Field(&p, "status", "phase") == "Running" {
				running++
			}
		}
		return fmt.Sprintf("%d running", running), running == 3
	})
}

// uninstall: what an administrator deletes, Kubernetes' controllers clear away.
func (g *guarded) uninstall(*testing.T) {
	g.admin.Kubectl(nil, "delete", "namespace", own, "--wait=false")
	g.Eventually("end of the namespace", func() (string, bool) {
		n := g.Get(harness.Namespaces, "", own)
		if n == nil {
			return "", true
		}
		return fmt.Sprint(n.Object["status"]), false
	})
}
