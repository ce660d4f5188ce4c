package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/flux/request"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// Flux says what is expected of a Flux and of the gate for it.
type Flux struct {
	// Policy is what the gate must go by.
	Policy      *policy.Policy
	Environment string // the operator's choice, as of the gate; empty: what policy says
	// Policies are the generated ValidatingAdmissionPolicies for Flux and for the
	// gate's own account, and their bindings, as raw trees. They must be given.
	Policies []map[string]any
	// Want is the generated ValidatingWebhookConfiguration, as a raw tree.
	Want map[string]any
	// FluxNamespace is where Flux's controllers are.
	FluxNamespace string
	// Namespaces are those whose Kustomizations are gated; none means all. Ungated
	// are Kustomizations there that are not, as NAMESPACE/NAME.
	Namespaces, Ungated []string
	// Now is when leases are looked at.
	Now time.Time
}

// The resources of Flux that are looked at.
var (
	kustomizations    = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	externalArtifacts = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}
)

// The next steps for Flux.
const (
	fixPath      = "syncgate flux scaffold names the gate's ConfigMap, or let spec.sourceRef be its ExternalArtifact (docs/flux.md); or except it with --ungated"
	fixPublished = "see the log of Deployment " + FluxDeployment + ": it undoes at once what others write; if it does not, it is not the one that runs"
)

// kustomized is a Kustomization of a gated namespace.
type kustomized struct {
	request.Request
	namespace, name string
	annotations     map[string]string
	account         string // that it names to be applied with; empty: none
	// approved and ready are conditions: the gate's, and Flux's.
	approved, ready map[string]any
}

func (k kustomized) String() string { return "Kustomization " + k.namespace + "/" + k.name }

// LookFlux makes every check of a Flux once. The error says why it could not be
// looked at; what is wrong is in the report.
func LookFlux(ctx context.Context, c *live.Cluster, o Flux) (Report, error) {
	var r Report
	objects, err := c.List(ctx, kustomizations)
	if err != nil {
		return r, fmt.Errorf("listing Kustomizations: %w", err)
	}
	all := o.gated(objects)
	g, err := r.fluxGate(ctx, c, o)
	if err != nil {
		return r, err
	}
	if err := r.leader(ctx, c, o, g); err != nil {
		return r, err
	}
	if err := r.gatePolicy(ctx, c, o, g); err != nil {
		return r, err
	}
	account, err := r.kustomizeController(ctx, c, o, g, all)
	if err != nil {
		return r, err
	}
	r.through(all)
	r.rights(o, all, account)
	r.asked(o, all)
	r.verdicts(all)
	r.anyway(all)
	if err := r.gatePublished(ctx, c, all); err != nil {
		return r, err
	}
	if err := r.fluxSwitches(ctx, c, o, all); err != nil {
		return r, err
	}
	if err := r.fluxPolicies(ctx, c, o); err != nil {
		return r, err
	}
	return r, r.lastWord(ctx, c, o, all)
}

// gated are the Kustomizations that are meant to be behind the gate.
func (o Flux) gated(objects []map[string]any) []kustomized {
	var out []kustomized
	for _, object := range objects {
		meta, status := child(object, "metadata"), child(object, "status")
		k := kustomized{namespace: text(meta, "namespace"), name: text(meta, "name"), annotations: map[string]string{}}
		if len(o.Namespaces) > 0 && !slices.Contains(o.Namespaces, k.namespace) || slices.Contains(o.Ungated, k.namespace+"/"+k.name) || meta["deletionTimestamp"] != nil {
			continue
		}
		k.account = text(child(object, "spec"), "serviceAccountName")
		k.Request = request.Read(object, o.FluxNamespace)
		if suspended, _ := child(object, "spec")["suspend"].(bool); suspended && k.Mode == application.Plain {
			continue // it does nothing, and is looked at by the policies when that ends
		}
		for key, value := range child(meta, "annotations") {
			k.annotations[key], _ = value.(string)
		}
		for _, x := range list(status, "conditions") {
			switch condition, _ := x.(map[string]any); text(condition, "type") {
			case hook.Condition:
				k.approved = condition
			case "Ready":
				k.ready = condition
			}
		}
		out = append(out, k)
	}
	return out
}

// through is the check that Kustomizations go through the gate, and that nothing
// changes what it approved.
func (r *Report) through(all []kustomized) {
	var around, wrong []string
	asking := 0
	for _, k := range all {
		switch {
		case k.Mode == application.Plain:
			around = append(around, fmt.Sprintf("%s goes around the gate: it names neither the ConfigMap nor the ExternalArtifact %s", k, clip(k.Own)))
		case k.Wrong != nil:
			asking++
			wrong = append(wrong, fmt.Sprintf("%s is refused as it is: %s", k, clip(k.Wrong.Error())))
		default:
			asking++
		}
	}
	r.check("kustomizations", around, fixPath, fmt.Sprintf("every Kustomization that is gated goes through the gate: %d", asking))
	r.check("fields", wrong, "change the Kustomization as the text says (docs/flux.md, What is built)", "no field of one changes what was approved, deletes by force, or lets it be left out")
	if asking == 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("of %d Kustomizations that are gated none names the gate: nothing is judged yet", len(all)))
	}
}

// check adds a check that fails if there are details.
func (r *Report) check(name string, details []string, fix, well string) {
	if len(details) > 0 {
		r.add(name, false, fix, details...)
		return
	}
	r.add(name, true, "", well)
}

// asked is what annotations ask for, under policy.
func (r *Report) asked(o Flux, all []kustomized) {
	var refused, warned []string
	for _, k := range all {
		if k.Mode == application.Plain || k.Wrong != nil {
			continue
		}
		entry := settings.Parse(k.annotations, o.Policy.Annotation(), hook.SourceAnnotation, hook.PathAnnotation)
		e, err := app.EffectiveAsking(o.Policy, app.Kustomization, k.Says.App, o.Environment, entry)
		switch {
		case err != nil:
			refused = append(refused, fmt.Sprintf("%s: %s", k, clip(err.Error())))
		case e.Warn:
			warned = append(warned, fmt.Sprintf("%s: policy only warns: what is refused is applied all the same", k))
		}
	}
	if o.Policy.Admission().Warn && slices.ContainsFunc(all, func(k kustomized) bool { return k.Mode == application.PostBuild }) {
		warned = append(warned, "the webhook only warns: in postBuild mode a revision that needs no variable is applied, refused or not")
	}
	r.check("annotations", refused, "change or remove the annotation of the Kustomization", "no annotation asks for what policy forbids")
	r.check(checkMode, warned, "none while you look at the warnings; to refuse, set mode.render, and for postBuild mode mode.admission, to Enforce in the policy", "policy enforces")
}

// verdicts is the check that the gate has an opinion of each. What it refuses is
// no fault of the gate.
func (r *Report) verdicts(all []kustomized) {
	var silent []string
	judged := 0
	for _, k := range all {
		if k.Mode == application.Plain {
			continue
		}
		if k.approved == nil {
			silent = append(silent, fmt.Sprintf("%s has no condition %s: the gate has not looked at it", k, hook.Condition))
			continue
		}
		judged++
		switch status, reason := text(k.approved, "status"), text(k.approved, "reason"); {
		case status == "True" && reason == "Approved":
			if text(k.ready, "status") == "False" {
				r.Warnings = append(r.Warnings, fmt.Sprintf("%s is approved, and Flux says: %s", k, clip(text(k.ready, "message"))))
			}
		case status == "True":
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s passes (%s): %s", k, clip(reason), clip(text(k.approved, "message"))))
		default:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is not approved: %s", k, clip(text(k.approved, "message"))))
		}
	}
	r.check("verdicts", silent, "see the log of Deployment "+FluxDeployment, fmt.Sprintf("the gate has looked at each: %d", judged))
}

// fluxSwitches looks for Kustomizations whose refusals an administrator lets
// pass.
func (r *Report) fluxSwitches(ctx context.Context, c *live.Cluster, o Flux, all []kustomized) error {
	namespace := o.Policy.Admission().Namespace
	kept, err := c.Switches(ctx, namespace, o.Now)
	if err != nil {
		return fmt.Errorf("reading off-switches in %s: %w", namespace, err)
	}
	var details []string
	for _, s := range kept {
		until, err := time.Parse(time.RFC3339, s.Until)
		if s.Problem != "" || err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("off-switch %s in %s: none counts while it cannot be read: %s", clip(s.Key), namespace, clip(s.Problem)))
			continue
		}
		for _, k := range all {
			if s.App != "" && until.After(o.Now) && s.App == settings.Key(o.FluxNamespace, k.namespace, k.name) {
				details = append(details, fmt.Sprintf("%s: what policy refuses passes until %s, by %s: %s", k, s.Until, clip(s.By), clip(s.Reason)))
			}
		}
	}
	r.check("switches", details, "syncgate on --kustomization NAMESPACE/NAME, when it is no longer needed; it ends by itself", "no Kustomization is switched off")
	return nil
}

// fluxPolicies is the check of the policies for Flux, and of who else could write
// what the gate publishes.
func (r *Report) fluxPolicies(ctx context.Context, c *live.Cluster, o Flux) error {
	if err := r.policies(ctx, c, o.Policies); err != nil {
		return err
	}
	last := &r.Checks[len(r.Checks)-1]
	if !last.OK {
		last.Fix = strings.Replace(fixPolicies, "policies --policy", "policies --flux --policy", 1) + "; syncgate manifests flux has the one named " + FluxDeployment
	}
	return r.writers(ctx, c, o, last.OK)
}

// lastWord looks for the webhook: in postBuild mode what the gate approved may
// meet another revision, which the webhook refuses.
func (r *Report) lastWord(ctx context.Context, c *live.Cluster, o Flux, all []kustomized) error {
	configs, err := c.List(ctx, validating)
	if err != nil {
		return fmt.Errorf("listing webhook configurations: %w", err)
	}
	name := configurationName(o.Want)
	var current map[string]any
	for _, config := range configs {
		if configurationName(config) == name {
			current = config
		}
	}
	needed := slices.ContainsFunc(all, func(k kustomized) bool { return k.Mode == application.PostBuild })
	if current == nil && !needed {
		r.Warnings = append(r.Warnings, "there is no webhook: what Flux applies is judged, and nobody else is asked")
		return nil
	}
	r.configuration(name, current, o.Want)
	return nil
}
