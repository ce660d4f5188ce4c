//go:build e2e

package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestComponentAddsAConfinedSidecar builds manifests/argocd onto what each Argo
// CD ships, and asks a real API server what would run.
func TestComponentAddsAConfinedSidecar(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	cluster.Kubectl(nil, "create", "namespace", "argocd")
	for _, version := range []string{harness.ArgoCD2, harness.ArgoCD3} {
		t.Run(version, func(t *testing.T) { confinedSidecar(t, cluster, b.With(version), "install-"+version) })
	}
}

func confinedSidecar(t *testing.T, cluster *harness.Cluster, b harness.Binaries, folder string) {
	e := cluster.Env
	dir := e.Mkdir(folder)
	relative := func(path string) string {
		r, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	e.Write(folder+"/policy.yaml", []byte(policy))
	e.Write(folder+"/keys.jwks.json", []byte(`{"keys":[]}`))
	e.Write(folder+"/kustomization.yaml", []byte(`namespace: argocd
resources: [`+relative(filepath.Join(b.ArgoCDManifests, "base", "repo-server"))+", "+relative(filepath.Join(b.ArgoCDManifests, "base", "config"))+`]
components: [`+relative(filepath.Join(b.Manifests, "argocd"))+", "+relative(filepath.Join(b.Manifests, "argocd", "recommended"))+`]
configMapGenerator: [{name: syncgate-policy, files: [policy.yaml, keys.jwks.json]}]
`))
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(cluster.Apply(cluster.Kubectl(nil, "kustomize", dir), "--dry-run=server", "--output=json"), &list); err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	configMaps := map[string][]string{}
	for _, raw := range list.Items {
		var cm corev1.ConfigMap
		if err := json.Unmarshal(raw, &cm); err != nil {
			continue // not one: its data is of another type
		}
		switch cm.Kind {
		case "Deployment":
			if err := json.Unmarshal(raw, &deployment); err != nil {
				t.Fatal(err)
			}
		case "ConfigMap":
			for file := range cm.Data {
				configMaps[cm.Name] = append(configMaps[cm.Name], file)
			}
			slices.Sort(configMaps[cm.Name])
		}
	}
	if diff := cmp.Diff([]string{
		"controller.repo.server.timeout.seconds", "reposerver.plugin.tar.exclusions", "reposerver.repo.cache.expiration", "server.repo.server.timeout.seconds",
	}, configMaps["argocd-cmd-params-cm"]); diff != "" {
		t.Errorf("argocd-cmd-params-cm (-want +got):\n%s", diff)
	}
	pod := deployment.Spec.Template.Spec
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "syncgate" })
	if i < 0 {
		t.Fatalf("no container syncgate in %v", pod.Containers)
	}
	sidecar := pod.Containers[i]

	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod mounts a service account token")
	}
	user, yes, no := int64(999), true, false
	want := &corev1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, ReadOnlyRootFilesystem: &yes, AllowPrivilegeEscalation: &no,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(want, sidecar.SecurityContext); diff != "" {
		t.Errorf("securityContext (-want +got):\n%s", diff)
	}

	// What each mount holds: an emptyDir, or the files of a ConfigMap that is
	// part of the same build (a name that the generator's hash missed is none).
	got := map[string][]string{}
	for _, m := range sidecar.VolumeMounts {
		v := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
		switch {
		case v.EmptyDir != nil:
			got[m.MountPath] = []string{"emptyDir " + v.Name}
		case v.ConfigMap != nil && v.ConfigMap.Optional != nil && *v.ConfigMap.Optional:
			got[m.MountPath] = []string{v.ConfigMap.Name + ", if it is there"}
		case v.Secret != nil && v.Secret.Optional != nil && *v.Secret.Optional:
			got[m.MountPath] = []string{v.Secret.SecretName + ", if it is there"}
		case v.ConfigMap != nil:
			got[m.MountPath] = configMaps[v.ConfigMap.Name]
		default:
			t.Errorf("volume %q is neither an emptyDir nor a ConfigMap, nor a Secret that may be missing", v.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{
		"/var/run/argocd":                 {"emptyDir var-files"},
		"/home/argocd/cmp-server/plugins": {"emptyDir plugins"},
		"/home/argocd/cmp-server/config":  {"plugin.yaml"},
		"/etc/syncgate":                   {"keys.jwks.json", "policy.yaml"},
		"/etc/syncgate-off":               {"syncgate-off, if it is there"},
		"/etc/syncgate-apps":              {"syncgate-apps, if it is there"},
		"/etc/syncgate-registry":          {"syncgate-registry, if it is there"},
		"/tmp":                            {"emptyDir syncgate-tmp"},
	}, got); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}
