package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/artifact/storage"
	"github.com/fluxcd/pkg/runtime/events"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Reconciler gates Kustomizations, one at a time.
type Reconciler struct {
	Client  client.Client // ConfigMaps, Secrets and Kustomizations not from a cache
	Cache   client.Reader // Kustomizations, as raw trees
	Events  events.Recorder
	Loader  *policy.Loader
	Fetcher *artifact.Fetcher
	Storage *storage.Storage // nil: no artifact mode
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time

	Off                string // directory of the off-switches; empty: none
	Environment        string
	FluxNamespace      string
	CrossNamespaceRefs bool // sources of other namespaces may be built

	memory *memory
}

const (
	// anew is how long a verdict counts while nothing changes: receipts begin to
	// count, and variables change, without an event here.
	anew = 10 * time.Minute
	// soon is when something is tried again that was not to be had.
	soon = 5 * time.Second
)

// Reconcile brings a Kustomization to what is so now.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	start := r.Now()
	u := kustomization()
	if err := r.Cache.Get(ctx, req.NamespacedName, u); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if !u.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil // what the gate wrote for it goes with it
	}
	s := read(u, r.FluxNamespace)
	if s.mode == application.Plain {
		return ctrl.Result{}, r.release(ctx, s)
	}
	o, err := r.outcome(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.enforce(ctx, s, o)
	if errors.Is(err, errLost) {
		r.memory.doubt(req.NamespacedName)
		if o, err = r.outcome(ctx, s); err != nil {
			return ctrl.Result{}, err
		}
		err = r.enforce(ctx, s, o)
	}
	if err == nil {
		r.memory.published(req.NamespacedName)
	}
	err = errors.Join(err, r.report(ctx, s, r.goesOn(s, r.anyway(s, o))))
	r.Metrics.Durations.RecordDuration(reference(s), start)
	if err != nil {
		return ctrl.Result{}, err
	}
	if o.again {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return ctrl.Result{RequeueAfter: anew + time.Duration(rand.Int64N(int64(anew/10)))}, nil
}

// outcome returns what is remembered if nothing has changed, else judges.
func (r *Reconciler) outcome(ctx context.Context, s subject) (outcome, error) {
	key := client.ObjectKeyFromObject(s)
	p, _ := r.Loader.Policy()
	if s.wrong != nil {
		return refused(s.wrong), nil
	}
	if s.mode == application.Artifact && r.Storage == nil {
		return refused(app.Refuse(gate.PolicyInvalid, "the gate has no storage: artifact mode is off (--storage-path)")), nil
	}
	if !r.CrossNamespaceRefs && s.source().Namespace != s.GetNamespace() {
		return refused(foreign(s)), nil
	}
	from, err := r.artifactOf(ctx, s.source())
	if errors.Is(err, errNotReady) {
		return unavailable(notReadyReason, err), nil
	}
	if err != nil {
		return outcome{}, err
	}
	off := r.switched(s)
	follows, err := r.followsFrom(ctx, s, p, from, off)
	var refusal *app.Refusal
	if errors.As(err, &refusal) {
		return refused(err), nil
	}
	if err != nil {
		return outcome{}, err
	}
	if o, ok := r.memory.get(key, follows, r.Now()); ok {
		return o, nil
	}
	start := time.Now()
	o, err := r.judge(ctx, s, p, from, off)
	if err != nil {
		return outcome{}, err
	}
	r.Metrics.seconds.Observe(time.Since(start).Seconds())
	r.Metrics.verdicts.WithLabelValues(o.reason).Inc()
	o.revision, o.origin, o.digest = from.Revision, origin(from), from.Digest
	if o.reason == approvedReason {
		o.sentence = fmt.Sprintf("%s: %s", o.origin, o.sentence)
	}
	r.Log.Info("judged", "kustomization", key.String(), "mode", s.mode, "revision", o.revision, "approved", o.approved, "reason", o.reason, "took", time.Since(start).Round(time.Millisecond).String())
	if !o.again {
		r.memory.put(key, follows, o, r.Now().Add(anew))
	}
	return o, nil
}

// followsFrom names all that a verdict follows from, but for the time.
func (r *Reconciler) followsFrom(ctx context.Context, s subject, p *policy.Policy, from *meta.Artifact, off switched) (string, error) {
	parts := []any{string(s.GetUID()), s.Object["spec"], s.GetAnnotations(), s.GetLabels(), from.URL, from.Digest, from.Revision, p.Hash(), off.key()}
	for _, v := range s.variables() {
		_, version, err := r.variablesFrom(ctx, s.GetNamespace(), v.Kind, v.Name)
		if err != nil {
			return "", err
		}
		parts = append(parts, v.Kind, v.Name, version)
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("encoding the Kustomization: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// enforce makes the cluster hold what the outcome allows, and nothing else.
func (r *Reconciler) enforce(ctx context.Context, s subject, o outcome) error {
	if s.own == "" {
		return nil // there is no name for it, and so nothing of the gate
	}
	if s.mode == application.Artifact {
		if r.Storage == nil {
			return nil
		}
		return r.publish(ctx, s, o)
	}
	if o.approved {
		return r.give(ctx, s, o.values)
	}
	return r.withdraw(ctx, s)
}

// release lets go of a Kustomization that is not gated, or not any more.
func (r *Reconciler) release(ctx context.Context, s subject) error {
	key := client.ObjectKeyFromObject(s)
	if !marked(s) {
		return nil
	}
	r.Metrics.forget(s.GetNamespace(), s.GetName())
	r.memory.forget(key)
	return errors.Join(r.withdraw(ctx, s), r.unpublish(ctx, s), r.unmark(ctx, s))
}

// forget ends what is kept of a Kustomization that is gone.
func (r *Reconciler) forget(key client.ObjectKey) error {
	r.Metrics.forget(key.Namespace, key.Name)
	r.memory.forget(key)
	return r.discard(key)
}
