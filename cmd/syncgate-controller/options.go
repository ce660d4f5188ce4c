package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	argocd "github.com/syncgate/syncgate/plugin/argocd/controller"
	flux "github.com/syncgate/syncgate/plugin/flux/controller"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/process"
)

// options are what the command line says.
type options struct {
	process    process.Options
	argocd     argocd.Options
	flux       flux.Options
	argocdOn   bool
	fluxOn     bool
	kubeconfig string
}

func parse(args []string) (o options, err error) {
	f := pflag.NewFlagSet("syncgate-controller", pflag.ContinueOnError)
	var environment string
	f.StringVar(&o.process.Policy, "policy", "/etc/syncgate/policy.yaml", "policy file; key sets and the revocation list that it names are beside it")
	f.StringVar(&environment, "environment", "", "which of the policy's environments all Applications and Kustomizations are in, if the plugin is told so")
	f.BoolVar(&o.process.LeaderElection, "leader-elect", true, "of several controllers only one acts")
	f.StringVar(&o.process.LeaseNamespace, "lease-namespace", "", "namespace of the lease (default: Argo CD's, or Flux's if Argo CD is left out)")
	f.StringVar(&o.process.MetricsListen, "metrics-listen", ":8080", "address for metrics (plain HTTP); 0 for none")
	f.StringVar(&o.process.ProbesListen, "probes-listen", ":8081", "address for probes (plain HTTP); 0 for none")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file with the cluster's address and credentials (default: the Pod's)")

	f.BoolVar(&o.argocdOn, "argocd", true, "look after Argo CD's Applications")
	f.StringVar(&o.argocd.ArgoNamespace, "argocd-namespace", "argocd", "namespace of Argo CD, in which the ConfigMaps are")
	f.StringSliceVar(&o.argocd.Namespaces, "application-namespaces", nil, "other namespaces with Applications")
	f.StringSliceVar(&o.argocd.Projects, "projects", nil, "projects (globs) in which every source is meant to name the plugin (default: all but the gate's own, syncgate)")
	f.DurationVar(&o.argocd.Settle, "settle", 2*time.Minute, "how long a sidecar may still see an old ConfigMap: no refresh is asked for sooner after a change")
	f.Float64Var(&o.argocd.Rate, "refresh-rate", 1, "hard refreshes a second")
	f.IntVar(&o.argocd.Burst, "refresh-burst", 5, "hard refreshes that may come at once")

	f.BoolVar(&o.fluxOn, "flux", false, "gate Flux's Kustomizations")
	o.flux.BindFlags(f)
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.argocd.Environment, o.flux.Environment = environment, environment
	if o.process.LeaseNamespace == "" {
		o.process.LeaseNamespace = o.flux.FluxNamespace
		if o.argocdOn {
			o.process.LeaseNamespace = o.argocd.ArgoNamespace
		}
	}
	return o, cmp.Or(o.check(f), o.flux.Check())
}

func (o options) check(f *pflag.FlagSet) error {
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case !o.argocdOn && !o.fluxOn:
		return errors.New("--argocd=false without --flux: nothing is left to do")
	case o.argocd.Settle < 0 || o.argocd.Settle > time.Hour:
		return fmt.Errorf("--settle %s: want 0s to 1h", o.argocd.Settle)
	case o.argocd.Rate <= 0 || o.argocd.Burst < 1:
		return fmt.Errorf("--refresh-rate %v, --refresh-burst %d: want more than 0", o.argocd.Rate, o.argocd.Burst)
	}
	for _, g := range o.argocd.Projects {
		if _, err := gate.ParseGlob(g); err != nil {
			return fmt.Errorf("--projects: %w", err)
		}
	}
	return nil
}
