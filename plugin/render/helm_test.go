package render_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/render"
)

const chartYAML = "{apiVersion: v2, name: shop, version: 1.0.0, appVersion: \"2.0\"}"

// show is a template that writes one expression into a ConfigMap.
func show(expression string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: out}\ndata: {out: {{ " + expression + " | quote }}}\n"
}

func renderChart(t *testing.T, files map[string]string, o render.Options) (render.Result, string, error) {
	t.Helper()
	root := repository(t, map[string]string{"app/Chart.yaml": chartYAML})
	write(t, root, files)
	o.Dir = filepath.Join(root, "app")
	if o.ReleaseName == "" {
		o.ReleaseName = "web"
	}
	r, err := render.Render(t.Context(), o)
	return r, o.Dir, err
}

// out returns what show wrote.
func out(r render.Result) any {
	for _, o := range r.Objects {
		if o.Name() == "out" {
			data, _ := o.Tree["data"].(map[string]any)
			return data["out"]
		}
	}
	return nil
}

func TestATemplateSeesWhatArgoCDGivesToHelm(t *testing.T) {
	values := map[string]string{
		"app/values.yaml": "a: chart\nb: chart\nc: chart\nd: chart\nn: 1000000\nm: {x: 1, z: 2}\n",
		"app/one.yaml":    "a: one\nb: one\n", "app/two.yaml": "b: two\nc: two\n", "shared/root.yaml": "a: root\n",
		"app/text.txt": "from a file",
	}
	for _, tc := range []struct {
		name, show string
		o          render.Options
		files      map[string]string
		want       string
	}{
		{name: "the chart's values", show: ".Values.a", want: "chart"},
		{name: "value files in their order", show: `print .Values.a .Values.b .Values.c`,
			o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"one.yaml", "two.yaml"}}}, want: "onetwotwo"},
		{name: "value files in the other order", show: `print .Values.a .Values.b .Values.c`,
			o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"two.yaml", "one.yaml"}}}, want: "oneonetwo"},
		{name: "a value file of the repository", show: ".Values.a", o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"/shared/root.yaml"}}}, want: "root"},
		{name: "a value file beside the chart", show: ".Values.a", o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"../shared/root.yaml"}}}, want: "root"},
		{name: "a value file that may be missing", show: ".Values.a",
			o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"no.yaml", "one.yaml"}, IgnoreMissingValueFiles: true}}, want: "one"},
		{name: "inline values win over files", show: `print .Values.a .Values.b`,
			o: render.Options{Helm: render.HelmOptions{ValueFiles: []string{"one.yaml"}, Values: map[string]any{"b": "inline"}}}, want: "oneinline"},
		{name: "a single setting wins over inline values", show: `print .Values.a .Values.b`,
			o: render.Options{Helm: render.HelmOptions{Set: []string{"b=set"}, Values: map[string]any{"a": "inline", "b": "inline"}}}, want: "inlineset"},
		{name: "a null removes a value", show: ".Values.m | toJson", o: render.Options{Helm: render.HelmOptions{Set: []string{"m.x=null"}}}, want: `{"z":2}`},
		{name: "a text that looks like a number", show: `kindOf .Values.a`, o: render.Options{Helm: render.HelmOptions{SetString: []string{"a=1"}}}, want: "string"},
		{name: "a value from a file", show: ".Values.a", o: render.Options{Helm: render.HelmOptions{SetFile: []string{"a=text.txt"}}}, want: "from a file"},
		{name: "a number inline is that of a file", show: `print (kindOf .Values.n) .Values.n`,
			o: render.Options{Helm: render.HelmOptions{Values: map[string]any{"n": 1000000}}}, want: "float641e+06"},
		{name: "the release", show: `print .Release.Name "/" .Release.Namespace "/" .Release.IsInstall .Release.Revision`,
			o: render.Options{Namespace: "shop"}, want: "web/shop/true 1"},
		{name: "a release without a namespace", show: ".Release.Namespace", want: "default"},
		{name: "the default Kubernetes version", show: ".Capabilities.KubeVersion.Version", want: "v1.35.0"},
		{name: "Argo CD's short Kubernetes version is what Helm 3 makes of it", show: ".Capabilities.KubeVersion.Version", o: render.Options{KubeVersion: "1.31"}, want: "v1.31.0"},
		{name: "a vendor's Kubernetes version", show: ".Capabilities.KubeVersion.Version", o: render.Options{KubeVersion: "v1.31.2-eks-1"}, want: "v1.31.2-eks-1"},
		{name: "added API versions", show: `print (.Capabilities.APIVersions.Has "example.com/v1") (.Capabilities.APIVersions.Has "apps/v1") (.Capabilities.APIVersions.Has "x/v1")`,
			o: render.Options{APIVersions: []string{"example.com/v1"}}, want: "true true false"},
		{name: "Helm's own version", show: ".Capabilities.HelmVersion.Version", want: "v4.3.2"},
		{name: "a lookup finds nothing", show: `lookup "v1" "Secret" "shop" "s" | toJson`, want: "{}"},
		{name: "files of the chart", show: `.Files.Get "text.txt"`, want: "from a file"},
		{name: "never the lock", show: `.Files.Get ".syncgate/images.lock"`, files: map[string]string{"app/.syncgate/images.lock": "x"}, want: ""},
		{name: "never what .helmignore names", show: `.Files.Get "text.txt"`, files: map[string]string{"app/.helmignore": "*.txt\n"}, want: ""},
		{name: "no host names", show: `getHostByName "localhost"`, want: ""},
		{name: "keys in order", show: `keys (dict "z" 1 "b" 1 "a" 1 "y" 1 "c" 1) | join ""`, want: "abcyz"},
		{name: "values in order of their keys", show: `values (dict "z" 1 "b" 2 "a" 3 "y" 4 "c" 5) | join ""`, want: "32541"},
		{name: "a date in UTC", show: `date "2006-01-02 15:04" 86400`, want: "1970-01-02 00:00"},
		{name: "a date read in UTC", show: `toDate "2006-01-02" "1970-01-02" | unixEpoch`, want: "86400"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := map[string]string{"app/templates/out.yaml": show(tc.show)}
			for _, m := range []map[string]string{values, tc.files} {
				for k, v := range m {
					files[k] = v
				}
			}
			r, _, err := renderChart(t, files, tc.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := out(r); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

const (
	hookJob  = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: %s\n  annotations: {helm.sh/hook: \"%s\"}\n"
	crd      = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.example.com}\n"
	subChart = "{apiVersion: v2, name: db, version: 1.2.0}"
)

func hook(name, events string) string {
	return strings.NewReplacer("%s\n", name+"\n", `"%s"`, `"`+events+`"`).Replace(hookJob)
}

func TestAChartRendersToTheObjectsThatHelmTemplatePrints(t *testing.T) {
	full := map[string]string{
		"app/templates/b.yaml":            deployment + "---\n# nothing\n---\n" + configMap,
		"app/templates/a.yaml":            "{{ if .Values.never }}" + configMap + "{{ end }}",
		"app/templates/NOTES.txt":         "Thank you.",
		"app/templates/_helpers.tpl":      `{{ define "x" }}x{{ end }}`,
		"app/templates/hook.yaml":         hook("migrate", "pre-install,pre-upgrade"),
		"app/templates/old.yaml":          hook("old", "crd-install"),
		"app/templates/tests/t.yaml":      hook("test", "test"),
		"app/crds/crd.yaml":               crd,
		"app/charts/db/Chart.yaml":        subChart,
		"app/charts/db/templates/db.yaml": configMap,
		"app/charts/db/crds/c.yaml":       strings.ReplaceAll(crd, "x.", "y."),
	}
	for _, tc := range []struct {
		name string
		o    render.HelmOptions
		want []string
	}{
		{"all of it", render.HelmOptions{}, []string{
			"charts/db/crds/c.yaml: CustomResourceDefinition y.example.com", "charts/db/templates/db.yaml: ConfigMap config",
			"crds/crd.yaml: CustomResourceDefinition x.example.com", "templates/b.yaml: Deployment web", "templates/b.yaml: ConfigMap config",
			"templates/hook.yaml: Job migrate", "templates/tests/t.yaml: Job test"}},
		{"without definitions and tests", render.HelmOptions{SkipCRDs: true, SkipTests: true}, []string{
			"charts/db/templates/db.yaml: ConfigMap config", "templates/b.yaml: Deployment web", "templates/b.yaml: ConfigMap config",
			"templates/hook.yaml: Job migrate"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _, err := renderChart(t, full, render.Options{Helm: tc.o})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, kinds(r)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			want := []string{`templates/old.yaml document 1: Job "old" is left out, as Helm does: helm.sh/hook has the unknown "crd-install"`}
			if diff := cmp.Diff(want, r.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// packed is a chart archive with the files, whose names begin with a folder.
func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	w := tar.NewWriter(zip)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestDependencies(t *testing.T) {
	with := func(dependency string) string {
		return "apiVersion: v2\nname: shop\nversion: 1.0.0\ndependencies:\n- " + dependency + "\n"
	}
	db := map[string]string{"db/Chart.yaml": subChart, "db/templates/db.yaml": configMap}
	nested := map[string]string{"db/Chart.yaml": subChart, "db/charts/deep-1.0.0.tgz": packed(t, map[string]string{
		"deep/Chart.yaml": "{apiVersion: v2, name: deep, version: 1.0.0}", "deep/templates/d.yaml": configMap})}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  []string
		err   string
	}{
		{"packed in charts/", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, repository: 'https://example.com'}"),
			"app/charts/db-1.2.0.tgz": packed(t, db)}, []string{"charts/db/templates/db.yaml: ConfigMap config"}, ""},
		{"packed within a packed one", map[string]string{"app/charts/db-1.2.0.tgz": packed(t, nested)},
			[]string{"charts/db/charts/deep/templates/d.yaml: ConfigMap config"}, ""},
		{"under another name", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, alias: cache, repository: 'https://example.com'}"),
			"app/charts/db-1.2.0.tgz": packed(t, db)}, []string{"charts/cache/templates/db.yaml: ConfigMap config"}, ""},
		{"switched off", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, condition: db.enabled, repository: 'https://example.com'}"),
			"app/values.yaml": "db: {enabled: false}", "app/charts/db-1.2.0.tgz": packed(t, db)}, nil, ""},
		{"beside the chart", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, repository: 'file://../db'}"),
			"db/Chart.yaml": subChart, "db/templates/db.yaml": configMap}, []string{"charts/db/templates/db.yaml: ConfigMap config"}, ""},
		{"beside the chart, of another version", map[string]string{"app/Chart.yaml": with("{name: db, version: ^2, repository: 'file://../db'}"),
			"db/Chart.yaml": subChart}, nil, `dependency "db" in "file://../db": got chart "db" version "1.2.0", want "db" version "^2"`},
		{"outside of the repository", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, repository: 'file://../../db'}")}, nil, `"file://../../db"`},
		{"missing", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, repository: 'https://example.com'}\n- {name: mq, version: 1.0.0, repository: 'oci://example.com'}")},
			nil, `charts/ lacks the dependencies "db", "mq" that Chart.yaml names: run "helm dependency build" and commit charts/`},
		{"missing though switched off", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, condition: db.enabled, repository: 'https://example.com'}"),
			"app/values.yaml": "db: {enabled: false}"}, nil, `lacks the dependencies "db"`},
		{"an old one left beside the new", map[string]string{"app/Chart.yaml": with("{name: db, version: 1.2.0, repository: 'https://example.com'}"),
			"app/charts/db-1.2.0.tgz": packed(t, db), "app/charts/db/Chart.yaml": strings.ReplaceAll(subChart, "1.2.0", "1.1.0")}, nil,
			`charts/ of chart "shop" holds "db" twice (versions "1.1.0" and "1.2.0")`},
		{"a range that fits two", map[string]string{"app/Chart.yaml": with("{name: db, version: ^1, repository: 'https://example.com'}"),
			"app/charts/db-1.2.0.tgz": packed(t, db), "app/charts/db/Chart.yaml": strings.ReplaceAll(subChart, "1.2.0", "1.1.0")}, nil,
			`holds "db" twice (versions "1.1.0" and "1.2.0")`},
		{"two versions under two names", map[string]string{
			"app/Chart.yaml":          with("{name: db, version: 1.2.0, repository: 'https://example.com'}\n- {name: db, version: 1.1.0, alias: old, repository: 'https://example.com'}"),
			"app/charts/db-1.2.0.tgz": packed(t, db), "app/charts/db/Chart.yaml": strings.ReplaceAll(subChart, "1.2.0", "1.1.0"),
			"app/charts/db/templates/o.yaml": deployment}, []string{"charts/db/templates/db.yaml: ConfigMap config", "charts/old/templates/o.yaml: Deployment web"}, ""},
		{"no archive at all", map[string]string{"app/charts/db-1.2.0.tgz": "no"}, nil, `unpacking "charts/db-1.2.0.tgz"`},
		{"an archive that leaves its folder", map[string]string{"app/charts/db-1.2.0.tgz": packed(t, map[string]string{"db/../../x": ""})}, nil, "illegally references parent directory"},
		{"archives that are too large", map[string]string{
			"app/charts/a-1.0.0.tgz": packed(t, map[string]string{"a/x": strings.Repeat("x", 70<<20)}),
			"app/charts/b-1.0.0.tgz": packed(t, map[string]string{"b/x": strings.Repeat("x", 70<<20)})}, nil, "together larger than 134217728 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, dir, err := renderChart(t, tc.files, render.Options{})
			if tc.err != "" {
				checkError(t, err, dir, tc.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, kinds(r)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChartsThatAreRefused(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"values.yaml": "a: secret\n", "schema.json": "{}"})
	schema := func(s string) map[string]string {
		return map[string]string{"app/values.schema.json": s, "app/values.yaml": "password: hunter2\nport: \"80\"\n", "app/templates/d.yaml": deployment}
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		o     render.Options
		want  string
	}{
		{"a values file out of the repository", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"../../values.yaml"}}}, "leads out of the repository"},
		{"a values file by its absolute path", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{outside + "/values.yaml"}}}, "does not exist"},
		{"a values file through a link", map[string]string{"l.yaml": "-> " + outside + "/values.yaml"}, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"/l.yaml"}}}, "symbolic link that leads out of the repository"},
		{"a remote values file", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"https://example.com/v.yaml"}}}, "is remote"},
		{"a values file of another source", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"$values/v.yaml"}}}, "refers to another source"},
		{"a pattern of values files", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"*.yaml"}}}, "patterns are not supported"},
		{"a missing values file", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"v.yaml"}}}, `"app/v.yaml" does not exist`},
		{"a values file in .git", nil, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"/.git/config"}}}, "lies in .git"},
		{"a values file that is a list", map[string]string{"app/v.yaml": "[1]"}, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"v.yaml"}}}, `values file "v.yaml"`},
		{"a values file of several documents", map[string]string{"app/v.yaml": "a: 1\n---\na: 2\n"}, render.Options{Helm: render.HelmOptions{ValueFiles: []string{"v.yaml"}}}, `values file "v.yaml": holds several YAML documents`},
		{"values of several documents", map[string]string{"app/values.yaml": "a: 1\n---\na: 2\n"}, render.Options{}, `"values.yaml": holds several YAML documents`},
		{"a subchart's values of several documents", map[string]string{"app/charts/db/Chart.yaml": subChart, "app/charts/db/values.yaml": "a: 1\n---\na: 2\n"}, render.Options{}, `"charts/db/values.yaml": holds several YAML documents`},
		{"a packed subchart's values of several documents", map[string]string{"app/charts/db-1.2.0.tgz": packed(t, map[string]string{"db/Chart.yaml": subChart, "db/values.yaml": "a: 1\n---\na: 2\n"})}, render.Options{}, "values.yaml\": holds several YAML documents"},
		{"a setting that is none", nil, render.Options{Helm: render.HelmOptions{Set: []string{"a"}}}, `set "a"`},
		{"a set-file out of the repository", nil, render.Options{Helm: render.HelmOptions{SetFile: []string{"a=../../x"}}}, `set-file "a"`},
		{"a file through a link in the chart", map[string]string{"app/templates/l.yaml": "-> " + outside + "/values.yaml"}, render.Options{}, "symbolic link that leads out of the repository"},
		{"a folder through a link in the chart", map[string]string{"app/charts/l": "-> " + outside}, render.Options{}, "symbolic link that leads out of the repository"},
		{"a Kubernetes version that is none", nil, render.Options{KubeVersion: "new"}, `kubernetes version "new"`},
		{"a chart for another Kubernetes", map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0, kubeVersion: '>=1.40'}"}, render.Options{}, `wants Kubernetes ">=1.40" and is rendered for v1.35.0`},
		{"a release name that is none", nil, render.Options{ReleaseName: "a_b"}, `release name "a_b"`},
		{"a library", map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0, type: library}"}, render.Options{}, "is a library"},
		{"a chart of the next format", map[string]string{"app/Chart.yaml": "{apiVersion: v3, name: shop, version: 1.0.0}"}, render.Options{}, `apiVersion "v3" is not supported`},
		{"a chart without a name", map[string]string{"app/Chart.yaml": "{apiVersion: v2, version: 1.0.0}"}, render.Options{}, "name is required"},
		{"no chart", map[string]string{"app/Chart.yaml": "[]"}, render.Options{}, "Chart.yaml"},
		{"a template that does not parse", map[string]string{"app/templates/d.yaml": "{{ if }}"}, render.Options{}, "executing the templates: parse error at (shop/templates/d.yaml:1)"},
		{"a template that fails", map[string]string{"app/templates/d.yaml": `{{ fail "no tag given" }}`}, render.Options{}, "no tag given"},
		{"a value that is required", map[string]string{"app/templates/d.yaml": `{{ required "give a tag" .Values.tag }}`}, render.Options{}, "give a tag"},
		{"a function that panics", map[string]string{"app/templates/d.yaml": `{{ repeat -1 "x" }}`}, render.Options{}, "executing the templates"},
		{"a template that includes itself", map[string]string{"app/templates/d.yaml": `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`}, render.Options{}, "nested reference name"},
		{"a value that is no template", map[string]string{"app/values.yaml": `x: 'hunter2 "{{ if }}'`, "app/templates/d.yaml": `{{ tpl .Values.x . }}`}, render.Options{}, "cannot parse template a value: "},
		{"a value that is a template that fails", map[string]string{"app/values.yaml": `x: 'hunter2 {{ fail "no" }}'`, "app/templates/d.yaml": `{{ tpl .Values.x . }}`}, render.Options{}, "no"},
		{"the environment", map[string]string{"app/templates/d.yaml": `{{ env "HOME" }}`}, render.Options{}, `function "env" not defined`},
		{"output that is no YAML", map[string]string{"app/templates/d.yaml": "a: {"}, render.Options{}, "templates/d.yaml document 1"},
		{"output with a duplicate key", map[string]string{"app/templates/d.yaml": configMap + "kind: Pod\n"}, render.Options{}, `templates/d.yaml document 1 line 4: duplicate key "kind"`},
		{"output that is no object", map[string]string{"app/templates/d.txt": "hello: world"}, render.Options{}, "templates/d.txt document 1"},
		{"faults of two templates", map[string]string{"app/templates/a.yaml": "a: {", "app/templates/b.yaml": "b: {"}, render.Options{}, "; templates/b.yaml document 1"},
		{"values of the wrong type", schema(`{"properties": {"port": {"type": "integer"}}}`), render.Options{}, `values.schema.json of chart "shop": "port" is of type string, want integer`},
		{"values that lack something", schema(`{"required": ["tag"]}`), render.Options{}, `"values" lacks ["tag"]`},
		{"values that are too many", schema(`{"additionalProperties": false, "properties": {"port": {}}}`), render.Options{}, `"values" has the unknown ["password"]`},
		{"a secret of the wrong form", schema(`{"properties": {"password": {"pattern": "^[0-9]+$"}}}`), render.Options{}, `"password" breaks "pattern"`},
		{"a schema that opens a file", schema(`{"$ref": "file://` + outside + `/schema.json"}`), render.Options{}, "refers to another file, which is not opened"},
		{"a schema on the network", schema(`{"$ref": "https://127.0.0.1:1/schema.json"}`), render.Options{}, `refers to "https://127.0.0.1:1/schema.json", and the gate renders without network`},
		{"a schema that is no JSON", schema(`{`), render.Options{}, "parsing the schema"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, dir, err := renderChart(t, tc.files, tc.o)
			checkError(t, err, dir, tc.want)
			if strings.Contains(err.Error(), outside) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got error %q, want one without paths of this machine and values", err)
			}
			if !strings.HasPrefix(err.Error(), "helm: ") {
				t.Errorf("got error %q, want it to begin with the renderer", err)
			}
		})
	}
}

func TestSchemaValidationCanBeSwitchedOff(t *testing.T) {
	files := map[string]string{"app/values.schema.json": `{"required": ["tag"]}`, "app/templates/d.yaml": deployment}
	r, _, err := renderChart(t, files, render.Options{Helm: render.HelmOptions{SkipSchemaValidation: true}})
	if err != nil || len(r.Objects) != 1 {
		t.Errorf("got %v, %v; want one object", kinds(r), err)
	}
}
