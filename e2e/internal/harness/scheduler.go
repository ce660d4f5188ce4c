package harness

import (
	"context"
	"fmt"
	"log"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

var storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}

// selectedNode is how the scheduler asks for the volume of a claim that waits
// for its first consumer.
const selectedNode = "volume.kubernetes.io/selected-node"

// scheduler binds Pods to nodes as the user system:kube-scheduler. It knows
// taints, cordons, node selectors, the node that a DaemonSet names, scheduling
// gates and unbound claims, and nothing of resources or affinity.
type scheduler struct {
	client              dynamic.Interface
	pods, nodes, claims cache.Store
	bound               map[types.UID]bool
	turn                int
	log                 *log.Logger
}

// startScheduler runs until ctx ends. stopped is closed then.
func startScheduler(ctx context.Context, client dynamic.Interface, logger *log.Logger, stopped chan<- struct{}) error {
	s := &scheduler{client: client, bound: map[types.UID]bool{}, log: logger}
	wake := make(bell, 1)
	for _, w := range []struct {
		store    *cache.Store
		resource schema.GroupVersionResource
		fields   string
	}{{&s.pods, Pods, "spec.nodeName="}, {&s.nodes, Nodes, ""}, {&s.claims, VolumeClaims, ""}} {
		store, err := watch(ctx, client, w.resource, w.fields, wake.ring)
		if err != nil {
			return err
		}
		*w.store = store
	}
	go func() {
		defer close(stopped)
		wake.loop(ctx, func() { s.step(ctx) })
	}()
	return nil
}

func (s *scheduler) step(ctx context.Context) {
	for _, item := range s.pods.List() {
		pod, err := typed[corev1.Pod](item)
		if err != nil {
			s.log.Print(err)
			continue
		}
		if pod.DeletionTimestamp != nil || s.bound[pod.UID] || len(pod.Spec.SchedulingGates) > 0 ||
			pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
			continue
		}
		if err := s.place(ctx, pod); err != nil {
			s.log.Printf("placing %s/%s: %v", pod.Namespace, pod.Name, err)
		}
	}
}

// place binds a Pod to the next node that takes it, when there is one and its
// claims are bound.
func (s *scheduler) place(ctx context.Context, pod *corev1.Pod) error {
	var fit []string
	for _, item := range s.nodes.List() {
		node, err := typed[corev1.Node](item)
		if err != nil {
			return err
		}
		if takes(node, pod) {
			fit = append(fit, node.Name)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	slices.Sort(fit)
	node := fit[s.turn%len(fit)]
	ready, err := s.claimsBound(ctx, pod, node)
	if err != nil || !ready {
		return err
	}
	s.turn++
	_, err = s.client.Resource(Pods).Namespace(pod.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding",
		"metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace, "uid": string(pod.UID)},
		"target":   map[string]any{"apiVersion": "v1", "kind": "Node", "name": node},
	}}, metav1.CreateOptions{}, "binding")
	if err == nil {
		s.bound[pod.UID] = true // until the watch has it
	}
	return err
}

// takes reports whether a node is ready for a Pod.
func takes(node *corev1.Node, pod *corev1.Pod) bool {
	if !ready(node) {
		return false
	}
	for key, value := range pod.Spec.NodeSelector {
		if node.Labels[key] != value {
			return false
		}
	}
	for _, taint := range node.Spec.Taints { // a cordon is one, too
		tolerated := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false)
		})
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated {
			return false
		}
	}
	wanted := namedNode(pod)
	return wanted == "" || wanted == node.Name
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// namedNode is the node that a DaemonSet's Pod names by affinity, or "".
func namedNode(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// claimsBound reports whether all claims of a Pod are bound, and asks for the
// volumes of those that wait for a node.
func (s *scheduler) claimsBound(ctx context.Context, pod *corev1.Pod, node string) (bool, error) {
	for _, v := range pod.Spec.Volumes {
		var name string
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = pod.Name + "-" + v.Name
		default:
			continue
		}
		item, found, err := s.claims.GetByKey(pod.Namespace + "/" + name)
		if err != nil || !found {
			return false, err
		}
		claim, err := typed[corev1.PersistentVolumeClaim](item)
		if err != nil {
			return false, err
		}
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if claim.Annotations[selectedNode] != "" || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName == "" {
			return false, nil
		}
		class, err := s.client.Resource(storageClasses).Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if Field(class, "volumeBindingMode") != string(storagev1.VolumeBindingWaitForFirstConsumer) {
			return false, nil
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, selectedNode, node)
		_, err = s.client.Resource(VolumeClaims).Namespace(pod.Namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return false, err
	}
	return true, nil
}
