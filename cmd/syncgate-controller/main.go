// Command syncgate-controller looks after what Argo CD and Flux deploy through
// the gate. For Argo CD it publishes what Applications ask of the gate in
// annotations, refreshes those whose cached render would be judged differently
// now, and says where the gate is not in the path (docs/argocd.md, Controller).
// For Flux it is the gate (docs/flux.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argocd "github.com/syncgate/syncgate/plugin/argocd/controller"
	flux "github.com/syncgate/syncgate/plugin/flux/controller"
	"github.com/syncgate/syncgate/plugin/process"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	o, err := parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "syncgate-controller:", err)
		os.Exit(2)
	}
	o.process.Log = log
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Error("ended", "error", err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	config, err := connect(o.kubeconfig)
	if err != nil {
		return err
	}
	// Beside what it does anyway, each refresh is two requests: with the client's
	// own limit --refresh-rate would be no more than a wish.
	config.QPS = float32(20 + 2*o.argocd.Rate)
	config.Burst = 30 + 2*o.argocd.Burst
	if o.fluxOn {
		// A push is a verdict of every Kustomization of the repository, and that five
		// requests. Flux's own controllers have limits like these.
		config.QPS += 100
		config.Burst += 300
	}
	o.process.Cache = map[client.Object]cache.ByObject{}
	if o.argocdOn {
		maps.Copy(o.process.Cache, o.argocd.Cache())
	}
	if o.fluxOn {
		maps.Copy(o.process.Cache, o.flux.Cache())
		o.process.Uncached = o.flux.Uncached()
	}
	if o.process.Scheme, err = flux.Scheme(); err != nil {
		return err
	}
	p, err := process.New(config, o.process)
	if err != nil {
		return err
	}
	if o.argocdOn {
		if err := argocd.Add(p, o.argocd); err != nil {
			return err
		}
	}
	if o.fluxOn {
		if err := flux.Add(ctx, p, o.flux); err != nil {
			return err
		}
	}
	return p.Start(ctx)
}

// connect goes by the Pod's own account unless a file is named.
func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
