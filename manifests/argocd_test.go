package manifests_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
)

// stock is what the components need of a stock install.
const stock = `apiVersion: apps/v1
kind: Deployment
metadata: {name: argocd-repo-server}
spec: {template: {spec: {containers: [{name: argocd-repo-server, env: [{name: A, value: b}]}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cmd-params-cm}
data: {server.insecure: "true"}
`

// helmValues is the part of the chart's values that the file uses.
type helmValues struct {
	Configs struct {
		Params map[string]string `json:"params"`
		CMP    struct {
			Create  bool           `json:"create"`
			Plugins map[string]any `json:"plugins"`
		} `json:"cmp"`
	} `json:"configs"`
	RepoServer struct {
		AutomountServiceAccountToken *bool              `json:"automountServiceAccountToken"`
		Env                          []corev1.EnvVar    `json:"env"`
		ExtraContainers              []corev1.Container `json:"extraContainers"`
		Volumes                      []corev1.Volume    `json:"volumes"`
	} `json:"repoServer"`
}

// TestHelmInstallsWhatKustomizeDoes: the values of Argo CD's chart and the two
// components mean the same sidecar, plugin and settings.
func TestHelmInstallsWhatKustomizeDoes(t *testing.T) {
	text := build(t, "resources: [stock.yaml]\ncomponents: [../manifests/argocd, ../manifests/argocd/recommended]\n", map[string]string{"stock.yaml": stock})
	var deployment appsv1.Deployment
	params := map[string]string{}
	for _, d := range documents([]byte(text)) {
		var cm corev1.ConfigMap
		if err := yaml.Unmarshal(d, &cm); err == nil && cm.Name == "argocd-cmd-params-cm" {
			params = cm.Data
		}
		if strings.Contains(string(d), "kind: Deployment") {
			if err := yaml.UnmarshalStrict(d, &deployment); err != nil {
				t.Fatal(err)
			}
		}
	}
	data, err := fs.ReadFile(manifests.ArgoCDHelm, "argocd/helm/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values helmValues
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	own, sidecar := pod.Containers[0], pod.Containers[1]
	if own.Name != "argocd-repo-server" {
		own, sidecar = sidecar, own
	}
	if diff := cmp.Diff([]corev1.Container{sidecar}, values.RepoServer.ExtraContainers); diff != "" {
		t.Errorf("the sidecar (-kustomize +Helm):\n%s", diff)
	}
	if diff := cmp.Diff(own.Env, append(values.RepoServer.Env, corev1.EnvVar{Name: "A", Value: "b"})); diff != "" {
		t.Errorf("the repo-server's environment (-kustomize +Helm):\n%s", diff)
	}
	if params["server.insecure"] != "true" {
		t.Errorf("argocd-cmd-params-cm lost what it had: %v", params)
	}
	delete(params, "server.insecure")
	if diff := cmp.Diff(params, values.Configs.Params); diff != "" || len(params) < 4 {
		t.Errorf("argocd-cmd-params-cm (-kustomize +Helm):\n%s", diff)
	}
	if a := values.RepoServer.AutomountServiceAccountToken; a == nil || *a || *pod.AutomountServiceAccountToken {
		t.Error("a token of the API is mounted")
	}

	// The ConfigMap with plugin.yaml is the chart's own there.
	volumes := map[bool][]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name == "syncgate-plugin"] = append(volumes[v.Name == "syncgate-plugin"], v)
	}
	if diff := cmp.Diff(volumes[false], values.RepoServer.Volumes[1:]); diff != "" {
		t.Errorf("volumes (-kustomize +Helm):\n%s", diff)
	}
	if v := values.RepoServer.Volumes[0]; len(volumes[true]) != 1 || v.Name != "syncgate-plugin" || v.ConfigMap.Name != "argocd-cmp-cm" ||
		len(v.ConfigMap.Items) != 1 || v.ConfigMap.Items[0] != (corev1.KeyToPath{Key: "syncgate.yaml", Path: "plugin.yaml"}) || !values.Configs.CMP.Create {
		t.Errorf("the plugin's file with Helm is %v", v)
	}
	data, err = fs.ReadFile(manifests.ArgoCD, "argocd/plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct{ Spec any }
	if err := yaml.Unmarshal(data, &plugin); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"syncgate": plugin.Spec}, values.Configs.CMP.Plugins); diff != "" {
		t.Errorf("plugin.yaml (-kustomize +Helm):\n%s", diff)
	}
}
