package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/artifact/server"
	"github.com/fluxcd/pkg/artifact/storage"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/events"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/process"
)

// patience bounds one reconciliation.
const patience = 5 * time.Minute

// Add makes the controller a part of a process, whose cache and client are to be
// made with [Options.Cache] and [Options.Uncached].
func Add(ctx context.Context, p *process.Process, o Options) error {
	m, err := NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	recorder, err := record(p, o)
	if err != nil {
		return fmt.Errorf("preparing events: %w", err)
	}
	r := &Reconciler{
		Client: p.GetClient(), Cache: p.GetCache(), Events: recorder, Loader: p.Policy, Fetcher: artifact.New(artifact.Limits{}),
		Metrics: m, Log: p.Log, Now: time.Now,
		Off: o.Off, Environment: o.Environment, FluxNamespace: o.FluxNamespace, CrossNamespaceRefs: !o.NoCrossNamespaceRefs,
		memory: newMemory(),
	}
	if o.Storage.StoragePath != "" {
		if err := r.serve(p, o); err != nil {
			return err
		}
	}
	if err := p.Add(manager.RunnableFunc(r.tidy)); err != nil {
		return err
	}
	return r.watch(ctx, p, o)
}

// record returns what takes events, and sends them on if there is whom to.
func record(p *process.Process, o Options) (events.Recorder, error) {
	kube, err := events.NewRecorder(p.GetLogger(), "", fieldOwner, events.WithManager(p))
	if err != nil || o.EventsAddr == "" {
		return kube, err
	}
	out, err := events.NewRecorder(p.GetLogger(), o.EventsAddr, fieldOwner, events.WithScheme(p.GetScheme()))
	if err != nil {
		return nil, err
	}
	n := &notifier{kube: kube, out: out, queue: make(chan notice, maxNotices), log: p.Log}
	return n, p.Add(n)
}

// tidy removes what is kept of sources when the process ends.
func (r *Reconciler) tidy(ctx context.Context) error {
	<-ctx.Done()
	r.Fetcher.Close()
	return nil
}

// serve adds the server of artifacts. It serves where the controller leads, and
// only there is the process ready: that is how a Service finds it.
func (r *Reconciler) serve(p *process.Process, o Options) error {
	var err error
	if r.Storage, err = storage.New(&o.Storage); err != nil {
		return fmt.Errorf("opening the storage: %w", err)
	}
	leads := func(*http.Request) error {
		select {
		case <-p.Elected():
			return nil
		default:
			return errors.New("another one leads")
		}
	}
	return errors.Join(
		p.AddReadyzCheck("storage", leads),
		p.Add(manager.RunnableFunc(func(ctx context.Context) error { return server.Start(ctx, &o.Storage) })),
		p.Add(manager.RunnableFunc(r.sweep)),
	)
}

// Indexes of Kustomizations.
const (
	bySource    = ".source"
	byVariables = ".variables"
)

func (r *Reconciler) watch(ctx context.Context, p *process.Process, o Options) error {
	index := func(name string, of func(subject) []string) error {
		return p.GetFieldIndexer().IndexField(ctx, kustomization(), name, func(object client.Object) []string {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				return nil
			}
			if s := read(u, r.FluxNamespace); s.mode != application.Plain {
				return of(s)
			}
			return nil
		})
	}
	err := errors.Join(
		index(bySource, func(s subject) []string { return []string{indexed(s.source())} }),
		index(byVariables, func(s subject) []string {
			names := []string{s.own}
			for _, v := range s.variables() {
				if v.Kind == "ConfigMap" {
					names = append(names, v.Name)
				}
			}
			return names
		}),
	)
	if err != nil {
		return fmt.Errorf("indexing Kustomizations: %w", err)
	}
	changed := make(chan event.GenericEvent)
	if err := errors.Join(r.followPolicy(p, changed), r.followOff(p, changed)); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(p).Named("kustomizations").
		For(kustomization(), builder.WithPredicates(asksAnew)).
		Owns(&sourcev1.ExternalArtifact{}).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cm client.Object) []reconcile.Request {
			return r.having(ctx, byVariables, cm.GetName(), client.InNamespace(cm.GetNamespace()))
		})).
		WatchesRawSource(source.Channel(changed, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
			return r.all(ctx)
		}))).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrent, ReconciliationTimeout: patience})
	for _, kind := range sourceKinds {
		b = b.Watches(newSource(kind), handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			return r.having(ctx, bySource, indexed(application.Reference{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}))
		}), builder.WithPredicates(newArtifact))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("watching Kustomizations: %w", err)
	}
	return nil
}

// followPolicy passes on that another policy is in force.
func (r *Reconciler) followPolicy(p *process.Process, changed chan<- event.GenericEvent) error {
	news := p.Changed()
	return p.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-news:
			}
			select {
			case <-ctx.Done():
				return nil
			case changed <- event.GenericEvent{Object: kustomization()}:
			}
		}
	}))
}

// having returns the Kustomizations with a value in an index.
func (r *Reconciler) having(ctx context.Context, index, value string, more ...client.ListOption) []reconcile.Request {
	return r.list(ctx, append(more, client.MatchingFields{index: value})...)
}

// all returns every Kustomization that is gated.
func (r *Reconciler) all(ctx context.Context) []reconcile.Request { return r.list(ctx) }

func (r *Reconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind + "List"))
	if err := r.Cache.List(ctx, list, options...); err != nil {
		r.Log.Error("listing Kustomizations", "error", err.Error())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if u := &list.Items[i]; read(u, r.FluxNamespace).mode != application.Plain {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(u)})
		}
	}
	return out
}

// asksAnew passes over what Flux itself writes into the status of a
// Kustomization, many times for each revision, but that it has applied something
// else.
var asksAnew = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!equality.Semantic.DeepEqual(mark(before), mark(after)) || appliedElse(before, after)
}}

// appliedElse reports whether Flux has applied another content, or the same of
// another spec.
func appliedElse(before, after client.Object) bool {
	b, ok := before.(*unstructured.Unstructured)
	a, ok2 := after.(*unstructured.Unstructured)
	if !ok || !ok2 {
		return false
	}
	was, _, _ := unstructured.NestedInt64(b.Object, "status", "observedGeneration")
	is, _, _ := unstructured.NestedInt64(a.Object, "status", "observedGeneration")
	return was != is || !lastApplied(b).content(lastApplied(a))
}

// mark is the gate's condition on a Kustomization.
func mark(object client.Object) any {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return conditions.Get(conditions.UnstructuredGetter(u), hook.Condition)
}

// marked reports whether the gate has said anything of a Kustomization.
func marked(s subject) bool {
	return conditions.Has(conditions.UnstructuredGetter(s.Unstructured), hook.Condition)
}

// newArtifact passes over all of a source but its artifact.
var newArtifact = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(sourcev1.Source)
	after, ok2 := e.ObjectNew.(sourcev1.Source)
	return !ok || !ok2 || !equality.Semantic.DeepEqual(before.GetArtifact(), after.GetArtifact())
}}
