//go:build e2e

package e2e

// make parity on a small folder of Applications: what moves to the plugin makes
// the objects that Argo CD's own code makes of the native source, and what
// differs is found. The real folders are run by hand: see the Makefile.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// parityFiles are a repository with Applications of itself.
var parityFiles = map[string]string{
	"acme+shop/apps/web/kustomization.yaml": "namePrefix: a-\nresources: [deployment.yaml]\nimages: [{name: web, newTag: '2'}]\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n",
	"acme+shop/apps/web/deployment.yaml":    parityDeployment,
	"acme+shop/charts/web/Chart.yaml":       "{apiVersion: v2, name: web, version: 1.0.0}\n",
	"acme+shop/charts/web/values.yaml":      "tag: '1'\nlist: []\n",
	"acme+shop/charts/web/prod.yaml":        "tag: '2'\n",
	"acme+shop/charts/web/files/text":       "text\n",
	"acme+shop/charts/web/crds/crd.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: crd}\n",
	"acme+shop/charts/web/templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
data:
  values: {{ .Values | toJson | quote }}
  kube: {{ .Capabilities.KubeVersion.Minor | quote }}
  api: {{ .Capabilities.APIVersions.Has "example.com/v1" | quote }}
---
` + strings.Replace(parityDeployment, "web:1", "web:{{ .Values.tag }}", 1),
	"acme+shop/plain/deployment.yaml":   parityDeployment,
	"acme+shop/plain/more/config.yaml":  "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {n: '1'}}\n",
	"acme+shop/plain/more/skipped.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: skipped}\n",
	"acme+shop/charts/odd/Chart.yaml":   "{apiVersion: v2, name: odd, version: 1.0.0}\n",
	// Argo CD has another version of Helm.
	"acme+shop/charts/odd/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {version: {{ .Capabilities.HelmVersion.Version | quote }}}\n",
	"acme+shop/argocd/all.yaml": parityApplication("kustomize", "apps/web", "") +
		parityApplication("prefix", "apps/web", "kustomize: {namePrefix: b-}") +
		parityApplication("plain", "plain", "directory: {recurse: true, exclude: '*skipped*'}") +
		parityApplication("chart", "charts/web", "") +
		parityApplication("values", "charts/web", `helm: {valueFiles: [prod.yaml, /charts/web/none.yaml], ignoreMissingValueFiles: true, releaseName: other, namespace: elsewhere, kubeVersion: 1.31.0, apiVersions: [example.com/v1],
      valuesObject: {a: {b: 1}, c: "yes", d: 1.5, list: [x]}, parameters: [{name: e, value: "1,2"}, {name: f, value: "{1,2}"}, {name: g, value: "7", forceString: true}, {name: "h\\.i", value: "true"}],
      fileParameters: [{name: j, path: files/text}], skipCrds: true}`) +
		parityApplication("text", "charts/web", `helm: {values: "list: [a]\ntag: '3'\n"}`) +
		parityApplication("remote", "none", ""),
}

const parityDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}}
`

func parityApplication(name, path, source string) string {
	if source != "" {
		source = "    " + source + "\n"
	}
	return "---\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + ", namespace: argocd}\nspec:\n  destination: {namespace: shop}\n" +
		"  source:\n    repoURL: https://git.example.com/acme/shop.git\n    path: " + path + "\n" + source
}

func TestApplicationsRenderAlikeOnceMoved(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	for name, text := range parityFiles {
		file := e.Path("corpus", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Dir(b.Manifests)
	table := e.Path("parity.tsv")
	// Without the table of what may differ: what does ends with status 1.
	paths := map[string]string{}
	for _, line := range strings.Split(string(e.Run(root, nil, "e2e/build.sh", "native")), "\n") {
		if name, path, ok := strings.Cut(line, " "); ok {
			paths[name] = path
		}
	}
	r := e.Try(root, nil, "go", "run", "./cmd/internal/parity", "--corpus", e.Path("corpus"), "--out", table,
		"--argocd", paths["argocd2"], "--kustomize", paths["kustomize"], "--helm", paths["helm"])
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatalf("%v: %s", err, r.Stderr)
	}
	if r.Status != 1 || !strings.Contains(string(r.Stderr), "2 outcomes that nothing explains") {
		t.Errorf("got status %d, %s; want 1, for two outcomes", r.Status, r.Stderr)
	}
	got := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		f := strings.Split(line, "\t")
		got[f[0]] = f[1] + " " + f[2]
		if f[2] == "differs" || f[2] == "ours refuses" {
			got[f[0]] += " " + regexp.MustCompile(`"v(\d)[.0-9]*"`).ReplaceAllString(f[3], `"v$1"`)
		}
	}
	const at = "acme+shop/argocd/all.yaml#"
	want := map[string]string{
		"acme+shop/apps/web":   "kustomize equal",
		"acme+shop/charts/web": "helm equal",
		"acme+shop/plain":      "directory equal",
		"acme+shop/plain/more": "directory equal",
		"acme+shop/charts/odd": `helm differs v1 ConfigMap  c: .data.version: by Argo CD "v3", by the gate "v4"`,
		"acme+shop/argocd":     "directory equal",
		at + "kustomize":       "Application equal",
		at + "prefix":          `Application ours refuses cannot move: Application "prefix" spec.source.kustomize.namePrefix: the plugin renders what is in the repository, and nothing that an Application adds`,
		at + "plain":           "Application equal",
		at + "chart":           "Application equal",
		at + "values":          "Application equal",
		at + "text":            "Application equal",
		at + "remote":          "Application not here",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s\n%s", diff, data)
	}
}

// Every setting that Argo CD's own CRD has for a native source is in the table of
// syncgate migrate.
func TestMigrateKnowsEverySettingOfTheCRD(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	data, err := os.ReadFile(filepath.Join(b.ArgoCDManifests, "crds", "application-crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal(data, &crd.Object); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("versions of the CRD: %v, %v", versions, err)
	}
	examples := map[string]any{"string": "x", "boolean": true, "array": []any{"x"}, "object": map[string]any{"a": "b"}}
	var documents []string
	for _, block := range []string{"helm", "kustomize", "directory"} {
		properties, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties",
			"source", "properties", block, "properties")
		if err != nil {
			t.Fatal(err)
		}
		for name, schema := range properties {
			kind, _ := schema.(map[string]any)["type"].(string)
			text, err := yaml.Marshal(map[string]any{block: map[string]any{name: examples[kind]}})
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, parityApplication("a"+strings.ToLower(name), "x", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")))
		}
	}
	if len(documents) < 30 {
		t.Fatalf("got %d settings, want all of them", len(documents))
	}
	file := e.Write("applications.yaml", []byte(strings.Join(documents, "")))
	r := e.Try("", nil, b.Syncgate, "migrate", file)
	if r.Status != 10 || !strings.Contains(string(r.Stderr), "kustomize.namePrefix cannot move") {
		t.Errorf("got status %d, %s; want what cannot move", r.Status, r.Stderr)
	}
	for _, line := range strings.Split(string(r.Stderr), "\n") {
		if strings.Contains(line, "not known here") {
			t.Error(line)
		}
	}
}
