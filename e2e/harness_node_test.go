//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// workloads are one of each kind that makes Pods which go on running.
const workloads = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      initContainers: [{name: init, image: "init:1"}, {name: sidecar, image: "sidecar:1", restartPolicy: Always}]
      containers: [{name: db, image: "db:1"}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {hostNetwork: true, containers: [{name: agent, image: "agent:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// job makes one Pod, which ends with an exit status.
func job(name, exit string) []byte {
	return fmt.Appendf(nil, `apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {%s: %q}}
    spec: {restartPolicy: Never, containers: [{name: work, image: "work:1"}]}
`, name, harness.ExitAnnotation, exit)
}

// claimed is a Pod with a claim whose volume somebody has yet to provide.
const claimed = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: example.test/late
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claimed}
spec:
  containers: [{name: c, image: "c:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

// volume is what a provisioner makes of it.
const volume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: late}
spec:
  storageClassName: late
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  claimRef: {namespace: %s, name: data}
  csi: {driver: example.test, volumeHandle: "1"}
`

// condition returns the status of one of an object's conditions.
func condition(u *unstructured.Unstructured, kind string) string {
	for _, c := range harness.Maps(u, "status", "conditions") {
		if c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func TestPodsRunOnANodeAsFarAsTheAPIIsConcerned(t *testing.T) {
	cluster := harness.SharedCluster(t)
	ns := cluster.NewNamespace("node")
	cluster.Apply([]byte(workloads), "--namespace", ns)
	available := func(n int64) {
		t.Helper()
		cluster.Eventually(fmt.Sprintf("%d available replicas", n), func() (string, bool) {
			u := cluster.Get(harness.Deployments, ns, "web")
			return fmt.Sprint(u.Object["status"]), harness.Int(u, "status", "availableReplicas") == n && condition(u, "Available") == "True"
		})
	}
	available(3)
	cluster.Kubectl(nil, "scale", "deployment/web", "--replicas=4", "--namespace", ns)
	available(4)
	cluster.Kubectl(nil, "rollout", "restart", "deployment/web", "--namespace", ns)
	for _, w := range []string{"deployment/web", "statefulset/db", "daemonset/agent"} {
		cluster.Kubectl(nil, "rollout", "status", w, "--timeout=120s", "--namespace", ns)
	}
	cluster.Eventually("addresses of the Service", func() (string, bool) {
		n := strings.Count(string(cluster.Kubectl(nil, "get", "endpointslices", "--namespace", ns, "--output", "jsonpath={.items[*].endpoints[*].addresses}")), "10.2.")
		return fmt.Sprintf("%d addresses", n), n == 4
	})

	// A StatefulSet waits for each of its Pods to be ready before the next.
	cluster.Kubectl(nil, "set", "image", "statefulset/db", "db=db:2", "--namespace", ns)
	cluster.Kubectl(nil, "rollout", "status", "statefulset/db", "--timeout=120s", "--namespace", ns)
	var images []string
	for _, pod := range cluster.List(harness.Pods, ns, "app=db") {
		for _, status := range append(harness.Maps(&pod, "status", "initContainerStatuses"), harness.Maps(&pod, "status", "containerStatuses")...) {
			images = append(images, fmt.Sprint(status["image"], " ready ", status["ready"]))
		}
	}
	one := []string{"sidecar:1 ready true", "init:1 ready true", "db:2 ready true"}
	if diff := cmp.Diff(append(one, one...), images); diff != "" {
		t.Errorf("what the Pods of the StatefulSet run (-want +got):\n%s", diff)
	}

	for _, j := range []struct{ name, exit, want string }{
		{"good", "0", "Complete"}, {"bad", "3", "Failed"},
	} {
		cluster.Apply(job(j.name, j.exit), "--namespace", ns)
		cluster.Kubectl(nil, "wait", "--for=condition="+j.want, "job/"+j.name, "--timeout=120s", "--namespace", ns)
	}
	cluster.Apply(job("endless", "never"), "--namespace", ns)
	cluster.Eventually("the endless Job to run", func() (string, bool) {
		u := cluster.Get(harness.Jobs, ns, "endless")
		return fmt.Sprint(u.Object["status"]), harness.Int(u, "status", "ready") == 1
	})

	cluster.Kubectl(nil, "run", "bare", "--image=bare:1", "--namespace", ns)
	cluster.Kubectl(nil, "wait", "--for=condition=Ready", "pod/bare", "--timeout=120s", "--namespace", ns)
	cluster.Kubectl(nil, "debug", "bare", "--image=debug:1", "--namespace", ns)
	cluster.Eventually("the ephemeral container", func() (string, bool) {
		list := harness.Maps(cluster.Get(harness.Pods, ns, "bare"), "status", "ephemeralContainerStatuses")
		return fmt.Sprint(list), len(list) == 1 && list[0]["image"] == "debug:1"
	})
	cluster.Kubectl(nil, "delete", "pod/bare", "--timeout=60s", "--namespace", ns) // waits for the node to end it
}

func TestNodesAreDrainedLostAndReplaced(t *testing.T) {
	e := harness.New(t)
	cluster := harness.StartCluster(e, harness.Build(e), harness.APIServerFlags("--default-unreachable-toleration-seconds=1"))
	first, second := harness.StartNode(cluster, "first"), harness.StartNode(cluster, "second")
	ns := cluster.NewNamespace("nodes")
	cluster.Apply([]byte(workloads), "--namespace", ns)
	on := func(want string) {
		t.Helper()
		cluster.Eventually("three ready Pods of web on "+want, func() (string, bool) {
			var pods []string
			n := 0
			for _, p := range cluster.List(harness.Pods, ns, "app=web") {
				pods = append(pods, fmt.Sprintf("%s on %q ready %q", p.GetName(), harness.Field(&p, "spec", "nodeName"), condition(&p, "Ready")))
				if harness.Field(&p, "spec", "nodeName") == want && condition(&p, "Ready") == "True" {
					n++
				}
			}
			return fmt.Sprint(pods), n == 3 && len(pods) == 3
		})
	}
	cluster.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", ns)
	cluster.Kubectl(nil, "rollout", "status", "daemonset/agent", "--timeout=120s", "--namespace", ns)

	cluster.Kubectl(nil, "drain", second.Name, "--ignore-daemonsets", "--timeout=120s")
	on(first.Name)
	cluster.Kubectl(nil, "uncordon", second.Name)
	second.WaitReady()

	// A lost node's Pods are replaced elsewhere, and gone when it is deleted.
	first.Lose()
	cluster.Eventually("the lost node to be noticed", func() (string, bool) {
		u := cluster.Get(harness.Nodes, "", first.Name)
		return condition(u, "Ready"), condition(u, "Ready") == "Unknown"
	})
	cluster.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", ns)
	first.Return()
	first.WaitReady()
	on(second.Name)

	// All of it goes on when the API server was away.
	cluster.APIServer().Kill()
	cluster.APIServer().Start()
	cluster.Kubectl(nil, "scale", "deployment/web", "--replicas=6", "--namespace", ns)
	cluster.Kubectl(nil, "rollout", "status", "deployment/web", "--timeout=120s", "--namespace", ns)

	// A Pod waits for its claim, and the claim for the Pod's node.
	cluster.Apply([]byte(claimed), "--namespace", ns)
	var node string
	cluster.Eventually("the claim to name a node", func() (string, bool) {
		u := cluster.Get(harness.VolumeClaims, ns, "data")
		node = u.GetAnnotations()["volume.kubernetes.io/selected-node"]
		return fmt.Sprint(u.Object), node != ""
	})
	if got := harness.Field(cluster.Get(harness.Pods, ns, "claimed"), "spec", "nodeName"); got != "" {
		t.Errorf("node of the Pod before its claim is bound: got %q, want none", got)
	}
	cluster.Apply(fmt.Appendf(nil, volume, ns))
	cluster.Kubectl(nil, "wait", "--for=condition=Ready", "pod/claimed", "--timeout=120s", "--namespace", ns)

	second.Delete()
	if u := cluster.Get(harness.Nodes, "", second.Name); u != nil {
		t.Errorf("the deleted node is there: %v", u)
	}
	second.Return()
	second.WaitReady()
}
