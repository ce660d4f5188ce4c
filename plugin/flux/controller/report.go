package controller

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/patch"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/plugin/flux/hook"
)

// said is what was last told of a Kustomization.
type said struct{ revision, sentence string }

// report says what became of a Kustomization: in its condition and, if that is
// news, in an event and a notification.
func (r *Reconciler) report(ctx context.Context, s subject, o outcome) error {
	value := 0.0
	if o.approved {
		value = 1
	}
	r.Metrics.approved.WithLabelValues(s.GetNamespace(), s.GetName(), string(s.mode)).Set(value)
	k, err := typed(s)
	if err != nil {
		return err
	}
	before := conditions.Get(k, hook.Condition)
	if err := r.mark(ctx, k, o); err != nil {
		return fmt.Errorf("writing the condition: %w", err)
	}
	key := types.NamespacedName{Namespace: s.GetNamespace(), Name: s.GetName()}
	last, known := r.memory.told(key)
	now := said{o.origin, o.sentence}
	r.memory.tell(key, now)
	if last == now || !known && before != nil && before.Message == o.sentence { // told before a restart
		return nil
	}
	if o.again { // no verdict: the commit has none yet
		return nil
	}
	r.event(s, o)
	return nil
}

// typed is the Kustomization as Flux's own type, for what patches its
// conditions.
func typed(s subject) (*kustomizev1.Kustomization, error) {
	k := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Object, k); err != nil {
		return nil, fmt.Errorf("decoding the Kustomization: %w", err)
	}
	return k, nil
}

// mark sets the condition, by a patch that leaves all others to Flux.
func (r *Reconciler) mark(ctx context.Context, k *kustomizev1.Kustomization, o outcome) error {
	helper, err := patch.NewHelper(k, r.Client)
	if err != nil {
		return err
	}
	status := metav1.ConditionFalse
	switch {
	case o.approved:
		status = metav1.ConditionTrue
	case o.again:
		status = metav1.ConditionUnknown
	}
	conditions.Set(k, &metav1.Condition{Type: hook.Condition, Status: status, Reason: o.reason, Message: o.sentence})
	return helper.Patch(ctx, k, patch.WithOwnedConditions{Conditions: []string{hook.Condition}}, patch.WithFieldOwner(fieldOwner))
}

// fieldOwner is the gate in managedFields.
const fieldOwner = "syncgate-controller"

// unmark takes the condition away from a Kustomization that is not gated any
// more.
func (r *Reconciler) unmark(ctx context.Context, s subject) error {
	k, err := typed(s)
	if err != nil || !conditions.Has(k, hook.Condition) {
		return err
	}
	helper, err := patch.NewHelper(k, r.Client)
	if err != nil {
		return err
	}
	conditions.Delete(k, hook.Condition)
	return helper.Patch(ctx, k, patch.WithOwnedConditions{Conditions: []string{hook.Condition}}, patch.WithFieldOwner(fieldOwner))
}

// event tells the Kustomization's events, and notification-controller. Without
// commit_status the latter would keep failures from the status of the commit.
func (r *Reconciler) event(s subject, o outcome) {
	group := kustomizev1.GroupVersion.Group + "/"
	metadata := map[string]string{group + eventv1.MetaCommitStatusKey: eventv1.MetaCommitStatusUpdateValue}
	if o.revision != "" {
		metadata[group+eventv1.MetaRevisionKey] = o.revision
	}
	if o.origin != "" && o.origin != o.revision {
		metadata[group+eventv1.MetaOriginRevisionKey] = o.origin
	}
	kind := corev1.EventTypeWarning
	if o.reason == approvedReason {
		kind = corev1.EventTypeNormal
	}
	r.Events.AnnotatedEventf(s.Unstructured, nil, metadata, kind, o.reason, "Approve", "%s", o.sentence)
}

// reference is how Flux's metrics name an object.
func reference(s subject) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: kustomizev1.KustomizationKind, Namespace: s.GetNamespace(), Name: s.GetName()}
}
