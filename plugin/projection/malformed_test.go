package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestWhatIsMalformedIsAnErrorAndNeverALostLeaf(t *testing.T) {
	pod := func(spec string) string { return deployment(spec) }
	for _, c := range []struct{ name, in, fault string }{
		{"a string for a boolean", pod(`hostNetwork: "true"`), `spec.template.spec.hostNetwork: want true or false, got a string`},
		{"a number for an image", pod(`containers: [{name: a, image: 7}]`), `spec.template.spec.containers[a].image: want a string, got a number`},
		{"an object for a list of containers", pod(`containers: {a: {image: i}}`), `spec.template.spec.containers: want a list, got an object`},
		{"a string among containers", pod(`containers: [x]`), `spec.template.spec.containers[#0]: want a container, got a string`},
		{"a pod spec that is a list", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: [x]}}}`, `spec.template.spec: want an object, got a list`},
		{"a second spec in another case", `{apiVersion: apps/v1, kind: Deployment, spec: {}, Spec: {template: {}}}`, `Spec: is spec in another case`},
		{"one with a letter that folds", `{apiVersion: apps/v1, kind: Deployment, "\u017fpec": {}}`, `"ſpec": is spec in another case`},
		{"a second kind", `{apiVersion: v1, kind: Pod, KIND: Service}`, `KIND: is kind in another case`},
		{"a second metadata", `{apiVersion: v1, kind: Service, Metadata: {}}`, `Metadata: is metadata in another case`},
		{"rules in another case alone", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, Rules: []}`, `Rules: is rules in another case`},
		{"a second roleRef", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, roleRef: {}, roleref: {}}`, `roleref: is roleRef in another case`},
		{"a second type of a Secret", `{apiVersion: v1, kind: Secret, type: Opaque, Type: x}`, `Type: is type in another case`},
		{"a second template", `{apiVersion: v1, kind: PodTemplate, template: {}, Template: {}}`, `Template: is template in another case`},
		{"second webhooks", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [], WebHooks: []}`, `WebHooks: is webhooks in another case`},
		{"a spec that is a string", `{apiVersion: apps/v1, kind: Deployment, spec: x}`, `spec: want an object, got a string`},
		{"template annotations that are a list", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: [x]}, spec: {}}}}`, `spec.template.metadata.annotations: want an object, got a list`},
		{"two containers with one name", pod(`containers: [{name: a, image: x}, {name: a, image: z}]`), `spec.template.spec.containers[a].image: stands twice`},
		{"two volumes with one name", pod(`volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]`), `spec.template.spec.volumes[v]: two volumes with one name`},
		{"two mounts at one path", pod("volumes: [{name: v, secret: {secretName: s}}]\ncontainers: [{name: a, volumeMounts: [{name: v, mountPath: /m}, {name: v, mountPath: /m}]}]"), `spec.template.spec.containers[a].volumeMounts["/m"].name: stands twice`},
		{"two variables with one name that count", pod(`containers: [{name: a, env: [{name: PATH, value: a}, {name: PATH, value: b}]}]`), `spec.template.spec.containers[a].env[PATH].value: stands twice`},
		{"a service account that is an object", pod(`serviceAccountName: {a: b}`), `spec.template.spec.serviceAccountName: want a string, got an object`},
		{"the alias, too", pod(`serviceAccount: 1`), `spec.template.spec.serviceAccount: want a string, got a number`},
		{"pull secrets that are a string", pod(`imagePullSecrets: x`), `spec.template.spec.imagePullSecrets: want a list, got a string`},
		{"a null among strings", pod(`containers: [{name: a, command: [null]}]`), `spec.template.spec.containers[a].command[#0]: want a value, got null`},
		{"an environment that is an object", pod(`containers: [{name: a, env: {A: b}}]`), `spec.template.spec.containers[a].env: want a list, got an object`},
		{"a secret key that is a string", pod(`containers: [{name: a, env: [{name: A, valueFrom: {secretKeyRef: s}}]}]`), `spec.template.spec.containers[a].env[A].valueFrom.secretKeyRef: want an object, got a string`},
		{"a secret source that is a string", pod(`volumes: [{name: v, projected: {sources: [{secret: s}]}}]`), `spec.template.spec.volumes[v].projected.sources[#0].secret: want an object, got a string`},
		{"an ephemeral claim that is a string", pod(`volumes: [{name: v, ephemeral: {volumeClaimTemplate: s}}]`), `spec.template.spec.volumes[v].ephemeral.volumeClaimTemplate: want an object, got a string`},
		{"an ephemeral claim's spec that is a list", pod(`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: []}}}]`), `spec.template.spec.volumes[v].ephemeral.volumeClaimTemplate.spec: want an object, got a list`},
		{"a volume without a name", pod(`volumes: [{secret: {secretName: s}}]`), `spec.template.spec.volumes[#0]: want a name`},
		{"a mount without a path", pod(`containers: [{name: a, volumeMounts: [{name: v}]}]`), `spec.template.spec.containers[a].volumeMounts[#0]: want name and mountPath`},
		{"a toleration whose key is a number", pod(`tolerations: [{key: 1, operator: Exists}]`), `spec.template.spec.tolerations[#0].key: want a string, got a number`},
		{"a user that is a string", pod(`securityContext: {runAsUser: "0"}`), `spec.template.spec.securityContext.runAsUser: want an integer, got a string`},
		{"a fraction for an integer", pod(`securityContext: {runAsUser: 1.5}`), `spec.template.spec.securityContext.runAsUser: want an integer, got a number`},
		{"an integer that no double holds", pod(`securityContext: {runAsUser: 9007199254740993}`), `spec.template.spec.securityContext.runAsUser: want an integer, got a number`},
		{"a port number that is a string", pod(`containers: [{name: a, ports: [{containerPort: "80", hostPort: 80}]}]`), `spec.template.spec.containers[a].ports[#0]: list item whose "containerPort" is a string`},
		{"resources that are a list", pod(`containers: [{name: a, resources: [x]}]`), `spec.template.spec.containers[a].resources: want an object, got a list`},
		{"a probe that is a string", pod(`containers: [{name: a, livenessProbe: x}]`), `spec.template.spec.containers[a].livenessProbe: want an object, got a string`},
		{"a hook's action that is a list", pod(`containers: [{name: a, lifecycle: {preStop: {exec: [x]}}}]`), `spec.template.spec.containers[a].lifecycle.preStop.exec: want an object, got a list`},
		{"a rollback, which would run an older image", `{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {deprecated.deployment.rollback.to: "1"}}}`, `metadata.annotations["deprecated.deployment.rollback.to"]: makes the deployment controller restore an older image`},
		{"rules beside an aggregation rule", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: ["*"]}]}`, `rules: rules beside an aggregationRule`},
		{"rules that are no list beside one", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}, rules: x}`, `rules: rules beside an aggregationRule`},
		{"aggregation by a label that is not gated", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{matchLabels: {app: x}}]}}`, `aggregationRule.clusterRoleSelectors[#0]: selects the label "app"`},
		{"aggregation by an expression on one", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: helm.sh/chart, operator: Exists}]}]}}`, `aggregationRule.clusterRoleSelectors[#0]: selects the label "helm.sh/chart"`},
		{"subjects that are an object", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: {a: b}}`, `subjects: want a list, got an object`},
		{"a subject that is a string", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [x]}`, `subjects[#0]: want an object, got a string`},
		{"a Service's type that is a number", `{apiVersion: v1, kind: Service, spec: {type: 1}}`, `spec.type: want a string, got a number`},
		{"external addresses that are a string", `{apiVersion: v1, kind: Service, spec: {externalIPs: 1.2.3.4}}`, `spec.externalIPs: want a list, got a string`},
		{"a selector that is a list", `{apiVersion: v1, kind: Service, spec: {selector: [x]}}`, `spec.selector: want an object, got a list`},
		{"a Service port without a number", `{apiVersion: v1, kind: Service, spec: {ports: [{name: x}]}}`, `spec.ports[#0]: list item whose "port" is null`},
		{"a Secret's type that is a list", `{apiVersion: v1, kind: Secret, type: [x]}`, `type: want a string, got a list`},
		{"an annotation that is a number", `{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {eks.amazonaws.com/role-arn: 1}}}`, `metadata.annotations["eks.amazonaws.com/role-arn"]: want a string, got a number`},
		{"a claim reference that is a string", `{apiVersion: v1, kind: PersistentVolume, spec: {claimRef: x}}`, `spec.claimRef: want an object, got a string`},
		{"endpoints that are a string", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, endpoints: x}`, `endpoints: want a list, got a string`},
		{"a NetworkPolicy whose rules are an object", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: {}}}`, `spec.ingress: want a list, got an object`},
		{"claim templates that are an object", `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {}}, volumeClaimTemplates: {}}}`, `spec.volumeClaimTemplates: want a list, got an object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Project(parse(t, c.in))
			var malformed *MalformedError
			if !errors.As(err, &malformed) {
				t.Fatalf("error = %v, want a MalformedError; leaves %v", err, leaves(p, true))
			}
			if !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error = %q, want %q", err, c.fault)
			}
			if p != nil {
				t.Errorf("a projection beside the error: %q", leaves(p, true))
			}
		})
	}
}

// Every place of a maximal Deployment that holds a leaf is given a value of
// each other JSON type in turn.
func TestNoWrongTypeHidesALeaf(t *testing.T) {
	obj := parse(t, deployment(`
serviceAccountName: s
hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]
volumes:
- {name: s, secret: {secretName: s, items: [{key: k, path: p}]}}
- {name: p, projected: {sources: [{serviceAccountToken: {path: t}}, {secret: {name: s}}]}}
- {name: c, csi: {driver: d, volumeAttributes: {a: b}}}
containers:
- name: a
  image: i
  command: [x]
  env: [{name: PATH, value: q}, {name: X, valueFrom: {secretKeyRef: {name: s, key: k}}}]
  envFrom: [{secretRef: {name: s}}]
  ports: [{containerPort: 80, hostPort: 80}]
  securityContext: {privileged: true, capabilities: {add: [A]}}
  volumeMounts: [{name: s, mountPath: /m, readOnly: true}]
  livenessProbe: {exec: {command: [x]}}
`))
	before := digestOf(t, obj)
	others := []any{true, "x", json.Number("7"), []any{}, map[string]any{}, []any{nil}, []any{map[string]any{"zz": "x"}}}
	places := 0
	for _, l := range mustProject(t, obj).Leaves() {
		path, ok := resolve(obj, l.Path)
		if !ok {
			t.Fatalf("no place for %s", l)
		}
		for n := 3; n <= len(path); n++ { // the leaf and everything around it, below spec.template.spec
			for _, other := range others {
				if fmt.Sprint(other) == fmt.Sprint(valueAt(obj, path[:n])) {
					continue
				}
				places++
				after, err := tryDigest(change(obj, path[:n], func(any) any { return other }).(map[string]any))
				if err == nil && after == before {
					t.Errorf("%v := %v changes nothing", path[:n], other)
				}
			}
		}
	}
	t.Logf("%d changes", places)
}

func mustProject(t *testing.T, obj map[string]any) *Projection {
	t.Helper()
	p, err := Project(obj)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFaultsAreAllReportedInOrder(t *testing.T) {
	_, err := Project(parse(t, deployment("hostPID: x\nhostIPC: x\nhostNetwork: x")))
	var malformed *MalformedError
	if !errors.As(err, &malformed) || len(malformed.Faults) != 3 {
		t.Fatalf("error = %v, want three faults", err)
	}
	for i := 1; i < len(malformed.Faults); i++ {
		if malformed.Faults[i-1].Path >= malformed.Faults[i].Path {
			t.Errorf("faults out of order: %v", malformed.Faults)
		}
	}
}

func TestInvalidTextIsMalformed(t *testing.T) {
	for name, obj := range map[string]map[string]any{
		"in a value":     {"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"labels": map[string]any{"a": "\xff"}}},
		"in a key":       {"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"labels": map[string]any{"\xff": "a"}}},
		"inside a value": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": map[string]any{"sources": []any{map[string]any{"\xff": "a"}}}},
	} {
		if p, err := Project(obj); err == nil {
			t.Errorf("%s: no error, leaves %q", name, leaves(p, true))
		}
	}
}

func TestDepthAndSizeAreBounded(t *testing.T) {
	deep := any("x")
	for range 200 {
		deep = map[string]any{"a": deep}
	}
	if _, err := Project(map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": deep}); err == nil {
		t.Error("200 levels: no error")
	}
	if _, err := Project(parseWith(t, deployment("newField: DEEP"), deep)); err == nil {
		t.Error("200 levels in an unknown field of a pod spec: no error")
	}
	labels := map[string]any{}
	for i := range maxLeaves + 1 {
		labels["label-"+strconv.Itoa(i)] = "x"
	}
	if _, err := Project(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"labels": labels}}); err == nil {
		t.Errorf("%d leaves: no error", maxLeaves+1)
	}
}

// parseWith decodes a document and puts a value in place of the text DEEP.
func parseWith(t *testing.T, doc string, v any) map[string]any {
	t.Helper()
	obj := parse(t, doc)
	for _, path := range scalars(obj, nil, nil) {
		if valueAt(obj, path) == "DEEP" {
			return change(obj, path, func(any) any { return v }).(map[string]any)
		}
	}
	t.Fatal("no DEEP in the document")
	return nil
}

func TestWhatDidNotComeOutOfProjectEqualsNothing(t *testing.T) {
	p := project(t, deployment(`hostPID: true`))
	for _, c := range []struct{ a, b *Projection }{{nil, nil}, {nil, p}, {p, nil}, {&Projection{}, &Projection{}}} {
		if EqualIn(c.a, c.b, Privilege) {
			t.Errorf("EqualIn(%v, %v) is true", c.a, c.b)
		}
	}
	if !EqualIn(p, p, Privilege) {
		t.Error("a projection differs from itself")
	}
	if _, err := (&Projection{}).Digest(nil); err == nil {
		t.Error("the zero projection has a digest")
	}
	if _, err := (*Projection)(nil).Digest(nil); err == nil {
		t.Error("no projection has a digest")
	}
}
