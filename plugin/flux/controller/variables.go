package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
)

// look reads what variables come from, as kustomize-controller does: from the
// API server, never from a cache. A Secret needs a right that the gate is not
// installed with.
func (r *Reconciler) look(s subject) application.Lookup {
	return func(ctx context.Context, kind, name string) (map[string]string, bool, error) {
		data, _, err := r.variablesFrom(ctx, s.GetNamespace(), kind, name)
		return data, data != nil, err
	}
}

// variablesFrom returns the data of a ConfigMap or Secret, nil if there is none,
// and its version.
func (r *Reconciler) variablesFrom(ctx context.Context, namespace, kind, name string) (map[string]string, string, error) {
	data := map[string]string{}
	var object client.Object
	cm, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	switch kind {
	case "ConfigMap":
		object = cm
	case "Secret":
		object = secret
	default:
		return nil, "", nil // Flux passes it over
	}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		refusal := app.Refuse(gate.RenderFailed, "postBuild.substituteFrom names the %s %s/%s, which the gate may not read", kind, namespace, name)
		refusal.Sentence.Fix = "give the gate's service account the right to get it by a Role, or take the values from a ConfigMap"
		return nil, "", refusal
	case err != nil:
		return nil, "", fmt.Errorf("reading %s %s/%s: %w", kind, namespace, name, err)
	}
	for k, v := range cm.Data {
		data[k] = v
	}
	for k, v := range secret.Data {
		data[k] = string(v)
	}
	return data, object.GetResourceVersion(), nil
}
