package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Options of a controller process.
type Options struct {
	Policy        string   // the policy file; the others are beside it
	Environment   string   // as --environment of the plugin; empty: what policy says
	ArgoNamespace string   // where Argo CD is
	Namespaces    []string // others with Applications ("apps in any namespace")
	Projects      []string // globs over the gated ones; empty: all but the gate's own

	Settle time.Duration // how long after a change a sidecar may still see what was before
	Rate   float64       // refreshes a second
	Burst  int

	LeaderElection bool
	MetricsListen  string // plain HTTP; "0": none
	ProbesListen   string
	Poll           time.Duration // how often files are looked at; 0: every two seconds
	Log            *slog.Logger
}

const (
	pollInterval = 2 * time.Second
	// between sweeps, however much happens: one is a walk over all Applications.
	between = time.Second
	// off-switches end, and ConfigMaps are changed, without an event here.
	regularly = 30 * time.Second
)

// Run runs the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	loader, err := NewLoader(o.Policy)
	if err != nil {
		return fmt.Errorf("loading the policy: %w", err)
	}
	m, err := NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	watched := map[string]cache.Config{o.ArgoNamespace: {}}
	for _, ns := range o.Namespaces {
		watched[ns] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{DefaultNamespaces: watched},
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                       server.Options{BindAddress: o.MetricsListen},
		HealthProbeBindAddress:        o.ProbesListen,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "syncgate-controller",
		LeaderElectionNamespace:       o.ArgoNamespace, // in its own nobody but administrators writes
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	c := &Controller{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("syncgate-controller"),
		Loader: loader, Metrics: m, Log: o.Log, Now: time.Now,
		ArgoNamespace: o.ArgoNamespace, Environment: o.Environment, Projects: o.Projects, Settle: o.Settle,
		pace: newPacer(o.Rate, o.Burst),
	}
	p, _ := loader.Policy()
	o.Log.Info("loaded", "policy", p.Hash(), "environments", p.Environments())
	if err := c.setUp(mgr, cmp.Or(o.Poll, pollInterval)); err != nil {
		return err
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping), mgr.Start(ctx))
}

// setUp adds what runs only in the controller that leads.
func (c *Controller) setUp(mgr manager.Manager, poll time.Duration) error {
	changed := make(chan event.GenericEvent, 1)
	application := &unstructured.Unstructured{}
	application.SetGroupVersionKind(applicationKind)
	all := func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }
	err := ctrl.NewControllerManagedBy(mgr).Named("applications").
		Watches(application, handler.EnqueueRequestsFromMapFunc(all)).
		WatchesRawSource(source.Channel(changed, handler.EnqueueRequestsFromMapFunc(all))).
		Complete(c.reconciler())
	if err != nil {
		return fmt.Errorf("watching Applications: %w", err)
	}
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.watchPolicy(ctx, poll, changed)
		return nil
	}))
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
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

func (c *Controller) watchPolicy(ctx context.Context, every time.Duration, changed chan<- event.GenericEvent) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		p, failed := c.Loader.Policy()
		c.Metrics.policy(p, failed)
		text := ""
		if failed != nil {
			text = failed.Error()
		}
		if text != said && text != "" {
			c.Log.Error("not loaded; what was loaded before is gone by", "error", text)
		}
		said = text
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.Loader.Reload() {
			continue
		}
		p, _ = c.Loader.Policy()
		c.Log.Info("loaded", "policy", p.Hash())
		select {
		case changed <- event.GenericEvent{Object: &unstructured.Unstructured{}}:
		case <-ctx.Done():
			return
		}
	}
}
