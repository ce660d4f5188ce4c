package render_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/render"
)

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: [{name: web, image: \"org/app:1.0\"}]}}}\n"
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n"
)

// repository writes files (name -> text, "-> target" for a symbolic link)
// into a new directory with a .git folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{".git/config": "[core]\n"})
	write(t, root, files)
	return root
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "-> "); link {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// kinds lists "file: Kind name" of what was rendered.
func kinds(r render.Result) []string {
	var out []string
	for _, o := range r.Objects {
		out = append(out, o.File+": "+o.Kind()+" "+o.Name())
	}
	return out
}

func TestTheRendererFollowsFromTheFiles(t *testing.T) {
	for _, tc := range []struct {
		name         string
		files        map[string]string
		o            render.Options
		renderer     string
		want         []string
		errorPattern string
	}{
		{
			name:     "kustomization.yml",
			files:    map[string]string{"app/kustomization.yml": "resources: [d.yaml]", "app/d.yaml": deployment, "app/Chart.yaml": "name: x"},
			renderer: "kustomize v0.21.2",
			want:     []string{"app/kustomization.yml: Deployment web"},
		},
		{
			name:     "Kustomization",
			files:    map[string]string{"app/Kustomization": "resources: [d.yaml]", "app/d.yaml": deployment, "app/other.yaml": configMap},
			renderer: "kustomize v0.21.2",
			want:     []string{"app/Kustomization: Deployment web"},
		},
		{
			name:         "a kustomization whose name kustomize does not know",
			files:        map[string]string{"app/Kustomization.yaml": "resources: [d.yaml]", "app/d.yaml": deployment},
			errorPattern: `directory: "Kustomization.yaml" is not read as a kustomization: kustomize reads kustomization.yaml, kustomization.yml or Kustomization; as a manifest: `,
		},
		{
			name:     "a manifest in a file of such a name",
			files:    map[string]string{"app/Kustomization.yaml": configMap},
			renderer: "directory",
			want:     []string{"Kustomization.yaml: ConfigMap config"},
		},
		{
			name:         "a chart is never read as a directory",
			files:        map[string]string{"app/Chart.yaml": "name: x", "app/d.yaml": deployment},
			errorPattern: "helm: a chart needs a release name: on the command line --name NAME or --release-name, in the plugin ARGOCD_APP_NAME",
		},
		{
			name:     "a chart",
			files:    map[string]string{"app/Chart.yaml": "{apiVersion: v2, name: x, version: 1.0.0}", "app/d.yaml": configMap, "app/templates/d.yaml": deployment},
			o:        render.Options{ReleaseName: "web"},
			renderer: "helm v4.3.2",
			want:     []string{"templates/d.yaml: Deployment web"},
		},
		{
			name:     "the operator's command, whatever the files",
			files:    map[string]string{"app/kustomization.yaml": "resources: [d.yaml]", "app/d.yaml": deployment},
			o:        render.Options{Command: []string{"cat", "d.yaml"}},
			renderer: "command",
			want:     []string{"output: Deployment web"},
		},
		{
			name:     "another renderer than the operator's command, if it is named",
			files:    map[string]string{"app/d.yaml": deployment},
			o:        render.Options{Command: []string{"false"}, Renderer: render.Directory},
			renderer: "directory",
			want:     []string{"d.yaml: Deployment web"},
		},
		{
			name:         "a command that the operator has not configured",
			files:        map[string]string{"app/d.yaml": deployment},
			o:            render.Options{Renderer: render.Command},
			errorPattern: "command: the operator has configured no command",
		},
		{
			name:     "a directory, unless it is named otherwise",
			files:    map[string]string{"app/Chart.yaml": configMap, "app/d.yaml": deployment},
			o:        render.Options{Renderer: render.Directory},
			renderer: "directory",
			want:     []string{"Chart.yaml: ConfigMap config", "d.yaml: Deployment web"},
		},
		{
			name:     "plain files in the order of their names",
			files:    map[string]string{"app/b.yml": configMap, "app/a.json": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"}}`, "app/README.md": "#", "app/c/d.yaml": deployment},
			renderer: "directory",
			want:     []string{"a.json: Service s", "b.yml: ConfigMap config"},
		},
		{
			name:     "an empty directory is the caller's to refuse",
			files:    map[string]string{"app/README.md": "#"},
			renderer: "directory",
		},
		{
			name:         "an unknown renderer",
			files:        map[string]string{"app/d.yaml": deployment},
			o:            render.Options{Renderer: "kustomise"},
			errorPattern: `unknown renderer "kustomise"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Dir = filepath.Join(repository(t, tc.files), "app")
			got, err := render.Render(t.Context(), tc.o)
			if tc.errorPattern != "" {
				checkError(t, err, tc.o.Dir, tc.errorPattern)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Renderer != tc.renderer {
				t.Errorf("got renderer %q, want %q", got.Renderer, tc.renderer)
			}
			if diff := cmp.Diff(tc.want, kinds(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// checkError wants an *Error that holds a text, in one line, without dir.
func checkError(t *testing.T, err error, dir, want string) {
	t.Helper()
	var e *render.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *Error with %q", err, want)
	}
	text := err.Error()
	if !strings.Contains(text, want) {
		t.Errorf("got error %q, want it to contain %q", text, want)
	}
	if strings.Contains(text, "\n") || strings.Contains(text, filepath.Dir(dir)) || strings.Contains(text, os.TempDir()) {
		t.Errorf("got error %q, want one line without temporary paths", text)
	}
}

// Argo CD reads a directory's files by lines, each with its end.
func TestTheLastLineOfAFileHasAnEnd(t *testing.T) {
	for _, end := range []string{"", "\n"} {
		root := repository(t, map[string]string{"app/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    one\n    two" + end})
		got, err := render.Render(t.Context(), render.Options{Dir: filepath.Join(root, "app")})
		if err != nil {
			t.Fatal(err)
		}
		data, _ := got.Objects[0].Tree["data"].(map[string]any)
		if data["a"] != "one\ntwo\n" {
			t.Errorf("a file that ends in %q: got %q, want an end of line", end, data["a"])
		}
	}
}

func TestDirectories(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret.yaml": configMap})
	files := map[string]string{
		"app/a.yaml": deployment, "app/sub/b.yaml": configMap, "app/sub/deep/c.yml": deployment,
		"app/.syncgate/prod/x.yaml": "{", "app/.git/y.yaml": "{", "app/sub/.syncgate/z.json": "{", "app/notes.txt": "{",
	}
	for _, tc := range []struct {
		name  string
		extra map[string]string
		o     render.Options
		want  []string
		err   string
	}{
		{name: "does not descend by itself", want: []string{"a.yaml"}},
		{name: "descends when told", o: render.Options{Recurse: true}, want: []string{"a.yaml", "sub/b.yaml", "sub/deep/c.yml"}},
		{name: "includes", o: render.Options{Recurse: true, Include: "{sub/*.yaml,a*}"}, want: []string{"a.yaml", "sub/b.yaml"}},
		{name: "excludes, also below folders", o: render.Options{Recurse: true, Exclude: "sub/*"}, want: []string{"a.yaml"}},
		{name: "exclude wins", o: render.Options{Recurse: true, Include: "*.yaml", Exclude: "**/b.yaml"}, want: []string{"a.yaml"}},
		{name: "a bad pattern", o: render.Options{Include: "{a"}, err: "include: pattern"},
		{name: "a link inside the repository", extra: map[string]string{"app/l.yaml": "-> ../shared.yaml", "shared.yaml": configMap}, want: []string{"a.yaml", "l.yaml"}},
		{name: "a link out of the repository", extra: map[string]string{"app/l.yaml": "-> " + outside + "/secret.yaml"}, err: "leads out of the repository"},
		{name: "a link out of the repository that is excluded", extra: map[string]string{"app/l.yaml": "-> " + outside + "/secret.yaml"}, o: render.Options{Exclude: "l.yaml"}, want: []string{"a.yaml"}},
		{name: "a link to nothing", extra: map[string]string{"app/l.yaml": "-> gone.yaml"}, err: `"app/l.yaml" does not exist`},
		{name: "a link to .git", extra: map[string]string{"app/l.yaml": "-> ../.git/config"}, err: "lies in .git"},
		{name: "a linked folder", extra: map[string]string{"app/ldir": "-> ../more", "more/m.yaml": configMap}, o: render.Options{Recurse: true, Exclude: "sub*"}, want: []string{"a.yaml"}},
		{name: "Jsonnet", extra: map[string]string{"app/j.jsonnet": "{}"}, err: "Jsonnet is not supported"},
		{name: "a file that does not parse", extra: map[string]string{"app/x.yaml": "hello: {"}, err: "x.yaml"},
		{name: "a file that is not a manifest", extra: map[string]string{"app/values.yaml": "replicas: 3\n"}, err: "values.yaml"},
		{name: "a file that is marked", extra: map[string]string{"app/values.yaml": "# +argocd:skip-file-rendering\nreplicas: 3\n"}, want: []string{"a.yaml"}},
		{name: "too much", extra: map[string]string{"app/b.yaml": strings.Repeat("# 456789\n", 600_000), "app/c.yaml": strings.Repeat("# 456789\n", 600_000)}, err: "together larger than 10485760 bytes"},
		{name: "a file too large", extra: map[string]string{"app/b.yaml": strings.Repeat("# 456789\n", 1_200_000)}, err: `"app/b.yaml" is larger than 10485760 bytes`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := repository(t, files)
			write(t, root, tc.extra)
			tc.o.Dir = filepath.Join(root, "app")
			// app/.git is a folder of the application here, not its top level.
			tc.o.Root = root
			got, err := render.Render(t.Context(), tc.o)
			if tc.err != "" {
				checkError(t, err, tc.o.Dir, tc.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range got.Objects {
				names = append(names, o.File)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheRootIsTheTopLevelOfGit(t *testing.T) {
	files := map[string]string{
		"a/app/kustomization.yaml": "resources: [../../base]",
		"base/kustomization.yaml":  "resources: [d.yaml]", "base/d.yaml": deployment,
	}
	withGit := repository(t, files)
	without := t.TempDir()
	write(t, without, files)
	for _, tc := range []struct {
		name string
		o    render.Options
		want string
	}{
		{"found by .git", render.Options{Dir: filepath.Join(withGit, "a/app")}, ""},
		{"given", render.Options{Dir: filepath.Join(without, "a/app"), Root: without}, ""},
		{"given, narrower", render.Options{Dir: filepath.Join(withGit, "a/app"), Root: filepath.Join(withGit, "a")}, "leads out of the repository"},
		{"not known: the directory alone", render.Options{Dir: filepath.Join(without, "a/app")}, "leads out of the repository"},
		{"not above the directory", render.Options{Dir: filepath.Join(withGit, "a/app"), Root: without}, "leads out of the repository"},
		{"no directory", render.Options{}, "no directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := render.Render(t.Context(), tc.o)
			if tc.want != "" {
				checkError(t, err, withGit, tc.want)
				return
			}
			if err != nil || len(got.Objects) != 1 {
				t.Errorf("got %v, %v; want one object", kinds(got), err)
			}
		})
	}
}

func TestAnEndedContextEndsTheRender(t *testing.T) {
	root := repository(t, map[string]string{"k/kustomization.yaml": "resources: [d.yaml]", "k/d.yaml": deployment, "d/d.yaml": deployment})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, dir := range []string{"k", "d"} {
		got, err := render.Render(ctx, render.Options{Dir: filepath.Join(root, dir)})
		if !errors.Is(err, context.Canceled) || len(got.Objects) != 0 {
			t.Errorf("%s: got %v, %v; want %v", dir, kinds(got), err, context.Canceled)
		}
	}
}
