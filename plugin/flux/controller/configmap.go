package controller

import (
	"context"
	"fmt"
	"maps"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managedLabel is on what the gate writes.
const (
	managedLabel = "app.kubernetes.io/managed-by"
	managedBy    = "syncgate"
)

// owners makes an object go when its Kustomization goes.
func (s subject) owners() []metav1.OwnerReference {
	yes, no := true, false
	return []metav1.OwnerReference{{
		APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind,
		Name: s.GetName(), UID: s.GetUID(), Controller: &yes, BlockOwnerDeletion: &no,
	}}
}

// meta is the metadata of what the gate writes for the Kustomization.
func (s subject) meta(labels map[string]string) metav1.ObjectMeta {
	all := map[string]string{managedLabel: managedBy}
	maps.Copy(all, labels)
	return metav1.ObjectMeta{Namespace: s.GetNamespace(), Name: s.own, Labels: all, OwnerReferences: s.owners()}
}

// give makes the ConfigMap of the Kustomization hold exactly data, whatever
// somebody else made of it.
func (r *Reconciler) give(ctx context.Context, s subject, data map[string]string) error {
	want := &corev1.ConfigMap{ObjectMeta: s.meta(map[string]string{watchLabel: watchEnabled}), Data: data}
	have := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Client.Create(ctx, want); err != nil {
			return fmt.Errorf("writing ConfigMap %s: %w", s.own, err)
		}
		r.Metrics.writes.WithLabelValues("ConfigMap", "create").Inc()
		return nil
	case err != nil:
		return fmt.Errorf("reading ConfigMap %s: %w", s.own, err)
	}
	if maps.Equal(have.Data, want.Data) && len(have.BinaryData) == 0 && same(have, want) {
		return nil
	}
	if have.Immutable != nil && *have.Immutable { // not the gate's doing, and it cannot be changed
		return r.withdraw(ctx, s)
	}
	want.ResourceVersion = have.ResourceVersion
	if err := r.Client.Update(ctx, want); err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", s.own, err)
	}
	r.Metrics.writes.WithLabelValues("ConfigMap", "update").Inc()
	return nil
}

// same reports whether an object has the labels and owners that it is meant to.
func same(have, want client.Object) bool {
	for k, v := range want.GetLabels() {
		if have.GetLabels()[k] != v {
			return false
		}
	}
	return equality.Semantic.DeepEqual(have.GetOwnerReferences(), want.GetOwnerReferences())
}

// withdraw takes the ConfigMap of the Kustomization away, as a whole: Flux builds
// nothing without it, while a variable that is missing in it is an empty text to
// a kustomize-controller that is not strict.
func (r *Reconciler) withdraw(ctx context.Context, s subject) error {
	have := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.GetNamespace(), Name: s.own}, have)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", s.own, err)
	}
	if err := r.Client.Delete(ctx, have); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("withdrawing ConfigMap %s: %w", s.own, err)
	}
	r.Metrics.writes.WithLabelValues("ConfigMap", "delete").Inc()
	return nil
}
