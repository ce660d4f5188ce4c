//go:build e2e

package e2e

// What the harness promises to the other tests, one test for each part of it.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

func TestUsersMayDoWhatTheyAreGiven(t *testing.T) {
	cluster := harness.SharedCluster(t)
	ns := cluster.NewNamespace("users")
	configMap := []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}")
	cluster.Kubectl(nil, "create", "serviceaccount", "robot", "--namespace", ns)
	users := []struct {
		name, subject string
		view          *harness.Cluster
	}{
		{"alice", "alice", cluster.As("alice", "developers")},
		{"a member of a group", "group:operators", cluster.As("bob", "operators", "others")},
		{"a ServiceAccount", "system:serviceaccount:" + ns + ":robot", cluster.AsServiceAccount(ns, "robot")},
	}
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			who := strings.TrimSpace(string(u.view.Kubectl(nil, "auth", "whoami", "--output", "jsonpath={.status.userInfo.username}")))
			r := u.view.TryApply(configMap, "--namespace", ns)
			if text := string(r.Stderr); r.Status == 0 || !harness.ContainsAll(text, []string{"forbidden", who}) {
				t.Errorf("before Bind: got status %d, %s", r.Status, text)
			}
			if err := u.view.TryPatch(harness.ConfigMaps, ns, "kube-root-ca.crt", map[string]any{"data": map[string]any{"x": "y"}}); !apierrors.IsForbidden(err) {
				t.Errorf("patch before Bind: got %v, want Forbidden", err)
			}
			cluster.Bind("edit", ns, u.subject)
			u.view.Apply(configMap, "--namespace", ns)
			u.view.Patch(harness.ConfigMaps, ns, "own", map[string]any{"data": map[string]any{"by": who}})
			event := cluster.WaitAudit("the patch by "+who, func(a harness.AuditEvent) bool {
				return a.User.Username == who && a.ObjectRef.Namespace == ns && a.ResponseStatus.Code == 200
			})
			if got, want := event.Write(), "patch configmaps/own"; got != want {
				t.Errorf("audited: got %q, want %q", got, want)
			}
		})
	}
}

func TestSharedClusterIsOneAndClean(t *testing.T) {
	// Two tests of their own, one after the other.
	var urls, left []string
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			cluster := harness.SharedCluster(t)
			urls = append(urls, cluster.URL)
			ns := cluster.NewNamespace("shared")
			harness.StartRecorder(cluster).Install(asksAboutDeployments("shared-"+name, ns))
			cluster.Bind("view", "", "somebody")
			for _, kind := range []string{"validatingwebhookconfigurations", "clusterrolebindings"} {
				for _, object := range strings.Fields(string(cluster.Kubectl(nil, "get", kind, "--output", "jsonpath={.items[*].metadata.name}"))) {
					if strings.HasPrefix(object, "shared-") || strings.HasPrefix(object, "e2e-") {
						left = append(left, name+" sees "+object)
					}
				}
			}
		})
	}
	if len(urls) != 2 || urls[0] != urls[1] {
		t.Errorf("clusters: got %q, want the same twice", urls)
	}
	// Each sees its own and nothing of the other's.
	if len(left) != 4 {
		t.Errorf("what the tests see: got %q, want two objects each", left)
	}
}
