package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestTheConditionsCompileOnOldServers(t *testing.T) {
	longest, seen := 0, map[string]bool{}
	for _, k := range append(Kinds(), Kind{Group: "example.com", Kind: "Thing"}) {
		c, ok := NewProjector([]CustomField{{"example.com", "Thing", "spec.a.b", "x-thing", false}}).CEL(k.Group, k.Kind, nil)
		if ok == k.Hidden {
			t.Errorf("%s %s has conditions: %v", k.Group, k.Kind, ok)
		}
		if !ok {
			continue
		}
		for _, e := range append([]string{c.Create}, c.Update...) {
			longest = max(longest, len(e))
			if seen[e] {
				continue
			}
			seen[e] = true
			for _, v := range []uint{oldestServer, newestServer} {
				compileConditions(t, v, e)
			}
		}
	}
	t.Logf("%d expressions, the longest of %d bytes", len(seen), longest)
}

func TestKindsOfOneFormShareTheirConditions(t *testing.T) {
	conditions := func(group, kind string) string {
		c, ok := (*Projector)(nil).CEL(group, kind, nil)
		if !ok {
			t.Fatalf("%s has none", kind)
		}
		return c.Create + "\n" + strings.Join(c.Update, "\n")
	}
	for _, same := range [][]string{
		{"apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet", "batch/Job", "/ReplicationController", "extensions/Deployment"},
		{gatewayGroup + "/Gateway", gatewayGroup + "/HTTPRoute", gatewayGroup + "/ReferenceGrant"},
		{rbacGroup + "/RoleBinding", rbacGroup + "/ClusterRoleBinding"},
		{"argoproj.io/Application", "kustomize.toolkit.fluxcd.io/Kustomization"},
		{"example.com/Thing", "argoproj.io/Rollout"},
	} {
		group, kind, _ := strings.Cut(same[0], "/")
		want := conditions(group, kind)
		for _, other := range same[1:] {
			if group, kind, _ := strings.Cut(other, "/"); conditions(group, kind) != want {
				t.Errorf("%s has other conditions than %s", other, same[0])
			}
			if a, b := conditions(group, kind), conditions(group, kind); a != b {
				t.Errorf("%s: two calls give two texts", other)
			}
		}
	}
}

func TestKindsThatNoWebhookIsAskedAboutHaveNoConditions(t *testing.T) {
	for _, k := range []kindKey{{admissionGroup, "ValidatingWebhookConfiguration"}, {admissionGroup, "MutatingAdmissionPolicyBinding"}, {"kyverno.io", "Policy"}} {
		if c, ok := (*Projector)(nil).CEL(k.group, k.kind, nil); ok {
			t.Errorf("%v: %v", k, c)
		}
	}
	c, ok := (*Projector)(nil).CEL("rbac.authorization.k8s.io", "Role", policies["image"])
	if !ok || c.Create != "false" || !slices.Equal(c.Update, []string{"false"}) {
		t.Errorf("a kind without a required category: %v, %v", c, ok)
	}
}

func TestCreatingIsAskedAboutIfThereIsALeaf(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		requires  string
		want      bool
	}{
		{"a default ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}`, "default", false},
		{"a ServiceAccount with what absence means", `{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: true, secrets: [{name: t}], metadata: {labels: {a: b}}}`, "default", false},
		{"a ServiceAccount without a token", `{apiVersion: v1, kind: ServiceAccount, automountServiceAccountToken: false}`, "default", true},
		{"a ServiceAccount with a cloud identity", `{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {eks.amazonaws.com/role-arn: r}}}`, "default", true},
		{"an Opaque Secret", `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: eA==}, metadata: {annotations: {a: b}}}`, "default", false},
		{"a Secret of Helm", `{apiVersion: v1, kind: Secret, type: helm.sh/release.v1, metadata: {labels: {owner: helm}}}`, "default", false},
		{"a token", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token}`, "default", true},
		{"a cluster of Argo CD", `{apiVersion: v1, kind: Secret, metadata: {labels: {argocd.argoproj.io/secret-type: cluster}}}`, "default", true},
		{"an internal Service", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1, selector: {a: b}, ports: [{port: 80}]}, metadata: {annotations: {a: b}}}`, "default", false},
		{"an internal Service where that counts", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 80}]}}`, "all", true},
		{"an internal Service where only that counts", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{port: 80}]}}`, "service", true},
		{"an internal Service that an annotation opens", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}}, metadata: {annotations: {tailscale.com/expose: "true"}}}`, "default", true},
		{"a load balancer", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`, "default", true},
		{"external addresses", `{apiVersion: v1, kind: Service, spec: {externalIPs: [1.2.3.4]}}`, "default", true},
		{"a Service without a spec", `{apiVersion: v1, kind: Service}`, "default", false},
		{"a claim", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [a], storageClassName: s, volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}`, "default", false},
		{"a claim to a volume", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: v}}`, "default", true},
		{"a claim with a source", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {dataSource: {kind: VolumeSnapshot, name: s}}}`, "default", true},
		{"a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {kubernetes.io/metadata.name: x}}, spec: {finalizers: [kubernetes]}}`, "default", false},
		{"a Namespace with a label", `{apiVersion: v1, kind: Namespace, metadata: {labels: {istio-injection: enabled}}}`, "default", true},
		{"a driver", `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {attachRequired: true}}`, "default", false},
		{"a driver with tokens", `{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {tokenRequests: [{audience: a}]}}`, "default", true},
		{"a definition", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: None}}}`, "default", false},
		{"a definition that converts", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {conversion: {strategy: Webhook}}}`, "default", true},
		{"a revision of a workload", `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: {spec: {containers: [{image: x}]}}}}}`, "default", true},
		{"a revision of anything", `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {replicas: 1}}}`, "default", false},
		{"a revision with data of a wrong type", `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: x}}}`, "default", true},
		{"a workload", `{apiVersion: apps/v1, kind: Deployment}`, "default", true},
		{"a workload where only secrets count", `{apiVersion: apps/v1, kind: Deployment}`, "secret", true},
		{"a custom resource", `{apiVersion: example.com/v1, kind: Thing}`, "default", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := parse(t, c.doc)
			conditions := newConditions(nil, policies[c.requires]).of(obj)
			for mode, pair := range asObjects(obj, obj) {
				if o := conditions.create(t, pair[1]); o.err != nil || o.asked() != c.want {
					t.Errorf("%s: asked %v, want %v; %v", mode, o.asked(), c.want, o.err)
				}
			}
			if p, err := Project(obj); err == nil && !c.want && slices.ContainsFunc(p.Leaves(), func(l Leaf) bool { return policies[c.requires](l.Category) }) {
				t.Errorf("has leaves: %v", p.Leaves())
			}
		})
	}
}

// Whatever has a leaf is asked about when it is created.
func TestCreatingNeverHidesALeafOfTheCorpus(t *testing.T) {
	n, of := map[string]int{}, map[string]*conditionsOf{}
	for name, requires := range policies {
		of[name] = newConditions(nil, requires)
	}
	eachGated(t, func(d document, p *Projection) {
		for name, c := range of {
			conditions := c.of(d.obj)
			if conditions == nil || !slices.ContainsFunc(p.Leaves(), func(l Leaf) bool { return c.requires(l.Category) }) {
				continue
			}
			n[name]++
			if conditions.text.Create == "true" {
				continue
			}
			if o := conditions.create(t, raw(d.obj)); (o.err != nil || !o.asked()) && sendable(d.obj) {
				t.Errorf("%s: %s is not asked about under %s: %v", d.where, str(d.obj["kind"]), name, o.err)
			}
		}
	})
	t.Log(n)
}

// With fewer categories required there is less to ask about, and still no
// change of those is hidden.
func TestTheConditionsOfEveryPolicyHideNoChange(t *testing.T) {
	t.Parallel()
	r, differ := chance(t), 0
	names := slices.Sorted(maps.Keys(policies))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:2] { // compiling is slow
		t.Run(name, func(t *testing.T) {
			requires := policies[name]
			c, a := newConditions(nil, requires), newAgreement()
			for i := range kindTable {
				k := &kindTable[i]
				typ, ok := apiTypes[k.name()]
				if !ok || k.group == admissionGroup || k.pod != nil && k.kind != "Deployment" && k.kind != "Pod" {
					continue
				}
				for _, seed := range seedsOf(k) {
					tree := (&filler{seeds: seed}).object(k, typ)
					before := gatedIn(nil, tree, requires)
					mutants(r, 20, tree, func(path []any, m map[string]any) {
						a.check(t, fmt.Sprint(path), c, tree, m, before, gatedIn(nil, m, requires))
					})
				}
			}
			t.Logf("%d pairs, %d differ", total(a.pairs), total(a.differ))
			differ += total(a.differ)
		})
	}
	if differ == 0 {
		t.Error("nothing was tried")
	}
}

func TestCustomFieldsAreCompared(t *testing.T) {
	p := NewProjector([]CustomField{
		{"example.com", "Thing", "spec.a.b", "x-thing", false}, {"example.com", "Thing", "status.image", "x-image", true}, {"example.com", "Thing", "metadata.labels.it's", "x-label", false},
		{"apps", "Deployment", "spec.replicas", "x-replicas", false}, {"", "ServiceAccount", "metadata.labels.team", "x-team", false}, {"kyverno.io", "Policy", "spec.rules", "x-rules", false},
	})
	for _, c := range []struct {
		name, old, obj string
		want           bool
	}{
		{"a field", `{apiVersion: example.com/v1, kind: Thing, spec: {a: {b: 1}}}`, `{apiVersion: example.com/v1, kind: Thing, spec: {a: {b: 2}}}`, true},
		{"any field of the spec, where a pod may stand", `{apiVersion: example.com/v1, kind: Thing, spec: {c: 1}}`, `{apiVersion: example.com/v1, kind: Thing, spec: {c: 2}}`, true},
		{"a field of the status", `{apiVersion: example.com/v1, kind: Thing, status: {image: a}}`, `{apiVersion: example.com/v1, kind: Thing, status: {image: b}}`, true},
		{"another field of the status", `{apiVersion: example.com/v1, kind: Thing, status: {image: a, x: 1}}`, `{apiVersion: example.com/v1, kind: Thing, status: {image: a}}`, false},
		{"a status that is gone", `{apiVersion: example.com/v1, kind: Thing, status: {image: a}}`, `{apiVersion: example.com/v1, kind: Thing, status: x}`, true},
		{"a label whose name needs quoting", `{apiVersion: example.com/v1, kind: Thing, metadata: {labels: {"it's": a}}}`, `{apiVersion: example.com/v1, kind: Thing, metadata: {labels: {"it's": b}}}`, true},
		{"no change", `{apiVersion: example.com/v1, kind: Thing, spec: {a: {b: 1}}}`, `{apiVersion: example.com/v1, kind: Thing, spec: {a: {b: 1}}, metadata: {generation: 5}}`, false},
		{"replicas, where policy gates them", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}`, true},
		{"a label, where policy gates it", `{apiVersion: v1, kind: ServiceAccount, metadata: {labels: {team: a}}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {labels: {team: b}}}`, true},
		{"another label", `{apiVersion: v1, kind: ServiceAccount, metadata: {labels: {team: a}}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {labels: {team: a, x: y}}}`, false},
		{"a field of a kind that is not searched", `{apiVersion: kyverno.io/v1, kind: Policy, spec: {rules: [a]}}`, `{apiVersion: kyverno.io/v1, kind: Policy, spec: {rules: [b]}}`, true},
		{"another one", `{apiVersion: kyverno.io/v1, kind: Policy, spec: {rules: [a]}}`, `{apiVersion: kyverno.io/v1, kind: Policy, spec: {rules: [a], background: true}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conditions := newConditions(p, func(Category) bool { return true }).of(parse(t, c.obj))
			for mode, pair := range asObjects(parse(t, c.old), parse(t, c.obj)) {
				if o := conditions.update(t, pair[0], pair[1]); o.err != nil || o.asked() != c.want {
					t.Errorf("%s: asked %v, want %v; %v", mode, o.asked(), c.want, o.err)
				}
			}
			only := newConditions(p, func(cat Category) bool { return strings.HasPrefix(string(cat), "x-") }).of(parse(t, c.obj))
			if c.want && !strings.HasPrefix(c.name, "any field") {
				if o := only.update(t, raw(parse(t, c.old)), raw(parse(t, c.obj))); o.err != nil || !o.asked() {
					t.Errorf("with custom categories alone: asked %v, %v", o.asked(), o.err)
				}
			}
		})
	}
}
