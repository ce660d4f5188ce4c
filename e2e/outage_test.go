//go:build e2e

package e2e

// What goes on and what does not while the webhook is down (acceptance line 3
// of the webhook): the API server is asked, and the Pods are counted.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// outage is a cluster with two nodes whose webhook comes and goes.
type outage struct {
	*harness.Cluster
	policy   *harness.Policy
	release  *harness.Signer
	webhooks *harness.Webhooks

	first, second *harness.Node
	shop          string // where what is ordinary happens
	closed        string // where nothing that is gated may change
	doomed        string // a namespace to delete
	autoscaler    *harness.Cluster
	provisioners  map[string]*harness.Cluster // by account

	began  time.Time
	before map[types.UID]bool // Pods that were there when it began
}

// provisioner is the account of the driver that the policy declares.
const provisioner = "csi-provisioner"

func outagePolicy() string {
	return harness.BasicPolicy("release") + `scope:
  admission:
    clusterScoped: [Namespace, ClusterRole, ClusterRoleBinding, PersistentVolume]
trustedWriters:
- {preset: csi-provisioner, user: "system:serviceaccount:kube-system:` + provisioner + `", namespaces: ["-"]}
`
}

func TestAnOutageOfTheWebhookStopsNothingOrdinary(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	o := &outage{Cluster: harness.StartCluster(e, b, harness.APIServerFlags("--default-unreachable-toleration-seconds=1"))}
	o.first, o.second = harness.StartNode(o.Cluster, "first"), harness.StartNode(o.Cluster, "second")
	o.shop, o.closed, o.doomed = o.NewNamespace("shop"), o.NewNamespace("closed"), o.NewNamespace("doomed")
	o.accounts()
	o.Apply([]byte(preparedVolumes))
	o.alterBootstrapRole()

	o.release = harness.NewSigner(e, b, "release")
	o.policy = harness.NewPolicy(e, "policy", outagePolicy(), o.release)
	o.webhooks = harness.StartWebhooks(o.Cluster, b, 3, o.policy.Dir)
	o.webhooks.Install(harness.WebhookConfiguration(e, b, o.policy.Path()))
	o.applySigned(ordinaryWorkloads(), o.shop)
	o.applySigned(closedObjects(), o.closed)
	o.applySigned(doomedObjects(), o.doomed)
	for _, ns := range []string{o.shop, o.closed, o.doomed} {
		o.Kubectl(nil, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=120s", "--namespace", ns)
	}
	o.Kubectl(nil, "rollout", "status", "statefulset/db", "--timeout=120s", "--namespace", o.shop)
	o.Kubectl(nil, "rollout", "status", "daemonset/agent", "--timeout=120s", "--namespace", o.shop)

	t.Run("webhook up", func(t *testing.T) {
		t.Run("the volume of a declared provisioner", func(t *testing.T) { o.on(t).provision() })
		t.Run("one of three replicas lost", func(t *testing.T) { o.on(t).loseReplica() })
	})

	o.begin()
	t.Run("webhook down", func(t *testing.T) {
		t.Run("passes", func(t *testing.T) {
			for _, c := range ordinary {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.do(o.on(t))
				})
			}
		})
		t.Run("passes, node drain", func(t *testing.T) { o.on(t).drain() })
		t.Run("refused", o.refused)
		t.Run("an API server restarted after bootstrap roles were lost", func(t *testing.T) { o.on(t).restartAPIServer() })
		t.Run("passes, CronJob tick", func(t *testing.T) { o.on(t).tick() })
	})
	t.Run("webhook back", func(t *testing.T) { o.on(t).end() })
}

// on is the outage for a subtest.
func (o *outage) on(t testing.TB) *outage {
	view := *o
	view.Cluster = o.Cluster.On(t)
	return &view
}

// accounts makes who acts in the tests: the autoscaler, whose role is part of
// Kubernetes, and two drivers, of which the policy declares one.
func (o *outage) accounts() {
	o.T.Helper()
	const system = "kube-system"
	o.provisioners = map[string]*harness.Cluster{}
	for _, name := range []string{"horizontal-pod-autoscaler", provisioner, "csi-other"} {
		o.Kubectl(nil, "create", "serviceaccount", name, "--namespace", system)
		view := o.AsServiceAccount(system, name)
		if name == "horizontal-pod-autoscaler" {
			o.autoscaler = view
			continue
		}
		o.Bind("system:persistent-volume-provisioner", "", "system:serviceaccount:"+system+":"+name)
		o.provisioners[name] = view
	}
}

// applySigned applies manifests with the receipts of the release.
func (o *outage) applySigned(manifests, namespace string) {
	o.T.Helper()
	o.Apply([]byte(o.release.Sign(o.policy, manifests, namespace)), "--namespace", namespace)
}

// begin kills all replicas, and what stands before them.
func (o *outage) begin() {
	o.T.Helper()
	o.before = map[types.UID]bool{}
	for _, p := range o.List(harness.Pods, "", "") {
		o.before[p.GetUID()] = true
	}
	for _, r := range o.webhooks.Replicas {
		r.Kill()
	}
	o.webhooks.Close()
	o.began = time.Now()
}

// end starts the webhook again: what is signed and was refused passes, what is
// not signed is refused with a reason.
func (o *outage) end() {
	o.T.Helper()
	for _, r := range o.webhooks.Replicas {
		if !r.Up() {
			r.Launch()
		}
	}
	for _, r := range o.webhooks.Replicas {
		r.WaitReady()
	}
	o.webhooks.Open()
	next := strings.ReplaceAll(closedObjects(), harness.Image("web:1"), harness.Image("web:2"))
	o.applySigned(next, o.closed)
	pods := o.running(o.closed, "web", 1, 1, func(p *unstructured.Unstructured) bool {
		return harness.Maps(p, "spec", "containers")[0]["image"] == harness.Image("web:2")
	})
	text := string(o.TryKubectl(nil, "set", "image", "deployment/web", "web="+harness.Image("web:3"), "--namespace", o.closed).Stderr)
	if !strings.Contains(text, "SYNC REFUSED [DigestMismatch]") {
		o.T.Errorf("an image that nobody signed: got %q, want a refusal with a reason", text)
	}
	o.T.Logf("after %.0f s of outage: a signed image runs (%d Pod), an unsigned one: %s", time.Since(o.began).Seconds(), len(pods), strings.TrimSpace(text))
}

// running waits until want Pods have the label app, of which fresh were made
// since the outage began, and all are ready and as is says (nil: whatever they
// are). It logs their number and returns them.
func (o *outage) running(namespace, app string, want, fresh int, is func(*unstructured.Unstructured) bool) []unstructured.Unstructured {
	o.T.Helper()
	var pods []unstructured.Unstructured
	o.Eventually(fmt.Sprintf("%d running Pods of %s, %d of them new", want, app, fresh), func() (string, bool) {
		pods = slices.DeleteFunc(o.List(harness.Pods, namespace, "app="+app), func(p unstructured.Unstructured) bool {
			return p.GetDeletionTimestamp() != nil
		})
		made, good := 0, 0
		var states []string
		for _, p := range pods {
			if !o.before[p.GetUID()] {
				made++
			}
			if harness.Field(&p, "status", "phase") == "Running" && condition(&p, "Ready") == "True" && (is == nil || is(&p)) {
				good++
			}
			states = append(states, fmt.Sprintf("%s %s ready %q new %t", p.GetName(), harness.Field(&p, "status", "phase"), condition(&p, "Ready"), !o.before[p.GetUID()]))
		}
		return fmt.Sprint(states), len(pods) == want && good == want && made == fresh
	})
	o.T.Logf("%s: %d Pods running and ready, %d of them new", app, want, fresh)
	return pods
}

// container is the first container of a Pod.
func container(p *unstructured.Unstructured) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: maps.Clone(harness.Maps(p, "spec", "containers")[0])}
}
