package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CreateObject makes an object; it names its namespace if it has one.
func (c *Cluster) CreateObject(ctx context.Context, gvr schema.GroupVersionResource, object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	_, err := c.client.Resource(gvr).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	return err
}

// UpdateObject replaces an object as it was read; the error is Conflict if
// somebody else has changed it since.
func (c *Cluster) UpdateObject(ctx context.Context, gvr schema.GroupVersionResource, object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	_, err := c.client.Resource(gvr).Namespace(u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
