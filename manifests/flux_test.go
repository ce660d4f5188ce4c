package manifests_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
)

// fluxFile decodes the documents of a file into objects, one each.
func fluxFile(t *testing.T, name string, into ...any) {
	t.Helper()
	data, err := fs.ReadFile(manifests.Flux, "flux/"+name)
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(data)
	if len(docs) != len(into) {
		t.Fatalf("%s: %d documents, want %d", name, len(docs), len(into))
	}
	for i, d := range docs {
		if err := yaml.UnmarshalStrict(d, into[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestTheGateForFluxMayDoWhatItDoesAndNothingElse names every right: a new one is
// a decision.
func TestTheGateForFluxMayDoWhatItDoesAndNothingElse(t *testing.T) {
	var cluster rbacv1.ClusterRole
	var role rbacv1.Role
	fluxFile(t, "roles.yaml", &cluster, &rbacv1.ClusterRoleBinding{}, &role, &rbacv1.RoleBinding{})
	var got []string
	for _, r := range slices.Concat(cluster.Rules, role.Rules) {
		got = append(got, strings.TrimSpace(strings.Join(r.Verbs, ",")+" "+strings.Join(r.APIGroups, ",")+"/"+strings.Join(r.Resources, ",")+" "+strings.Join(r.ResourceNames, ",")))
	}
	want := []string{
		"get,list,watch kustomize.toolkit.fluxcd.io/kustomizations",
		"patch kustomize.toolkit.fluxcd.io/kustomizations/status",
		"get,list,watch source.toolkit.fluxcd.io/gitrepositories,ocirepositories,buckets,externalartifacts",
		"create,update,delete source.toolkit.fluxcd.io/externalartifacts",
		"update source.toolkit.fluxcd.io/externalartifacts/status",
		"get,list,watch,create,update,delete /configmaps",
		"create,patch /events",
		"create coordination.k8s.io/leases", "get,update coordination.k8s.io/leases syncgate-controller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}

// TestTheServiceLeadsToTheArtifacts: kustomize-controller fetches by the address
// that the gate writes into the status.
func TestTheServiceLeadsToTheArtifacts(t *testing.T) {
	var service corev1.Service
	var deployment appsv1.Deployment
	fluxFile(t, "service.yaml", &service)
	fluxFile(t, "deployment.yaml", &deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if want := "--storage-adv-addr=" + service.Name + "." + service.Namespace + ".svc.cluster.local."; !slices.Contains(container.Args, want) {
		t.Errorf("arguments: got %q, want %q among them", container.Args, want)
	}
	if diff := cmp.Diff(service.Spec.Selector, deployment.Spec.Template.Labels); diff != "" {
		t.Errorf("selector and labels (-service +pods):\n%s", diff)
	}
	port := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == service.Spec.Ports[0].TargetPort.StrVal })
	if port < 0 || container.Ports[port].ContainerPort != 9090 || service.Spec.Ports[0].Port != 80 {
		t.Errorf("ports: got %+v and %+v", service.Spec.Ports, container.Ports)
	}
	if deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || *deployment.Spec.Replicas != 1 {
		t.Errorf("replicas: two would not share a disk: %+v", deployment.Spec)
	}
}
