package admission

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	registration "k8s.io/api/admissionregistration/v1"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const minimal = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- {name: release, keys: {file: release.json}}
`

func load(t testing.TB, more string) *policy.Policy {
	t.Helper()
	s, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "release", "")
	if err != nil {
		t.Fatal(err)
	}
	set, err := keys.PublicJWKS([]receipt.Key{s.Key()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse([]byte(minimal+more), "policy.yaml", func(string) ([]byte, error) { return set, nil })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// configuration is the generated one as an API server decodes it: strictly.
func configuration(t testing.TB, more string) *registration.ValidatingWebhookConfiguration {
	t.Helper()
	c, err := NewConfiguration(load(t, more), Place{Service: ServiceReference{Namespace: "syncgate-system", Name: "syncgate-webhook"}, CABundle: []byte("pem")})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var out registration.ValidatingWebhookConfiguration
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// resources lists what the entries ask about: "group/resource OPERATIONS".
func resources(c *registration.ValidatingWebhookConfiguration) []string {
	var out []string
	for _, w := range c.Webhooks {
		for _, r := range w.Rules {
			for _, res := range r.Resources {
				var ops []string
				for _, o := range r.Operations {
					ops = append(ops, string(o))
				}
				out = append(out, r.APIGroups[0]+"/"+res+" "+strings.Join(ops, ","))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestOnlyGatedResourcesAreAskedAbout(t *testing.T) {
	want := []string{
		"/bindings CREATE", "/configmaps CREATE,UPDATE,DELETE", "/namespaces CREATE,UPDATE", "/namespaces/finalize UPDATE", "/namespaces/status UPDATE",
		"/persistentvolumeclaims CREATE,UPDATE", "/persistentvolumeclaims/status UPDATE", "/pods CREATE,UPDATE", "/pods/binding CREATE", "/pods/ephemeralcontainers UPDATE", "/pods/status UPDATE",
		"/podtemplates CREATE,UPDATE", "/replicationcontrollers CREATE,UPDATE", "/replicationcontrollers/status UPDATE",
		"/secrets CREATE,UPDATE", "/secrets CREATE,UPDATE,DELETE", "/serviceaccounts CREATE,UPDATE", "/services CREATE,UPDATE", "/services/status UPDATE",
		"apps/controllerrevisions CREATE,UPDATE", "apps/daemonsets CREATE,UPDATE", "apps/daemonsets/status UPDATE", "apps/deployments CREATE,UPDATE", "apps/deployments/status UPDATE",
		"apps/replicasets CREATE,UPDATE", "apps/replicasets/status UPDATE", "apps/statefulsets CREATE,UPDATE", "apps/statefulsets/status UPDATE",
		"batch/cronjobs CREATE,UPDATE", "batch/cronjobs/status UPDATE", "batch/jobs CREATE,UPDATE", "batch/jobs/status UPDATE",
		"gateway.networking.k8s.io/backendtlspolicies CREATE,UPDATE", "gateway.networking.k8s.io/gateways CREATE,UPDATE", "gateway.networking.k8s.io/grpcroutes CREATE,UPDATE",
		"gateway.networking.k8s.io/httproutes CREATE,UPDATE", "gateway.networking.k8s.io/listenersets CREATE,UPDATE", "gateway.networking.k8s.io/referencegrants CREATE,UPDATE",
		"gateway.networking.k8s.io/tcproutes CREATE,UPDATE", "gateway.networking.k8s.io/tlsroutes CREATE,UPDATE", "gateway.networking.k8s.io/udproutes CREATE,UPDATE",
		"networking.k8s.io/ingresses CREATE,UPDATE", "networking.k8s.io/ingresses/status UPDATE", "networking.k8s.io/networkpolicies CREATE,UPDATE",
		"rbac.authorization.k8s.io/rolebindings CREATE,UPDATE", "rbac.authorization.k8s.io/roles CREATE,UPDATE",
		"resource.k8s.io/resourceclaims CREATE,UPDATE", "resource.k8s.io/resourceclaimtemplates CREATE,UPDATE",
	}
	if diff := cmp.Diff(want, resources(configuration(t, ""))); diff != "" {
		t.Errorf("resources by default (-want +got):\n%s", diff)
	}
	got := resources(configuration(t, `gatedDeletes: [NetworkPolicy]
scope: {admission: {clusterScoped: [Namespace, ClusterRole, PersistentVolume], kinds: [EndpointSlice, Application]}}
kinds:
- {group: monitoring.coreos.com, kind: Prometheus, path: spec.image, category: x-operators, resource: prometheuses}
- {group: example.com, kind: Fleet, path: spec.image, category: x-operators, scope: Cluster}
`))
	for _, want := range []string{
		"networking.k8s.io/networkpolicies CREATE,UPDATE,DELETE", "rbac.authorization.k8s.io/clusterroles CREATE,UPDATE", "/persistentvolumes CREATE,UPDATE",
		"discovery.k8s.io/endpointslices CREATE,UPDATE", "argoproj.io/applications CREATE,UPDATE", "monitoring.coreos.com/prometheuses CREATE,UPDATE", "example.com/fleets CREATE,UPDATE",
		"/persistentvolumes/status UPDATE", "monitoring.coreos.com/prometheuses/status UPDATE", "example.com/fleets/status UPDATE",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("policy names %s, the configuration does not", want)
		}
	}
}

func TestEveryEntryFailsClosedAndIsScopedByName(t *testing.T) {
	for name, more := range map[string]string{
		"default": "", "include": "scope: {admission: {namespaces: {include: [shop]}}}\n", "exclude": "scope: {admission: {namespaces: {exclude: [kube-system, bank]}}}\n",
	} {
		names := map[string]bool{}
		for _, w := range configuration(t, more).Webhooks {
			if names[w.Name] {
				t.Errorf("%s: two entries called %s", name, w.Name)
			}
			names[w.Name] = true
			if *w.FailurePolicy != registration.Fail || *w.MatchPolicy != registration.Equivalent || *w.SideEffects != registration.SideEffectClassNone || *w.TimeoutSeconds != 5 {
				t.Errorf("%s: %s: got %s %s %s %d", name, w.Name, *w.FailurePolicy, *w.MatchPolicy, *w.SideEffects, *w.TimeoutSeconds)
			}
			if len(w.MatchConditions) == 0 || w.MatchConditions[0].Name != "not-exempt" && w.MatchConditions[0].Name != "not-an-administrator" {
				t.Errorf("%s: %s: the exemption does not stand first", name, w.Name)
			}
			cluster := false
			for _, r := range w.Rules {
				if slices.Contains(r.Resources, "*") || slices.Contains(r.APIGroups, "*") {
					t.Errorf("%s: %s asks about everything: %v", name, w.Name, r)
				}
				cluster = cluster || *r.Scope == registration.ClusterScope
			}
			if cluster != (w.NamespaceSelector == nil) {
				t.Errorf("%s: %s: cluster-scoped %t, selector %v", name, w.Name, cluster, w.NamespaceSelector)
			}
			if w.NamespaceSelector != nil {
				for _, e := range w.NamespaceSelector.MatchExpressions {
					if e.Key != "kubernetes.io/metadata.name" || e.Operator == "NotIn" && !slices.Contains(e.Values, "syncgate-system") {
						t.Errorf("%s: %s selects by %v", name, w.Name, e)
					}
				}
			}
		}
	}
}
