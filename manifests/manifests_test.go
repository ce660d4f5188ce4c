package manifests_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
)

// kinds that Kubernetes serves, by apiVersion and kind.
var kinds = map[string]func() any{
	"v1 Namespace":                                    func() any { return &corev1.Namespace{} },
	"v1 ServiceAccount":                               func() any { return &corev1.ServiceAccount{} },
	"v1 Service":                                      func() any { return &corev1.Service{} },
	"v1 ResourceQuota":                                func() any { return &corev1.ResourceQuota{} },
	"v1 ConfigMap":                                    func() any { return &corev1.ConfigMap{} },
	"apps/v1 Deployment":                              func() any { return &appsv1.Deployment{} },
	"batch/v1 Job":                                    func() any { return &batchv1.Job{} },
	"batch/v1 CronJob":                                func() any { return &batchv1.CronJob{} },
	"policy/v1 PodDisruptionBudget":                   func() any { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":              func() any { return &networkingv1.NetworkPolicy{} },
	"rbac.authorization.k8s.io/v1 Role":               func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding":        func() any { return &rbacv1.RoleBinding{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":        func() any { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() any { return &rbacv1.ClusterRoleBinding{} },
	"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration":   func() any { return &admissionv1.ValidatingWebhookConfiguration{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() any { return &admissionv1.ValidatingAdmissionPolicy{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
}

// foreign are files whose kinds are not Kubernetes' own.
var foreign = []string{"argocd/plugin.yaml", "argocd/sidecar.yaml", "argocd/helm/values.yaml", "webhook/cert-manager/certificates.yaml"}

type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
}

func documents(data []byte) [][]byte {
	var out [][]byte
	for _, d := range regexp.MustCompile(`(?m)^---\n`).Split(string(data), -1) {
		if strings.TrimSpace(d) != "" {
			out = append(out, []byte(d))
		}
	}
	return out
}

func TestEveryFileIsWhatAnAPIServerReads(t *testing.T) {
	seen := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || slices.Contains(foreign, path) || filepath.Base(path) == "kustomization.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, text := range documents(data) {
			var doc document
			if err := yaml.Unmarshal(text, &doc); err != nil {
				t.Errorf("%s, document %d: %v", path, i+1, err)
				continue
			}
			make := kinds[doc.APIVersion+" "+doc.Kind]
			if make == nil {
				t.Errorf("%s, document %d: unknown kind %s %s", path, i+1, doc.APIVersion, doc.Kind)
				continue
			}
			if err := yaml.UnmarshalStrict(text, make()); err != nil {
				t.Errorf("%s, document %d: %v", path, i+1, err)
			}
			if doc.Metadata.Labels["app.kubernetes.io/name"] != "syncgate" {
				t.Errorf("%s, %s %s has no label that says whose it is", path, doc.Kind, doc.Metadata.Name)
			}
			seen++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Errorf("got %d objects, want all of them", seen)
	}
}

// build runs kustomize as "kubectl apply -k" does, over files beside the folder
// of this package.
func build(t *testing.T, kustomization string, files map[string]string) string {
	t.Helper()
	fsys := filesys.MakeFsInMemory()
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return fsys.WriteFile("/manifests/"+path, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	files["kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + kustomization
	for name, text := range files {
		if err := fsys.WriteFile("/site/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/site")
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// names lists "Kind name" of a stream, sorted.
func names(t *testing.T, stream string) []string {
	t.Helper()
	var out []string
	for _, d := range documents([]byte(stream)) {
		var doc document
		if err := yaml.Unmarshal(d, &doc); err != nil {
			t.Fatal(err)
		}
		out = append(out, doc.Kind+" "+doc.Metadata.Name)
	}
	slices.Sort(out)
	return out
}

var base = []string{
	"Deployment syncgate-webhook", "Namespace syncgate-system", "NetworkPolicy syncgate-webhook", "PodDisruptionBudget syncgate-webhook",
	"ResourceQuota syncgate-critical", "Service syncgate-webhook", "ServiceAccount syncgate-webhook",
}

func TestKustomizeBuildsTheBaseAndItsComponents(t *testing.T) {
	job := []string{
		"ClusterRole syncgate-certificates", "ClusterRoleBinding syncgate-certificates", "CronJob syncgate-certificates", "Job syncgate-certificates-v0-1-0",
		"Role syncgate-certificates", "RoleBinding syncgate-certificates", "ServiceAccount syncgate-certificates",
	}
	certManager := []string{
		"Certificate syncgate-webhook", "Certificate syncgate-webhook-ca", "Issuer syncgate-webhook-ca", "Issuer syncgate-webhook-self-signed",
	}
	configuration := []string{"ValidatingWebhookConfiguration syncgate"}
	for name, tt := range map[string]struct {
		kustomization string
		more          []string
	}{
		"alone":                       {"resources: [../manifests/webhook]\n", nil},
		"with the Job":                {"resources: [../manifests/webhook]\ncomponents: [../manifests/webhook/certificates]\n", job},
		"with cert-manager":           {"resources: [../manifests/webhook]\ncomponents: [../manifests/webhook/cert-manager]\n", certManager},
		"cert-manager, configuration": {"resources: [../manifests/webhook, configuration.yaml]\ncomponents: [../manifests/webhook/cert-manager]\n", slices.Concat(certManager, configuration)},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("webhook/configuration.yaml")
			if err != nil {
				t.Fatal(err)
			}
			got := build(t, tt.kustomization, map[string]string{"configuration.yaml": string(data)})
			want := slices.Sorted(slices.Values(slices.Concat(base, tt.more)))
			if diff := cmp.Diff(want, names(t, got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			injected := strings.Contains(got, "cert-manager.io/inject-ca-from: syncgate-system/syncgate-webhook")
			if want := name == "cert-manager, configuration"; injected != want {
				t.Errorf("cert-manager is asked to fill in the bundle: got %v, want %v", injected, want)
			}
		})
	}
	if got := names(t, build(t, "resources: [../manifests/policies]\n", map[string]string{})); len(got) != 8 {
		t.Errorf("policies: got %q, want four with a binding each", got)
	}
	if got := names(t, build(t, "resources: [../manifests/policies/argocd]\n", map[string]string{})); len(got) != 6 {
		t.Errorf("policies for Argo CD: got %q, want three with a binding each", got)
	}
	if got := names(t, build(t, "resources: [../manifests/policies/flux]\n", map[string]string{})); len(got) != 6 {
		t.Errorf("policies for Flux: got %q, want three with a binding each", got)
	}
}

// What README.md says: the image by digest everywhere, the policy beside it.
func TestTheImageIsSetInOnePlace(t *testing.T) {
	const digest = "sha256:5cba7bc9a0540f7cdc71f169f0d3dde5bd7cf903792a56d069f5382b7ff68286"
	readme, err := os.ReadFile("webhook/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(readme), "```yaml\n")
	text, _, end := strings.Cut(text, "```")
	if !ok || !end {
		t.Fatal("README.md shows no kustomization")
	}
	text = regexp.MustCompile(`github\.com/syncgate/syncgate/manifests/([a-z/-]+)\?ref=\S+`).ReplaceAllString(text, "../manifests/$1")
	text = strings.Replace(text, "sha256:...", digest, 1)
	text = regexp.MustCompile(`(?m)^(apiVersion|kind): .*\n`).ReplaceAllString(text, "")
	data, err := os.ReadFile("webhook/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := build(t, text, map[string]string{"configuration.yaml": string(data), "policy.yaml": "p", "release.jwks.json": "k"})
	images := regexp.MustCompile(`(?m)^\s*image: (.*)$`).FindAllStringSubmatch(got, -1)
	if len(images) != 3 {
		t.Errorf("images: got %v, want those of Deployment, Job and CronJob", images)
	}
	for _, i := range images {
		if i[1] != "ghcr.io/syncgate/syncgate@"+digest {
			t.Errorf("image: got %s, want the digest of the kustomization", i[1])
		}
	}
	if !slices.Contains(names(t, got), "ConfigMap syncgate-policy") {
		t.Errorf("no ConfigMap of the name that the Deployment mounts: %q", names(t, got))
	}
}

// Each policy denies with 403: Flux deletes the live object on 409 and 422 when
// it may force.
func TestPoliciesRefuseWith403AndFailClosed(t *testing.T) {
	count := 0
	err := fs.WalkDir(manifests.Policies, "policies", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" || filepath.Base(path) == "kustomization.yaml" {
			return err
		}
		data, err := fs.ReadFile(manifests.Policies, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(path, "policies/flux/") && strings.Contains(string(data), "$") {
			t.Errorf("%s has a dollar sign, which Flux may substitute", path)
		}
		docs := documents(data)
		var p admissionv1.ValidatingAdmissionPolicy
		var b admissionv1.ValidatingAdmissionPolicyBinding
		if len(docs) != 2 {
			t.Errorf("%s: want a policy and its binding", path)
			return nil
		}
		for i, into := range []any{&p, &b} {
			if err := yaml.UnmarshalStrict(docs[i], into); err != nil {
				return err
			}
		}
		if *p.Spec.FailurePolicy != admissionv1.Fail || p.Spec.ParamKind != nil {
			t.Errorf("%s: failurePolicy %s, paramKind %v; want Fail, and no object that could be deleted", path, *p.Spec.FailurePolicy, p.Spec.ParamKind)
		}
		for _, v := range p.Spec.Validations {
			if v.Reason == nil || string(*v.Reason) != "Forbidden" {
				t.Errorf("%s: reason %v, want Forbidden", path, v.Reason)
			}
			for _, text := range []string{v.Message, v.MessageExpression} {
				if strings.Contains(text, "immutable") || !strings.Contains(text, "SYNC REFUSED [") {
					t.Errorf("%s: message %q", path, text)
				}
			}
		}
		if b.Spec.PolicyName != p.Name || !slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
			t.Errorf("%s: binding %s of %s does %v", path, b.Name, b.Spec.PolicyName, b.Spec.ValidationActions)
		}
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count != 11 {
		t.Errorf("got %d policies, want 11", count)
	}
}

// The configuration that is shipped is a valid one of its kind, in so far as Go
// can tell: what JSON knows of it, the type knows too.
func TestShippedConfigurationLosesNothing(t *testing.T) {
	data, err := os.ReadFile("webhook/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c admissionv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	var a, b map[string]any
	if json.Unmarshal(back, &a) != nil || json.Unmarshal(want, &b) != nil {
		t.Fatal("no JSON")
	}
	delete(a["metadata"].(map[string]any), "creationTimestamp")
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("through the type (-file +type):\n%s", diff)
	}
	if bytes.Contains(data, []byte("''")) && bytes.Contains(data, []byte("expression: '")) {
		t.Error("expressions are quoted twice: nobody can read them")
	}
	// The API server takes no more.
	for _, w := range c.Webhooks {
		if len(w.MatchConditions) > 64 {
			t.Errorf("%s: %d conditions", w.Name, len(w.MatchConditions))
		}
	}
}
