package projection

import (
	"encoding/json"
	"testing"
)

func TestSameRawSeesWhatCouldBeGatedAndNothingElse(t *testing.T) {
	const workload = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x, labels: {a: b}}
spec:
  replicas: 1
  volumeClaimTemplates: [{metadata: {name: d}, spec: {volumeName: v}}]
  template: {metadata: {annotations: {a: b}}, spec: {containers: [{name: c, image: i, env: [{name: PATH, value: a}, {name: PATH, value: b}]}]}}`
	const role = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x, labels: {l: m}}, rules: [{verbs: ["*"]}], aggregationRule: {}}`
	const revision = `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}}`
	for _, c := range []struct {
		name, doc string
		edit      func(map[string]any)
		same      bool
	}{
		{"replicas", workload, func(o map[string]any) { sub(o, "spec")["replicas"] = json.Number("5") }, true},
		{"a label of the object", workload, func(o map[string]any) { sub(o, "metadata", "labels")["x"] = "y" }, true},
		{"a restart", workload, func(o map[string]any) {
			sub(o, "spec", "template", "metadata", "annotations")["kubectl.kubernetes.io/restartedAt"] = "now"
		}, true},
		{"the status", workload, func(o map[string]any) { o["status"] = map[string]any{"replicas": json.Number("5")} }, true},
		{"an annotation of the template", workload, func(o map[string]any) { sub(o, "spec", "template", "metadata", "annotations")["x"] = "y" }, false},
		{"a label of the template", workload, func(o map[string]any) { sub(o, "spec", "template", "metadata", "labels")["x"] = "y" }, false},
		{"a field of the pod", workload, func(o map[string]any) { sub(o, "spec", "template", "spec")["x"] = "y" }, false},
		{"a claim", workload, func(o map[string]any) { sub(o, "spec")["volumeClaimTemplates"] = nil }, false},
		{"a template of the wrong type", workload, func(o map[string]any) { sub(o, "spec")["template"] = "x" }, false},
		{"annotations of the wrong type", workload, func(o map[string]any) { sub(o, "spec", "template", "metadata")["annotations"] = "x" }, false},
		{"a rollback", workload, func(o map[string]any) {
			sub(o, "metadata", "annotations")["deprecated.deployment.rollback.to"] = "1"
		}, false},
		{"another kind", workload, func(o map[string]any) { o["kind"] = "Deployment" }, false},
		{"rules", role, func(o map[string]any) { o["rules"] = nil }, false},
		{"a field that nobody knows", role, func(o map[string]any) { o["x"] = nil }, false},
		{"a label of a role", role, func(o map[string]any) { sub(o, "metadata", "labels")["x"] = "y" }, false},
		{"bookkeeping", role, func(o map[string]any) { sub(o, "metadata", "annotations")["argocd.argoproj.io/tracking-id"] = "y" }, true},
		{"the server's fields", role, func(o map[string]any) { sub(o, "metadata")["resourceVersion"] = "5" }, true},
		{"another version of the API", role, func(o map[string]any) { o["apiVersion"] = "rbac.authorization.k8s.io/v1beta1" }, true},
		{"data of the wrong type", revision, func(o map[string]any) { o["data"] = "x" }, false},
		{"data", revision, func(o map[string]any) { sub(o, "data", "spec", "template", "spec")["hostPID"] = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, obj := parse(t, c.doc), parse(t, c.doc)
			c.edit(obj)
			if got := SameRaw(old, obj); got != c.same {
				t.Errorf("got %v, want %v", got, c.same)
			}
			if got := SameRaw(obj, old); got != c.same {
				t.Errorf("backwards: got %v, want %v", got, c.same)
			}
			if !SameRaw(obj, clone(obj).(map[string]any)) {
				t.Error("differs from itself")
			}
		})
	}
}
