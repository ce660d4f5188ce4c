package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Node is a node as far as the API can tell: it heartbeats, and the Pods that
// are bound to it run, become ready, complete and end. Nothing is executed.
// Cordon and drain it with Kubectl.
type Node struct {
	Name string

	cluster *Cluster
	client  dynamic.Interface // as system:node:NAME
	ip      string
	subnet  int
	pods    cache.Store
	seen    map[types.UID]string // resource version that needs nothing more
	lost    atomic.Bool
	given   int // Pod addresses
	posted  time.Time
	log     *log.Logger
}

const (
	heartbeat   = time.Second     // renewals of the lease
	statusEvery = 5 * time.Second // posts of the node's status, if nothing changes
	kubeletWait = 5 * time.Second // one request
)

// StartNode adds a node to a cluster and waits until it takes Pods. With the
// first node comes a scheduler, which binds to any of them. The node lasts as
// long as the test. What went wrong in it is in node-NAME.log.
func StartNode(c *Cluster, name string) *Node {
	c.T.Helper()
	if !c.plane.scheduled {
		c.plane.scheduled = true
		ctx, stopped := c.background("scheduler")
		err := startScheduler(ctx, c.As("system:kube-scheduler").client, c.logger("scheduler"), stopped)
		if err != nil {
			c.T.Fatal(err)
		}
	}
	c.plane.nodes++
	n := &Node{
		Name: name, cluster: c, client: c.As("system:node:"+name, "system:nodes").client, subnet: c.plane.nodes,
		ip: fmt.Sprintf("10.1.0.%d", c.plane.nodes), seen: map[types.UID]string{}, log: c.logger("node-" + name),
	}
	if c.shared != nil {
		c.T.Cleanup(n.Delete) // after its loop has ended
	}
	ctx, stopped := c.background("node-" + name)
	wake := make(bell, 1)
	pods, err := watch(ctx, n.client, Pods, "spec.nodeName="+name, wake.ring)
	if err != nil {
		c.T.Fatal(err)
	}
	n.pods = pods
	go func() {
		defer close(stopped)
		var beaten time.Time
		wake.loop(ctx, func() {
			if n.lost.Load() {
				return
			}
			if time.Since(beaten) >= heartbeat {
				beaten = time.Now()
				n.report("heartbeat", n.beat(ctx))
			}
			n.runPods(ctx)
		})
	}()
	n.WaitReady()
	return n
}

// WaitReady waits until the cluster gives the node Pods.
func (n *Node) WaitReady() {
	n.cluster.T.Helper()
	n.cluster.Eventually("node "+n.Name, func() (string, bool) {
		u := n.cluster.Get(Nodes, "", n.Name)
		if u == nil {
			return "not registered", false
		}
		node, err := typed[corev1.Node](u)
		if err != nil {
			n.cluster.T.Fatal(err)
		}
		return fmt.Sprintf("ready %t, taints %v", ready(node), node.Spec.Taints), ready(node) && len(node.Spec.Taints) == 0
	})
}

// Lose cuts the node off: no heartbeats, and its Pods neither change nor end.
// The control plane notices after some 12 s. Its Pods are then deleted after
// their tolerations' 300 s, if APIServerFlags says nothing else
// (--default-unreachable-toleration-seconds), and are gone when the node is
// deleted or returns.
func (n *Node) Lose() { n.lost.Store(true) }

// Return ends Lose. A node that was deleted registers again.
func (n *Node) Return() { n.lost.Store(false) }

// Delete takes the node out of the cluster as an administrator does with a node
// that is lost; see Lose.
func (n *Node) Delete() {
	n.cluster.T.Helper()
	n.Lose()
	n.cluster.Kubectl(nil, "delete", "node", n.Name, "--ignore-not-found")
}

// background returns a context that ends with the test, which then waits until
// stopped is closed.
func (c *Cluster) background(what string) (ctx context.Context, stopped chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped = make(chan struct{})
	c.T.Cleanup(func() {
		cancel()
		select {
		case <-stopped:
		case <-time.After(Patience):
			c.T.Errorf("%s does not end", what)
		}
	})
	return ctx, stopped
}

// logger writes to a file among the logs of the processes.
func (c *Cluster) logger(name string) *log.Logger {
	c.T.Helper()
	file, err := os.Create(filepath.Join(c.Dir, name+".log"))
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { _ = file.Close() })
	return log.New(file, "", log.Ltime|log.Lmicroseconds)
}

func (n *Node) report(what string, err error) {
	if err != nil {
		n.log.Printf("%s: %v", what, err)
	}
}

// beat renews the lease, and registers the node and posts its status as needed.
func (n *Node) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletWait)
	defer cancel()
	u, err := n.client.Resource(Nodes).Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		u, err = n.client.Resource(Nodes).Create(ctx, n.object(), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	node, err := typed[corev1.Node](u)
	if err != nil {
		return err
	}
	if !ready(node) || time.Since(n.posted) > statusEvery {
		u.Object["status"] = n.object().Object["status"]
		if _, err := n.client.Resource(Nodes).UpdateStatus(ctx, u, metav1.UpdateOptions{}); err != nil {
			return err
		}
		n.posted = time.Now()
	}
	leases := n.client.Resource(Leases).Namespace(corev1.NamespaceNodeLease)
	spec := fmt.Sprintf(`{"holderIdentity":%q,"leaseDurationSeconds":40,"renewTime":%q}`,
		n.Name, time.Now().UTC().Format(metav1.RFC3339Micro))
	_, err = leases.Patch(ctx, n.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		lease := &unstructured.Unstructured{}
		data := fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":%s}`, n.Name, spec)
		if err := json.Unmarshal(data, &lease.Object); err != nil {
			return err
		}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return err
}

// object is the Node that registers, with its status of now.
func (n *Node) object() *unstructured.Unstructured {
	now := time.Now().UTC().Format(time.RFC3339)
	var conditions []any
	for _, c := range []struct{ kind, status, reason string }{
		{"MemoryPressure", "False", "KubeletHasSufficientMemory"},
		{"DiskPressure", "False", "KubeletHasNoDiskPressure"},
		{"PIDPressure", "False", "KubeletHasSufficientPID"},
		{"Ready", "True", "KubeletReady"},
	} {
		conditions = append(conditions, map[string]any{
			"type": c.kind, "status": c.status, "reason": c.reason, "lastHeartbeatTime": now, "lastTransitionTime": now,
		})
	}
	resources := map[string]any{"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": n.Name, "labels": map[string]any{
			"kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		"status": map[string]any{
			"capacity": resources, "allocatable": resources, "conditions": conditions,
			"addresses": []any{
				map[string]any{"type": "InternalIP", "address": n.ip}, map[string]any{"type": "Hostname", "address": n.Name},
			},
		},
	}}
}

func (n *Node) runPods(ctx context.Context) {
	for _, item := range n.pods.List() {
		u := item.(*unstructured.Unstructured)
		if n.seen[u.GetUID()] == u.GetResourceVersion() {
			continue
		}
		more, err := n.runPod(ctx, u)
		n.report("pod "+u.GetNamespace()+"/"+u.GetName(), err)
		if err == nil && !more {
			n.seen[u.GetUID()] = u.GetResourceVersion()
		}
	}
}

// runPod brings a Pod one step on. more says that time alone may ask for
// another.
func (n *Node) runPod(ctx context.Context, u *unstructured.Unstructured) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletWait)
	defer cancel()
	pod, err := typed[corev1.Pod](u)
	if err != nil {
		return false, err
	}
	var status corev1.PodStatus
	switch {
	case pod.DeletionTimestamp != nil && !terminal(pod):
		exit := int32(143) // SIGTERM; a server takes it for the end of its work
		if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			exit = 0
		}
		status = endedStatus(pod, exit, time.Now())
	case pod.DeletionTimestamp != nil:
		if *pod.DeletionGracePeriodSeconds == 0 {
			return false, nil // finalizers are waited for
		}
		uid := pod.UID
		err := n.client.Resource(Pods).Namespace(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &uid},
		})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	case terminal(pod):
		return false, nil
	default:
		status, more, err = n.live(pod)
		if err != nil {
			return false, err
		}
	}
	if equality.Semantic.DeepEqual(status, pod.Status) {
		return more, nil
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return false, err
	}
	u = u.DeepCopy()
	u.Object["status"] = object
	_, err = n.client.Resource(Pods).Namespace(pod.Namespace).UpdateStatus(ctx, u, metav1.UpdateOptions{})
	return more, err
}

// live is the status of a Pod that nobody has deleted.
func (n *Node) live(pod *corev1.Pod) (status corev1.PodStatus, more bool, err error) {
	if pod.Status.PodIP == "" {
		n.given++
	}
	status = runningStatus(pod, n.ip, fmt.Sprintf("10.2.%d.%d", n.subnet, n.given%250+1), time.Now())
	exit := pod.Annotations[ExitAnnotation]
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || exit == "never" {
		return status, false, nil
	}
	if time.Since(status.StartTime.Time) < jobTime {
		return status, true, nil
	}
	code := 0
	if exit != "" {
		if code, err = strconv.Atoi(exit); err != nil {
			return status, false, fmt.Errorf("annotation %s: %w", ExitAnnotation, err)
		}
	}
	ended := pod.DeepCopy()
	ended.Status = status
	return endedStatus(ended, int32(code), time.Now()), false, nil
}
