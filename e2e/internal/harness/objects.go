package harness

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

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
	ConfigMaps          = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Deployments         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Events              = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	ReplicaSets         = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	Secrets             = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Services            = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// Kubectl runs the real kubectl as administrator, with stdin as its standard
// input, and fails the test when kubectl fails.
func (c *Cluster) Kubectl(stdin []byte, args ...string) []byte {
	c.T.Helper()
	args = append([]string{"kubectl", "--kubeconfig", c.Kubeconfig}, args...)
	if stdin == nil {
		return c.Run(c.Dir, nil, c.binary, args...)
	}
	// From a file, so that a failure leaves what was applied for inspection.
	file := c.Write("kubectl-stdin", stdin)
	for i, a := range args {
		if a == "-" {
			args[i] = file
		}
	}
	return c.Run(c.Dir, nil, c.binary, args...)
}

// Apply applies manifests server-side, as a tool named e2e.
func (c *Cluster) Apply(manifests []byte, args ...string) []byte {
	c.T.Helper()
	return c.Kubectl(manifests, append([]string{"apply", "--server-side", "--field-manager=e2e", "-f", "-"}, args...)...)
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
	data, err := json.Marshal(patch)
	if err != nil {
		c.T.Fatal(err)
	}
	_, err = c.client.Resource(r).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
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

// Writes returns "verb resource/name" for each write that a user made in a
// namespace since the beginning, dry runs left out, as the API server's audit
// log has them: what no later write can hide.
func (c *Cluster) Writes(user, namespace string) []string {
	c.T.Helper()
	data, err := os.ReadFile(c.audit)
	if err != nil {
		c.T.Fatal(err)
	}
	var writes []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var event struct {
			Verb       string
			RequestURI string
			User       struct{ Username string }
			ObjectRef  struct{ Namespace, Resource, Subresource, Name string }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			c.T.Fatalf("parsing %s: %v", c.audit, err)
		}
		if event.User.Username != user || event.ObjectRef.Namespace != namespace || strings.Contains(event.RequestURI, "dryRun=All") {
			continue
		}
		writes = append(writes, event.Verb+" "+event.ObjectRef.Resource+"/"+event.ObjectRef.Name)
	}
	return slices.Clip(writes)
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
	if u == nil {
		return nil
	}
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return nil
	}
	var images []string
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok {
			s, _ := m["image"].(string)
			images = append(images, s)
		}
	}
	return images
}
