package application_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/render"
)

// argo is an Application with a source.
func argo(source string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: shop
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  syncPolicy: {automated: {prune: true}}
  source:
    repoURL: https://git.example.com/shop.git
    targetRevision: main
    path: apps/web
` + source
}

// flux is a Kustomization with more in its spec.
func flux(spec string) string {
	return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  path: ./apps/web
  sourceRef: {kind: GitRepository, name: shop}
` + spec
}

// artifactMode is a Kustomization of what the gate publishes.
func artifactMode(annotations string) string {
	return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: team, annotations: {` + annotations + `}}
spec:
  interval: 10m
  prune: true
  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-web}
`
}

var web = policy.App{Name: "web", Namespace: "shop", Path: "apps/web", Project: "shop", Repository: "https://git.example.com/shop.git"}

func TestASourceIsReadAsTheClusterReadsIt(t *testing.T) {
	plain := render.Options{ReleaseName: "web", Namespace: "shop"}
	with := func(change func(*render.Options)) render.Options {
		o := plain
		change(&o)
		return o
	}
	for _, tc := range []struct {
		name, text string
		app        func(*policy.App)
		want       render.Options
	}{
		{"no block", argo(""), nil, plain},
		{"an empty block chooses the renderer", argo("    kustomize: {}\n"), nil, with(func(o *render.Options) { o.Renderer = render.Kustomize })},
		{"a kustomize block that says nothing", argo("    kustomize: {namePrefix: '', images: [], forceCommonLabels: true}\n"), nil, with(func(o *render.Options) { o.Renderer = render.Kustomize })},
		{"directory", argo("    directory: {recurse: true, include: '*.yaml', exclude: 'x*', jsonnet: {}}\n"), nil, with(func(o *render.Options) {
			o.Renderer, o.Recurse, o.Include, o.Exclude = render.Directory, true, "*.yaml", "x*"
		})},
		{"helm", argo(`    helm:
      releaseName: shop-web
      namespace: other
      valueFiles: [values-prod.yaml, /shared.yaml]
      ignoreMissingValueFiles: true
      values: "a: {b: 1}"
      parameters:
      - {name: image.tag, value: "1.5"}
      - {name: list, value: "{a,b}"}
      - {name: text, value: "a,b"}
      - {name: id, value: "7", forceString: true}
      fileParameters: [{name: conf, path: files/conf}]
      skipCrds: true
      skipTests: true
      skipSchemaValidation: true
      passCredentials: true
      version: v3
      kubeVersion: "1.31"
      apiVersions: [example.com/v1]
`), nil, with(func(o *render.Options) {
			o.Renderer, o.ReleaseName, o.Namespace, o.KubeVersion, o.APIVersions = render.Helm, "shop-web", "other", "1.31", []string{"example.com/v1"}
			o.Helm = render.HelmOptions{
				ValueFiles: []string{"values-prod.yaml", "/shared.yaml"}, IgnoreMissingValueFiles: true,
				Values: map[string]any{"a": map[string]any{"b": float64(1)}},
				Set:    []string{"image.tag=1.5", "list={a,b}", `text=a\,b`}, SetString: []string{"id=7"}, SetFile: []string{"conf=files/conf"},
				SkipCRDs: true, SkipTests: true, SkipSchemaValidation: true,
			}
		})},
		{"a values object wins over the text", argo("    helm: {values: 'a: 1', valuesObject: {b: x}}\n"), nil, with(func(o *render.Options) {
			o.Renderer, o.Helm.Values = render.Helm, map[string]any{"b": "x"}
		})},
		{"the plugin", argo(`    plugin:
      name: syncgate
      env: [{name: SYNCGATE_ENVIRONMENT, value: prod}, {name: TIER, value: gold}]
      parameters:
      - {name: renderer, string: helm}
      - {name: helm.valueFiles, array: [prod.yaml]}
      - {name: helm.set, map: {b: "1,2", a: x}}
`), func(a *policy.App) {
			a.Environment, a.Env = "prod", map[string]string{"SYNCGATE_ENVIRONMENT": "prod", "TIER": "gold"}
		}, with(func(o *render.Options) {
			o.Renderer, o.Helm.ValueFiles, o.Helm.Set = render.Helm, []string{"prod.yaml"}, []string{"a=x", `b=1\,2`}
		})},
		{"an Application in another namespace is named with it", strings.Replace(argo(""), "namespace: argocd", "namespace: team-a", 1),
			func(a *policy.App) { a.Name = "team-a_web" }, plain},
		{"an Application without a namespace", strings.Replace(argo(""), ", namespace: argocd", "", 1), nil, plain},
		{"one source in a list", strings.NewReplacer("  source:\n", "  sources:\n", "    repoURL", "  - repoURL").Replace(argo("")), nil, plain},
		{"no path is the repository", strings.Replace(argo(""), "    path: apps/web\n", "", 1), func(a *policy.App) { a.Path = "." }, plain},
		{"other objects in the file", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n" + argo(""), nil, plain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := application.Parse([]byte(tc.text), "app.yaml")
			if err != nil {
				t.Fatal(err)
			}
			want := web
			if tc.app != nil {
				tc.app(&want)
			}
			if diff := cmp.Diff(want, s.App); diff != "" {
				t.Errorf("what policy matches on (-want +got):\n%s", diff)
			}
			root := t.TempDir()
			got, err := s.Options(root)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Root, tc.want.Dir = root, filepath.Join(root, want.Path)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsThatCannotBeHonouredAreRefusedByName(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
	}{
		{"kustomize settings, all of them", argo("    kustomize: {namePrefix: a-, images: ['web:1'], replicas: [{name: web, count: 1}]}\n"),
			`Application "web" in app.yaml document 1: spec.source.kustomize.images has no counterpart in the plugin: put it into the repository; spec.source.kustomize.namePrefix has no counterpart in the plugin: put it into the repository; spec.source.kustomize.replicas has`},
		{"a setting that nobody knows", argo("    kustomize: {shiny: true}\n"), `spec.source.kustomize."shiny" is not known here`},
		{"a member of the spec that nobody knows", strings.Replace(argo(""), "  project", "  shiny: 1\n  project", 1), `"shiny" is not known here`},
		{"a wrong case", argo("    helm: {ValueFiles: [a.yaml]}\n"), `"ValueFiles" is not known here`},
		{"Jsonnet", argo("    directory: {jsonnet: {tlas: [{name: a, value: b}]}}\n"), "spec.source.directory.jsonnet.tlas is Jsonnet"},
		{"two blocks", argo("    helm: {}\n    plugin: {name: syncgate}\n"), "helm and plugin, which exclude each other"},
		{"another plugin", argo("    plugin: {name: avp}\n"), `spec.source.plugin.name is "avp", want syncgate`},
		{"a plugin without a name", argo("    plugin: {env: [{name: a, value: b}]}\n"), `spec.source.plugin.name is "", want syncgate`},
		{"a parameter that nobody knows", argo("    plugin: {name: syncgate, parameters: [{name: policy, string: x}]}\n"), `"policy" is not one of renderer, `},
		{"a parameter of a wrong form", argo("    plugin: {name: syncgate, parameters: [{name: renderer, string: 1}]}\n"), "spec.source.plugin.parameters[0] is not a parameter"},
		{"a variable in a value", argo("    helm: {parameters: [{name: a, value: $ARGOCD_APP_NAME}]}\n"), "spec.source.helm.parameters[0].value holds '$'"},
		{"a variable in plugin.env", argo("    plugin: {name: syncgate, env: [{name: A, value: $ARGOCD_APP_NAME}]}\n"), "env[0].value holds '$'"},
		{"values that are no object", argo("    helm: {values: '[1]'}\n"), "spec.source.helm.values: helm.values: "},
		{"values with a duplicate key", argo("    helm: {values: \"a: 1\\na: 2\"}\n"), "spec.source.helm.values: "},
		{"values of several documents, of which Helm 3 reads one", argo("    helm: {values: \"a: 1\\n---\\na: 2\"}\n"), "spec.source.helm.values: helm.values: holds several YAML documents"},
		{"Helm 2", argo("    helm: {version: v2}\n"), `spec.source.helm.version is "v2"`},
		{"a value of another type", argo("    helm: {skipCrds: 'yes', valueFiles: a.yaml}\n"), "spec.source.helm.skipCrds is not true or false; spec.source.helm.valueFiles is not a list of strings"},
		{"a chart from a repository", argo("    chart: web\n"), "spec.source.chart has no directory in Git to keep a lock in"},
		{"a source for others", argo("    ref: values\n"), "spec.source.ref"},
		{"several sources", strings.NewReplacer("  source:\n", "  sources:\n  - {repoURL: x, ref: values}\n", "    repoURL", "  - repoURL").Replace(argo("")), "want one source"},
		{"no source", strings.Split(argo(""), "  source:")[0], "spec.source: want one source"},
		{"no spec", strings.Split(argo(""), "spec:")[0], "spec is missing"},
		{"a source hydrator", strings.Replace(argo(""), "  source:", "  sourceHydrator: {drySource: {}}\n  source:", 1), "spec.sourceHydrator renders elsewhere"},
		{"a path out of the repository", strings.Replace(argo(""), "apps/web", "../web", 1), `the path "../web" leads out of the repository`},
		{"an absolute path", strings.Replace(argo(""), "apps/web", "/etc", 1), `the path "/etc" leads out of the repository`},
		{"an ApplicationSet", strings.Replace(argo(""), "kind: Application", "kind: ApplicationSet", 1), "holds 0 Argo CD Applications"},
		{"two Applications", argo("") + "---\n" + argo(""), "holds 2 Argo CD Applications"},
		{"a name that is made up later", strings.Replace(argo(""), "name: web,", "generateName: web-,", 1), "metadata.name is missing"},
		{"no YAML", "a: {", "parsing application: app.yaml document 1"},
		{"a duplicate key", argo("    path: other\n"), `duplicate key "path"`},
		{"force", flux("  force: true\n"), "spec.force would delete objects"},
		{"a Flux setting that nobody knows", flux("  shiny: 1\n"), `"shiny" is not known here`},
		{"a path out of Flux's repository", strings.Replace(flux(""), "./apps/web", "../web", 1), "leads out of the repository"},
		{"a patch with a file", flux("  patches: [{path: x.yaml}]\n"), `spec.patches[0]."path" is not known here`},
		{"a target that nobody knows", flux("  patches: [{patch: x, target: {nam: web}}]\n"), `spec.patches[0].target."nam" is not known`},
		{"an image with more", flux("  images: [{name: web, tagSuffix: x}]\n"), `spec.images[0]."tagSuffix" is not known`},
		{"another source", strings.Replace(flux(""), "GitRepository", "HelmRepository", 1), "the source is not a GitRepository"},
		{"drift that nobody signed", flux("  ignore: [{paths: [/spec/replicas, /spec/template/spec/containers/0/image]}]\n"), `spec.ignore[0].paths "/spec/template/spec/containers/0/image": Flux would apply what the cluster has`},
		{"labels of Flux on everything", flux("  commonMetadata: {annotations: {kustomize.toolkit.fluxcd.io/force: enabled}}\n"), "it would be on every object"},
		{"receipts on everything", flux("  commonMetadata: {annotations: {syncgate.io/receipt: x}}\n"), "it would be on every object"},
		{"a strategy that nobody knows", flux("  postBuild: {substituteStrategy: Never}\n"), "want WithVariables or Always"},
		{"the gate's variables inline", flux("  postBuild: {substitute: {syncgate_pin_web: x}}\n"), "are the gate's"},
		{"an optional gate", flux("  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-web, optional: true}]}\n"), "spec.postBuild.substituteFrom[0].optional is set"},
		{"a gate that is overruled", flux("  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-web}, {kind: Secret, name: x}]}\n"), "must be the last one"},
		{"artifact mode of nothing", artifactMode(""), "the annotation syncgate.io/source is \"\""},
		{"artifact mode of its own output", artifactMode("syncgate.io/source: ExternalArtifact/syncgate-flux-web"), `the source ExternalArtifact "syncgate-flux-web" is what the gate itself publishes: name the GitRepository, OCIRepository or Bucket`},
		{"artifact mode of another's output", artifactMode("syncgate.io/source: ExternalArtifact/team/syncgate-flux-api"), `"syncgate-flux-api" is what the gate itself publishes`},
		{"postBuild mode of another's output", strings.Replace(flux("  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-web}]}\n"), "GitRepository, name: shop", "ExternalArtifact, name: syncgate-flux-api", 1), `"syncgate-flux-api" is what the gate itself publishes`},
		{"artifact mode with a path", strings.Replace(artifactMode("syncgate.io/source: GitRepository/shop"), "  sourceRef", "  path: ./x\n  sourceRef", 1), `spec.path is "./x"`},
		{"artifact mode with patches", artifactMode("syncgate.io/source: GitRepository/shop") + "  patches: [{patch: x}]\n", "spec.patches is applied by Flux after the gate"},
		{"artifact mode with postBuild", artifactMode("syncgate.io/source: GitRepository/shop") + "  postBuild: {substitute: {a: b}}\n", "spec.postBuild is applied by Flux after the gate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := application.Parse([]byte(tc.text), "app.yaml")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want one with %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %q, want one line", err)
			}
			if s.App.Path != "" {
				t.Errorf("got a source with an error: %+v", s.App)
			}
		})
	}
}

func TestAFluxKustomizationIsBuiltAsFluxDoes(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		app        policy.App
		mode       application.Mode
		source     application.Reference
		variables  []application.Reference
		own        string
	}{
		{"plain", flux("  wait: true\n  decryption: {provider: sops}\n  force: false\n  ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}]\n  kubeConfig: {secretRef: {name: x}}\n"),
			policy.App{Name: "web", Path: "apps/web", Repository: "shop"}, application.Plain, application.Reference{Kind: "GitRepository", Namespace: "flux-system", Name: "shop"}, nil, ""},
		{"with what the build does", strings.Replace(flux("  targetNamespace: shop\n  namePrefix: a-\n  patches: [{patch: x, target: {kind: Deployment}}]\n  images: [{name: web, newTag: '2'}]\n  components: [../c]\n  commonMetadata: {labels: {team: shop}}\n  postBuild: {substitute: {a: b}, substituteFrom: [{kind: Secret, name: s, optional: true}]}\n"), "./apps/web", "/apps/web/", 1),
			policy.App{Name: "web", Namespace: "shop", Path: "apps/web", Repository: "shop"}, application.Plain, application.Reference{Kind: "GitRepository", Namespace: "flux-system", Name: "shop"},
			[]application.Reference{{Kind: "Secret", Name: "s"}}, ""},
		{"postBuild mode", flux("  postBuild: {substituteFrom: [{kind: ConfigMap, name: settings}, {kind: ConfigMap, name: syncgate-flux-web}]}\n"),
			policy.App{Name: "web", Path: "apps/web", Repository: "shop"}, application.PostBuild, application.Reference{Kind: "GitRepository", Namespace: "flux-system", Name: "shop"},
			[]application.Reference{{Kind: "ConfigMap", Name: "settings"}}, "syncgate-flux-web"},
		{"artifact mode", artifactMode("syncgate.io/source: OCIRepository/flux-system/shop, syncgate.io/path: ./apps/web, syncgate.io/mode: Enforce"),
			policy.App{Name: "team_web", Path: "apps/web", Repository: "shop"}, application.Artifact, application.Reference{Kind: "OCIRepository", Namespace: "flux-system", Name: "shop"}, nil, ""},
		{"somebody else's ExternalArtifact", strings.Replace(artifactMode(""), "syncgate-flux-web", "other", 1),
			policy.App{Name: "team_web", Path: ".", Repository: "other"}, application.Plain, application.Reference{Kind: "ExternalArtifact", Namespace: "team", Name: "other"}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := application.Parse([]byte(tc.text), "ks.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.app, s.App); diff != "" {
				t.Errorf("what policy matches on (-want +got):\n%s", diff)
			}
			k := s.Flux()
			if k.Mode != tc.mode || k.Source != tc.source || !slices.Equal(k.Variables, tc.variables) {
				t.Errorf("got %q of %v with %v, want %q of %v with %v", k.Mode, k.Source, k.Variables, tc.mode, tc.source, tc.variables)
			}
			if _, there := s.Annotations["syncgate.io/mode"]; there != strings.Contains(tc.text, "io/mode") || len(s.Annotations) > 1 {
				t.Errorf("got annotations %q", s.Annotations)
			}
			root := t.TempDir()
			o, err := s.Options(root)
			if err != nil {
				t.Fatal(err)
			}
			if o.Renderer != render.Flux || o.Root != root || o.Dir != filepath.Join(root, filepath.FromSlash(tc.app.Path)) || !o.Flux.Checkout || o.Flux.Own != tc.own || o.Flux.Prefix != "syncgate_" {
				t.Errorf("got options %+v, %+v", o, o.Flux)
			}
			if o, err = s.Built(root, nil); err != nil || o.Flux.Checkout {
				t.Errorf("of an artifact: got %+v, %v", o.Flux, err)
			}
		})
	}
}

// Argo CD merges these files over the source; a laptop that did not would
// compute other digests.
func TestAFileThatChangesTheSourceIsRefused(t *testing.T) {
	for name, refused := range map[string]bool{".argocd-source.yaml": true, ".argocd-source-web.yaml": true, ".argocd-source-other.yaml": false} {
		s, err := application.Parse([]byte(argo("")), "app.yaml")
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		dir := filepath.Join(root, "apps", "web")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err = s.Options(root)
		if got := err != nil; got != refused {
			t.Errorf("%s: got error %v, want one: %v", name, err, refused)
		}
	}
}

func TestAFileIsReadWithinBounds(t *testing.T) {
	dir := t.TempDir()
	if _, err := application.Read(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("a missing file: got no error")
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(argo("")+"# "+strings.Repeat("x", 2<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := application.Read(large); err == nil || !strings.Contains(err.Error(), "is larger than 2097152 bytes") {
		t.Errorf("a large file: got error %v", err)
	}
	good := filepath.Join(dir, "app.yaml")
	if err := os.WriteFile(good, []byte(argo("")), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := application.Read(good)
	if err != nil || s.App.Name != "web" {
		t.Errorf("got %+v, %v", s.App, err)
	}
}

func TestParametersAreThoseOfTheForm(t *testing.T) {
	for _, tc := range []struct {
		name, json string
		want       render.Options
		err        string
	}{
		{name: "none", json: `null`},
		{name: "texts", json: `[{"name":"renderer","string":"directory"},{"name":"include","string":"a"},{"name":"exclude","string":"b"},{"name":"recurse","string":"true"}]`,
			want: render.Options{Renderer: "directory", Include: "a", Exclude: "b", Recurse: true}},
		{name: "all of Helm's", json: `[{"name":"helm.releaseName","string":"r"},{"name":"helm.namespace","string":"n"},{"name":"helm.valueFiles","array":["a.yaml"]},
			{"name":"helm.ignoreMissingValueFiles","string":"true"},{"name":"helm.values","string":"a: b"},{"name":"helm.set","array":["a=1","b={x,y}"]},
			{"name":"helm.setString","map":{"c":"2"}},{"name":"helm.setFile","map":{"d":"e.txt"}},{"name":"helm.skipCrds","string":"true"},
			{"name":"helm.skipTests","string":"true"},{"name":"helm.skipSchemaValidation","string":"true"},{"name":"helm.kubeVersion","string":"1.30"},
			{"name":"helm.apiVersions","array":["x/v1"]}]`,
			want: render.Options{ReleaseName: "r", Namespace: "n", KubeVersion: "1.30", APIVersions: []string{"x/v1"}, Helm: render.HelmOptions{
				ValueFiles: []string{"a.yaml"}, IgnoreMissingValueFiles: true, Values: map[string]any{"a": "b"},
				Set: []string{"a=1", "b={x,y}"}, SetString: []string{"c=2"}, SetFile: []string{"d=e.txt"}, SkipCRDs: true, SkipTests: true, SkipSchemaValidation: true}}},
		{name: "unknown", json: `[{"name":"render-command","string":"[\"sh\"]"}]`, err: `"render-command" is not one of renderer, recurse`},
		{name: "twice", json: `[{"name":"recurse","string":"true"},{"name":"recurse","string":"false"}]`, err: `want "recurse" once, with true or false`},
		{name: "yes", json: `[{"name":"recurse","string":"yes"}]`, err: `recurse is "yes", want true or false`},
		{name: "an array for a text", json: `[{"name":"include","array":["a"]}]`, err: `want "include" once, with a string`},
		{name: "a text for an array", json: `[{"name":"helm.valueFiles","string":"a.yaml"}]`, err: `want "helm.valueFiles" once, with an array`},
		{name: "a map and an array", json: `[{"name":"helm.set","array":["a=1"],"map":{"b":"2"}}]`, err: `want "helm.set" once, with a map or an array`},
		{name: "a text for a map", json: `[{"name":"helm.set","string":"a=1"}]`, err: `want "helm.set" once, with a map or an array`},
		{name: "no value", json: `[{"name":"renderer"}]`, err: `want "renderer" once, with a string`},
		{name: "values that are none", json: `[{"name":"helm.values","string":"secret: [hunter2"}]`, err: "helm.values: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []application.Parameter
			if err := json.Unmarshal([]byte(tc.json), &list); err != nil {
				t.Fatal(err)
			}
			var got render.Options
			err := application.Parameters(list, &got)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("got error %v, want one with %q and no values", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReleaseNames(t *testing.T) {
	for name, want := range map[string]string{"web": "web", "team-a_web": "web", "": ""} {
		if got := application.ReleaseName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
