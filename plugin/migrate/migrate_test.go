package migrate_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/migrate"
)

// argo is an Application with a source.
func argo(source string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  project:   shop   # spaces stay
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  source:
    repoURL: https://git.example.com/shop.git
    path: apps/web
` + source + `
  syncPolicy: {automated: {prune: true}}
`
}

// several is an Application with a list of sources, more of them given.
func several(more string) string {
	return strings.NewReplacer("  source:\n    repoURL", "  sources:\n  - repoURL").Replace(argo(strings.TrimSuffix(more, "\n")))
}

// set is an ApplicationSet with more in its spec, and a template's source.
func set(spec, source string) string {
	return `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web}
spec:
  generators: [{list: {elements: [{cluster: a, replicas: "3"}]}}]
` + spec + `  template:
    metadata: {name: 'web-{{cluster}}'}
    spec:
      source:
        repoURL: https://git.example.com/shop.git
        path: 'apps/{{cluster}}'
` + source
}

func TestASourceMovesAndTheRestStays(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"no block", argo(""), argo("    plugin:\n      name: syncgate\n")},
		{"an empty block", argo("    kustomize: {}\n"), argo("    plugin:\n      name: syncgate\n      parameters:\n      - {name: renderer, string: kustomize}\n")},
		{"what says nothing", argo("    kustomize: {namePrefix: '', images: [], forceCommonLabels: true}\n"),
			argo("    plugin:\n      name: syncgate\n      parameters:\n      - {name: renderer, string: kustomize}\n")},
		{"directory", argo("    directory:\n      recurse: true\n      include: '*.yaml'\n      exclude: '{a,b}*'\n      jsonnet: {}\n"), argo(`    plugin:
      name: syncgate
      parameters:
      - {name: renderer, string: directory}
      - {name: recurse, string: "true"}
      - {name: include, string: '*.yaml'}
      - {name: exclude, string: '{a,b}*'}
`)},
		{"helm, with comments", argo(`    # the chart
    helm: # in the repository
      # production
      valueFiles:
      - values-prod.yaml # first
      - /shared.yaml

      # set by CI
      parameters:
      - name: image.tag # the release
        value: "1.5"
      # a number
      - {name: id, value: "7", forceString: true}
      - {name: list, value: "{a,b}"}
      - {name: text, value: "a,b"}
      fileParameters: [{name: conf, path: files/conf}]
      valuesObject:
        # kept
        a: {b: 1}
      values: "lost: 1"
      skipCrds: true
      skipTests: false
      passCredentials: true
      version: v3
      releaseName: shop
      kubeVersion: "1.31"
      apiVersions: [example.com/v1]
`), argo(`    # the chart
    plugin: # in the repository
      name: syncgate
      parameters:
      - {name: renderer, string: helm}
      # production
      - name: helm.valueFiles
        array:
        - values-prod.yaml # first
        - /shared.yaml
      # set by CI
      - name: helm.set
        map:
          image.tag: "1.5" # the release
          list: "{a,b}"
          text: "a,b"
      - name: helm.setString
        map:
          # a number
          id: "7"
      - name: helm.setFile
        map:
          conf: files/conf
      - name: helm.values
        string: |
          # kept
          a: {b: 1}
      - {name: helm.skipCrds, string: "true"}
      - {name: helm.releaseName, string: shop}
      - {name: helm.kubeVersion, string: "1.31"}
      - name: helm.apiVersions
        array: [example.com/v1]
`)},
		{"the last of two settings with one name", argo("    helm: {parameters: [{name: a, value: x}, {name: a, value: z}]}\n"),
			argo("    plugin:\n      name: syncgate\n      parameters:\n      - {name: renderer, string: helm}\n      - name: helm.set\n        map:\n          a: z\n")},
		{"what it was already", argo("    plugin: {name: syncgate, env: [{name: A, value: b}]}\n"), argo("    plugin: {name: syncgate, env: [{name: A, value: b}]}\n")},
		{"braces", "# head\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {project: x, source: {repoURL: a, path: b, helm: {releaseName: z}}} # why\n# tail\n",
			"# head\napiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: # why\n  project: x\n  source:\n    repoURL: a\n    path: b\n" +
				"    plugin:\n      name: syncgate\n      parameters:\n      - {name: renderer, string: helm}\n      - {name: helm.releaseName, string: z}\n# tail\n"},
		{"several documents", "# first\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n---\n" + argo("    helm: {}\n") + "---\n" + argo(""),
			"# first\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n---\n" + argo("    plugin:\n      name: syncgate\n      parameters:\n      - {name: renderer, string: helm}\n") + "---\n" + argo("    plugin:\n      name: syncgate\n")},
		{"several sources", several("  - helm: {releaseName: b}\n    repoURL: x\n    path: z\n"), several(`    plugin:
      name: syncgate
  - plugin:
      name: syncgate
      parameters:
      - {name: renderer, string: helm}
      - {name: helm.releaseName, string: b}
    repoURL: x
    path: z
`)},
		{"a template", set("", "        helm:\n          values: |\n            replicas: {{replicas}}\n          parameters: [{name: cluster, value: '{{cluster}}'}]\n"),
			set("", `        plugin:
          name: syncgate
          parameters:
          - {name: renderer, string: helm}
          - name: helm.values
            string: |
              replicas: {{replicas}}
          - name: helm.set
            map:
              cluster: '{{cluster}}'
`)},
		{"a patch of something else", set("  templatePatch: 'metadata: {labels: {a: b}}'\n", ""), set("  templatePatch: 'metadata: {labels: {a: b}}'\n", "        plugin:\n          name: syncgate\n")},
		{"a file without an end of line", strings.TrimRight(set("", "        directory: {recurse: true}"), "\n"),
			set("", "        plugin:\n          name: syncgate\n          parameters:\n          - {name: renderer, string: directory}\n          - {name: recurse, string: \"true\"}")},
		{"lines that end as on Windows", strings.ReplaceAll(argo("    helm: {releaseName: z}\n"), "\n", "\r\n"), strings.ReplaceAll(argo("    plugin:\n      name: syncgate\n      parameters:\n"+
			"      - {name: renderer, string: helm}\n      - {name: helm.releaseName, string: z}\n"), "\n", "\r\n")},
		{"lists that are indented", strings.Replace(argo("    helm:\n        valueFiles:\n            - a.yaml\n"), "    path: apps/web\n", "", 1),
			strings.Replace(argo("    plugin:\n      name: syncgate\n      parameters:\n        - {name: renderer, string: helm}\n        - name: helm.valueFiles\n          array:\n            - a.yaml\n"), "    path: apps/web\n", "", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := migrate.Rewrite([]byte(tc.in), "app.yaml", "")
			if err != nil || len(r.Cannot) > 0 {
				t.Fatalf("got error %v, cannot %+v", err, r.Cannot)
			}
			if got := string(r.Text); got != tc.want {
				t.Errorf("(-want +got):\n%s\n%s", cmp.Diff(tc.want, got), got)
			}
			again, err := migrate.Rewrite(r.Text, "app.yaml", "")
			if err != nil || again.Moved != 0 || !bytes.Equal(r.Text, again.Text) {
				t.Errorf("a second time: %d moved, error %v (-first +second):\n%s", again.Moved, err, cmp.Diff(string(r.Text), string(again.Text)))
			}
		})
	}
}

func TestTheEnvironmentIsAskedForByEachSource(t *testing.T) {
	for _, environment := range []string{"prod", "{{cluster}}"} {
		r, err := migrate.Rewrite([]byte(set("", "")), "set.yaml", environment)
		if err != nil {
			t.Fatal(err)
		}
		if want := "          env:\n          - name: SYNCGATE_ENVIRONMENT\n            value: "; !strings.Contains(string(r.Text), want) {
			t.Errorf("got %s, want %q in it", r.Text, want)
		}
	}
}

func TestWhatCannotMoveIsListedAndNothingIsWritten(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string // At, after the object's name
	}{
		{"kustomize", argo("    kustomize: {namePrefix: a-, images: ['web:1'], commonLabels: {a: b}, patches: [{patch: x}], components: [../c]}\n"), []string{
			"spec.source.kustomize.namePrefix", "spec.source.kustomize.images", "spec.source.kustomize.commonLabels", "spec.source.kustomize.patches", "spec.source.kustomize.components"}},
		{"one of many documents", argo("") + "---\n" + argo("    chart: web\n"), []string{"spec.source.chart"}},
		{"another source's values", argo("    helm: {valueFiles: [$values/a.yaml, 'https://x/y.yaml', 'a*.yaml']}\n"),
			[]string{"spec.source.helm.valueFiles[0]", "spec.source.helm.valueFiles[1]", "spec.source.helm.valueFiles[2]"}},
		{"a source for others", strings.NewReplacer("  source:\n", "  sources:\n  - {repoURL: x, ref: values}\n", "    repoURL", "  - repoURL").Replace(argo("")), []string{"spec.sources[0].ref"}},
		{"a variable", argo("    helm: {parameters: [{name: a, value: $ARGOCD_APP_NAME}], fileParameters: [{name: a, path: $X}]}\n"),
			[]string{"spec.source.helm.parameters[0].value", "spec.source.helm.fileParameters[0].path"}},
		{"Helm 2", argo("    helm: {version: v2}\n"), []string{"spec.source.helm.version"}},
		{"Jsonnet", argo("    directory: {jsonnet: {tlas: [{name: a, value: b}]}}\n"), []string{"spec.source.directory.jsonnet"}},
		{"another plugin", argo("    plugin: {name: avp}\n"), []string{"spec.source.plugin"}},
		{"two blocks", argo("    helm: {}\n    kustomize: {}\n"), []string{"spec.source"}},
		{"what nobody knows", argo("    helm: {shiny: true}\n"), []string{"spec.source.helm.shiny"}},
		{"what nobody knows of a source", argo("    shiny: true\n"), []string{"spec.source"}},
		{"values that are no object", argo("    helm: {values: '[1]'}\n"), []string{"spec.source"}},
		{"values of several documents", argo("    helm: {values: \"a: 1\\n---\\na: 2\"}\n"), []string{"spec.source"}},
		{"values of another type", argo("    helm: {skipCrds: 'yes'}\n"), []string{"spec.source"}},
		{"a hydrator", strings.Replace(argo(""), "  source:", "  sourceHydrator: {drySource: {path: x}}\n  source:", 1), []string{"spec.sourceHydrator"}},
		{"no source", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {project: x}\n", []string{"spec"}},
		{"a patch of the template", set("  templatePatch: 'spec: {source: {helm: {}}}'\n", ""), []string{"spec.templatePatch"}},
		{"a generator's template", strings.Replace(set("", ""), "[{list: {", "[{matrix: {generators: [{list: {template: {spec: {source: {helm: {releaseName: x}}}}}}]}}, {list: {", 1),
			[]string{"spec.generators[0].matrix.generators[0].list.template"}},
		{"a template's chart", set("", "        chart: x\n"), []string{"spec.template.spec.source.chart"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := migrate.Rewrite([]byte(tc.in), "app.yaml", "")
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != nil {
				t.Errorf("got text: %s", r.Text)
			}
			var got []string
			for _, f := range r.Cannot {
				got = append(got, f.At[strings.LastIndex(f.At, " ")+1:])
				if f.Why == "" || f.Do == "" {
					t.Errorf("%s: why %q, do %q", f.At, f.Why, f.Do)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFilesThatHoldNothingToMoveAreErrors(t *testing.T) {
	for name, in := range map[string]string{
		"no YAML":         "a: {",
		"a duplicate key": argo("    path: other\n"),
		"other kinds":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"another group":   "apiVersion: example.com/v1\nkind: Application\nmetadata: {name: c}\nspec: {source: {}}\n",
		"nothing":         "",
	} {
		if r, err := migrate.Rewrite([]byte(in), "app.yaml", ""); err == nil || r.Text != nil {
			t.Errorf("%s: got error %v, text %q", name, err, r.Text)
		}
	}
}

func TestWhatElseToLookAtIsNoted(t *testing.T) {
	in := strings.NewReplacer("namespace: argocd}", "annotations: {argocd.argoproj.io/manifest-generate-paths: ., argocd-image-updater.argoproj.io/image-list: x}}",
		"{prune: true}", "{}, syncOptions: [RespectIgnoreDifferences=true, Replace=true, PruneLast=true]").Replace(argo(""))
	r, err := migrate.Rewrite([]byte(in), "app.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(r.Notes, "\n")
	for _, want := range []string{"manifest-generate-paths", "Image Updater", "RespectIgnoreDifferences=true", "Replace=true"} {
		if !strings.Contains(all, want) {
			t.Errorf("got %q, want a note with %q", all, want)
		}
	}
	if len(r.Notes) != 4 {
		t.Errorf("got %d notes, want 4", len(r.Notes))
	}
}

func TestTheDocumentedTableIsTheOneInUse(t *testing.T) {
	data, err := os.ReadFile("../../docs/argocd.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), migrate.Table()) {
		t.Errorf("docs/argocd.md does not hold:\n%s", migrate.Table())
	}
}
