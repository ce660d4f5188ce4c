package admission

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Name is the name of the ValidatingWebhookConfiguration.
const Name = "syncgate"

// The paths that the API server asks.
const (
	ValidatePath = "/validate"
	GuardPath    = "/guard"
)

// TimeoutSeconds is how long the API server waits for an answer.
const TimeoutSeconds = 5

// Configuration is a ValidatingWebhookConfiguration
// (admissionregistration.k8s.io/v1) with the members that syncgate sets.
type Configuration struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   Metadata  `json:"metadata"`
	Webhooks   []Webhook `json:"webhooks"`
}

// Metadata of the configuration.
type Metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Webhook is one entry of the configuration.
type Webhook struct {
	Name                    string         `json:"name"`
	ClientConfig            ClientConfig   `json:"clientConfig"`
	Rules                   []Rule         `json:"rules"`
	FailurePolicy           string         `json:"failurePolicy"`
	MatchPolicy             string         `json:"matchPolicy"`
	NamespaceSelector       *LabelSelector `json:"namespaceSelector,omitempty"`
	SideEffects             string         `json:"sideEffects"`
	TimeoutSeconds          int            `json:"timeoutSeconds"`
	AdmissionReviewVersions []string       `json:"admissionReviewVersions"`
	MatchConditions         []Condition    `json:"matchConditions,omitempty"`
}

// ClientConfig says where the webhook is: behind a Service of the cluster, or
// at a URL. CABundle is base64 of PEM.
type ClientConfig struct {
	URL      string            `json:"url,omitempty"`
	Service  *ServiceReference `json:"service,omitempty"`
	CABundle string            `json:"caBundle,omitempty"`
}

// ServiceReference names a Service. Port is 443 when it is not set.
type ServiceReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path,omitempty"`
	Port      int    `json:"port,omitempty"`
}

// Rule says which requests an entry is for.
type Rule struct {
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Operations  []string `json:"operations"`
	Resources   []string `json:"resources"`
	Scope       string   `json:"scope,omitempty"`
}

// LabelSelector selects namespaces.
type LabelSelector struct {
	MatchExpressions []Requirement `json:"matchExpressions"`
}

// Requirement is one expression of a selector.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// Condition is a CEL expression; the webhook is called if all of an entry's are
// true.
type Condition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// Place says where the webhook is reached, in one of two ways. CABundle is PEM;
// empty if something else (cert-manager, the certificate Job) fills it in.
type Place struct {
	URL      string // "https://HOST:PORT", without a path
	Service  ServiceReference
	CABundle []byte
	// Annotations of the configuration, such as cert-manager.io/inject-ca-from.
	Annotations map[string]string
}

func (p Place) config(path string) ClientConfig {
	c := ClientConfig{}
	if len(p.CABundle) > 0 {
		c.CABundle = base64.StdEncoding.EncodeToString(p.CABundle)
	}
	if p.URL != "" {
		c.URL = strings.TrimSuffix(p.URL, "/") + path
		return c
	}
	s := p.Service
	s.Path = path
	c.Service = &s
	return c
}

// NewConfiguration returns the configuration that follows from the projection
// table and a policy: rules that list gated resources only, failurePolicy Fail,
// and conditions that are true whenever the gated fields of an object may
// differ. The error says which kind of the policy cannot be judged at
// admission.
func NewConfiguration(p *policy.Policy, place Place) (Configuration, error) {
	c := Configuration{
		APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration",
		Metadata: Metadata{Name: Name, Labels: map[string]string{"app.kubernetes.io/name": "syncgate"}, Annotations: place.Annotations},
	}
	entries, err := entries(p)
	if err != nil {
		return Configuration{}, err
	}
	a := p.Admission()
	for _, e := range entries {
		w := webhook(e.name, place.config(ValidatePath))
		w.Rules = e.rules(a)
		if !e.clusterScoped {
			w.NamespaceSelector = selector(a)
		}
		w.MatchConditions = e.matchConditions(a)
		c.Webhooks = append(c.Webhooks, w)
	}
	c.Webhooks = append(c.Webhooks, subresources(p, entries, place)...)
	c.Webhooks = append(c.Webhooks, guard(a, place))
	return c, nil
}

func webhook(name string, client ClientConfig) Webhook {
	return Webhook{
		Name: name + ".syncgate.io", ClientConfig: client,
		FailurePolicy: "Fail", MatchPolicy: "Equivalent", SideEffects: "None",
		TimeoutSeconds: TimeoutSeconds, AdmissionReviewVersions: []string{"v1"},
	}
}

// selector chooses namespaces by the label that the API server itself sets to
// their name: an opt-in label could be taken off unseen.
func selector(a policy.Admission) *LabelSelector {
	r := Requirement{Key: "kubernetes.io/metadata.name", Operator: "NotIn", Values: slices.Clone(a.Exclude)}
	if a.Include != nil {
		r.Operator, r.Values = "In", slices.Clone(a.Include)
	} else if !slices.Contains(r.Values, a.Namespace) {
		r.Values = append(r.Values, a.Namespace)
	}
	slices.Sort(r.Values)
	return &LabelSelector{[]Requirement{r}}
}

// entry is the kinds that share their conditions.
type entry struct {
	name          string
	clusterScoped bool
	kinds         []projection.Kind
	conditions    projection.Conditions
}

// names of entries, by a kind that is in them.
var entryNames = map[string]string{
	"Deployment": "workloads", "Pod": "pods", "CronJob": "cronjobs", "PodTemplate": "podtemplates", "ControllerRevision": "controllerrevisions",
	"HTTPRoute": "gateways", "RoleBinding": "bindings", "Ingress": "ingresses", "NetworkPolicy": "specs",
}

// entries groups the kinds that the webhook judges under this policy by scope
// and conditions, in the order of the projection table.
func entries(p *policy.Policy) ([]*entry, error) {
	a := p.Admission()
	projector, requires := p.Projector(), p.RequiresAnywhere
	kinds, err := judged(p)
	if err != nil {
		return nil, err
	}
	var out []*entry
	for _, k := range kinds {
		c, ok := projector.CEL(k.Group, k.Kind, requires)
		if !ok {
			return nil, fmt.Errorf("kind %s cannot be judged at admission", kindName(k))
		}
		i := slices.IndexFunc(out, func(e *entry) bool {
			return e.clusterScoped == k.ClusterScoped && e.conditions.Create == c.Create && slices.Equal(e.conditions.Update, c.Update)
		})
		if i < 0 {
			i = len(out)
			out = append(out, &entry{clusterScoped: k.ClusterScoped, conditions: c, name: k.Resource})
		}
		out[i].kinds = append(out[i].kinds, k)
		if n := entryNames[k.Kind]; n != "" {
			out[i].name = n
		}
	}
	_ = a
	return unique(out), nil
}

// unique gives entries names of their own: kinds of two groups may share one,
// and a custom kind one of those that are not made from kinds.
func unique(list []*entry) []*entry {
	seen := map[string]int{guardEntry: 1, statusEntry: 1, clusterStatusEntry: 1}
	for _, e := range list {
		seen[e.name]++
		if n := seen[e.name]; n > 1 {
			e.name = fmt.Sprintf("%s-%d", e.name, n)
		}
	}
	return list
}

// judged lists the kinds that the webhook is asked about: the namespaced ones
// of the table that are judged by default, those that policy names beside them,
// the cluster-scoped ones that policy names, and custom kinds.
func judged(p *policy.Policy) ([]projection.Kind, error) {
	a := p.Admission()
	var out []projection.Kind
	found := map[string]bool{}
	wants := func(list []string, k projection.Kind) bool {
		for _, name := range list {
			if name == k.Kind || name == kindName(k) {
				found[name] = true
				return true
			}
		}
		return false
	}
	for _, k := range projection.Kinds() {
		switch {
		case k.Hidden:
		case k.ClusterScoped:
			if wants(a.ClusterScoped, k) {
				out = append(out, k)
			}
		default:
			if asked := wants(a.Kinds, k); asked || k.ByDefault {
				out = append(out, k)
			}
		}
	}
	for _, k := range p.CustomKinds() {
		if !slices.ContainsFunc(out, func(x projection.Kind) bool { return x.Group == k.Group && x.Kind == k.Kind }) {
			out = append(out, k)
		}
		found[k.Kind], found[kindName(k)] = true, true
	}
	for _, name := range slices.Concat(a.ClusterScoped, a.Kinds) {
		if !found[name] {
			return nil, fmt.Errorf("kind %s, which policy names under scope.admission, is none that syncgate gates", name)
		}
	}
	return out, nil
}

func kindName(k projection.Kind) string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// rules lists the entry's resources, one rule for each set of operations and
// API groups.
func (e *entry) rules(a policy.Admission) []Rule {
	var out []Rule
	scope := "Namespaced"
	if e.clusterScoped {
		scope = "Cluster"
	}
	add := func(group, resource string, operations ...string) {
		for i := range out {
			if out[i].APIGroups[0] == group && slices.Equal(out[i].Operations, operations) {
				out[i].Resources = append(out[i].Resources, resource)
				return
			}
		}
		out = append(out, Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Operations: operations, Resources: []string{resource}, Scope: scope})
	}
	for _, k := range e.kinds {
		operations := []string{Create, Update}
		if slices.Contains(a.GatedDeletes, k.Kind) {
			operations = append(operations, Delete)
		}
		add(k.Group, k.Resource, operations...)
		if k.Group == "" && k.Kind == "Pod" {
			add("", "pods/ephemeralcontainers", Update)
		}
		if !inTable(k) {
			// Served by somebody else's API server it may write anything.
			add(k.Group, k.Resource+"/status", Update)
		}
	}
	return out
}
