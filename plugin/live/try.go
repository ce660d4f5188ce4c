package live

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// The operations of a Trial.
const (
	Create = "CREATE"
	Update = "UPDATE"
)

// Trial is what a server-side dry run of one object gave.
type Trial struct {
	Resource  schema.GroupVersionResource
	Namespace string         // empty: the kind has none
	Operation string         // Create, or Update if the object is there
	Live      map[string]any // what is there; nil if nothing is
	Stored    map[string]any // what the API server would store; nil if it refused
	// Merged: the API server takes no whole new object of this kind, so that
	// ours was applied server-side, and Stored holds what others manage too.
	Merged   bool
	Warnings []string
}

// Try dry-runs an object: a creation, or, if it is there, the replacement of
// what is there. The object names its namespace if it has one. Nothing is
// stored. A refusal is an error for which Answered is true.
func (c *Cluster) Try(ctx context.Context, object map[string]any) (Trial, error) {
	u := &unstructured.Unstructured{Object: object}
	gvr, namespaced, err := c.Resource(ctx, u.GetAPIVersion(), u.GetKind())
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Resource: gvr, Operation: Create}
	client := dynamic.ResourceInterface(c.client.Resource(gvr))
	if namespaced {
		t.Namespace = u.GetNamespace()
		client = c.client.Resource(gvr).Namespace(t.Namespace)
	} else if u.GetNamespace() != "" { // a custom kind, of which only the API server knows
		u = u.DeepCopy()
		u.SetNamespace("")
	}
	if u.GetName() != "" {
		there, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return t, fmt.Errorf("reading what is there: %w", err)
		default:
			t.Operation = Update
			if t.Live, err = tree(there); err != nil {
				return t, err
			}
		}
	}
	ctx, warned := withWarnings(ctx)
	stored, err := t.run(ctx, client, u)
	t.Warnings = warned.all()
	if err != nil {
		return t, err
	}
	t.Stored, err = tree(stored)
	return t, err
}

func (t *Trial) run(ctx context.Context, client dynamic.ResourceInterface, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if t.Operation == Create {
		return client.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, FieldValidation: metav1.FieldValidationIgnore})
	}
	next := u.DeepCopy()
	next.SetResourceVersion((&unstructured.Unstructured{Object: t.Live}).GetResourceVersion())
	stored, err := client.Update(ctx, next, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, FieldValidation: metav1.FieldValidationIgnore})
	if !apierrors.IsInvalid(err) {
		return stored, err
	}
	// A field that the cluster filled in for good, such as a Job's selector,
	// cannot be left out of a whole new object.
	t.Merged = true
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	yes := true
	return client.Patch(ctx, u.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager, Force: &yes, FieldValidation: metav1.FieldValidationIgnore})
}

// Probe dry-runs the creation of an object and returns the API server's
// warnings. A refusal is an error for which Answered is true.
func (c *Cluster) Probe(ctx context.Context, gvr schema.GroupVersionResource, object map[string]any) ([]string, error) {
	u := &unstructured.Unstructured{Object: object}
	ctx, warned := withWarnings(ctx)
	_, err := c.client.Resource(gvr).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	return warned.all(), err
}
