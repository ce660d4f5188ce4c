package main

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

func tree(t *testing.T, doc string) map[string]any {
	t.Helper()
	objects, err := manifest.Parse([]byte(doc), "test.yaml")
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	return objects[0].Tree
}

func TestCompareTellsABugFromWhatTheClusterDoes(t *testing.T) {
	const (
		ingress = `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {%}}`
		pod     = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {%}}`
		claim   = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {%}}`
	)
	for _, c := range []struct {
		name, form, sent, stored string
		warnings                 []string
		outcome, field           string
	}{
		{"a default", pod, "hostPID: true", "hostPID: true, dnsPolicy: ClusterFirst", nil, same, ""},
		{"a class that the cluster chose", ingress, "rules: []", "ingressClassName: nginx", nil, defaulted, "spec.ingressClassName: nginx"},
		{"a class that is another one", ingress, "ingressClassName: a", "ingressClassName: b", nil, differs, "spec.ingressClassName"},
		{"a field that nobody may add", pod, "hostPID: true", "hostPID: true, hostIPC: true", nil, differs, "spec.hostIPC"},
		{"both at once", ingress, "rules: []", "ingressClassName: nginx, tls: [{secretName: s}]", nil, differs, "spec.tls"},
		{"a field that the server does not know", pod, "hostPID: true, hostX: true", "hostPID: true", []string{`unknown field "spec.hostX"`}, dropped, "spec.hostX"},
		{"a field that is lost without a word", pod, "hostPID: true, hostX: true", "hostPID: true", nil, differs, "spec.hostX"},
		{"another field than the one it warns of", pod, "hostPID: true, hostX: true", "hostX: true", []string{`unknown field "spec.hostX"`}, differs, "spec.hostPID"},
		{"an unknown field inside a list", ingress, "rules: [{host: h, x: 1}]", "rules: [{host: h}]", []string{`unknown field "spec.rules[0].x"`}, dropped, "spec.rules"},
		{"a source that no provisioner has", claim, "dataSource: {kind: Other, name: old}", "accessModes: []", nil, dropped, "spec.dataSourceRef.kind; spec.dataSourceRef.name"},
		{"a source that one has", claim, "dataSource: {kind: PersistentVolumeClaim, name: old}", "accessModes: []", nil, differs, "spec.dataSourceRef.name"},
		{"what no gate lets pass", pod, "hostPID: 5", "hostPID: true", nil, malformed, "spec.hostPID"},
		{"a stored object that has no projection", pod, "hostPID: true", "hostPID: 5", nil, differs, "stored: spec.hostPID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sent, stored := tree(t, strings.Replace(c.form, "%", c.sent, 1)), tree(t, strings.Replace(c.form, "%", c.stored, 1))
			group, kind := gvk(sent).Group, gvk(sent).Kind
			got := compare(group, kind, sent, stored, c.warnings)
			if got.outcome != c.outcome || !strings.Contains(got.field, c.field) || c.field == "" && got.field != "" {
				t.Errorf("got %s %q, want %s %q", got.outcome, got.field, c.outcome, c.field)
			}
			if (got.before == got.after) != (c.outcome == same) && c.outcome != malformed {
				t.Errorf("digests %q and %q of outcome %s", got.before, got.after, got.outcome)
			}
		})
	}
}

func TestUnallocatedLeavesOutWhatBelongsToOneObject(t *testing.T) {
	service := unallocated(tree(t, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30000}]}}`))
	spec := service["spec"].(map[string]any)
	port := spec["ports"].([]any)[0].(map[string]any)
	if spec["clusterIP"] != nil || spec["clusterIPs"] != nil || port["nodePort"] != nil || port["port"] == nil {
		t.Errorf("got %v", service)
	}
	headless := unallocated(tree(t, `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`))
	if spec := headless["spec"].(map[string]any); spec["clusterIP"] != "None" || spec["clusterIPs"] == nil {
		t.Errorf("got %v", headless)
	}
	job := unallocated(tree(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}, template: {metadata: {labels: {batch.kubernetes.io/controller-uid: u, app: x}}}}}`))
	template := job["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any)
	if job["spec"].(map[string]any)["selector"] != nil || len(template) != 1 || template["app"] != "x" {
		t.Errorf("got %v", job)
	}
}
