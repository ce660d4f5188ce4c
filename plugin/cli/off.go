package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/settings"
)

// switchFlags say for what the gate is switched off, and where that is kept.
type switchFlags struct {
	clusterFlags
	namespace, app, kustomization, gate string
}

func (o *switchFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.namespace, "namespace", "", "namespace in which the webhook lets what it refuses pass")
	f.StringVar(&o.app, "app", "", "Argo CD application that the plugin lets pass")
	f.StringVar(&o.kustomization, "kustomization", "", "Flux Kustomization, NAMESPACE/NAME, that the gate for Flux lets pass")
	f.StringVar(&o.gate, "gate-namespace", "", "namespace of the ConfigMap (default: "+manifests.Namespace+", where the webhook and the gate for Flux are, and with --app "+argoNamespace+", where the sidecar is)")
	o.clusterFlags.flags(c)
}

// The namespaces of Argo CD and of Flux, unless somebody moved them.
const (
	argoNamespace = "argocd"
	fluxNamespace = "flux-system"
)

// target is the switch that the flags mean, without until and reason, and sets
// where it is kept: what mounts it can only mount from its own namespace. An
// application outside Argo CD's own namespace is NAMESPACE/NAME to people and
// NAMESPACE_NAME to a plugin.
func (o *switchFlags) target(c *cobra.Command) (offswitch.Switch, error) {
	s := offswitch.Switch{Namespace: o.namespace, App: strings.ReplaceAll(o.app, "/", "_")}
	usual, given := manifests.Namespace, 0
	for _, v := range []string{o.namespace, o.app, o.kustomization} {
		if v != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return s, usage(c, "give one of --namespace, --app and --kustomization")
	case o.app != "":
		usual = argoNamespace
	case o.kustomization != "":
		namespace, name, found := strings.Cut(o.kustomization, "/")
		if !found || namespace == "" || name == "" {
			return s, usage(c, "--kustomization %.80q: want NAMESPACE/NAME", o.kustomization)
		}
		s.App = settings.Key(fluxNamespace, namespace, name)
	}
	o.gate = cmp.Or(o.gate, usual)
	return s, nil
}

// gateNamespaces are where switches are kept: those of namespaces, and those of
// applications.
func (o *switchFlags) gateNamespaces() []string {
	if o.gate != "" {
		return []string{o.gate}
	}
	return []string{manifests.Namespace, argoNamespace}
}

func newOff() *cobra.Command {
	var o switchFlags
	var length time.Duration
	var reason string
	var list bool
	c := &cobra.Command{
		Use:   "off",
		Short: "Let what is refused for one namespace or application pass for a while",
		Long: `Off switches the gate off for one namespace (the webhook), one Argo CD application
(the plugin) or one Flux Kustomization (the gate for Flux), for at most 24 hours;
then it is on again by itself. The switch is a key of the ConfigMap syncgate-off in
the namespace of the webhook and of the gate for Flux (syncgate-system) or of the
plugin (argocd), which only those may write whom policy names under administrators. It takes effect as
soon as the kubelet has brought the ConfigMap, within a minute or two. What
passes by it is still judged, and is in the log and the audit annotations. The
API server's own policies (syncgate manifests policies) read no switch: images
without a digest stay refused, and off says how that is opened.

Plugin and gate for Flux let only a SYNC REFUSED pass: what cannot be rendered or
judged, and a namespace that policy protects, stay refused. The webhook still
judges what arrives: --namespace opens that. A render that Argo CD has cached
meanwhile stays good until its cache ends: refresh hard afterwards.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if list {
				return listSwitches(c, o)
			}
			s, err := o.target(c)
			if err != nil {
				return err
			}
			switch {
			case length == 0:
				return usage(c, "say for how long: give --for, at most 24h, for example --for 2h")
			case length < time.Minute || length > offswitch.Longest:
				return usage(c, "--for %s: want 1m to %s", length, offswitch.Longest)
			case reason == "":
				return usage(c, "say why: give --reason, for example --reason \"INC-4711, registry gone\"")
			}
			at := time.Now()
			s.Until, s.Reason, s.By = at.Add(length).UTC().Truncate(time.Second).Format(time.RFC3339), reason, "nobody yet"
			if err := s.Check(at); err != nil {
				return usage(c, "%v", err)
			}
			l, err := o.connect()
			if err != nil {
				return err
			}
			if s.By, err = l.WhoAmI(c.Context()); err != nil {
				return unavailable(err)
			}
			if err := l.SetSwitch(c.Context(), o.gate, s, at); err != nil {
				return switchError(err, o.gate)
			}
			if s.Namespace != "" {
				fmt.Fprint(c.ErrOrStderr(), stillRefusing(c.Context(), l, s.Namespace))
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "off for %s until %s, by %s; end it with: syncgate on %s\n",
				o.described(s), s.Until, gate.ASCII(s.By), o.flagsFor())
			return err
		},
	}
	o.flags(c)
	c.Flags().DurationVar(&length, "for", 0, "how long, required: at most 24h, such as 4h")
	c.Flags().StringVar(&reason, "reason", "", "why, required: one line that everybody may read")
	c.Flags().BoolVar(&list, "list", false, "list the switches instead")
	return c
}

// digests is the ValidatingAdmissionPolicy that goes by no switch, and its
// binding.
const digests = "syncgate-digests"

var policyBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}

// stillRefusing says what a switch does not open, and how it is opened: nothing
// if it is known that the policy is not bound, or only warns.
func stillRefusing(ctx context.Context, l *live.Cluster, namespace string) string {
	binding, err := l.Get(ctx, policyBindings, "", digests)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err == nil {
		spec, _ := binding["spec"].(map[string]any)
		actions, _ := spec["validationActions"].([]any)
		if !slices.Contains(actions, any("Deny")) {
			return ""
		}
	}
	return fmt.Sprintf(`note: images without a digest stay refused: the API server's own policy %[1]s reads no switch. Whoever may change it opens the namespace with
  kubectl patch validatingadmissionpolicybinding %[1]s --type=json --patch '[{"op":"add","path":"/spec/matchResources/namespaceSelector/matchExpressions/-","value":{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["%[2]s"]}}]'
and closes it again with
  syncgate manifests policies --policy FILE | kubectl apply -f -
`, digests, namespace)
}

func newOn() *cobra.Command {
	var o switchFlags
	c := &cobra.Command{
		Use:   "on",
		Short: "End an off-switch before its time",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := o.target(c)
			if err != nil {
				return err
			}
			l, err := o.connect()
			if err != nil {
				return err
			}
			err = l.RemoveSwitch(c.Context(), o.gate, s)
			if errors.Is(err, live.ErrNoSwitch) {
				_, err = fmt.Fprintf(c.OutOrStdout(), "the gate is on for %s: there was no switch\n", o.described(s))
				return err
			}
			if err != nil {
				return switchError(err, o.gate)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "the gate is on again for %s as soon as the kubelet has brought the ConfigMap\n", o.described(s))
			return err
		},
	}
	o.flags(c)
	return c
}

// flagsFor repeats the flags that name the switch.
func (o *switchFlags) flagsFor() string {
	text, usual := "--namespace "+o.namespace, manifests.Namespace
	switch {
	case o.app != "":
		text, usual = "--app "+o.app, argoNamespace
	case o.kustomization != "":
		text = "--kustomization " + o.kustomization
	}
	if o.gate != usual {
		text += " --gate-namespace " + o.gate
	}
	return text
}

func (o *switchFlags) described(s offswitch.Switch) string {
	if o.kustomization != "" {
		return "Kustomization " + o.kustomization
	}
	return described(s)
}

func described(s offswitch.Switch) string {
	if s.App != "" {
		return "application " + s.App
	}
	return "namespace " + s.Namespace
}

// switchError says who may write switches, if it was not this user.
func switchError(err error, namespace string) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("writing ConfigMap %s/%s: %w; only those that policy names under administrators may, and RBAC must let them", namespace, offswitch.ConfigMap, err)
	}
	if !live.Answered(err) {
		return unavailable(err)
	}
	return fmt.Errorf("writing ConfigMap %s/%s: %w", namespace, offswitch.ConfigMap, err)
}

func listSwitches(c *cobra.Command, o switchFlags) error {
	if o.namespace != "" || o.app != "" || o.kustomization != "" {
		return usage(c, "--list lists all: leave out --namespace, --app and --kustomization")
	}
	l, err := o.connect()
	if err != nil {
		return err
	}
	at := time.Now()
	var kept []live.KeptSwitch
	for _, namespace := range o.gateNamespaces() {
		some, err := l.Switches(c.Context(), namespace, at)
		if err != nil {
			return unavailable(fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, offswitch.ConfigMap, err))
		}
		kept = append(kept, some...)
	}
	for _, k := range kept {
		until, err := time.Parse(time.RFC3339, k.Until)
		word := "off    "
		switch {
		case k.Problem != "":
			fmt.Fprintf(c.OutOrStdout(), "invalid  %s: %s; it does not count, and no application's does while it is there\n", gate.ASCII(k.Key), gate.ASCII(k.Problem))
			continue
		case err != nil || !at.Before(until):
			word = "ended  "
		}
		fmt.Fprintf(c.OutOrStdout(), "%s  %s until %s, by %s: %s\n", word, described(k.Switch), k.Until, gate.ASCII(k.By), gate.ASCII(k.Reason))
	}
	if len(kept) == 0 {
		_, err = fmt.Fprintln(c.OutOrStdout(), "no switches: the gate is on everywhere")
	}
	return err
}
