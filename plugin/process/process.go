// Package process is what the controllers of one syncgate-controller share: the
// connection to the cluster, the lease, the policy, which is loaded again when
// its files change, and the ports for metrics and probes. Which controllers run
// is for the caller: each adds itself to the process.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/syncgate/syncgate/plugin/policy"
)

// Options of a process.
type Options struct {
	Policy         string // the policy file; the others are beside it
	LeaderElection bool
	LeaseNamespace string // where nobody but administrators writes
	MetricsListen  string // plain HTTP; "0": none
	ProbesListen   string
	Poll           time.Duration // how often files are looked at; 0: every two seconds
	Log            *slog.Logger

	Scheme   *runtime.Scheme                  // with the types that the controllers read
	Cache    map[client.Object]cache.ByObject // what is watched where; others in all namespaces
	Uncached []client.Object                  // types that the client reads from the API server
}

const pollInterval = 2 * time.Second

// Process is a manager with a policy.
type Process struct {
	manager.Manager
	Policy *policy.Loader
	Log    *slog.Logger

	poll    time.Duration
	changed []chan struct{}
	failed  prometheus.Gauge
	loaded  *prometheus.GaugeVec
}

// New connects to a cluster and loads the policy. One that does not load is an
// error.
func New(config *rest.Config, o Options) (*Process, error) {
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	loader, err := policy.NewLoader(o.Policy)
	if err != nil {
		return nil, fmt.Errorf("loading the policy: %w", err)
	}
	options := manager.Options{
		Scheme:                 o.Scheme,
		Cache:                  cache.Options{ByObject: o.Cache},
		Client:                 client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: o.Uncached}},
		Metrics:                server.Options{BindAddress: o.MetricsListen},
		HealthProbeBindAddress: o.ProbesListen,
	}
	if o.LeaderElection {
		lock, err := newLease(config, o.LeaseNamespace)
		if err != nil {
			return nil, err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface, options.LeaderElectionReleaseOnCancel = true, lock, true
		config = lock.fence(config)
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("starting: %w", err)
	}
	p := &Process{
		Manager: mgr, Policy: loader, Log: o.Log, poll: cmp.Or(o.Poll, pollInterval),
		failed: prometheus.NewGauge(prometheus.GaugeOpts{Name: "syncgate_reload_failed",
			Help: "1 while the newest policy, keys or revocations cannot be loaded and older ones are gone by."}),
		loaded: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "syncgate_policy_info",
			Help: "1 for the policy that is gone by, by the hash of all its files."}, []string{"hash"}),
	}
	return p, errors.Join(
		metrics.Registry.Register(p.failed), metrics.Registry.Register(p.loaded),
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
		mgr.Add(always(p.watchPolicy)),
	)
}

// always runs whether this process leads or not: one that begins to lead must
// not judge by a policy of long ago.
type always func(context.Context) error

// Start runs until ctx ends.
func (f always) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says that it does not wait.
func (always) NeedLeaderElection() bool { return false }

// Changed returns a channel that has something when another policy is in force
// than before. It is for one reader, and asked for before Start.
func (p *Process) Changed() <-chan struct{} {
	c := make(chan struct{}, 1)
	p.changed = append(p.changed, c)
	return c
}

// Start runs the controllers until ctx ends.
func (p *Process) Start(ctx context.Context) error {
	current, _ := p.Policy.Policy()
	p.Log.Info("loaded", "policy", current.Hash(), "environments", current.Environments())
	return p.Manager.Start(ctx)
}

func (p *Process) watchPolicy(ctx context.Context) error {
	tick := time.NewTicker(p.poll)
	defer tick.Stop()
	said := ""
	for {
		current, failed := p.Policy.Policy()
		p.show(current, failed)
		text := ""
		if failed != nil {
			text = failed.Error()
		}
		if text != said && text != "" {
			p.Log.Error("not loaded; what was loaded before is gone by", "error", text)
		}
		said = text
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !p.Policy.Reload() {
			continue
		}
		current, _ = p.Policy.Policy()
		p.Log.Info("loaded", "policy", current.Hash())
		for _, c := range p.changed {
			select {
			case c <- struct{}{}:
			default: // it has not read the last one
			}
		}
	}
}

func (p *Process) show(current *policy.Policy, failed error) {
	p.failed.Set(0)
	if failed != nil {
		p.failed.Set(1)
	}
	p.loaded.Reset()
	p.loaded.WithLabelValues(current.Hash()).Set(1)
}
