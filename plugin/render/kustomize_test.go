package render_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/render"
)

func TestKustomizationsStayInTheirRepositoryAndOffTheNetwork(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.yaml": configMap, "kustomization.yaml": "resources: [secret.yaml]"})
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string // error; empty: renders
	}{
		{"a base beside the application", map[string]string{
			"app/kustomization.yaml":  "resources: [../base]",
			"base/kustomization.yaml": "resources: [d.yaml]", "base/d.yaml": deployment}, ""},
		{"a link inside the repository", map[string]string{
			"app/kustomization.yaml": "resources: [link.yaml]", "app/link.yaml": "-> ../d.yaml", "d.yaml": deployment}, ""},
		{"a path out of the repository", map[string]string{
			"app/kustomization.yaml": "resources: [../../../secret.yaml]"},
			`app/kustomization.yaml: resources: "../../../secret.yaml" leads out of the repository`},
		{"a link out of the repository", map[string]string{
			"app/kustomization.yaml": "resources: [link.yaml]", "app/link.yaml": "-> " + outside + "/secret.yaml"},
			"symbolic link that leads out of the repository"},
		{"a linked folder out of the repository", map[string]string{
			"app/kustomization.yaml": "resources: [link]", "app/link": "-> " + outside},
			"symbolic link that leads out of the repository"},
		{"a file of a generator out of the repository", map[string]string{
			"app/kustomization.yaml": "secretGenerator: [{name: s, files: [key=../../../../etc/passwd]}]"},
			"leads out of the repository"},
		{"an absolute path", map[string]string{
			"app/kustomization.yaml": "configMapGenerator: [{name: s, files: [/etc/passwd]}]"}, "absolute path"},
		{"the repository's .git", map[string]string{
			"app/kustomization.yaml": "configMapGenerator: [{name: s, files: [../.git/config]}]"}, "lies in .git or .syncgate"},
		{"the .git folder through a link", map[string]string{
			"app/kustomization.yaml": "configMapGenerator: [{name: s, files: [g/config]}]", "app/g": "-> ../.git"}, "lies in .git or .syncgate"},
		{"an https file", map[string]string{
			"app/kustomization.yaml": "resources: ['https://example.com/install.yaml']"}, `"https://example.com/install.yaml" is remote`},
		{"a scheme in capitals", map[string]string{
			"app/kustomization.yaml": "resources: ['HTTPS://example.com/install.yaml']"}, "is remote"},
		{"a scheme with one slash", map[string]string{
			"app/kustomization.yaml": "resources: ['https:/example.com/install.yaml']"}, "is remote"},
		{"a repository on github.com", map[string]string{
			"app/kustomization.yaml": "resources: ['github.com/org/repo//deploy?ref=v1']"}, "is remote"},
		{"a repository that is a folder here too", map[string]string{
			"app/kustomization.yaml":                     "resources: [github.com/org/repo]",
			"app/github.com/org/repo/kustomization.yaml": "resources: [d.yaml]", "app/github.com/org/repo/d.yaml": deployment}, "is remote"},
		{"ssh by user", map[string]string{"app/kustomization.yaml": "bases: ['git@example.com:org/repo.git']"}, "is remote"},
		{"a forced git URL", map[string]string{"app/kustomization.yaml": "resources: ['git::me@example.com:org/repo']"}, "is remote"},
		{"a file URL", map[string]string{"app/kustomization.yaml": "resources: ['file:///etc']"}, "is remote"},
		{"an OCI artefact", map[string]string{"app/kustomization.yaml": "resources: ['oci://example.com/x']"}, "is remote"},
		{"a remote component", map[string]string{"app/kustomization.yaml": "components: ['https://example.com/c']"}, "is remote"},
		{"a remote patch", map[string]string{"app/kustomization.yaml": "patches: [{path: 'https://example.com/p.yaml'}]"}, "is remote"},
		{"a remote file of a generator", map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: c, files: ['k=https://example.com/f']}]"}, "is remote"},
		{"a remote schema", map[string]string{"app/kustomization.yaml": "openapi: {path: 'https://example.com/s.json'}"}, "is remote"},
		{"a remote base of a base", map[string]string{
			"app/kustomization.yaml": "resources: [../base]", "base/kustomization.yaml": "resources: ['https://example.com/x']"},
			"base/kustomization.yaml: resources:"},
		{"a chart", map[string]string{"app/kustomization.yaml": "helmCharts: [{name: x, repo: 'https://example.com'}]"}, "helmCharts is not supported"},
		{"a plugin that would be run", map[string]string{
			"app/kustomization.yaml": "generators: [g.yaml]",
			"app/g.yaml":             "apiVersion: example.com/v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: \"exec: {path: ./run.sh}\"}}"},
			"external plugins disabled"},
		{"a file that is not there", map[string]string{"app/kustomization.yaml": "resources: [nope.yaml]"}, `resources: "nope.yaml" does not exist`},
		{"a folder without a kustomization", map[string]string{"app/kustomization.yaml": "resources: [x]", "app/x/d.yaml": deployment}, "is a directory without a kustomization"},
		{"a cycle", map[string]string{"app/kustomization.yaml": "resources: [../base]", "base/kustomization.yaml": "resources: [../app]"}, "cycle detected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(repository(t, tc.files), "app")
			got, err := render.Render(t.Context(), render.Options{Dir: dir})
			if tc.want != "" {
				checkError(t, err, dir, tc.want)
				return
			}
			if err != nil || len(got.Objects) != 1 {
				t.Errorf("got %v, %v; want one object", kinds(got), err)
			}
		})
	}
}

// The configuration of a built-in transformer can name a remote file where no
// kustomization does, and patches can put it there.
func TestKustomizeCannotReachTheNetworkByOtherWays(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "[]")
	}))
	defer s.Close()
	dir := filepath.Join(repository(t, map[string]string{
		"app/kustomization.yaml":   "resources: [d.yaml]\ntransformers: [t]",
		"app/d.yaml":               deployment,
		"app/t/kustomization.yaml": "resources: [t.yaml]\npatches:\n- target: {kind: PatchTransformer}\n  patch: |-\n    - {op: add, path: /path, value: '" + s.URL + "/p'}\n",
		"app/t/t.yaml":             "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\ntarget: {kind: Deployment}\n",
	}), "app")
	_, err := render.Render(t.Context(), render.Options{Dir: dir})
	checkError(t, err, dir, "remote files are refused")
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	// Others still may.
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestWhatKustomizeWouldDropIsRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for _, l := range []string{"ba", "cb", "dc", "ed", "fe", "gf", "hg"} {
		bomb += l[:1] + ": &" + l[:1] + " [" + strings.Repeat("*"+l[1:]+",", 9) + "*" + l[1:] + "]\n"
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"the same key twice in a kustomization", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\nconfigMapGenerator: [{name: a}]\nnamePrefix: x-\nconfigMapGenerator: [{name: b}]\n", "app/d.yaml": deployment},
			`app/kustomization.yaml: line 4: key "configMapGenerator" is already on line 2`},
		{"the same key twice in a base", map[string]string{
			"app/kustomization.yaml": "resources: [../base]", "base/kustomization.yaml": "resources: [d.yaml]\nimages: []\nimages: []\n", "base/d.yaml": deployment},
			`base/kustomization.yaml: line 3: key "images" is already on line 2`},
		{"two keys that differ in case", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\nResources: [e.yaml]\n", "app/d.yaml": deployment, "app/e.yaml": configMap},
			`key "Resources" is already on line 1`},
		{"a nested key twice", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\nimages:\n- name: org/app\n  newTag: a\n  newTag: b\n", "app/d.yaml": deployment},
			`line 5: key "newTag" is already on line 4`},
		{"a second document", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\n---\nresources: [e.yaml]\n", "app/d.yaml": deployment},
			"a second document"},
		{"a key twice in a resource", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]", "app/d.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  hostNetwork: false\n  hostNetwork: true\n"},
			`app/d.yaml: line 6: key "hostNetwork" is already on line 5`},
		{"a key twice in a patch", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\npatches: [{path: p.yaml}]", "app/d.yaml": deployment,
			"app/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 1, replicas: 2}\n"},
			`app/p.yaml: line 4: key "replicas"`},
		{"a key twice in an inline patch", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - op: add\n      path: /spec/replicas\n      value: 1\n      value: 2\n", "app/d.yaml": deployment},
			`inline document: line 4: key "value"`},
		{"an unknown field", map[string]string{"app/kustomization.yaml": "resource: [d.yaml]", "app/d.yaml": deployment}, `unknown field "resource"`},
		{"two kustomizations in a folder", map[string]string{"app/kustomization.yaml": "resources: [d.yaml]", "app/kustomization.yml": "resources: [d.yaml]", "app/d.yaml": deployment}, "Found multiple kustomization files"},
		{"an empty kustomization", map[string]string{"app/kustomization.yaml": ""}, "kustomization.yaml is empty"},
		{"an anchor that contains itself", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]", "app/d.yaml": deployment + "x: &a [*a]\n"}, "contains itself"},
		{"an alias bomb", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]", "app/d.yaml": deployment + bomb}, "once its aliases are written out"},
		{"an alias bomb in a file that is only data by name", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml]\ncrds: [x.json]", "app/d.yaml": deployment, "app/x.json": bomb}, "once its aliases are written out"},
		{"bases that double at each step", map[string]string{
			"app/kustomization.yaml": "resources: [d.yaml, d.yaml]", "app/d.yaml": deployment}, "already registered id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(repository(t, tc.files), "app")
			got, err := render.Render(t.Context(), render.Options{Dir: dir})
			if len(got.Objects) != 0 {
				t.Errorf("got objects %v beside the error", kinds(got))
			}
			checkError(t, err, dir, tc.want)
		})
	}
}

func TestImagesEntriesThatDoNothingAreWarnedOf(t *testing.T) {
	const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for _, tc := range []struct {
		name, images string
		want         []string
	}{
		{"a name that matches", "[{name: org/app, newTag: '2'}]", nil},
		{"a name that is renamed", "[{name: org/app, newName: mirror/app}, {name: mirror/app, newTag: '2'}]", nil},
		{"a regular expression, as kustomize takes it", "[{name: 'org/.*', newTag: '2'}]", nil},
		{"a name with its tag", "[{name: 'org/app:1.0', digest: '" + digest + "'}]",
			[]string{`app/kustomization.yaml: images entry "org/app:1.0": a name with a tag or digest matches, if anything, only images written exactly so; give the name alone`}},
		{"the name of the container", "[{name: web, newTag: '2'}]", []string{`app/kustomization.yaml: images entry "web" matches no container`}},
		{"a name that only ends so", "[{name: app, newTag: '2'}, {name: ghcr.io/org/app, newTag: '2'}]",
			[]string{`app/kustomization.yaml: images entry "app" matches no container`, `app/kustomization.yaml: images entry "ghcr.io/org/app" matches no container`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := repository(t, map[string]string{"app/kustomization.yaml": "resources: [d.yaml]\nimages: " + tc.images, "app/d.yaml": deployment})
			got, err := render.Render(t.Context(), render.Options{Dir: filepath.Join(root, "app")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbersComeThroughAsTheyAreWritten(t *testing.T) {
	root := repository(t, map[string]string{
		"kustomization.yaml": "resources: [x.yaml]\ncommonAnnotations: {a: b}",
		"x.yaml": "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\nspec:\n" +
			"  big: 9007199254740993\n  huge: 123456789012345678901234567890\n  float: 1.10\n  exp: 1e3\n  octal: 0o644\n  old: 0644\n  hex: 0x1F\n  half: .5\n  text: \"1.10\"\n  yes: yes\n  no: null\n",
	})
	got, err := render.Render(t.Context(), render.Options{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := got.Objects[0].Tree["spec"].(map[string]any)
	texts := map[string]string{}
	for k, v := range spec {
		switch v := v.(type) {
		case string:
			texts[k] = "string " + v
		case interface{ String() string }:
			texts[k] = v.String()
		case nil:
			texts[k] = "null"
		default:
			t.Errorf("%s: got a %T, want a json.Number", k, v)
		}
	}
	want := map[string]string{
		"big": "9007199254740993", "huge": "123456789012345678901234567890", "float": "1.10", "exp": "1e3",
		"octal": "420", "old": "420", "hex": "31", "half": "0.5", "text": "string 1.10", "yes": "string yes", "no": "null",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestDeprecationsAreWarningsAndNothingIsPrinted(t *testing.T) {
	root := repository(t, map[string]string{"kustomization.yaml": "bases: [b]\ncommonLabels: {a: b}", "b/kustomization.yaml": "resources: [d.yaml]", "b/d.yaml": deployment})
	stderr, logger := os.Stderr, log.Writer()
	got, err := render.Render(t.Context(), render.Options{Dir: root})
	if err != nil {
		t.Fatal(err)
	}
	if os.Stderr != stderr || log.Writer() != logger {
		t.Error("standard error or the logger was not put back")
	}
	if len(got.Warnings) != 2 || !strings.HasPrefix(got.Warnings[0], "'bases' is deprecated") || !strings.HasPrefix(got.Warnings[1], "'commonLabels' is deprecated") {
		t.Errorf("got warnings %q, want those of bases and commonLabels", got.Warnings)
	}
}

// kustomize keeps its schema in package variables.
func TestRendersMayRunAtTheSameTime(t *testing.T) {
	root := repository(t, map[string]string{"kustomization.yaml": "resources: [d.yaml]\ncommonLabels: {a: b}", "d.yaml": deployment})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := render.Render(t.Context(), render.Options{Dir: root})
			if err != nil || len(got.Objects) != 1 || len(got.Warnings) != 1 {
				t.Errorf("got %v, %q, %v; want one object and one warning", kinds(got), got.Warnings, err)
			}
		})
	}
	wg.Wait()
}
