package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/live"
)

// FluxDeployment is the name of the gate's Deployment in manifests/flux, in the
// gate's namespace, of its service account, and of the policy for that.
const FluxDeployment = "syncgate-flux"

const (
	fluxContainer      = "controller"
	fluxVolume         = "policy"
	fluxLease          = "syncgate-controller"
	kustomizeContainer = "manager" // of Flux's own Deployments
	kustomizeName      = "kustomize-controller"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// leaseGrace is what clocks may differ by.
const leaseGrace = time.Minute

// gateOfFlux is what the Deployment says of the gate. The zero value is one that
// is not there.
type gateOfFlux struct {
	there  bool
	args   arguments
	policy string // ConfigMap that is mounted with the policy
}

// arguments are those of a program.
type arguments []string

// flag returns the last value of a flag, "true" for one without a value.
func (a arguments) flag(name string) (value string, given bool) {
	for i, arg := range a {
		have, v, with := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.TrimPrefix(have, "-") != name || !strings.HasPrefix(arg, "-") {
			continue
		}
		switch {
		case with:
			value = v
		case i+1 < len(a) && !strings.HasPrefix(a[i+1], "-"):
			value = a[i+1]
		default:
			value = "true"
		}
		given = true
	}
	return value, given
}

// container is the arguments of a container of a Deployment, and its Pod.
func container(deployment map[string]any, name string) (args arguments, pod map[string]any, there bool) {
	pod = child(deployment, "spec", "template", "spec")
	for _, x := range list(pod, "containers") {
		c, _ := x.(map[string]any)
		if text(c, "name") != name {
			continue
		}
		for _, key := range []string{"command", "args"} {
			for _, arg := range list(c, key) {
				s, _ := arg.(string)
				args = append(args, s)
			}
		}
		return args, pod, true
	}
	return nil, pod, false
}

// fluxGate looks whether the gate runs.
func (r *Report) fluxGate(ctx context.Context, c *live.Cluster, o Flux) (gateOfFlux, error) {
	const fix = "syncgate manifests flux prints it; kubectl apply -k (manifests/flux)"
	var g gateOfFlux
	namespace := o.Policy.Admission().Namespace
	at := fmt.Sprintf("Deployment %s/%s", namespace, FluxDeployment)
	d, err := c.Get(ctx, deployments, namespace, FluxDeployment)
	if apierrors.IsNotFound(err) {
		r.add("gate", false, fix, at+": there is none, and nothing is approved")
		return g, nil
	}
	if err != nil {
		return g, fmt.Errorf("reading %s: %w", at, err)
	}
	var pod map[string]any
	g.args, pod, g.there = container(d, fluxContainer)
	for _, x := range list(pod, "volumes") {
		volume, _ := x.(map[string]any)
		if text(volume, "name") == fluxVolume {
			g.policy = text(child(volume, "configMap"), "name")
		}
	}
	var details []string
	if on, _ := g.args.flag("flux"); on != "true" {
		details = append(details, at+": no container "+fluxContainer+" with --flux")
	}
	// Only the one that leads is ready.
	want, updated, ready := number(d, "spec", "replicas"), number(d, "status", "updatedReplicas"), number(d, "status", "readyReplicas")
	if want == 0 || updated != want || ready == 0 || number(d, "status", "observedGeneration") < number(d, "metadata", "generation") {
		details = append(details, fmt.Sprintf("%s wants %d replicas: %d of the newest template, %d ready; one has to be", at, want, updated, ready))
	}
	if have, given := g.args.flag("flux-namespace"); given && have != o.FluxNamespace {
		details = append(details, fmt.Sprintf("%s has --flux-namespace=%.80q, and here it is %.80q: policy calls Kustomizations by other names", at, have, o.FluxNamespace))
	}
	r.check("gate", details, fix, fmt.Sprintf("%s runs, %d ready", at, ready))
	return g, nil
}

// leader looks whether one of them acts.
func (r *Report) leader(ctx context.Context, c *live.Cluster, o Flux, g gateOfFlux) error {
	if !g.there {
		return nil // said
	}
	if elects, given := g.args.flag("leader-elect"); given && elects == "false" {
		r.Warnings = append(r.Warnings, "the gate has --leader-elect=false: two of them would write against each other")
		return nil
	}
	namespace, given := g.args.flag("lease-namespace")
	if !given {
		namespace = o.FluxNamespace
	}
	at := fmt.Sprintf("Lease %s/%s", namespace, fluxLease)
	fix := "see the log of Deployment " + FluxDeployment + "; its rights there are the Role " + FluxDeployment
	l, err := c.Get(ctx, leases, namespace, fluxLease)
	if apierrors.IsNotFound(err) {
		r.add("leader", false, fix, at+": there is none: no gate has ever begun to work")
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	spec := child(l, "spec")
	holder, seconds := text(spec, "holderIdentity"), number(l, "spec", "leaseDurationSeconds")
	renewed, err := time.Parse(time.RFC3339Nano, text(spec, "renewTime"))
	switch {
	case holder == "" || err != nil:
		r.add("leader", false, fix, at+" is held by nobody: nothing is approved")
	case o.Now.After(renewed.Add(time.Duration(seconds)*time.Second + leaseGrace)):
		r.add("leader", false, fix, fmt.Sprintf("%s was renewed last by %s at %s: it is not there any more, and nothing is approved", at, clip(holder), renewed.Format(time.RFC3339)))
	default:
		r.add("leader", true, "", fmt.Sprintf("%s is held by %s", at, clip(holder)))
	}
	return nil
}

// gatePolicy looks whether the ConfigMap that the gate mounts is the policy at
// hand. A mount follows it within minutes.
func (r *Report) gatePolicy(ctx context.Context, c *live.Cluster, o Flux, g gateOfFlux) error {
	if !g.there {
		return nil // said
	}
	const fix = "kubectl create configmap from this policy, its key sets and its revocation list (--dry-run=client -o yaml | kubectl apply -f -)"
	if g.policy == "" {
		r.Warnings = append(r.Warnings, "the gate's policy is not in a ConfigMap volume "+fluxVolume+": whether it is this one cannot be seen")
		return nil
	}
	return r.mountedPolicy(ctx, c, o.Policy, o.Policy.Admission().Namespace, g.policy, "the gate", fix)
}

// kustomizeController is about what Flux's own controller is told at its start.
// account is the one that it takes where a Kustomization names none; empty: its
// own, or it cannot be seen.
func (r *Report) kustomizeController(ctx context.Context, c *live.Cluster, o Flux, g gateOfFlux, all []kustomized) (account string, err error) {
	used := ""
	for _, k := range all {
		if k.Mode == application.Artifact {
			used = k.String()
			break
		}
	}
	at := fmt.Sprintf("Deployment %s/%s", o.FluxNamespace, kustomizeName)
	d, err := c.Get(ctx, deployments, o.FluxNamespace, kustomizeName)
	if apierrors.IsNotFound(err) || err != nil && isForbidden(err) {
		r.Warnings = append(r.Warnings, at+" cannot be read: what Flux is told at its start is not looked at (--flux-namespace)")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", at, err)
	}
	args, _, _ := container(d, kustomizeContainer)
	if account, _ = args.flag("default-service-account"); account == "" {
		r.Warnings = append(r.Warnings, at+" has no --default-service-account: a Kustomization without spec.serviceAccountName is applied with the rights of Flux itself, which may take the gate away")
	}
	if used == "" {
		return account, nil
	}
	var details []string
	if gates, _ := args.flag("feature-gates"); !strings.Contains(","+gates+",", ",ExternalArtifact=true,") {
		details = append(details, at+" has no --feature-gates=ExternalArtifact=true: it builds from no ExternalArtifact")
	}
	if path, _ := g.args.flag("storage-path"); g.there && path == "" {
		details = append(details, "the gate has no --storage-path: it publishes no artifact")
	}
	r.check("artifacts", details, used+" is in artifact mode: set it (docs/flux.md, manifests/flux)", "Flux builds from what the gate publishes, as "+used+" asks")
	return account, nil
}

// revision is how those that the gate publishes end.
var revision = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// gatePublished looks whether what the gate says is what it has published.
func (r *Report) gatePublished(ctx context.Context, c *live.Cluster, all []kustomized) error {
	var details []string
	n := 0
	for _, k := range all {
		status := text(k.approved, "status")
		if k.Mode == application.Plain || k.Own == "" || status != "True" && status != "False" {
			continue
		}
		n++
		look := k.artifact
		if k.Mode == application.PostBuild {
			look = k.configMap
		}
		fault, err := look(ctx, c, status == "True")
		if err != nil {
			return err
		}
		if fault != "" {
			details = append(details, k.String()+": "+fault)
		}
	}
	r.check("published", details, fixPublished, fmt.Sprintf("what is published is what was approved: %d", n))
	return nil
}

// configMap returns what is wrong with the ConfigMap of postBuild mode.
func (k kustomized) configMap(ctx context.Context, c *live.Cluster, approved bool) (fault string, err error) {
	data, there, err := configMap(ctx, c, k.namespace, k.Own)
	switch {
	case err != nil:
		return "", err
	case approved && !there:
		return "it is approved, and there is no ConfigMap " + k.Own, nil
	case approved && data[hook.Latch] == "":
		return fmt.Sprintf("ConfigMap %s has no key %s: it is not the gate's", k.Own, hook.Latch), nil
	case !approved && there:
		return fmt.Sprintf("it is refused, and there is a ConfigMap %s: somebody else has made it, and Flux builds with it", k.Own), nil
	}
	return "", nil
}

// artifact returns what is wrong with the ExternalArtifact of artifact mode. What
// was approved before stays while a newer revision is refused.
func (k kustomized) artifact(ctx context.Context, c *live.Cluster, approved bool) (fault string, err error) {
	a, err := c.Get(ctx, externalArtifacts, k.namespace, k.Own)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading ExternalArtifact %s/%s: %w", k.namespace, k.Own, err)
	}
	has := text(child(a, "status", "artifact"), "revision")
	switch {
	case has == "" && approved:
		return "it is approved, and ExternalArtifact " + k.Own + " has no artifact", nil
	case has != "" && !revision.MatchString(has):
		return fmt.Sprintf("ExternalArtifact %s has the revision %.120q, which is none of the gate's", k.Own, has), nil
	}
	return "", nil
}
