package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixed are applications whose spelling a renderer could change on a second
// pass: numbers, empty values, long strings, anchors, order, odd keys.
var fixed = []struct {
	name  string
	files map[string]string
}{
	{"plain files", map[string]string{"app/b.yaml": deploymentOf("b", ""), "app/a.yaml": deploymentOf("a", "")}},
	{"a kustomization", map[string]string{
		"app/kustomization.yaml": "namespace: shop\nnamePrefix: my-\nlabels: [{pairs: {team: x}, includeSelectors: true}]\nresources: [a.yaml]\nconfigMapGenerator: [{name: c, literals: [\"a=1\\n2\", \"b=true\"]}]\n",
		"app/a.yaml":             deploymentOf("a", "envFrom: [{configMapRef: {name: c}}]"),
	}},
	{"numbers and words that look like others", map[string]string{"app/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
data: {a: "1e3", b: "0x1F", c: "on", d: "null", e: "2001-01-01", f: "~", g: "", h: "1_000", i: "\u2028 <&> \U0001F600", j: " lead", "k: l": '#', l: "012"}
---
apiVersion: example.com/v1
kind: Numbers
metadata: {name: a, namespace: shop}
spec: {float: 1.5, round: 1.0, big: 1e21, small: 1e-7, int: 9007199254740993, neg: -0.0, max: 18446744073709551615, exp: 1E5, none: null, no: false, list: [], map: {}, nested: [[1, [2]], {a: [{}]}]}
`}},
	{"long and folded strings", map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata:\n  long: " +
		strings.Repeat("word ", 400) + "\n  folded: >\n    a\n    b\n\n    c\n  literal: |+\n    a\n      b\n\n  tabs: \"a\\tb\\r\\n\"\n"}},
	{"anchors and merges", map[string]string{"app/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop, labels: &l {app: a}, annotations: {<<: *l, b: c}}
data: &d {x: y}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: shop}
data: {z: "1"}
`}},
	{"every way to stamp", map[string]string{"app/a.yaml": `apiVersion: v1
kind: List
items:
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: shop}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: $REGISTRY/acme/web:1.4}]}}}}}}
- {apiVersion: batch/v1, kind: Job, metadata: {generateName: a-, namespace: shop}, spec: {template: {spec: {containers: [{name: a, image: $REGISTRY/acme/web:1.4}]}}}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a*b"}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
- {apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: shop}, data: {a: YQ==}}
`}},
}

func deploymentOf(name, extra string) string {
	container := fmt.Sprintf("{name: %s, image: $REGISTRY/acme/web:1.4", name)
	if extra != "" {
		container += ", " + extra
	}
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: shop}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: a}}\n  template:\n" +
		"    metadata: {labels: {app: a}}\n    spec:\n      containers: [" + container + "}, {name: m, image: $REGISTRY/acme/metrics:2.0}]\n"
}

// TestGenerateOverItsOwnOutputIsTheSameBytes: what is applied is a fixed point
// of the gate, however it is fed back, so that nothing rewrites it for ever.
func TestGenerateOverItsOwnOutputIsTheSameBytes(t *testing.T) {
	for _, tt := range fixed {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := testStage(t)
			for file, text := range tt.files {
				ok(t, s.write(file, text))
			}
			s.must(t, "pin", "app")
			s.must(t, "sign", "app", "--key", "keys/release.pem", "--issuer", "release", "--yes")
			want := s.must(t, "generate", "app")
			if again := s.must(t, "generate", "app"); again != want {
				t.Fatalf("a second run differs (-first +second):\n%s", cmp.Diff(want, again))
			}
			yaml := s.must(t, "render", "app")
			for _, way := range []struct {
				name  string
				files map[string]string
			}{
				{"as a .yaml file", map[string]string{"x/all.yaml": asYAML(want)}},
				{"as a .json file", map[string]string{"x/all.json": want}},
				{"as YAML for people", map[string]string{"x/all.yaml": yaml}},
				{"through kustomize", map[string]string{"x/kustomization.yaml": "resources: [all.yaml]\n", "x/all.yaml": asYAML(want)}},
				{"through kustomize, YAML for people", map[string]string{"x/kustomization.yaml": "resources: [all.yaml]\n", "x/all.yaml": yaml}},
				{"a file each", split(want)},
				{"one JSON list", map[string]string{"x/all.json": list(t, want)}},
			} {
				if _, kustomize := way.files["x/kustomization.yaml"]; kustomize && strings.Contains(want, "generateName") {
					continue // kustomize wants a name of every object
				}
				fed := testStage(t)
				for file, text := range way.files {
					ok(t, fed.write(file, text))
				}
				got := fed.run(t, nil, "generate", "x")
				if got.exit != 0 {
					t.Errorf("%s: ended with %d\n%s", way.name, got.exit, got.stderr)
					continue
				}
				if diff := cmp.Diff(want, got.stdout); diff != "" {
					t.Errorf("%s (-want +got):\n%s", way.name, diff)
				}
			}
		})
	}
}

// asYAML separates the documents of a stream of JSON lines, as Argo CD's users
// keep them: JSON is YAML, a document each.
func asYAML(stream string) string {
	return strings.ReplaceAll(strings.TrimSuffix(stream, "\n"), "\n", "\n---\n") + "\n"
}

func split(stream string) map[string]string {
	out := map[string]string{}
	for i, line := range strings.SplitAfter(strings.TrimSuffix(stream, "\n"), "\n") {
		out[fmt.Sprintf("x/%03d.json", i)] = line
	}
	return out
}

func list(t *testing.T, stream string) string {
	t.Helper()
	var items []json.RawMessage
	for line := range bytes.Lines([]byte(stream)) {
		items = append(items, bytes.TrimSpace(line))
	}
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	ok(t, err)
	return string(data)
}
