package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/plugin/offswitch"
)

// configMaps is where the off-switches are kept.
var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// attempts is how often a write is tried anew when somebody else's came first.
const attempts = 5

// SetSwitch puts one off-switch into the ConfigMap syncgate-off of the gate's
// namespace, which it makes if there is none; one for the same target is
// replaced.
func (c *Cluster) SetSwitch(ctx context.Context, gateNamespace string, s offswitch.Switch, now time.Time) error {
	value, err := s.Encode(now)
	if err != nil {
		return err
	}
	return c.writeSwitch(ctx, gateNamespace, s.Key(), &value)
}

// ErrNoSwitch says that there is no off-switch for a target.
var ErrNoSwitch = errors.New("there is no such off-switch")

// RemoveSwitch takes the off-switch of a target out of the ConfigMap. The error
// is ErrNoSwitch if there is none.
func (c *Cluster) RemoveSwitch(ctx context.Context, gateNamespace string, s offswitch.Switch) error {
	return c.writeSwitch(ctx, gateNamespace, s.Key(), nil)
}

// writeSwitch changes one key, so that two people do not undo each other's
// switches; nil removes it.
func (c *Cluster) writeSwitch(ctx context.Context, namespace, key string, value *string) error {
	var err error
	for range attempts {
		err = c.tryWrite(ctx, namespace, key, value)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

func (c *Cluster) tryWrite(ctx context.Context, namespace, key string, value *string) error {
	client := c.client.Resource(configMaps).Namespace(namespace)
	there, err := client.Get(ctx, offswitch.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if value == nil {
			return ErrNoSwitch
		}
		_, err = client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": offswitch.ConfigMap, "namespace": namespace},
			"data":     map[string]any{key: *value},
		}}, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	}
	if err != nil {
		return err
	}
	data, _, err := unstructured.NestedStringMap(there.Object, "data")
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, offswitch.ConfigMap, err)
	}
	if _, is := data[key]; value == nil && !is {
		return ErrNoSwitch
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": there.GetResourceVersion()},
		"data":     map[string]any{key: value},
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, offswitch.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err
}

// KeptSwitch is one entry of the ConfigMap. Problem says why the webhook does
// not go by it; empty if it does.
type KeptSwitch struct {
	Key string
	offswitch.Switch
	Problem string
}

// Switches returns the off-switches that are kept, by key, those that have
// ended and those that are wrong among them.
func (c *Cluster) Switches(ctx context.Context, gateNamespace string, now time.Time) ([]KeptSwitch, error) {
	there, err := c.client.Resource(configMaps).Namespace(gateNamespace).Get(ctx, offswitch.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, _, err := unstructured.NestedStringMap(there.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", gateNamespace, offswitch.ConfigMap, err)
	}
	var out []KeptSwitch
	for _, key := range slices.Sorted(maps.Keys(data)) {
		k := KeptSwitch{Key: key}
		k.Switch, err = offswitch.Decode([]byte(data[key]))
		if err == nil {
			err = k.Check(now)
		}
		if err == nil && k.Switch.Key() != key {
			err = fmt.Errorf("it is for %s", k.Switch.Key())
		}
		if err != nil {
			k.Problem = err.Error()
		}
		out = append(out, k)
	}
	return out, nil
}
