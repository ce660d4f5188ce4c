// Command syncgate-controller looks after Argo CD's Applications: it publishes
// what they ask of the gate in annotations, refreshes those whose cached render
// would be judged differently now, and says where the gate is not in the path
// (docs/argocd.md, Controller).
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/syncgate/syncgate/plugin/argocd/controller"
	"github.com/syncgate/syncgate/plugin/gate"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	o, kubeconfig, err := options(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "syncgate-controller:", err)
		os.Exit(2)
	}
	o.Log = log
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	config, err := connect(kubeconfig)
	if err == nil {
		err = controller.Run(ctx, config, o)
	}
	if err != nil {
		log.Error("ended", "error", err.Error())
		os.Exit(1)
	}
}

// connect goes by the Pod's own account unless a file is named.
func connect(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

func options(args []string) (o controller.Options, kubeconfig string, err error) {
	f := pflag.NewFlagSet("syncgate-controller", pflag.ContinueOnError)
	f.StringVar(&o.Policy, "policy", "/etc/syncgate/policy.yaml", "policy file; key sets and the revocation list that it names are beside it")
	f.StringVar(&o.Environment, "environment", "", "which of the policy's environments all Applications are in, if the plugin is told so")
	f.StringVar(&o.ArgoNamespace, "argocd-namespace", "argocd", "namespace of Argo CD, in which the ConfigMaps are")
	f.StringSliceVar(&o.Namespaces, "application-namespaces", nil, "other namespaces with Applications")
	f.StringSliceVar(&o.Projects, "projects", nil, "projects (globs) in which every source is meant to name the plugin (default: all but the gate's own, syncgate)")
	f.DurationVar(&o.Settle, "settle", 2*time.Minute, "how long a sidecar may still see an old ConfigMap: no refresh is asked for sooner after a change")
	f.Float64Var(&o.Rate, "refresh-rate", 1, "hard refreshes a second")
	f.IntVar(&o.Burst, "refresh-burst", 5, "hard refreshes that may come at once")
	f.BoolVar(&o.LeaderElection, "leader-elect", true, "of several controllers only one acts")
	f.StringVar(&o.MetricsListen, "metrics-listen", ":8080", "address for metrics (plain HTTP); 0 for none")
	f.StringVar(&o.ProbesListen, "probes-listen", ":8081", "address for probes (plain HTTP); 0 for none")
	f.StringVar(&kubeconfig, "kubeconfig", "", "file with the cluster's address and credentials (default: the Pod's)")
	if err := f.Parse(args); err != nil {
		return o, "", err
	}
	switch {
	case f.NArg() > 0:
		return o, "", fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.Settle < 0 || o.Settle > time.Hour:
		return o, "", fmt.Errorf("--settle %s: want 0s to 1h", o.Settle)
	case o.Rate <= 0 || o.Burst < 1:
		return o, "", fmt.Errorf("--refresh-rate %v, --refresh-burst %d: want more than 0", o.Rate, o.Burst)
	}
	for _, g := range o.Projects {
		if _, err := gate.ParseGlob(g); err != nil {
			return o, "", fmt.Errorf("--projects: %w", err)
		}
	}
	return o, kubeconfig, nil
}
