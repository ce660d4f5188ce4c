package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/live/doctor"
	"github.com/syncgate/syncgate/plugin/policy"
)

// pollInterval is how often --wait looks again.
const pollInterval = 2 * time.Second

// gap is a gate that does not hold. It is no refusal of a sync, but ends with
// the status of one.
type gap struct{ text string }

func (g *gap) Error() string { return g.text }

// doctorOptions are the flags of "syncgate doctor".
type doctorOptions struct {
	doctor.Options
	cluster        clusterFlags
	webhook, wait  bool
	argocd         bool
	argo           doctor.ArgoCD
	lookAtFlux     bool
	flux           doctor.Flux
	defaultAccount string
	timeout        time.Duration
	policy, output string

	projects, destinations []string
}

func newDoctor(version string) *cobra.Command {
	var o doctorOptions
	o.argo.Version = version
	c := &cobra.Command{
		Use:   "doctor --webhook | --argocd | --flux",
		Short: "Look at a live cluster: is the gate really in the path?",
		Long: `Doctor looks at a live cluster. With --webhook it passes only if the effective
configuration is that of the policy file at hand: the generated
ValidatingWebhookConfiguration as it would be printed now, no second one, the
API server's own policies (syncgate manifests policies) there, bound and
unchanged, and a webhook that the API server asks, of which every replica has loaded this policy
and the keys of --kid. It creates objects that need a receipt as server-side dry
runs, of which nothing is stored; the webhook's refusals say who answered.

It needs the right to list webhook configurations and admission policies with
their bindings, to read the webhook's Deployment, and to create Roles in one gated namespace. With --wait it looks
again until all is well, but for the policy's own word Warn, or the timeout is
over.

With --argocd it looks at an Argo CD instead: the sidecar is there, is of this
version, goes by this policy and is shown what Applications ask for; every source
of the gated projects names the plugin, and no operation, ignored difference,
other project or off-switch goes around it; Argo CD waits long enough, replaces
what it cached by a refusal, and hides no gated field; the policies (syncgate
manifests policies --argocd) are there, bound and unchanged. It needs the right to
list Applications, AppProjects and admission policies with their bindings, and to
read a Deployment and ConfigMaps in Argo CD's namespace.

With --flux it looks at a Flux: the gate for it runs, leads and goes by this
policy; every Kustomization that is gated goes through it, has no field that
changes what it approved, and asks for nothing that policy forbids; the gate has
looked at each, Flux has applied nothing that it refused, and what is published is
what it approved; a Kustomization in postBuild mode can give nobody rights across
the cluster that nobody judges; kustomize-controller builds from the gate's
artifacts where one is asked for; the policies (syncgate manifests
policies --flux, and that of manifests flux) are there, bound and unchanged, or
nobody else may write what it publishes; and the webhook's configuration is the
generated one where a Kustomization is in postBuild mode. It needs the right to
list Kustomizations, admission policies, roles and the bindings of both, and
webhook configurations, and to read Deployments, a Lease, ConfigMaps and
ExternalArtifacts.

It ends with status 10 if the gate is not in the path, and 30 if the
cluster cannot be asked.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	f := c.Flags()
	f.BoolVar(&o.webhook, "webhook", false, "look at the admission webhook")
	f.BoolVar(&o.argocd, "argocd", false, "look at an Argo CD")
	f.StringVar(&o.argo.ArgoNamespace, "argocd-namespace", "argocd", "argocd: its namespace")
	f.StringSliceVar(&o.argo.Namespaces, "application-namespaces", nil, "argocd: other namespaces with Applications")
	f.StringVar(&o.argo.RepoServer, "repo-server", "argocd-repo-server", "argocd: the Deployment with the sidecar")
	f.StringSliceVar(&o.projects, "projects", nil, "argocd: the gated projects, as for manifests policies --argocd (default: all but the gate's own, syncgate)")
	f.StringArrayVar(&o.destinations, "destination", nil, "argocd: as for manifests policies --argocd")
	f.StringVar(&o.argo.Image, "image", "", "argocd: what the sidecar's image must be, by its digest if it has one (default: of this program's version)")
	f.BoolVar(&o.lookAtFlux, "flux", false, "look at a Flux")
	f.StringVar(&o.flux.FluxNamespace, "flux-namespace", "flux-system", "flux: its namespace")
	f.StringSliceVar(&o.flux.Namespaces, "namespaces", nil, "flux: the namespaces whose Kustomizations are gated, as for manifests policies --flux (default: all)")
	f.StringSliceVar(&o.flux.Ungated, "ungated", nil, "flux: NAMESPACE/NAME of Kustomizations there that are not, as for manifests policies --flux")
	f.StringVar(&o.defaultAccount, "default-service-account", "", "flux: as for manifests policies --flux")
	f.StringVar(&o.policy, "policy", os.Getenv("SYNCGATE_POLICY"), "the operator's policy file (default $SYNCGATE_POLICY)")
	f.StringVar(&o.Environment, "environment", "", "environment of the policy that the webhook judges for (default: the one that policy selects)")
	f.BoolVar(&o.wait, "wait", false, "look again every 2 s until all is well")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "when to give up")
	f.StringArrayVar(&o.KeyIDs, "kid", nil, "key ID that every replica must have loaded (repeatable)")
	f.IntVar(&o.Replicas, "replicas", 0, "how many replicas must answer (default: as the Deployment says)")
	f.StringVar(&o.Namespace, "namespace", "", "gated namespace to probe in (default: a gated one)")
	f.StringVarP(&o.output, "output", "o", "text", "text or json")
	o.cluster.flags(c)
	return c
}

func (o *doctorOptions) run(c *cobra.Command) error {
	if err := o.check(c); err != nil {
		return err
	}
	p, err := app.LoadPolicy(o.policy)
	if err != nil {
		return err
	}
	if err := o.expect(c, p); err != nil {
		return err
	}
	l, err := o.cluster.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), o.timeout)
	defer cancel()
	report, err := o.look(ctx, l, c.ErrOrStderr())
	if errors.Is(err, doctor.ErrNotGated) {
		return &app.Refusal{Sentence: gate.Sentence{Items: []gate.Item{{Reason: gate.PolicyInvalid, Text: err.Error(), Fix: "name another namespace with --namespace"}}}}
	}
	if err != nil {
		return unavailable(err)
	}
	return o.print(c, report)
}

func (o *doctorOptions) check(c *cobra.Command) error {
	if err := checkOutput(c, o.output, "text", "json"); err != nil {
		return err
	}
	switch {
	case set(o.webhook, o.argocd, o.lookAtFlux) != 1:
		return usage(c, "say what to look at: one of --webhook, --argocd and --flux")
	case !o.webhook && (len(o.KeyIDs) > 0 || o.Replicas > 0 || o.Namespace != ""):
		return usage(c, "--kid, --replicas and --namespace go with --webhook")
	case !o.argocd && (len(o.projects) > 0 || len(o.destinations) > 0 || len(o.argo.Namespaces) > 0 || o.argo.Image != ""):
		return usage(c, "--projects, --destination, --application-namespaces and --image go with --argocd")
	case !o.lookAtFlux && (len(o.flux.Namespaces) > 0 || len(o.flux.Ungated) > 0 || o.defaultAccount != ""):
		return usage(c, "--namespaces, --ungated and --default-service-account go with --flux")
	case o.policy == "":
		return usage(c, "no policy: give --policy FILE or set SYNCGATE_POLICY")
	case o.Replicas < 0:
		return usage(c, "--replicas %d: want 1 or more", o.Replicas)
	case o.timeout <= 0:
		return usage(c, "--timeout %s: want more than none", o.timeout)
	}
	return nil
}

// expect fills in what follows from the policy.
func (o *doctorOptions) expect(c *cobra.Command, p *policy.Policy) error {
	a := p.Admission()
	switch {
	case o.Environment != "" && !slices.Contains(p.Environments(), o.Environment):
		return usage(c, "--environment %.80q is not one of the policy's: %s", o.Environment, strings.Join(p.Environments(), ", "))
	case o.Namespace != "" && !a.Gated(o.Namespace):
		return usage(c, "--namespace %.80q is not gated by this policy: the webhook is not asked there", o.Namespace)
	}
	for _, kid := range o.KeyIDs {
		if !slices.Contains(p.KeyIDs(), kid) {
			return usage(c, "--kid %.80q is not in the key sets of this policy", kid)
		}
	}
	if o.argocd {
		return o.expectArgoCD(c, p)
	}
	if o.lookAtFlux {
		return o.expectFlux(c, p)
	}
	o.Policy = p
	var err error
	if o.Policies, err = policyObjects(p); err != nil {
		return fmt.Errorf("generating the policies: %w", err)
	}
	o.Want, err = webhookConfiguration(p)
	return err
}

// look makes the checks, with --wait until nothing is left to wait for or ctx
// ends; then it returns what it saw last. What is missing is said when it changes.
func (o *doctorOptions) look(ctx context.Context, l *live.Cluster, progress io.Writer) (doctor.Report, error) {
	report, err := o.once(ctx, l)
	said := ""
	for o.wait && (err != nil || !report.Settled()) && !errors.Is(err, doctor.ErrNotGated) {
		if text := missing(report, err); text != said {
			said = text
			fmt.Fprintln(progress, "waiting: "+gate.ASCII(text))
		}
		select {
		case <-ctx.Done():
			return report, err
		case <-time.After(pollInterval):
		}
		next, fault := o.once(ctx, l)
		if ctx.Err() != nil {
			return report, err // cut off in the middle: not what is there
		}
		report, err = next, fault
	}
	return report, err
}

// expectArgoCD fills in what follows from the policy for Argo CD.
func (o *doctorOptions) expectArgoCD(c *cobra.Command, p *policy.Policy) error {
	files, err := argoPolicies(p, false, o.projects, o.destinations)
	if err != nil {
		return usage(c, "%v", err)
	}
	if o.argo.Policies, err = files.objects(); err != nil {
		return fmt.Errorf("generating the policies: %w", err)
	}
	o.argo.Policy, o.argo.Environment = p, o.Environment
	if !slices.Contains(o.projects, "*") {
		o.argo.Projects = o.projects
	}
	return nil
}

// once makes the checks.
func (o *doctorOptions) once(ctx context.Context, l *live.Cluster) (doctor.Report, error) {
	if o.argocd {
		return doctor.LookArgoCD(ctx, l, o.argo)
	}
	if o.lookAtFlux {
		o.flux.Now = time.Now()
		return doctor.LookFlux(ctx, l, o.flux)
	}
	return doctor.Look(ctx, l, o.Options)
}

// missing says in one line what is not well.
func missing(r doctor.Report, err error) string {
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, check := range r.Checks {
		if !check.OK {
			parts = append(parts, check.Name+": "+strings.Join(check.Details, "; "))
		}
	}
	return strings.Join(parts, "; ")
}

// print writes the report: as text to stdout if all is well, else to stderr.
func (o *doctorOptions) print(c *cobra.Command, r doctor.Report) error {
	if o.output == "json" {
		enc := json.NewEncoder(c.OutOrStdout())
		enc.SetIndent("", "  ")
		if err := enc.Encode(struct {
			Converged bool `json:"converged"`
			doctor.Report
		}{r.Converged(), r}); err != nil {
			return fmt.Errorf("writing report: %w", err)
		}
	} else {
		doctorText(c, r)
	}
	if r.Converged() {
		return nil
	}
	first := r.First()
	details := first.Details
	if len(details) > 3 {
		details = append(slices.Clone(details[:3]), fmt.Sprintf("and %d more", len(details)-3))
	}
	return &gap{fmt.Sprintf("the gate does not hold (%s): %s; Fix: %s", first.Name, strings.Join(details, "; "), first.Fix)}
}

func doctorText(c *cobra.Command, r doctor.Report) {
	out := c.OutOrStdout()
	if !r.Converged() {
		out = c.ErrOrStderr()
	}
	for _, check := range r.Checks {
		word := "ok  "
		if !check.OK {
			word = "FAIL"
		}
		for i, d := range check.Details {
			if i > 0 {
				word = "    "
			}
			fmt.Fprintf(out, "%s  %-13s  %s\n", word, check.Name, gate.ASCII(d))
		}
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(c.ErrOrStderr(), "warning: "+gate.ASCII(w))
	}
}
