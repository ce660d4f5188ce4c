package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
)

// publish makes the ExternalArtifact of a Kustomization say what was approved
// last, and nothing while its spec would make something else of that.
// kustomize-controller applies whatever its status says, ready or not: so nothing
// gets into it but what this process stored itself, and what somebody else wrote
// there is gone at once.
func (r *Reconciler) publish(ctx context.Context, s subject, o outcome) error {
	current, err := r.stored(s)
	if err != nil {
		return err
	}
	if current != nil && !o.approved {
		if current, err = r.newest(ctx, s, current); err != nil {
			return err
		}
	}
	if o.approved && (current == nil || current.Revision != publishedRevision(o)) {
		if o.manifests == nil {
			return errLost
		}
		if current, err = r.store(s, o); err != nil {
			return err
		}
	}
	if !o.approved && application.Alters(s.Object) {
		current = nil // it stays on the disk
	}
	ready := metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.SucceededReason, Message: o.sentence}
	if !o.approved {
		ready.Status, ready.Reason = metav1.ConditionFalse, o.reason
	}
	if err := r.show(ctx, s, current, ready); err != nil {
		return err
	}
	if current != nil {
		r.collect(ctx, *current)
	}
	return nil
}

// errLost says that what was published before is not on the disk any more, and
// has to be built once more.
var errLost = errors.New("what was published is gone from the disk")

// goesOn says what Flux applies while there is no verdict: in artifact mode what
// is published stays.
func (r *Reconciler) goesOn(s subject, o outcome) outcome {
	if s.mode != application.Artifact || !o.again {
		return o
	}
	if a, _ := r.memory.shown(client.ObjectKeyFromObject(s)); a != nil {
		o.sentence += gate.ASCII(fmt.Sprintf("; Flux goes on with %s, which was approved before", origin(a)))
	}
	return o
}

// newest is what was approved last, by this disk, or nothing if something was
// published after it: by another gate, before this one took over with a disk of
// its own, or before the disk was put back from a copy. What was approved long
// ago may be revoked by now, and nobody asked to go back to it. Once this process
// has published something, whatever else is there is somebody's forgery.
func (r *Reconciler) newest(ctx context.Context, s subject, current *meta.Artifact) (*meta.Artifact, error) {
	key := client.ObjectKeyFromObject(s)
	if _, known := r.memory.shown(key); known {
		return current, nil
	}
	have := &sourcev1.ExternalArtifact{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.GetNamespace(), Name: s.own}, have)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ExternalArtifact %s: %w", s.own, err)
	}
	if a := have.Status.Artifact; err != nil || a == nil || a.Revision == current.Revision || !a.LastUpdateTime.After(current.LastUpdateTime.Time) {
		r.memory.show(key, have.Status.Artifact)
		return current, nil
	}
	r.Log.Warn("something was published after what this disk has; it is not gone back to", "kustomization", key.String(), "published", have.Status.Artifact.Revision, "stored", current.Revision)
	return nil, r.discard(key)
}

// publishedRevision is another one whenever the bytes are, or the revision that
// a person knows: kustomize-controller looks at nothing else.
func publishedRevision(o outcome) string { return o.origin + "@sha256:" + o.content }

// store makes the archive of what was approved, and notes it as such.
func (r *Reconciler) store(s subject, o outcome) (*meta.Artifact, error) {
	dir, err := os.MkdirTemp("", "syncgate-publish-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := o.write(dir); err != nil {
		return nil, err
	}
	a := r.Storage.NewArtifactFor(sourcev1.ExternalArtifactKind, &metav1.ObjectMeta{Namespace: s.GetNamespace(), Name: s.own}, publishedRevision(o), o.content+".tar.gz")
	a.Metadata = map[string]string{originKey: o.origin}
	if err := r.Storage.MkdirAll(a); err != nil {
		return nil, fmt.Errorf("storing an artifact: %w", err)
	}
	unlock, err := r.Storage.Lock(a)
	if err != nil {
		return nil, fmt.Errorf("storing an artifact: %w", err)
	}
	defer unlock()
	if err := r.Storage.Archive(&a, dir, nil); err != nil {
		return nil, fmt.Errorf("storing an artifact: %w", err)
	}
	a.LastUpdateTime = metav1.NewTime(r.Now().Truncate(time.Second)) // as the API server keeps it
	if err := r.record(s, a); err != nil {
		return nil, err
	}
	r.Log.Info("stored", "kustomization", client.ObjectKeyFromObject(s).String(), "revision", a.Revision, "digest", a.Digest)
	return &a, nil
}

// show makes the ExternalArtifact say that current (nil: nothing) is what was
// approved, and ready why that is not the newest.
func (r *Reconciler) show(ctx context.Context, s subject, current *meta.Artifact, ready metav1.Condition) error {
	want := &sourcev1.ExternalArtifact{ObjectMeta: s.meta(nil), Spec: sourcev1.ExternalArtifactSpec{
		SourceRef: &meta.NamespacedObjectKindReference{
			APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind, Name: s.GetName(), Namespace: s.GetNamespace(),
		},
	}}
	have := &sourcev1.ExternalArtifact{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		have = want.DeepCopy()
		err = r.Client.Create(ctx, have)
		r.Metrics.writes.WithLabelValues("ExternalArtifact", "create").Inc()
	}
	if err != nil {
		return fmt.Errorf("writing ExternalArtifact %s: %w", s.own, err)
	}
	if !same(have, want) || !equality.Semantic.DeepEqual(have.Spec, want.Spec) {
		have = have.DeepCopy()
		labels := maps.Clone(have.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, want.Labels)
		have.Labels, have.OwnerReferences, have.Spec = labels, want.OwnerReferences, want.Spec
		if err := r.Client.Update(ctx, have); err != nil {
			return fmt.Errorf("writing ExternalArtifact %s: %w", s.own, err)
		}
		r.Metrics.writes.WithLabelValues("ExternalArtifact", "update").Inc()
	}
	return r.showStatus(ctx, s, have, current, ready)
}

func (r *Reconciler) showStatus(ctx context.Context, s subject, have *sourcev1.ExternalArtifact, current *meta.Artifact, ready metav1.Condition) error {
	want := have.DeepCopy()
	want.Status.Artifact = current
	if len(want.Status.Conditions) > 0 { // no others than the gate's
		kept := conditions.Get(want, meta.ReadyCondition)
		want.Status.Conditions = nil
		if kept != nil {
			want.Status.Conditions = []metav1.Condition{*kept}
		}
	}
	conditions.Set(want, &ready)
	if equality.Semantic.DeepEqual(have.Status, want.Status) {
		r.memory.show(client.ObjectKeyFromObject(s), current)
		return nil
	}
	if !equality.Semantic.DeepEqual(have.Status.Artifact, current) {
		r.differs(s, have.Status.Artifact)
	}
	// An update, not a patch: what is not in it is gone. A newer version than the
	// one that was read is a conflict, and looked at again.
	if err := r.Client.Status().Update(ctx, want); err != nil {
		return fmt.Errorf("writing the status of ExternalArtifact %s: %w", s.own, err)
	}
	r.Metrics.writes.WithLabelValues("ExternalArtifact", "status").Inc()
	r.memory.show(client.ObjectKeyFromObject(s), current)
	return nil
}

// differs notes that the status is none that this process wrote.
func (r *Reconciler) differs(s subject, a *meta.Artifact) {
	shown, known := r.memory.shown(client.ObjectKeyFromObject(s))
	if !known || equality.Semantic.DeepEqual(shown, a) {
		return
	}
	r.Metrics.repairs.WithLabelValues("status").Inc()
	r.Log.Warn("the status of an ExternalArtifact was not the gate's", "kustomization", client.ObjectKeyFromObject(s).String(), "found", a)
}

// unpublish takes the ExternalArtifact away from a Kustomization that is not
// gated any more.
func (r *Reconciler) unpublish(ctx context.Context, s subject) error {
	if r.Storage == nil {
		return nil
	}
	have := &sourcev1.ExternalArtifact{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.GetNamespace(), Name: s.own}, have)
	if err == nil {
		err = r.Client.Delete(ctx, have)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ExternalArtifact %s: %w", s.own, err)
	}
	return r.discard(client.ObjectKeyFromObject(s))
}
