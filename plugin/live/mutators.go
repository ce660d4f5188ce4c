package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// admissionGroup has the objects that configure admission.
const admissionGroup = "admissionregistration.k8s.io"

// Mutator is something that may change objects at admission: a webhook, or a
// policy with one of its bindings.
type Mutator struct {
	Webhook       string // name of the entry; empty for a policy
	Policy        string // name of the MutatingAdmissionPolicy; empty for a webhook
	Configuration string // name of the webhook's configuration, or of the policy's binding

	rules, exclude [][]v1.RuleWithOperations // all of rules, none of exclude must match
	namespaces     []*metav1.LabelSelector
	objects        []*metav1.LabelSelector
}

// String names a mutator for people: "webhook pinning.example.test".
func (m Mutator) String() string {
	if m.Policy != "" {
		return "policy " + m.Policy + " (binding " + m.Configuration + ")"
	}
	return "webhook " + m.Webhook + " (configuration " + m.Configuration + ")"
}

// Asked is a request that a mutator may be asked about.
type Asked struct {
	Operation string
	Resource  schema.GroupVersionResource
	Labels    map[string]string // of the object
	Namespace string            // empty: cluster-scoped
	// NamespaceLabels are those of the namespace; of a Namespace, its own.
	NamespaceLabels map[string]string
}

// Mutators returns everything in the cluster that may change objects at
// admission, but for what the API server brings itself.
func (c *Cluster) Mutators(ctx context.Context) ([]Mutator, error) {
	var out []Mutator
	configs, err := c.List(ctx, schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: "mutatingwebhookconfigurations"})
	if err != nil {
		return nil, fmt.Errorf("listing mutating webhooks: %w", err)
	}
	for _, t := range configs {
		var config v1.MutatingWebhookConfiguration
		if err := as(t, &config); err != nil {
			return nil, fmt.Errorf("reading mutating webhooks: %w", err)
		}
		for _, w := range config.Webhooks {
			out = append(out, Mutator{
				Webhook: w.Name, Configuration: config.Name, rules: [][]v1.RuleWithOperations{w.Rules},
				namespaces: []*metav1.LabelSelector{w.NamespaceSelector}, objects: []*metav1.LabelSelector{w.ObjectSelector},
			})
		}
	}
	policies, err := c.policies(ctx)
	if err != nil {
		return nil, err
	}
	return append(out, policies...), nil
}

// policies returns the MutatingAdmissionPolicies, one Mutator a binding: one
// that is not bound does nothing.
func (c *Cluster) policies(ctx context.Context) ([]Mutator, error) {
	for _, version := range []string{"v1", "v1beta1"} {
		at := schema.GroupVersionResource{Group: admissionGroup, Version: version}
		policies, err := c.List(ctx, at.GroupVersion().WithResource("mutatingadmissionpolicies"))
		if err != nil {
			return nil, fmt.Errorf("listing mutating policies: %w", err)
		}
		if len(policies) == 0 {
			continue // none, or not served in this version
		}
		bindings, err := c.List(ctx, at.GroupVersion().WithResource("mutatingadmissionpolicybindings"))
		if err != nil {
			return nil, fmt.Errorf("listing mutating policies: %w", err)
		}
		return bound(policies, bindings)
	}
	return nil, nil
}

func bound(policies, bindings []map[string]any) ([]Mutator, error) {
	byName := map[string]*v1.MatchResources{}
	for _, t := range policies {
		var p v1.MutatingAdmissionPolicy
		if err := as(t, &p); err != nil {
			return nil, fmt.Errorf("reading mutating policies: %w", err)
		}
		byName[p.Name] = p.Spec.MatchConstraints
	}
	var out []Mutator
	for _, t := range bindings {
		var b v1.MutatingAdmissionPolicyBinding
		if err := as(t, &b); err != nil {
			return nil, fmt.Errorf("reading mutating policies: %w", err)
		}
		constraints, known := byName[b.Spec.PolicyName]
		if !known {
			continue
		}
		m := Mutator{Policy: b.Spec.PolicyName, Configuration: b.Name}
		m.limit(constraints)
		m.limit(b.Spec.MatchResources)
		out = append(out, m)
	}
	return out, nil
}

func (m *Mutator) limit(r *v1.MatchResources) {
	if r == nil {
		return
	}
	if len(r.ResourceRules) > 0 {
		m.rules = append(m.rules, unnamed(r.ResourceRules))
	}
	m.exclude = append(m.exclude, unnamed(slices.DeleteFunc(slices.Clone(r.ExcludeResourceRules), named)))
	m.namespaces = append(m.namespaces, r.NamespaceSelector)
	m.objects = append(m.objects, r.ObjectSelector)
}

func named(r v1.NamedRuleWithOperations) bool { return len(r.ResourceNames) > 0 }

// unnamed drops names from rules: one that is limited to names may be about
// ours, and to say so too often does no harm.
func unnamed(rules []v1.NamedRuleWithOperations) []v1.RuleWithOperations {
	var out []v1.RuleWithOperations
	for _, r := range rules {
		out = append(out, r.RuleWithOperations)
	}
	return out
}

// May reports whether the mutator may be asked about a request. Conditions in
// CEL are not evaluated: they may be true.
func (m Mutator) May(a Asked) bool {
	if !m.MayAnywhere(a) {
		return false
	}
	for _, s := range m.objects {
		if !selects(s, a.Labels) {
			return false
		}
	}
	if a.Namespace == "" && (a.Resource.Group != "" || a.Resource.Resource != "namespaces") {
		return true // a namespaceSelector skips nothing that has no namespace
	}
	for _, s := range m.namespaces {
		if !selects(s, a.NamespaceLabels) {
			return false
		}
	}
	return true
}

// MayAnywhere is May for some object in some namespace: it goes by the rules
// alone.
func (m Mutator) MayAnywhere(a Asked) bool {
	for _, rules := range m.rules {
		if !slices.ContainsFunc(rules, a.in) {
			return false
		}
	}
	for _, rules := range m.exclude {
		if slices.ContainsFunc(rules, a.in) {
			return false
		}
	}
	return true
}

// in reports whether a rule is about a request. Versions are not compared: with
// matchPolicy Equivalent an object is shown in any version that a rule names.
func (a Asked) in(r v1.RuleWithOperations) bool {
	star := func(list []string, want string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, want)
	}
	if !slices.Contains(r.Operations, v1.OperationAll) && !slices.Contains(r.Operations, v1.OperationType(a.Operation)) {
		return false
	}
	if r.Scope != nil && (*r.Scope == v1.NamespacedScope && a.Namespace == "" || *r.Scope == v1.ClusterScope && a.Namespace != "") {
		return false
	}
	return star(r.APIGroups, a.Resource.Group) && (star(r.Resources, a.Resource.Resource) || slices.Contains(r.Resources, "*/*"))
}

func selects(s *metav1.LabelSelector, of map[string]string) bool {
	if s == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err != nil || selector.Matches(labels.Set(of)) // what we cannot read may be true
}

// as reads a raw tree into an API type.
func as(t map[string]any, into any) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// NamespaceLabels returns the labels of a namespace.
func (c *Cluster) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	t, err := c.Get(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", name)
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", strings.ToValidUTF8(name, "?"), err)
	}
	return Labels(t), nil
}

// Labels returns the labels of an object.
func Labels(t map[string]any) map[string]string {
	return (&unstructured.Unstructured{Object: t}).GetLabels()
}
