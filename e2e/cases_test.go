//go:build e2e

package e2e

// Failure reports from the field against a real API server: the numbers are
// those of plugin/app/cases_table_test.go. Those with a dead webhook are in
// outage_cases_test.go.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// cases has a method for each, which runs as a subtest.
type cases struct{ *gated }

func TestCases(t *testing.T) {
	tests := methods("TestCase", func(g *gated) any { return cases{g} })
	newGated(t, func(*gated) string {
		return `trustedWriters: [{user: platform, namespaces: ["try-*"], kinds: [ServiceAccount], categories: [identity]}]
`
	}, tests).run(t, tests)
}

func (c cases) Before005() {
	c.Apply([]byte(strings.Replace(one("Deployment", "web", "web:1"), "replicas: 1", "replicas: 2", 1)), "--namespace", c.ns)
	c.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", c.ns)
}

// https://github.com/sigstore/policy-controller/issues/1105
func (c cases) TestCase005EnrollingANamespaceMakesNoReplicaSets() {
	for n := 3; n <= 5; n++ {
		c.passed(c.as(developer, "scale", "deployment/web", fmt.Sprintf("--replicas=%d", n)))
		c.passed(c.as(developer, "rollout", "status", "deployment/web", "--timeout=120s"))
		if pods, sets := len(c.List(harness.Pods, c.ns, "app=web")), len(c.List(harness.ReplicaSets, c.ns, "")); pods != n || sets != 1 {
			c.T.Errorf("got %d Pods and %d ReplicaSets, want %d and 1", pods, sets, n)
		}
	}
	if got := harness.Images(c.Get(harness.Deployments, c.ns, "web")); len(got) != 1 || got[0] != "web:1" {
		c.T.Errorf("images: got %q, want the tag as it was", got)
	}
}

// https://github.com/argoproj/argo-cd/issues/8990
func (c cases) TestCase007AChangeThatArgoCDIgnoresIsRefused() {
	c.deploy(one("Deployment", "web", harness.Image("web:1")))
	c.refused(c.as(owner, "set", "image", "deployment/web", "web=registry.example.test/web:2"), "ImageNotPinned",
		"Deployment %s/web: containers[web].image is registry.example.test/web:2, which has no digest")
	c.refused(c.as(owner, "set", "image", "deployment/web", "web="+harness.Image("web:2")), "DigestMismatch",
		"Deployment %s/web: containers[web].image is registry.example.test/web:2@", "was signed for another image")
}

// https://github.com/kyverno/kyverno/issues/12978
func (c cases) TestCase029ADebugContainerThatAReceiptCoversRuns() {
	tools, other := harness.Image("tools:1"), harness.Image("tools:2")
	c.deploy(barePod("web", harness.Image("web:1"), ""))
	c.Kubectl(nil, "wait", "--for=condition=Ready", "pod/web", "--timeout=120s", "--namespace", c.ns)
	debug := func(image string) harness.Result {
		return c.as(deployer, "debug", "web", "--container=debugger", "--image="+image)
	}
	// The receipt is for the Pod as it will be; nothing else is written before.
	with := strings.Replace(barePod("web", harness.Image("web:1"), ""), "spec: {", fmt.Sprintf("spec: {ephemeralContainers: [{name: debugger, image: %q, securityContext: {capabilities: {add: [SYS_PTRACE]}}}],", tools), 1)
	var signed unstructured.Unstructured
	c.decodeInto(&signed, c.sign(with))
	c.passed(c.as(developer, "annotate", "pod/web", "--overwrite", "syncgate.io/receipt="+signed.GetAnnotations()["syncgate.io/receipt"]))
	c.refused(debug(other), "DigestMismatch", "Pod %s/web: spec.ephemeralContainers[debugger].image is registry.example.test/tools:2@", "for another image"+written(deployer))
	c.passed(debug(tools))
	c.Eventually("the debugger to run", func() (string, bool) {
		statuses := harness.Maps(c.Get(harness.Pods, c.ns, "web"), "status", "ephemeralContainerStatuses")
		return fmt.Sprint(statuses), len(statuses) == 1 && statuses[0]["image"] == tools
	})
}

// https://github.com/sigstore/policy-controller/issues/1974,
// https://github.com/stackrox/stackrox/pull/21096,
// https://github.com/tektoncd/pipeline/issues/2380
func (c cases) TestCase031PlacesThatOthersOverlookedAreJudged() {
	web := strings.Replace(one("Deployment", "web", harness.Image("web:1")), "containers: [{", fmt.Sprintf("volumes: [{name: m, image: {reference: %q}}], initContainers: [{name: init, image: %q}], containers: [{args: [-shell-image, %q], ",
		harness.Image("model:1"), harness.Image("init:1"), harness.Image("shell:1")), 1)
	c.deploy(web)
	for _, x := range []struct{ from, to, path string }{
		{"model:1", "model:2", "volumes[m].image.reference is registry.example.test/model:2@"}, // case 31
		{"init:1", "init:2", "initContainers[init].image is registry.example.test/init:2@"},    // case 33
		{"shell:1", "shell:2", "containers[web].args is changed"},                              // case 39
	} {
		edited := strings.Replace(c.sign(web), harness.Image(x.from), harness.Image(x.to), 1)
		c.refused(c.send(deployer, edited, "apply", "--server-side", "--force-conflicts", "--filename", "-"), "DigestMismatch", "Deployment %s/web: ", x.path)
	}
	native := strings.Replace(c.sign(web), "name: init", "name: init\n        restartPolicy: Always", 1)
	native = strings.Replace(native, harness.Image("init:1"), harness.Image("sidecar:1"), 1)
	c.refused(c.send(deployer, native, "apply", "--server-side", "--force-conflicts", "--filename", "-"), "DigestMismatch", "initContainers[init].image is registry.example.test/sidecar:1@")
}

// https://github.com/sigstore/policy-controller/issues/1571: nothing here asks
// anybody else, so that there is nothing to be slow. The API server gives each
// request 5 s and refuses what takes longer.
func (c cases) TestCase049SixtyPodsAtOnceAreAnsweredOnOneProcessor() {
	program := c.Write("webhook-on-one-processor", fmt.Appendf(nil, "#!/bin/sh\nGOMAXPROCS=1 exec %q \"$@\"\n", c.b.Webhook(c.Env)))
	if err := os.Chmod(program, 0o700); err != nil {
		c.T.Fatal(err)
	}
	was := c.webhooks.Replicas
	alone := c.webhooks.Add(program, c.policy.Dir)
	c.T.Cleanup(func() {
		alone.Stop()
		c.webhooks.Replicas = was
		c.webhooks.Route(was[0].Address)
		c.webhooks.Cut()
	})
	c.webhooks.Route(alone.Address)
	c.webhooks.Cut()
	const n = 60
	var manifests []string
	for i := range n {
		manifests = append(manifests, barePod(fmt.Sprintf("pod-%d", i), harness.Image("web:1"), ""))
	}
	signed := strings.Split(c.sign(stream(manifests...)), "\n---\n")
	pods := c.As(developer).Client().Resource(harness.Pods).Namespace(c.ns)
	var all sync.WaitGroup
	var mu sync.Mutex
	var slowest time.Duration
	for i, manifest := range signed {
		var u unstructured.Unstructured
		c.decodeInto(&u, manifest)
		if i%2 == 1 { // every other one is a Pod that nobody signed
			u.SetAnnotations(nil)
		}
		all.Go(func() {
			start := time.Now()
			_, err := pods.Create(context.Background(), &u, metav1.CreateOptions{})
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, time.Since(start))
			if refused := err != nil && strings.Contains(err.Error(), "SYNC REFUSED [ReceiptMissing]"); refused != (i%2 == 1) || err != nil && !refused {
				c.T.Errorf("%s: got %v", u.GetName(), err)
			}
		})
	}
	all.Wait()
	if got := alone.Metric("syncgate_admission_requests_total", map[string]string{"kind": "Pod"}); got != n {
		c.T.Errorf("reviews by the one: got %v, want %d", got, n)
	}
	c.T.Logf("%d Pods at once, half of them refused; the slowest answer of the API server took %v", n, slowest.Round(time.Millisecond))
}

// https://github.com/kyverno/kyverno/issues/2796
func (c cases) TestCase051ABrokenAggregatedAPIDisturbsNothing() {
	const broken = "v1.broken.example.test"
	c.Apply([]byte(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: ` + broken + `},
  spec: {group: broken.example.test, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: none, namespace: default}}}`))
	// Later namespaces could not be deleted with it.
	c.T.Cleanup(func() { c.Kubectl(nil, "delete", "apiservice", broken) })
	c.Eventually("discovery to fail in part", func() (string, bool) {
		r := c.TryKubectl(nil, "get", "--raw", "/apis/broken.example.test/v1")
		return string(r.Stdout) + string(r.Stderr), r.Status != 0 && strings.Contains(string(r.Stderr), "unable to handle the request")
	})
	replica := c.webhooks.Replicas[0]
	replica.Stop()
	replica.Start()
	web := one("Deployment", "web", harness.Image("web:1"))
	c.refused(c.send(developer, web, "create", "--filename", "-"), "ReceiptMissing", "Deployment %s/web")
	c.passed(c.send(developer, c.sign(web), "create", "--filename", "-"))
}

// https://github.com/ome-projects/ome/issues/846
func (c cases) TestCase053AFinalizerIsRemovedWithoutAReceipt() {
	c.deploy(strings.Replace(one("Deployment", "web", harness.Image("web:1")), "{name: web}\nspec", "{name: web, finalizers: [example.com/held]}\nspec", 1))
	c.passed(c.as(developer, "annotate", "deployment/web", "syncgate.io/receipt-"))
	c.passed(c.as(developer, "delete", "deployment/web", "--wait=false"))
	c.passed(c.as(developer, "patch", "deployment/web", "--type=json", "--patch", `[{"op":"remove","path":"/metadata/finalizers"}]`))
	c.Eventually("it to be gone", func() (string, bool) {
		return "there", c.Get(harness.Deployments, c.ns, "web") == nil
	})
}

// Before055 leaves a ReplicaSet that nobody signed.
func (c cases) Before055() {
	c.Apply([]byte(strings.Replace(one("ReplicaSet", "old", "untrusted:1"), "replicas: 1", "replicas: 2", 1)), "--namespace", c.ns)
}

// https://github.com/sigstore/policy-controller/issues/38
func (c cases) TestCase055AnOldReplicaSetIsScaledDown() {
	c.passed(c.as(developer, "patch", "replicaset/old", "--patch", `{"spec":{"replicas":0}}`))
	c.Eventually("its Pods to go", func() (string, bool) {
		n := len(c.List(harness.Pods, c.ns, "app=old"))
		return fmt.Sprint(n), n == 0
	})
}

// https://github.com/kyverno/kyverno/issues/250
func (c cases) TestCase057SubresourcesAreWhatTheyAre() {
	c.deploy(one("Deployment", "web", harness.Image("web:1")))
	before := c.asked()
	c.passed(c.as(developer, "scale", "deployment/web", "--replicas=2"))
	c.passed(c.as(developer, "rollout", "status", "deployment/web", "--timeout=120s"))
	_, err := c.As(deployer).Client().Resource(harness.Deployments).Namespace(c.ns).Patch(context.Background(), "web", types.MergePatchType,
		[]byte(`{"status":{"collisionCount":1}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		c.T.Errorf("status: %v", err)
	}
	if n := c.asked() - before; n != 0 {
		c.T.Errorf("reviews: got %v, want none", n)
	}
	// A configuration of somebody else's making may send them all the same: a
	// Scale is never an empty Deployment.
	for _, x := range []struct{ subresource, kind, want string }{
		{"scale", "Scale", "is nothing that this webhook judges"},
		{"", "Scale", "the request is about a Deployment, the object is a Scale"},
	} {
		review := fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","operation":"UPDATE","namespace":%[1]q,"name":"web","subResource":%[2]q,
  "kind":{"group":"apps","version":"v1","kind":"Deployment"},"userInfo":{"username":"dev"},
  "object":{"apiVersion":"autoscaling/v1","kind":%[3]q,"metadata":{"name":"web","namespace":%[1]q},"spec":{"replicas":5}},
  "oldObject":{"apiVersion":"autoscaling/v1","kind":%[3]q,"metadata":{"name":"web","namespace":%[1]q},"spec":{"replicas":2}}}}`, c.ns, x.subresource, x.kind)
		status, body := c.webhooks.Replicas[0].Ask("/validate", review)
		var answer struct {
			Response struct {
				Allowed bool
				Status  struct{ Message string }
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || answer.Response.Allowed || !strings.Contains(answer.Response.Status.Message, x.want) {
			c.T.Errorf("subresource %q: got %d %s, want %q", x.subresource, status, body, x.want)
		}
		c.T.Logf("subresource %q: %s", x.subresource, answer.Response.Status.Message)
	}
}

// https://github.com/kyverno/kyverno/issues/8801. Helm's upgrade sends the
// three-way merge that kubectl apply computes.
func (c cases) TestCase059TheSecondDeployPassesByEveryWay() {
	for name, args := range map[string][]string{
		"client-side apply": {"apply", "--filename", "-"},
		"server-side apply": {"apply", "--server-side", "--filename", "-"},
		"replace":           {"replace", "--filename", "-"},
	} {
		object := strings.ReplaceAll(name, " ", "-")
		for i, tag := range []string{"web:1", "web:2", "web:3"} {
			signed := c.sign(one("Deployment", object, harness.Image(tag)))
			if i == 0 && name == "replace" {
				c.passed(c.send(developer, signed, "create", "--filename", "-"))
				continue
			}
			c.passed(c.send(developer, signed, args...))
		}
		u := c.Get(harness.Deployments, c.ns, object)
		if got := harness.Images(u); len(got) != 1 || got[0] != harness.Image("web:3") {
			c.T.Errorf("%s: got images %q, want the third", name, got)
		}
		if n := strings.Count(u.GetAnnotations()["syncgate.io/receipt"], ".eyJ"); n != 1 {
			c.T.Errorf("%s: got %d receipts, want the last alone", name, n)
		}
	}
}

// https://github.com/argoproj/argo-cd/issues/23845
func (c cases) TestCase075TheMergedObjectIsJudged() {
	const path = "volumes: [{name: host, hostPath: {path: /var/log}}]"
	first := strings.Replace(one("Deployment", "web", harness.Image("web:1")), "containers: [", path+", containers: [", 1)
	apply := func(manager, manifest string) harness.Result {
		return c.send(developer, manifest, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "--filename", "-")
	}
	c.passed(apply("argocd", c.sign(first)))
	c.passed(apply("other", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {"+path+"}}}}")) // owns it too
	// What Git dropped is still there. Nothing gated has changed then, and no
	// receipt is asked for; with the next image the merged object is not what was
	// signed.
	c.passed(apply("argocd", c.sign(one("Deployment", "web", harness.Image("web:1")))))
	if volumes := harness.Maps(c.Get(harness.Deployments, c.ns, "web"), "spec", "template", "spec", "volumes"); len(volumes) != 1 {
		c.T.Errorf("volumes: got %v, want the one that is owned twice", volumes)
	}
	c.refused(apply("argocd", c.sign(one("Deployment", "web", harness.Image("web:2")))), "DigestMismatch", "Deployment %s/web: volumes[host].hostPath.path is /var/log", "was signed without it")
}

// https://github.com/stackrox/stackrox/issues/12124
func (c cases) TestCase077PullSecretsAreThePlatformsToAdd() {
	c.deploy(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder}, imagePullSecrets: []}` + "\n")
	c.Bind("cluster-admin", "", "platform")
	add := `{"imagePullSecrets":[{"name":"one"},{"name":"two"}]}`
	c.refused(c.as(owner, "patch", "serviceaccount/builder", "--patch", add), "ReceiptMissing", "ServiceAccount %s/builder: no receipt for identity (imagePullSecrets")
	c.passed(c.as("platform", "patch", "serviceaccount/builder", "--patch", add))
	// A sync of the empty list takes away, which is free, and nothing is stuck.
	c.passed(c.send(deployer, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder}, imagePullSecrets: []}`, "apply", "--server-side", "--force-conflicts", "--filename", "-"))
}
