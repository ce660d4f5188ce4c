// Package doctor decides whether the admission webhook is really in the path of
// a cluster: whether the API server goes by the generated configuration, asks
// the webhook, and every replica of it judges by the same policy and keys as
// the file at hand.
package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Options say what is expected.
type Options struct {
	// Want is the generated ValidatingWebhookConfiguration, as a raw tree; its
	// name says which one of the cluster's is looked at.
	Want map[string]any
	// Policies are the generated ValidatingAdmissionPolicies and their bindings,
	// as raw trees. They must be given.
	Policies []map[string]any
	// Policy is what every replica must have loaded.
	Policy      *policy.Policy
	Environment string   // which of the policy's environments; empty: the one that it says
	KeyIDs      []string // that every replica must have loaded
	Replicas    int      // 0: as many as the Deployment has
	Namespace   string   // where probes are made; empty: a gated one is chosen
}

// Report is what was found. The zero value is not converged.
type Report struct {
	Checks   []Check   `json:"checks"`
	Replicas []Replica `json:"replicas,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// Check is one condition. Details are one line each; Fix is the next step of a
// person, if the check failed.
type Check struct {
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Details []string `json:"details"`
	Fix     string   `json:"fix,omitempty"`
}

// Replica is what one process of the webhook said of itself.
type Replica struct {
	Name         string   `json:"name"` // "HOST/PID"
	PolicyHash   string   `json:"policyHash"`
	KeyIDs       []string `json:"keyIDs"`
	ReloadFailed string   `json:"reloadFailed,omitempty"`
}

// Converged reports whether every check passed.
func (r Report) Converged() bool {
	for _, c := range r.Checks {
		if !c.OK {
			return false
		}
	}
	return len(r.Checks) > 0
}

// Settled reports whether nothing fails that may yet come right by itself: a
// policy that says Warn stays what it is, however long one waits.
func (r Report) Settled() bool {
	for _, c := range r.Checks {
		if !c.OK && c.Name != checkMode {
			return false
		}
	}
	return len(r.Checks) > 0
}

// First returns the first check that failed.
func (r Report) First() Check {
	for _, c := range r.Checks {
		if !c.OK {
			return c
		}
	}
	return Check{}
}

func (r *Report) add(name string, ok bool, fix string, details ...string) {
	c := Check{Name: name, OK: ok, Details: details}
	if !ok {
		c.Fix = fix
	}
	r.Checks = append(r.Checks, c)
}

// The resources that are looked at.
var (
	validating  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// Deployment is the name of the webhook's Deployment, in the gate's namespace.
const Deployment = "syncgate-webhook"

// checkMode is the name of the check that the policy enforces.
const checkMode = "mode"

// The next steps. Their order in a report is that in which they help.
const (
	fixConfiguration = "syncgate manifests webhook --configuration --policy FILE | kubectl apply --server-side -f -"
	fixBundle        = "wait until the certificate Job or cert-manager has put its authority there, and see its log if it does not; or give yours with --ca-bundle"
	fixReload        = "see /readyz and the log of the replica: a file that it cannot load keeps the one of before in force"
	fixWarn          = "none while you look at the warnings; to refuse, set mode.admission to Enforce in the policy"
	fixLag           = "wait for the kubelet to bring the newest ConfigMap (--wait), or see why that replica does not get it"
)

// Look makes every check once. The error says why the cluster could not be
// looked at; what is wrong with the gate is in the report.
func Look(ctx context.Context, c *live.Cluster, o Options) (Report, error) {
	var r Report
	configs, err := c.List(ctx, validating)
	if err != nil {
		return r, fmt.Errorf("listing webhook configurations: %w", err)
	}
	name := configurationName(o.Want)
	var current map[string]any
	for _, config := range configs {
		if configurationName(config) == name {
			current = config
		}
	}
	r.configuration(name, current, o.Want)
	r.alone(name, current, configs)
	if err := r.policies(ctx, c, o.Policies); err != nil {
		return r, err
	}
	if unjudged := o.Policy.Admission().UnjudgedGrants(); len(unjudged) > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("policy's scope.admission.clusterScoped does not name %s: they are written without receipts, by whoever may", strings.Join(unjudged, " and ")))
	}
	expected, err := r.deployment(ctx, c, o)
	if err != nil {
		return r, err
	}
	if err := r.probes(ctx, c, o, expected); err != nil {
		return r, err
	}
	return r, r.mutators(ctx, c, o)
}

func configurationName(config map[string]any) string {
	meta, _ := config["metadata"].(map[string]any)
	return text(meta, "name")
}

func (r *Report) configuration(name string, current, want map[string]any) {
	if current == nil {
		r.add("configuration", false, fixConfiguration, fmt.Sprintf("there is no ValidatingWebhookConfiguration %s: nothing asks the webhook", name))
		return
	}
	differences := Compare(want, current)
	if len(differences) == 0 {
		r.add("configuration", true, "", fmt.Sprintf("%s is the generated one: %d entries", name, len(list(want, "webhooks"))))
		return
	}
	var details []string
	fix := fixBundle
	for _, d := range differences {
		details = append(details, d.String())
		if d.Field != bundleField {
			fix = fixConfiguration
		}
	}
	r.add("configuration", false, fix, details...)
}

// alone looks for a second configuration of ours: an older one may let pass by
// failurePolicy Ignore, refuse while nothing answers at its address, or ask
// twice.
func (r *Report) alone(name string, current map[string]any, configs []map[string]any) {
	ours := map[string]bool{}
	for _, entry := range list(current, "webhooks") {
		e, _ := entry.(map[string]any)
		client, _ := e["clientConfig"].(map[string]any)
		ours[host(client)] = true
	}
	var details []string
	for _, config := range configs {
		other := configurationName(config)
		if other == name {
			continue
		}
		n, example := 0, ""
		for _, entry := range list(config, "webhooks") {
			e, _ := entry.(map[string]any)
			client, _ := e["clientConfig"].(map[string]any)
			at := host(client)
			if (ours[at] && at != "") || strings.HasSuffix(text(e, "name"), ".syncgate.io") {
				n, example = n+1, fmt.Sprintf("%s at %s, failurePolicy %s", text(e, "name"), clip(at), text(e, "failurePolicy"))
			}
		}
		if n > 0 {
			details = append(details, fmt.Sprintf("configuration %s asks too: entries %d, such as %s", other, n, example))
		}
	}
	if len(details) == 0 {
		r.add("alone", true, "", "no other configuration asks the webhook")
		return
	}
	r.add("alone", false, "kubectl delete validatingwebhookconfiguration, of the one that is not "+name, details...)
}

// deployment returns how many replicas there have to be.
func (r *Report) deployment(ctx context.Context, c *live.Cluster, o Options) (int, error) {
	if o.Replicas > 0 {
		return o.Replicas, nil
	}
	namespace := o.Policy.Admission().Namespace
	d, err := c.Get(ctx, deployments, namespace, Deployment)
	switch {
	case apierrors.IsNotFound(err):
		r.Warnings = append(r.Warnings, fmt.Sprintf("no Deployment %s/%s: one replica is expected unless --replicas says how many", namespace, Deployment))
		return 1, nil
	case apierrors.IsForbidden(err):
		r.Warnings = append(r.Warnings, fmt.Sprintf("Deployment %s/%s may not be read: one replica is expected unless --replicas says how many", namespace, Deployment))
		return 1, nil
	case err != nil:
		return 0, fmt.Errorf("reading Deployment %s/%s: %w", namespace, Deployment, err)
	}
	want := number(d, "spec", "replicas")
	updated, ready, all := number(d, "status", "updatedReplicas"), number(d, "status", "readyReplicas"), number(d, "status", "replicas")
	seen := number(d, "status", "observedGeneration") >= number(d, "metadata", "generation")
	ok := seen && want > 0 && updated == want && ready == want && all == want
	r.add("rollout", ok, "kubectl rollout status --namespace "+namespace+" deployment/"+Deployment,
		fmt.Sprintf("Deployment %s/%s wants %d replicas: %d run, %d of the newest template, %d ready", namespace, Deployment, want, all, updated, ready))
	return max(want, 1), nil
}

// mutators names what changes gated kinds at admission. It is no fault by
// itself.
func (r *Report) mutators(ctx context.Context, c *live.Cluster, o Options) error {
	list, err := c.Mutators(ctx)
	if live.Answered(err) && isForbidden(err) {
		r.Warnings = append(r.Warnings, "mutating webhooks may not be listed: "+clip(err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range list {
		if kinds := asked(m, o.Want); len(kinds) > 0 {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s may change gated kinds at admission (%s): syncgate fixedpoint finds what it does", m, strings.Join(kinds, ", ")))
		}
	}
	return nil
}

// asked returns the gated resources that a mutator may be asked about.
func asked(m live.Mutator, want map[string]any) []string {
	var out []string
	seen := map[string]bool{}
	for _, entry := range list(want, "webhooks") {
		e, _ := entry.(map[string]any)
		if strings.HasPrefix(text(e, "name"), "guard.") {
			continue // the gate's own ConfigMaps and Secrets
		}
		for _, x := range list(e, "rules") {
			rule, _ := x.(map[string]any)
			for _, group := range list(rule, "apiGroups") {
				for _, resource := range list(rule, "resources") {
					g, _ := group.(string)
					name, _ := resource.(string)
					if !seen[g+"/"+name] && mayBeAsked(m, g, name, text(rule, "scope") == "Cluster") {
						seen[g+"/"+name] = true
						out = append(out, name)
					}
				}
			}
		}
	}
	return out
}

func mayBeAsked(m live.Mutator, group, resource string, cluster bool) bool {
	namespace := "-"
	if cluster {
		namespace = ""
	}
	for _, operation := range []string{live.Create, live.Update} {
		if m.MayAnywhere(live.Asked{Operation: operation, Resource: schema.GroupVersionResource{Group: group, Resource: resource}, Namespace: namespace}) {
			return true
		}
	}
	return false
}

func isForbidden(err error) bool {
	return apierrors.ReasonForError(err) == "Forbidden" || code(err) == http.StatusForbidden
}

func number(t map[string]any, path ...string) int {
	for _, p := range path[:len(path)-1] {
		t, _ = t[p].(map[string]any)
	}
	n, _ := t[path[len(path)-1]].(interface{ Int64() (int64, error) })
	if n == nil {
		return 0
	}
	i, err := n.Int64()
	if err != nil {
		return 0
	}
	return int(i)
}
