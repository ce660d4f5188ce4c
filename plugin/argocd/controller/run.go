package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/syncgate/syncgate/plugin/process"
)

// Options of the controller.
type Options struct {
	Environment   string   // as --environment of the plugin; empty: what policy says
	ArgoNamespace string   // where Argo CD is
	Namespaces    []string // others with Applications ("apps in any namespace")
	Projects      []string // globs over the gated ones; empty: all but the gate's own

	Settle time.Duration // how long after a change a sidecar may still see what was before
	Rate   float64       // refreshes a second
	Burst  int
}

const (
	// between sweeps, however much happens: one is a walk over all Applications.
	between = time.Second
	// off-switches end, and ConfigMaps are changed, without an event here.
	regularly = 30 * time.Second
)

// Cache is what the controller watches: Applications in some namespaces.
func (o Options) Cache() map[client.Object]cache.ByObject {
	watched := map[string]cache.Config{o.ArgoNamespace: {}}
	for _, ns := range o.Namespaces {
		watched[ns] = cache.Config{}
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(applicationKind)
	return map[client.Object]cache.ByObject{u: {Namespaces: watched}}
}

// Add makes the controller a part of a process, whose cache is to have
// [Options.Cache].
func Add(p *process.Process, o Options) error {
	m, err := NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	c := &Controller{
		Client: p.GetClient(), Reader: p.GetAPIReader(), Events: p.GetEventRecorder("syncgate-controller"),
		Loader: p.Policy, Metrics: m, Log: p.Log, Now: time.Now,
		ArgoNamespace: o.ArgoNamespace, Environment: o.Environment, Projects: o.Projects, Settle: o.Settle,
		pace: newPacer(o.Rate, o.Burst),
	}
	return c.setUp(p)
}

// setUp adds what runs only in the controller that leads.
func (c *Controller) setUp(p *process.Process) error {
	changed := make(chan event.GenericEvent)
	application := &unstructured.Unstructured{}
	application.SetGroupVersionKind(applicationKind)
	all := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	err := ctrl.NewControllerManagedBy(p).Named("applications").
		Watches(application, handler.EnqueueRequestsFromMapFunc(all)).
		WatchesRawSource(source.Channel(changed, handler.EnqueueRequestsFromMapFunc(all))).
		Complete(c.reconciler())
	if err != nil {
		return fmt.Errorf("watching Applications: %w", err)
	}
	news := p.Changed()
	err = p.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-news:
			}
			select {
			case <-ctx.Done():
				return nil
			case changed <- event.GenericEvent{Object: &unstructured.Unstructured{}}:
			}
		}
	}))
	if err != nil {
		return err
	}
	return p.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.pace.run(ctx, c.Refresh)
		return nil
	}))
}

// reconciler sweeps at most once in a while, and at least once in a while.
func (c *Controller) reconciler() reconcile.Func {
	var last time.Time
	return func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if wait := between - time.Since(last); wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		err := c.Sweep(ctx)
		last = time.Now()
		return reconcile.Result{RequeueAfter: regularly}, err
	}
}
