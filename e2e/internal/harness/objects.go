package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The resources that the tests look at.
var (
	Applications        = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	ClusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	ClusterRoles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	ConfigMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	CronJobs            = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	DaemonSets          = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	Deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Events              = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	Ingresses           = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	Jobs                = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	Leases              = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	Namespaces          = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Nodes               = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	PersistentVolumes   = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	Pods                = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ReplicaSets         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	RoleBindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	Secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ServiceAccounts     = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	Services            = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	StatefulSets        = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	VolumeClaims        = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	WebhookConfigs      = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
)

// Kubectl runs the real kubectl as the view's user, with stdin as its standard
// input, and fails the test when kubectl fails.
func (c *Cluster) Kubectl(stdin []byte, args ...string) []byte {
	c.T.Helper()
	return c.Run(c.Dir, nil, c.plane.binary, c.kubectlArgs(stdin, args)...)
}

// TryKubectl is Kubectl for a command that may be refused.
func (c *Cluster) TryKubectl(stdin []byte, args ...string) Result {
	c.T.Helper()
	return c.Try(c.Dir, nil, c.plane.binary, c.kubectlArgs(stdin, args)...)
}

func (c *Cluster) kubectlArgs(stdin []byte, args []string) []string {
	c.T.Helper()
	args = append([]string{"kubectl", "--kubeconfig", c.Kubeconfig}, args...)
	if stdin == nil {
		return args
	}
	// From a file, so that a failure leaves what was applied for inspection.
	file, err := os.CreateTemp(c.Dir, "kubectl-stdin-*.yaml")
	if err != nil {
		c.T.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(stdin); err != nil {
		c.T.Fatal(err)
	}
	for i, a := range args {
		if a == "-" {
			args[i] = file.Name()
		}
	}
	return args
}

// Apply applies manifests server-side, as a tool named e2e.
func (c *Cluster) Apply(manifests []byte, args ...string) []byte {
	c.T.Helper()
	return c.Kubectl(manifests, applyArgs(args)...)
}

// TryApply is Apply for manifests that may be refused.
func (c *Cluster) TryApply(manifests []byte, args ...string) Result {
	c.T.Helper()
	return c.TryKubectl(manifests, applyArgs(args)...)
}

func applyArgs(more []string) []string {
	return append([]string{"apply", "--server-side", "--field-manager=e2e", "-f", "-"}, more...)
}

// Get returns an object, or nil when there is none.
func (c *Cluster) Get(r schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	c.T.Helper()
	u, err := c.client.Resource(r).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.T.Fatal(err)
	}
	return u
}

// List returns the objects of one kind that match a label selector.
func (c *Cluster) List(r schema.GroupVersionResource, namespace, selector string) []unstructured.Unstructured {
	c.T.Helper()
	l, err := c.client.Resource(r).Namespace(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		c.T.Fatal(err)
	}
	return l.Items
}

// Patch merges a patch into an object.
func (c *Cluster) Patch(r schema.GroupVersionResource, namespace, name string, patch map[string]any) {
	c.T.Helper()
	if err := c.TryPatch(r, namespace, name, patch); err != nil {
		c.T.Fatal(err)
	}
}

// TryPatch is Patch for a patch that may be refused.
func (c *Cluster) TryPatch(r schema.GroupVersionResource, namespace, name string, patch map[string]any) error {
	c.T.Helper()
	data, err := json.Marshal(patch)
	if err != nil {
		c.T.Fatal(err)
	}
	_, err = c.client.Resource(r).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

// CreateNamespace makes a namespace and waits until Pods can be made in it,
// which is when its default ServiceAccount is there.
func (c *Cluster) CreateNamespace(name string) {
	c.T.Helper()
	c.Kubectl(nil, "create", "namespace", name)
	c.Eventually("default ServiceAccount of "+name, func() (string, bool) {
		return "none", c.Get(ServiceAccounts, name, "default") != nil
	})
}

// NewNamespace is CreateNamespace with a name of its own that begins with
// prefix. In a shared cluster it goes when the test ends.
func (c *Cluster) NewNamespace(prefix string) string {
	c.T.Helper()
	name := fmt.Sprintf("%s-%05d", prefix, rand.IntN(100000))
	c.CreateNamespace(name)
	if c.shared != nil {
		c.T.Cleanup(func() { c.TryKubectl(nil, "delete", "namespace", name, "--wait=false") })
	}
	return name
}

// Snapshot returns what somebody asked for in a namespace, by kind and name:
// every object without its status and the server's bookkeeping, so that two
// snapshots differ only when somebody has changed something.
func (c *Cluster) Snapshot(namespace string, resources ...schema.GroupVersionResource) map[string]any {
	c.T.Helper()
	all := map[string]any{}
	for _, r := range resources {
		for _, u := range c.List(r, namespace, "") {
			o := maps.Clone(u.Object)
			delete(o, "status")
			o["metadata"] = map[string]any{"labels": u.GetLabels(), "annotations": u.GetAnnotations(), "uid": string(u.GetUID())}
			all[r.Resource+"/"+u.GetName()] = o
		}
	}
	return all
}

// Field returns the string at a path of field names, or "" when there is none.
func Field(u *unstructured.Unstructured, path ...string) string {
	if u == nil {
		return ""
	}
	s, _, err := unstructured.NestedString(u.Object, path...)
	if err != nil {
		return ""
	}
	return s
}

// Int returns the integer at a path of field names, or 0 when there is none.
func Int(u *unstructured.Unstructured, path ...string) int64 {
	if u == nil {
		return 0
	}
	n, _, err := unstructured.NestedInt64(u.Object, path...)
	if err != nil {
		return 0
	}
	return n
}

// Images returns the container images of a workload's pod template, in order.
func Images(u *unstructured.Unstructured) []string {
	var images []string
	for _, c := range Maps(u, "spec", "template", "spec", "containers") {
		image, _ := c["image"].(string)
		images = append(images, image)
	}
	return images
}

// Maps returns the list of objects at a path of field names, or nil when there
// is none.
func Maps(u *unstructured.Unstructured, path ...string) []map[string]any {
	if u == nil {
		return nil
	}
	list, _, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil {
		return nil
	}
	var maps []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			maps = append(maps, m)
		}
	}
	return maps
}
