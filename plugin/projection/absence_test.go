package projection

import (
	"strings"
	"testing"
)

// The API server makes "" of a null in a map of strings, and kubectl apply
// leaves the key out: what is gated must not be so.
func TestNullInAGatedMapOfStringsIsMalformed(t *testing.T) {
	for _, c := range []struct{ name, doc, path string }{
		{"selector of a Service", `{apiVersion: v1, kind: Service, spec: {selector: {app: null}}}`, "spec.selector[app]"},
		{"annotation of an Ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {x: null}}}`, "metadata.annotations[x]"},
		{"label of a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {labels: {team: null}}}`, "metadata.labels[team]"},
		{"label of a ClusterRole", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {labels: {mine: null}}}`, "metadata.labels[mine]"},
		{"annotation of a pod template", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {sidecar.istio.io/inject: null}}, spec: {}}}}`, `spec.template.metadata.annotations["sidecar.istio.io/inject"]`},
		{"parameter of a StorageClass", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, parameters: {a: null}}`, "parameters[a]"},
		{"selector of a NetworkPolicy", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {matchLabels: {a: null}}}}`, "spec.podSelector.matchLabels[a]"},
		{"selector inside a list", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: null}}]}}`, "aggregationRule.clusterRoleSelectors[#0].matchLabels[a]"},
	} {
		_, err := Project(parse(t, c.doc))
		if err == nil || !strings.HasPrefix(err.Error(), c.path+": null in a map of strings") {
			t.Errorf("%s: got %v, want a fault at %s", c.name, err, c.path)
		}
	}
}

func TestNullWhereNothingIsGatedIsAbsence(t *testing.T) {
	for _, doc := range []string{
		`{apiVersion: v1, kind: Service, metadata: {annotations: {x: null}, labels: {y: null}}, spec: {selector: null}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {y: null}}, spec: {template: {metadata: {annotations: {x: null}, labels: {y: null}}, spec: {nodeSelector: {z: null}}}}}`,
		`{apiVersion: example.com/v1, kind: Thing, spec: {containers: [{image: i, env: null}], metadata: {annotations: {sidecar.istio.io/inject: null}}}}`,
	} {
		if _, err := Project(parse(t, doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestDefaultsOfKindsOutsideTheAPITypesAreAbsence(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"the port of a conversion webhook", `{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: n}}}}}}`,
			`{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: n, port: 443}}}}}}`, true},
		{"another port", `{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: n}}}}}}`,
			`{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: n, port: 444}}}}}}`, false},
		{"an API service that checks certificates", `{kind: APIService, apiVersion: apiregistration.k8s.io/v1, spec: {insecureSkipTLSVerify: false}}`, `{kind: APIService, apiVersion: apiregistration.k8s.io/v1, spec: {}}`, true},
		{"an API service that does not", `{kind: APIService, apiVersion: apiregistration.k8s.io/v1, spec: {insecureSkipTLSVerify: true}}`, `{kind: APIService, apiVersion: apiregistration.k8s.io/v1, spec: {}}`, false},
		{"the default of another kind", `{kind: GitRepository, apiVersion: source.toolkit.fluxcd.io/v1, spec: {provider: generic}}`, `{kind: GitRepository, apiVersion: source.toolkit.fluxcd.io/v1, spec: {}}`, false},
		{"the default of the kind", `{kind: Bucket, apiVersion: source.toolkit.fluxcd.io/v1, spec: {provider: generic}}`, `{kind: Bucket, apiVersion: source.toolkit.fluxcd.io/v1, spec: {}}`, true},
		{"the priority of a class without one", `{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1}`, `{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, value: 0}`, true},
		{"metadata of claims to be", `{kind: ResourceClaimTemplate, apiVersion: resource.k8s.io/v1, spec: {spec: {}}}`, `{kind: ResourceClaimTemplate, apiVersion: resource.k8s.io/v1, spec: {metadata: {creationTimestamp: null}, spec: {}}}`, true},
		{"an empty protocol", `{kind: Service, apiVersion: v1, spec: {ports: [{port: 80, protocol: ""}]}}`, `{kind: Service, apiVersion: v1, spec: {ports: [{port: 80, protocol: TCP, targetPort: 80}]}}`, true},
	} {
		a, b := digestOf(t, parse(t, c.a)), digestOf(t, parse(t, c.b))
		if (a == b) != c.same {
			t.Errorf("%s: same digest: %v, want %v", c.name, a == b, c.same)
		}
	}
}
