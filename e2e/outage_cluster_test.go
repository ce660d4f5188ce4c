//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// Roles that the API server makes when it starts, if they are not there or not
// as it has them: one to lose, one to alter.
const (
	lostRole    = "system:node-bootstrapper"
	alteredRole = "system:node-problem-detector"
	lostBinding = "system:public-info-viewer"
)

// alterBootstrapRole takes its rules from a role, so that the API server has an
// UPDATE to make beside a CREATE. The webhook would have to be asked later.
func (o *outage) alterBootstrapRole() {
	o.T.Helper()
	o.Patch(harness.ClusterRoles, "", alteredRole, map[string]any{"rules": []any{}})
}

func (o *outage) restartAPIServer() {
	o.Kubectl(nil, "delete", "clusterrole", lostRole)
	o.Kubectl(nil, "delete", "clusterrolebinding", lostBinding)
	start := time.Now()
	o.APIServer().Kill()
	o.APIServer().Start() // returns when /readyz says ok, the roles' hook included
	o.T.Logf("ready %.1f s after it was killed", time.Since(start).Seconds())
	for _, name := range []string{lostRole, alteredRole} {
		u := o.Get(harness.ClusterRoles, "", name)
		if u == nil {
			o.T.Errorf("ClusterRole %s is not there", name)
		} else if len(harness.Maps(u, "rules")) == 0 {
			o.T.Errorf("ClusterRole %s has no rules", name)
		}
	}
	if o.Get(harness.ClusterRoleBindings, "", lostBinding) == nil {
		o.T.Errorf("ClusterRoleBinding %s is not there", lostBinding)
	}
	if r := o.TryKubectl(nil, "create", "clusterrole", "open", "--verb=get", "--resource=secrets"); r.Status == 0 || !strings.Contains(string(r.Stderr), "failed calling webhook") {
		o.T.Errorf("somebody else's ClusterRole: got status %d, %q, want that the webhook could not be called", r.Status, r.Stderr)
	}
	// The controllers find their way back.
	o.in("scale", "deployment/scale", "--replicas=5")
	o.running(o.shop, "scale", 5, 5-o.remaining("scale"), nil)
}

// remaining is the number of an application's Pods from before the outage.
func (o *outage) remaining(app string) int {
	o.T.Helper()
	n := 0
	for _, p := range o.List(harness.Pods, o.shop, "app="+app) {
		if o.before[p.GetUID()] {
			n++
		}
	}
	return n
}

// provision makes the volume of a claim as the driver that policy declares.
func (o *outage) provision() {
	o.Apply([]byte(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: late},
  spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`), "--namespace", o.shop)
	o.applySigned(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: provisioned}
spec:
  selector: {matchLabels: {app: provisioned}}
  template:
    metadata: {labels: {app: provisioned}}
    spec:
      containers: [{name: web, image: %q, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: late}}]
`, harness.Image("web:1")), o.shop)
	var claim *unstructured.Unstructured
	o.Eventually("the claim to name a node", func() (string, bool) {
		claim = o.Get(harness.VolumeClaims, o.shop, "late")
		return "none", claim.GetAnnotations()["volume.kubernetes.io/selected-node"] != ""
	})
	volume := func(source string) []byte {
		return fmt.Appendf(nil, `{apiVersion: v1, kind: PersistentVolume, metadata: {name: "pvc-%[1]s"}, spec: {storageClassName: late, accessModes: [ReadWriteOnce],
  capacity: {storage: 1Gi}, claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %[2]s, name: late, uid: "%[1]s"}, %[3]s}}`, claim.GetUID(), o.shop, source)
	}
	const csi = `csi: {driver: example.test, volumeHandle: late}`
	for _, c := range []struct{ name, account, source, want string }{
		{"a driver that nobody declared", "csi-other", csi, "SYNC REFUSED [ReceiptMissing]"},
		{"the declared driver, with a path of the node", provisioner, "hostPath: {path: /}", "SYNC REFUSED [ReceiptMissing]"},
		{"the declared driver", provisioner, csi, ""},
	} {
		r := o.provisioners[c.account].TryKubectl(volume(c.source), "create", "--filename", "-")
		if (r.Status == 0) != (c.want == "") || !strings.Contains(string(r.Stderr), c.want) {
			o.T.Errorf("%s: got status %d, %q, want %q", c.name, r.Status, r.Stderr, c.want)
		}
		o.T.Logf("%s: %s%.300s", c.name, r.Stdout, r.Stderr)
	}
	o.Kubectl(nil, "wait", "--for=condition=Available", "deployment/provisioned", "--timeout=120s", "--namespace", o.shop)
	if got := harness.Field(o.Get(harness.VolumeClaims, o.shop, "late"), "status", "phase"); got != "Bound" {
		o.T.Errorf("the claim: got %q, want Bound", got)
	}
}

// tally counts answers of one phase.
type tally struct {
	allowed, refused, failed atomic.Int64

	mu    sync.Mutex
	wrong []string
}

// loseReplica kills the replica that the API server talks to, under load. What
// was on its way to it fails; nothing is denied that should pass, and nothing
// passes that should be denied.
func (o *outage) loseReplica() {
	signed, unsigned := o.decoded(o.release.Sign(o.policy, webOf("answered"), o.shop)), o.decoded(webOf("answered"))
	const workers, enough = 4, 300
	var before, after tally
	var phase atomic.Pointer[tally] // of requests that begin now
	phase.Store(&before)
	var killed, stop atomic.Bool
	ask := func(u *unstructured.Unstructured, allowed bool) {
		t, wasKilled := phase.Load(), killed.Load()
		_, err := o.Client().Resource(harness.Deployments).Namespace(o.shop).Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil && allowed:
			t.allowed.Add(1)
		case err != nil && !allowed && strings.Contains(err.Error(), "SYNC REFUSED [ReceiptMissing]"):
			t.refused.Add(1)
		case err != nil && strings.Contains(err.Error(), "failed calling webhook"):
			t.failed.Add(1)
			return
		default:
			t.mu.Lock()
			t.wrong = append(t.wrong, fmt.Sprintf("signed %t: %v", allowed, err))
			t.mu.Unlock()
		}
		if wasKilled {
			phase.Store(&after) // an answer of those that are left
		}
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for !stop.Load() {
				ask(signed, true)
				ask(unsigned, false)
			}
		})
	}
	defer all.Wait()
	defer stop.Store(true)
	answered := func(what string, t *tally) {
		o.T.Helper()
		o.Eventually("answers "+what, func() (string, bool) {
			n := t.allowed.Load() + t.refused.Load()
			return fmt.Sprintf("%d", n), n >= enough
		})
	}
	answered("by three replicas", &before)
	served := func(r *harness.Replica) float64 { return r.Metric("syncgate_admission_requests_total", nil) }
	busiest := slices.MaxFunc(o.webhooks.Replicas, func(a, b *harness.Replica) int { return int(served(a) - served(b)) })
	n := served(busiest)
	busiest.Kill()
	killed.Store(true)
	answered("by the two that are left", &after)
	stop.Store(true)
	all.Wait()
	for name, t := range map[string]*tally{"before": &before, "after": &after} {
		if len(t.wrong) > 0 {
			o.T.Errorf("%s: %d wrong answers: %q", name, len(t.wrong), t.wrong[:min(3, len(t.wrong))])
		}
	}
	if n := after.failed.Load(); n > 0 {
		o.T.Errorf("calls that failed once the others had answered: got %d, want 0", n)
	}
	if n := before.failed.Load(); n > workers {
		o.T.Errorf("calls that failed when the replica was killed: got %d, want at most the %d on their way", n, workers)
	}
	o.T.Logf("killed the replica that had answered %.0f: before %d allowed, %d refused; on their way and failed: %d; after %d allowed, %d refused, %d failed; wrong answers 0",
		n, before.allowed.Load(), before.refused.Load(), before.failed.Load(), after.allowed.Load(), after.refused.Load(), after.failed.Load())
}

func (o *outage) decoded(manifest string) *unstructured.Unstructured {
	o.T.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		o.T.Fatal(err)
	}
	return u
}
