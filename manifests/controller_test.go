package manifests_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/argocd/controller"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/settings"
)

// controllerFile decodes the documents of a file into objects, one each.
func controllerFile(t *testing.T, name string, into ...any) {
	t.Helper()
	data, err := fs.ReadFile(manifests.ArgoCDController, "argocd/controller/"+name)
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

// TestTheControllerMayDoWhatItDoesAndNothingElse names every right: a new one is
// a decision.
func TestTheControllerMayDoWhatItDoesAndNothingElse(t *testing.T) {
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	controllerFile(t, "roles.yaml", &role, &binding)
	var got []string
	for _, r := range role.Rules {
		for _, group := range r.APIGroups {
			what := strings.Join(r.Verbs, ",") + " " + group + "/" + strings.Join(r.Resources, ",")
			if len(r.ResourceNames) > 0 {
				what += " " + strings.Join(r.ResourceNames, ",")
			}
			got = append(got, what)
		}
	}
	want := []string{
		"get,list,watch,patch argoproj.io/applications",
		"create,patch /events", "create,patch events.k8s.io/events",
		"get,update,patch /configmaps " + settings.ConfigMap + "," + controller.Refreshed,
		"get /configmaps " + offswitch.ConfigMap,
		"create coordination.k8s.io/leases", "get,update coordination.k8s.io/leases syncgate-controller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights in Argo CD's namespace (-want +got):\n%s", diff)
	}
	var elsewhere rbacv1.ClusterRole
	controllerFile(t, "namespaces.yaml", &elsewhere)
	if diff := cmp.Diff(role.Rules[:2], elsewhere.Rules); diff != "" {
		t.Errorf("rights in other namespaces with Applications (-want +got):\n%s", diff)
	}
	var apps, refreshed corev1.ConfigMap
	controllerFile(t, "configmaps.yaml", &apps, &refreshed)
	if apps.Name != settings.ConfigMap || refreshed.Name != controller.Refreshed || apps.Data != nil || refreshed.Data != nil {
		t.Errorf("ConfigMaps %s and %s, with %v and %v: want those of the code, with nothing that a second apply would put back", apps.Name, refreshed.Name, apps.Data, refreshed.Data)
	}
}

// TestTheControllerListsEveryGatedKindButSecrets, whose list is their contents.
func TestTheControllerListsEveryGatedKindButSecrets(t *testing.T) {
	var role rbacv1.ClusterRole
	var binding rbacv1.ClusterRoleBinding
	controllerFile(t, "receipts.yaml", &role, &binding)
	var want, got []string
	for _, k := range projection.Kinds() {
		if k.Group != "" || k.Kind != "Secret" {
			want = append(want, k.Group+"/"+k.Resource)
		}
	}
	for _, r := range role.Rules {
		if !slices.Equal(r.Verbs, []string{"list"}) || r.ResourceNames != nil || r.NonResourceURLs != nil {
			t.Errorf("%v: want list and no more", r)
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				got = append(got, group+"/"+resource)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-table +role):\n%s", diff)
	}
}

func TestTheControllerIsConfined(t *testing.T) {
	var d appsv1.Deployment
	controllerFile(t, "deployment.yaml", &d)
	p := d.Spec.Template.Spec
	c := p.Containers[0]
	for what, ok := range map[string]bool{
		"no root":         *p.SecurityContext.RunAsNonRoot,
		"seccomp":         p.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"read-only root":  *c.SecurityContext.ReadOnlyRootFilesystem,
		"no escalation":   !*c.SecurityContext.AllowPrivilegeEscalation,
		"no capability":   slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"a memory limit":  !c.Resources.Limits.Memory().IsZero(),
		"its own account": p.ServiceAccountName == "syncgate-controller",
		"the policy":      p.Volumes[0].ConfigMap.Name == "syncgate-policy" && p.Volumes[0].ConfigMap.Optional == nil,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	var policy admissionv1.ValidatingAdmissionPolicy
	var binding admissionv1.ValidatingAdmissionPolicyBinding
	controllerFile(t, "policy.yaml", &policy, &binding)
	user := "'system:serviceaccount:" + d.Namespace + ":" + p.ServiceAccountName + "'"
	if *policy.Spec.FailurePolicy != admissionv1.Fail || !strings.Contains(policy.Spec.MatchConditions[0].Expression, user) || binding.Spec.PolicyName != policy.Name {
		t.Errorf("the policy does not hold %s, or does not fail closed", user)
	}
	for _, v := range policy.Spec.Validations {
		if v.Reason == nil || *v.Reason != "Forbidden" {
			t.Errorf("reason %v, want Forbidden", v.Reason)
		}
	}
	if own := policy.Spec.Variables[0].Expression; !strings.Contains(own, settings.Status) {
		t.Errorf("the policy lets it write %s, want %s among them", own, settings.Status)
	}
}

// TestSettingsCountWithTheirComponent: the sidecar goes by them when it has the
// variable, and keeps what it had.
func TestSettingsCountWithTheirComponent(t *testing.T) {
	repoServer := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: argocd-repo-server}\nspec: {template: {spec: {containers: [{name: argocd-repo-server}]}}}\n"
	for _, with := range []bool{false, true} {
		components := "../manifests/argocd"
		if with {
			components += ", ../manifests/argocd/settings"
		}
		got := build(t, "resources: [repo-server.yaml]\ncomponents: ["+components+"]\n", map[string]string{"repo-server.yaml": repoServer})
		if has := strings.Contains(got, "name: SYNCGATE_APPS\n          value: /etc/syncgate-apps"); has != with {
			t.Errorf("with the component %v: SYNCGATE_APPS %v", with, has)
		}
		for _, text := range []string{"name: SYNCGATE_OFF\n          value: /etc/syncgate-off", "mountPath: /etc/syncgate-apps", "mountPath: /etc/syncgate-off"} {
			if !strings.Contains(got, text) {
				t.Errorf("no %q in\n%s", text, got)
			}
		}
		if n := strings.Count(got, "optional: true"); n != 3 {
			t.Errorf("%d optional mounts, want the off-switches, the settings and credentials", n)
		}
	}
}

func TestTheControllerBuildsBesideTheWebhook(t *testing.T) {
	got := names(t, build(t, "resources: [../manifests/webhook, ../manifests/argocd/controller]\n", map[string]string{}))
	want := slices.Sorted(slices.Values(append([]string{
		"ClusterRole syncgate-controller-applications", "ClusterRole syncgate-controller-receipts", "ClusterRoleBinding syncgate-controller-receipts", "ConfigMap syncgate-apps", "ConfigMap syncgate-refreshed",
		"Deployment syncgate-controller", "NetworkPolicy syncgate-controller", "Role syncgate-controller", "RoleBinding syncgate-controller", "ServiceAccount syncgate-controller",
		"ValidatingAdmissionPolicy syncgate-controller", "ValidatingAdmissionPolicyBinding syncgate-controller",
	}, base...)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	readme, err := os.ReadFile("argocd/controller/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("argocd/controller")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "README.md" && e.Name() != "kustomization.yaml" && !strings.Contains(string(readme), "`"+e.Name()+"`") {
			t.Errorf("README.md does not tell of %s", e.Name())
		}
	}
}
