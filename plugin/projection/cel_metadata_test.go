package projection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadataNames are labels and annotations that count somewhere, and some that
// only look like them.
func metadataNames() []string {
	out := []string{"a", "team", "k8s.v1.cni.cncf.io/network-status", "vault.hashicorp.com/agent-inject-secret-db-status",
		"container.apparmor.security.beta.kubernetes.io/x-status", "iam.amazonaws.com", "xtailscale.com/expose", "nginx.ingress.kubernetes.io/configuration-snippet",
		"nginx.ingress.kubernetes.io/proxy-body-size", "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/warn", "kubernetes.io/metadata.name", "external-dns.alpha.kubernetes.io/hostname"}
	for _, list := range []*names{exposingAnnotations.names, namespaceAnnotations.names, cloudIdentity.names, bookkeeping, tuning} {
		for _, name := range list.list {
			out = append(out, strings.ReplaceAll(name, "*", "x"))
		}
	}
	for _, r := range templateRows {
		_, name, _ := strings.Cut(strings.TrimSuffix(r.path, "]"), "[")
		out = append(out, strings.ReplaceAll(name, "*", "x"))
	}
	return out
}

// metadataStates are what a label or annotation may be: not there, and values of
// which the last is no mere setting.
var metadataStates = []any{nil, "true", "8m", "x\nreturn 200;"}

// TestTheConditionsOfMetadataHideNoChange: every kind of the table with every
// name, as label and as annotation, from each state to each.
func TestTheConditionsOfMetadataHideNoChange(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"default", "network", "service"} {
		requires := policies[name]
		pairs, differ, needless, compiled := 0, 0, 0, map[string]conditionSet{}
		for i := range kindTable {
			k := &kindTable[i]
			if k.group == admissionGroup {
				continue
			}
			c, ok := (*Projector)(nil).MetadataCEL(k.group, k.kind, requires)
			text := strings.Join(c.Update, "")
			if _, done := compiled[text]; ok && !done {
				compiled[text] = compileConditions(t, newestServer, text)
			}
			eachMetadataPair(t, k, requires, func(what string, old, obj map[string]any, changed, same bool) {
				pairs++
				switch {
				case changed && !ok:
					t.Errorf("%s: %s: no conditions, but %s counts", name, k.name(), what)
					return
				case changed:
					differ++
				case !ok, pairs%29 != 0: // enough to see whether they fail
					return
				}
				for mode, pair := range asObjects(old, obj) {
					o := compiled[text].evaluate(t, pair[0], pair[1])
					if o.err != nil || changed && !o.asked() || same && o.asked() {
						t.Errorf("%s: %s, %s: %s: asked %t, counts %t, %v", name, k.name(), mode, what, o.asked(), changed, o.err)
					}
					if !changed && o.asked() {
						needless++
					}
				}
			})
		}
		t.Logf("%s: %d pairs: %d differ; %d asked without need", name, pairs, differ, needless)
		if name != "service" && differ < 1000 {
			t.Errorf("%s: hardly anything differs", name)
		}
	}
}

// eachMetadataPair calls fn with pairs of objects of a kind of which one label
// or annotation is another, or the same, and says whether that counts.
func eachMetadataPair(t *testing.T, k *kindSpec, requires func(Category) bool, fn func(what string, old, obj map[string]any, changed, same bool)) {
	t.Helper()
	for _, base := range metadataBases(t, k) {
		for _, part := range []string{"labels", "annotations"} {
			for _, key := range metadataNames() {
				objects, gated := make([]map[string]any, len(metadataStates)), make([]string, len(metadataStates))
				for i, value := range metadataStates {
					objects[i] = withMetadata(base, part, key, value)
					gated[i] = gatedIn(nil, objects[i], requires)
				}
				for i, from := range metadataStates {
					for j, to := range metadataStates {
						fn(fmt.Sprintf("%s[%s] from %q to %q", part, key, from, to), objects[i], objects[j], gated[i] != gated[j], i == j)
					}
				}
			}
		}
	}
}

// metadataBases are objects of a kind: of a Service both sorts.
func metadataBases(t testing.TB, k *kindSpec) []map[string]any {
	t.Helper()
	if k.kind == "Service" {
		return []map[string]any{parse(t, `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}`),
			parse(t, `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`)}
	}
	if k.kind == "Secret" || k.kind == "ClusterRole" || k.kind == "EndpointSlice" {
		return nil // have no status: nobody writes their metadata alone
	}
	base := map[string]any{"apiVersion": strings.TrimPrefix(k.group+"/v1", "/"), "kind": k.kind, "metadata": map[string]any{"name": "x"}, "spec": map[string]any{}}
	return []map[string]any{base}
}

func withMetadata(base map[string]any, part, key string, value any) map[string]any {
	o := clone(base).(map[string]any)
	if value != nil {
		sub(o, "metadata", part)[key] = value
	}
	sub(o, "status")["x"] = fmt.Sprint(value)
	return o
}

// TestNoSizeMakesAStatusWriteAskedAbout: the kubelet's writes of a Pod that is
// larger than anything that conditions look into, with thousands of labels.
func TestNoSizeMakesAStatusWriteAskedAbout(t *testing.T) {
	for _, kind := range []string{"v1 Pod", "v1 Service", "v1 Namespace", "networking.k8s.io/v1 Ingress"} {
		version, kind, _ := strings.Cut(kind, " ")
		group, _, _ := strings.Cut(version, "/")
		if version == "v1" {
			group = ""
		}
		c, ok := (*Projector)(nil).MetadataCEL(group, kind, nil)
		if !ok {
			t.Fatalf("%s has no conditions", kind)
		}
		set := compileConditions(t, oldestServer, c.Update[0])
		old := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "x",
			"labels": manyKeys(5000, "l", "x"), "annotations": manyKeys(5000, "k8s.v1.cni.cncf.io/n", "x")}}
		if kind == "Pod" {
			old["spec"] = sub(podWith(200, func(int) map[string]any { return map[string]any{"env": secretEnv(100)} }), "spec", "template", "spec")
		}
		obj := clone(old).(map[string]any)
		sub(obj, "status")["phase"] = "Running"
		sub(obj, "metadata")["resourceVersion"] = "2"
		for mode, pair := range asObjects(old, obj) {
			o := set.evaluate(t, pair[0], pair[1])
			if o.err != nil || o.asked() {
				t.Errorf("%s, %s: asked %t, %v", kind, mode, o.asked(), o.err)
			}
			t.Logf("%s, %s: costs %d", kind, mode, o.total)
		}
		sub(obj, "metadata", "annotations")["k8s.v1.cni.cncf.io/networks"], sub(obj, "metadata", "annotations")["tailscale.com/expose"] = "other", "true"
		sub(obj, "metadata", "labels")["team"] = "other"
		if o := set.evaluate(t, raw(old), raw(obj)); o.err != nil || !o.asked() {
			t.Errorf("%s: what counts has changed: asked %t, %v", kind, o.asked(), o.err)
		}
	}
}

// TestABindingIsAskedAboutIfItBringsMetadata that would count on the Pod.
func TestABindingIsAskedAboutIfItBringsMetadata(t *testing.T) {
	c, ok := (*Projector)(nil).MetadataCEL("", "Pod", policies["default"])
	if !ok {
		t.Fatal("no conditions")
	}
	set := compileConditions(t, oldestServer, c.Create)
	for doc, want := range map[string]bool{
		`{}`: false,
		`{labels: {topology.kubernetes.io/zone: a}, annotations: {a: b, k8s.v1.cni.cncf.io/network-status: x}}`: false,
		`{annotations: {k8s.v1.cni.cncf.io/networks: storage}}`:                                                 true,
		`{annotations: {iam.amazonaws.com/role: admin}}`:                                                        true,
		`{labels: {azure.workload.identity/use: "true"}}`:                                                       true,
	} {
		binding := parse(t, `{apiVersion: v1, kind: Binding, metadata: `+doc+`, target: {kind: Node, name: node-1}}`)
		held := &core.Binding{}
		b, err := json.Marshal(binding)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, held); err != nil {
			t.Fatal(err)
		}
		for mode, obj := range map[string]runtime.Object{"before 1.37": raw(binding), "typed": held} {
			if o := set.evaluate(t, nil, obj); o.err != nil || o.asked() != want {
				t.Errorf("%s, %s: asked %t, want %t: %v", doc, mode, o.asked(), want, o.err)
			}
		}
	}
}

func TestConditionsOfMetadataWithoutAnyAreNone(t *testing.T) {
	for _, k := range []kindKey{{"", "PersistentVolumeClaim"}, {"", "ConfigMap"}, {"example.com", "Thing"}, {admissionGroup, "ValidatingWebhookConfiguration"}} {
		if c, ok := (*Projector)(nil).MetadataCEL(k.group, k.kind, nil); ok {
			t.Errorf("%v: %v", k, c)
		}
	}
	if c, ok := (*Projector)(nil).MetadataCEL("networking.k8s.io", "Ingress", policies["image"]); ok {
		t.Errorf("where only images count: %v", c)
	}
	p := NewProjector([]CustomField{{"", "PersistentVolumeClaim", "metadata.annotations.owner", "x-owner", false}, {"", "PersistentVolumeClaim", "spec.storageClassName", "x-class", false}})
	c, ok := p.MetadataCEL("", "PersistentVolumeClaim", func(c Category) bool { return slices.Contains([]Category{"x-owner", "x-class"}, c) })
	if !ok || strings.Contains(c.Update[0], "storageClassName") {
		t.Fatalf("an annotation that policy names: %t %v", ok, c)
	}
	claim := func(owner string) runtime.Object {
		return raw(parse(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {owner: `+owner+`}}}`))
	}
	set := compileConditions(t, newestServer, c.Update[0])
	if o := set.evaluate(t, claim("a"), claim("b")); !o.asked() {
		t.Errorf("it changes: not asked, %v", o.err)
	}
	if o := set.evaluate(t, claim("a"), claim("a")); o.asked() || o.err != nil {
		t.Errorf("it does not: asked, %v", o.err)
	}
}
