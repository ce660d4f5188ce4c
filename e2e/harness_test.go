//go:build e2e

package e2e

// What the harness promises to the other tests, one test for each part of it.

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

func TestComponentsStopAndComeBackOneByOne(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b, harness.APIServerFlags("--default-not-ready-toleration-seconds=7"))
	ns := cluster.NewNamespace("parts")
	deployment := fmt.Appendf(nil, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %s},
  spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`, ns)

	// Without the controllers a Deployment is only a wish.
	cluster.ControllerManager().Kill()
	if cluster.ControllerManager().Up() {
		t.Error("a killed component is up")
	}
	cluster.Apply(deployment)
	if n := len(cluster.List(harness.ReplicaSets, ns, "")); n != 0 {
		t.Errorf("ReplicaSets without a controller manager: got %d, want 0", n)
	}
	cluster.ControllerManager().Start()
	cluster.Eventually("a Pod", func() (string, bool) {
		n := len(cluster.List(harness.Pods, ns, ""))
		return fmt.Sprintf("%d Pods", n), n == 1
	})

	// The flags of the start stay; those of a restart come on top.
	toleration := func(i int) int64 {
		t.Helper()
		tolerations := harness.Maps(&cluster.List(harness.Pods, ns, "")[0], "spec", "tolerations")
		if len(tolerations) <= i {
			t.Fatalf("tolerations: got %v", tolerations)
		}
		seconds, _ := tolerations[i]["tolerationSeconds"].(int64)
		return seconds
	}
	if got := toleration(0); got != 7 {
		t.Errorf("tolerationSeconds by a flag of StartCluster: got %d, want 7", got)
	}
	before := cluster.APIServer().PID()
	cluster.APIServer().Restart("--default-unreachable-toleration-seconds=9")
	if after := cluster.APIServer().PID(); after == before || after == 0 {
		t.Errorf("process of the API server: got %d after %d", after, before)
	}
	pod := cluster.List(harness.Pods, ns, "")[0].GetName()
	cluster.Kubectl(nil, "delete", "pod", pod, "--namespace", ns, "--grace-period=0", "--force")
	cluster.Eventually("a new Pod by the same controller manager", func() (string, bool) {
		pods := cluster.List(harness.Pods, ns, "")
		return fmt.Sprintf("%d Pods", len(pods)), len(pods) == 1 && pods[0].GetName() != pod
	})
	if diff := cmp.Diff([]int64{7, 9}, []int64{toleration(0), toleration(1)}); diff != "" {
		t.Errorf("tolerationSeconds after a restart with a flag (-want +got):\n%s", diff)
	}

	// The store keeps what it was told.
	cluster.Etcd().Kill()
	cluster.Etcd().Start()
	cluster.APIServer().WaitReady()
	if cluster.Get(harness.Deployments, ns, "web") == nil {
		t.Error("the Deployment is gone after etcd came back")
	}
}
