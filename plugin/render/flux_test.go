package render_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render"
)

// config is a manifest of a ConfigMap.
func config(name, data string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {%s}}\n", name, data)
}

const deploy = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
      - name: web
        image: web:1
`

// fluxOptions are those of a Kustomization with this spec, for the files.
func fluxOptions(t *testing.T, spec string, files map[string]string) render.Options {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var s map[string]any
	if err := yaml.Unmarshal([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	return render.Options{Root: root, Dir: filepath.Join(root, "app"), Flux: &render.FluxOptions{
		Kustomization: map[string]any{"metadata": map[string]any{"name": "shop", "namespace": "flux-system"}, "spec": s},
		Prefix:        "syncgate_",
	}}
}

// from is a Look of these ConfigMaps and Secrets, "kind/name".
func from(all map[string]map[string]string) func(context.Context, string, string) (map[string]string, bool, error) {
	return func(_ context.Context, kind, name string) (map[string]string, bool, error) {
		data, ok := all[kind+"/"+name]
		return data, ok, nil
	}
}

// texts are the objects as JSON.
func texts(t *testing.T, objects []manifest.Object) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		data, err := json.Marshal(o.Tree)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}

func TestFluxBuilds(t *testing.T) {
	for _, tc := range []struct {
		name, spec string
		files      map[string]string
		want       []string // a part of each object, in their order
	}{
		{"a directory", "{}", map[string]string{
			"app/b.yaml": config("b", ""), "app/sub/a.yml": config("a", ""), "app/over/kustomization.yaml": "namePrefix: over-\nresources: [../../base.yaml]\n",
			"app/over/not.yaml": config("not", ""), "base.yaml": config("base", ""), "app/x.json": `{"kind": "X"}`, "app/.syncgate/images/x.lock": "no: object\n", "other.yaml": "{",
		}, []string{`"name":"a"`, `"name":"b"`, `"name":"over-base"`}},
		{"what the spec adds", "{targetNamespace: shop, namePrefix: a-, nameSuffix: -z, commonMetadata: {labels: {l: m}, annotations: {k: o}}, images: [{name: web, newTag: '2'}], components: [../c], patches: [{patch: '- {op: add, path: /metadata/labels, value: {p: q}}', target: {kind: Deployment}}]}",
			map[string]string{"app/web.yaml": deploy, "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [c.yaml]\n", "c/c.yaml": config("c", "")},
			[]string{`{"annotations":{"k":"o"},"labels":{"l":"m"},"name":"a-c-z","namespace":"shop"}`, `{"annotations":{"k":"o"},"labels":{"l":"m","p":"q"},"name":"a-web-z","namespace":"shop"},"spec":{"template":{"spec":{"containers":[{"image":"web:2"`}},
		{"a tag that replaces a digest", "{images: [{name: web, newTag: '2'}]}", map[string]string{
			"app/web.yaml": deploy, "app/kustomization.yaml": "resources: [web.yaml]\nimages: [{name: web, newName: hub/web, digest: sha256:" + strings.Repeat("a", 64) + "}]\n",
		}, []string{`"image":"hub/web:2"`}},
		{"a component that is missing", "{components: [../none], ignoreMissingComponents: true}", map[string]string{"app/c.yaml": config("c", "")}, []string{`"name":"c"`}},
		{"bases alone get annotations of origin", "{}", map[string]string{"app/kustomization.yaml": "bases: [../base]\n", "base/kustomization.yaml": "resources: [c.yaml]\n", "base/c.yaml": config("c", "")},
			[]string{`"config.kubernetes.io/origin":"path: ../base/c.yaml\n"`}},
		{"a field that kustomize does not know", "{}", map[string]string{"app/kustomization.yaml": "resources: [c.yaml]\nshiny: 1\n", "app/c.yaml": config("c", "")}, []string{`"name":"c"`}},
		{"a file for kustomize", "{}", map[string]string{"app/c.yaml": config("c", ""), "app/k.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}\n"}, []string{`"name":"c"`}},
		{"variables", `{postBuild: {substitute: {a: one, b: "x\ny", c: from-spec}, substituteFrom: [{kind: ConfigMap, name: m}, {kind: Secret, name: s}, {kind: ConfigMap, name: none, optional: true}]}}`,
			map[string]string{"app/c.yaml": config("'${a}'", "'b': '${b}', 'c': '${c}', 'd': '${d}', 'e': '${e}', f: '${f:-default}', g: '$${a}', h: '${d:0:1}'")},
			[]string{`"data":{"b":"xy","c":"from-spec","d":"secret","e":"map","f":"default","g":"${a}","h":"s"},"kind":"ConfigMap","metadata":{"name":"one"}`}},
		{"an object without substitution", `{postBuild: {substitute: {a: "1"}}}`,
			map[string]string{"app/c.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}, data: {a: '${a} ${b}'}}\n"}, []string{`"a":"${a} ${b}"`}},
		{"no variables, no substitution", `{postBuild: {substituteFrom: [{kind: ConfigMap, name: empty}]}}`, map[string]string{"app/c.yaml": config("c", "a: '${a} ${b:-x}'")}, []string{`"a":"${a} ${b:-x}"`}},
		{"no variables, and substitution", `{postBuild: {substituteStrategy: Always, substituteFrom: [{kind: ConfigMap, name: empty}]}}`, map[string]string{"app/c.yaml": config("c", "a: '${b:-x}'")}, []string{`"a":"x"`}},
		{"an encrypted Secret", "{decryption: {provider: sops}}", map[string]string{"app/s.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: 'ENC[x]'}, sops: {mac: 'ENC[x]'}}\n"}, []string{`"data":{"a":"ENC[x]"}`}},
		{"what Flux does not decrypt", "{decryption: {provider: sops}}", map[string]string{"app/s.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: s, annotations: {kustomize.toolkit.fluxcd.io/decrypt: Disabled}}, sops: {mac: 'ENC[x]'}}\n"}, []string{`"sops":{"mac":"ENC[x]"}`}},
		{"encrypted files, which nobody decrypts", "{}", map[string]string{"app/kustomization.yaml": "secretGenerator: [{name: s, envs: [s.env]}]\n", "app/s.env": "a=ENC[x]\nsops_mac=ENC[x]\n"}, []string{`"name":"s-`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := fluxOptions(t, tc.spec, tc.files)
			o.Flux.Look = from(map[string]map[string]string{"ConfigMap/m": {"c": "map", "d": "map", "e": "map"}, "Secret/s": {"d": "secret"}, "ConfigMap/empty": {}})
			r, err := render.Render(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got := texts(t, r.Objects)
			if len(got) != len(tc.want) || r.Fill != nil || !strings.HasPrefix(r.Renderer, "kustomize v") {
				t.Fatalf("got %d objects by %q: %s", len(got), r.Renderer, got)
			}
			for i, part := range tc.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("object %d: got %s, want %s in it", i, got[i], part)
				}
			}
		})
	}
}

func TestFluxRefuses(t *testing.T) {
	c := map[string]string{"app/c.yaml": config("c", "a: '${a}'")}
	generator := func(field string) map[string]string {
		return map[string]string{"app/kustomization.yaml": field, "app/c.yaml": config("c", ""), "app/s.env": "a=ENC[x]\nsops_mac=ENC[x]\n", "app/p.yaml": config("c", "a: 'ENC[x]'") + "sops:\n    mac: ENC[x]\n"}
	}
	for _, tc := range []struct {
		name, spec string
		files      map[string]string
		want       string
	}{
		{"a remote base", "{}", map[string]string{"app/kustomization.yaml": "resources: ['https://github.com/o/r//base?ref=v1']\n"}, "is remote"},
		{"a remote component of the spec", "{components: ['https://github.com/o/r//c']}", c, "must be local and relative"},
		{"a component that leads out", "{components: [../../c]}", c, "leads out of the repository"},
		{"a component that is missing", "{components: [../none]}", c, "does not exist"},
		{"no manifests", "{}", map[string]string{"app/x.txt": ""}, `the path "app" has no manifests`},
		{"a key twice", "{}", map[string]string{"app/kustomization.yaml": "resources: [c.yaml]\nresources: []\n", "app/c.yaml": config("c", "")}, "already on line"},
		{"a second document", "{}", map[string]string{"app/kustomization.yaml": "resources: [c.yaml]\n---\nresources: []\n", "app/c.yaml": config("c", "")}, "a second document"},
		{"a manifest among receipts", "{}", map[string]string{"app/c.yaml": config("c", ""), "app/.syncgate/prod/x.yaml": config("x", "")}, `"app/.syncgate/prod/x.yaml": Flux would apply it`},
		{"a manifest in Git's folder", "{}", map[string]string{"app/c.yaml": config("c", ""), "app/.git/Kustomization": "resources: []\n"}, `"app/.git/Kustomization": Flux would apply it`},
		{"receipts as a base", "{}", map[string]string{"app/kustomization.yaml": "resources: [.syncgate]\n", "app/.syncgate/kustomization.yaml": "resources: []\n"}, "never rendered"},
		{"an anchor in itself", "{}", map[string]string{"app/c.yaml": "a: &a [*a]\n"}, "contains itself"},
		{"something else than objects", "{}", map[string]string{"app/c.yaml": "a: b\n"}, "missing Resource metadata"},
		{"an object without a name", "{}", map[string]string{"app/c.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {generateName: x-}}\n"}, "missing metadata.name in a Job of batch/v1"},
		{"a name that a variable takes away", "{postBuild: {substitute: {a: ''}}}", map[string]string{"app/c.yaml": config("'${a}'", "")}, "once its variables are substituted"},
		{"a variable without value", "{postBuild: {substitute: {b: c}}}", c, `ConfigMap "c": envsubst error: variable substitution failed: variable not set (strict mode): "a"`},
		{"a ConfigMap that is missing", "{postBuild: {substituteFrom: [{kind: ConfigMap, name: none}]}}", c, `there is no ConfigMap "none"`},
		{"a Secret that cannot be read", "{postBuild: {substituteFrom: [{kind: Secret, name: forbidden}]}}", c, `reading Secret "forbidden": not allowed`},
		{"a value that changes the structure", "{postBuild: {substitute: {a: '{x: y}: ['}}}", map[string]string{"app/c.yaml": config("c", "a: '${a}'")}, "a value changes its structure"},
		{"the gate's variables from another ConfigMap", "{postBuild: {substituteFrom: [{kind: ConfigMap, name: evil}]}}", c, `ConfigMap "evil" sets "syncgate_pin_web"`},
		{"the gate's variables inline", "{postBuild: {substitute: {syncgate_pin_web: x}}}", c, `postBuild.substitute sets "syncgate_pin_web"`},
		{"a label that is no string, under common metadata", "{commonMetadata: {labels: {l: m}}}", map[string]string{"app/c.yaml": "{apiVersion: example.com/v1, kind: X, metadata: {name: c, labels: {a: true}}}\n"}, `metadata.labels: "a" is not a string`},
		{"an encrypted object of another kind", "{decryption: {provider: sops}}", map[string]string{"app/s.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: s}, sops: {mac: 'ENC[x]'}}\n"}, "only a Secret may be"},
		{"an encrypted object that nobody decrypts yet", "{}", map[string]string{"app/s.yaml": "{apiVersion: v1, kind: 'ENC[x]', metadata: {name: s}, sops: {mac: 'ENC[x]'}}\n"}, "only a Secret may be"},
		{"a Secret with an encrypted kind that nobody decrypts yet", "{}", map[string]string{"app/s.yaml": "{apiVersion: v1, kind: Secret, 'subjects': ['ENC[x]'], metadata: {name: s}, sops: {mac: 'ENC[x]'}}\n"}, `has an encrypted "subjects"`},
		{"a Secret with an encrypted type", "{decryption: {provider: sops}}", map[string]string{"app/s.yaml": "{apiVersion: v1, kind: Secret, type: 'ENC[x]', metadata: {name: s}, sops: {mac: 'ENC[x]'}}\n"}, `has an encrypted "type"`},
		{"a Secret with encrypted annotations", "{decryption: {provider: sops}}", map[string]string{"app/s.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {a: 'ENC[x]'}}, sops: {mac: 'ENC[x]'}}\n"}, `has an encrypted "metadata"`},
		{"decryption that a variable turns off", "{decryption: {provider: sops}, postBuild: {substitute: {a: disabled}}}", map[string]string{"app/s.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: s, annotations: {kustomize.toolkit.fluxcd.io/decrypt: '${a}'}}, sops: {mac: 'ENC[x]'}}\n"}, "only a Secret may be"},
		{"an encrypted file of a generator", "{decryption: {provider: sops}}", generator("secretGenerator: [{name: s, envs: [s.env]}]\n"), `secretGenerator: "s.env" is encrypted`},
		{"another one", "{decryption: {provider: sops}}", generator("secretGenerator: [{name: s, files: [k=s.env]}]\n"), `secretGenerator: "s.env" is encrypted`},
		{"an encrypted patch", "{decryption: {provider: sops}}", generator("resources: [c.yaml]\npatches: [{path: p.yaml}]\n"), `patches: "p.yaml" is encrypted`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := fluxOptions(t, tc.spec, tc.files)
			known := from(map[string]map[string]string{"ConfigMap/evil": {"syncgate_pin_web": "x"}})
			o.Flux.Look = func(ctx context.Context, kind, name string) (map[string]string, bool, error) {
				if name == "forbidden" {
					return nil, false, errors.New("not allowed")
				}
				return known(ctx, kind, name)
			}
			r, err := render.Render(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %s, %v; want an error with %q", texts(t, r.Objects), err, tc.want)
			}
			if strings.Contains(err.Error(), o.Root) || strings.Contains(err.Error(), "syncgate-flux-") {
				t.Errorf("got error %q, want no path of this machine", err)
			}
		})
	}
}

// What ends a build of Flux comes with the next step.
func TestFluxSaysWhatToDo(t *testing.T) {
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, command: [sh, -c, 'echo ${HOME}']}]}}\n"
	job := "{apiVersion: batch/v1, kind: Job, metadata: {generateName: x-}}\n"
	for _, tc := range []struct {
		name, spec string
		files      map[string]string
		want, fix  string
	}{
		{"a variable of a shell", "{postBuild: {substitute: {b: c}}}", map[string]string{"app/p.yaml": pod}, `Pod "web": envsubst error: variable substitution failed: variable not set (strict mode): "HOME"`,
			"write $${HOME} if it is for a shell, else give it a value in postBuild.substitute or a default (${HOME:-...}); or, on an object without gated fields, set kustomize.toolkit.fluxcd.io/substitute: disabled"},
		{"a stray file", "{}", map[string]string{"app/p.yaml": pod, "app/values.yaml": "a: b\n"}, "flux: accumulating resources: './values.yaml': missing Resource metadata", "app has no kustomization.yaml, so that Flux applies every YAML file below it: add one"},
		{"a stray file that is listed, in a base", "{}", map[string]string{"app/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [values.yaml]\n", "base/values.yaml": "a: b\n"},
			"flux: accumulating resources: '../base': 'values.yaml': missing Resource metadata", "list nothing but manifests under resources"},
		{"a name that is made up later", "{}", map[string]string{"app/job.yaml": job}, "flux: accumulating resources: './job.yaml': missing metadata.name in a Job of batch/v1", "give the object a metadata.name"},
		{"a path that is in no artifact", "{}", map[string]string{"app/p.yaml": pod, ".sourceignore": "/app/\n"}, `the path "app" is no directory`, "correct the path of the Kustomization"},
		{"anything else", "{postBuild: {substituteFrom: [{kind: ConfigMap, name: none}]}}", map[string]string{"app/p.yaml": pod}, "is not known here", "mend it: syncgate render --application FILE builds the same"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := fluxOptions(t, tc.spec, tc.files)
			o.Flux.Checkout = true
			_, err := render.Render(t.Context(), o)
			var failed *render.Error
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(failed.Fix, tc.fix) {
				t.Errorf("got %v (%+v), want %q, Fix %q", err, failed, tc.want, tc.fix)
			}
			if strings.Contains(err.Error(), "must build at directory") {
				t.Errorf("got %q: kustomize tries whether a file is a folder, which tells nobody anything", err)
			}
		})
	}
}

// TestFluxSaysWhereAnObjectIsWritten: by file, never by its place in a render.
func TestFluxSaysWhereAnObjectIsWritten(t *testing.T) {
	written := strings.Replace(deploy, "name: web", "name: NAME", 1)
	as := func(name string) string { return strings.Replace(written, "NAME", name, 1) }
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"files without a kustomization", map[string]string{"app/all.yaml": as("a") + "---\n" + as("b"), "app/sub/c.yml": as("c"), "app/z.yaml": config("flow", "")}, []string{"app", "app/all.yaml", "app/all.yaml", "app/sub/c.yml"}},
		{"a patched base", map[string]string{"app/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n", "app/p.yaml": as("a"), "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": as("a")}, []string{"base/a.yaml"}},
		{"another name", map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "app/a.yaml": as("a")}, []string{"app/kustomization.yaml"}},
		{"a generator", map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: a, literals: [a=b]}]\n"}, []string{"app/kustomization.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := fluxOptions(t, "{}", tc.files)
			if err := os.MkdirAll(o.Dir, 0o755); err != nil {
				t.Fatal(err)
			}
			r, err := render.Render(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range r.Objects {
				got = append(got, x.Where())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A value of a Secret never gets into a message.
func TestFluxKeepsValuesOutOfMessages(t *testing.T) {
	o := fluxOptions(t, "{postBuild: {substituteFrom: [{kind: Secret, name: s}]}}", map[string]string{"app/c.yaml": config("c", "a: '${a}'")})
	o.Flux.Look = from(map[string]map[string]string{"Secret/s": {"a": "hunter2: [x"}})
	_, err := render.Render(t.Context(), o)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got error %v, want one without the value", err)
	}
}

// Symbolic links, and what .sourceignore and source-controller's defaults name,
// are in no artifact.
func TestFluxSeesWhatIsInAnArtifact(t *testing.T) {
	files := map[string]string{
		"app/c.yaml": config("c", ""), "app/.github/w.yaml": "on: push\n", "app/.sops.yaml": "a: b\n", "app/.travis.yml": "a: b\n",
		"app/.git/x.yaml": "a: b\n", ".sourceignore": "# tests\n/app/tests/\n", "app/tests/t.yaml": "a: b\n", "app/sub/.sourceignore": "x.yaml\n", "app/sub/x.yaml": "a: b\n", "elsewhere.yaml": "a: b\n",
	}
	o := fluxOptions(t, "{}", files)
	if err := os.Symlink("../elsewhere.yaml", filepath.Join(o.Dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := render.Render(t.Context(), o); err == nil {
		t.Error("an artifact with these files was rendered")
	}
	o.Flux.Checkout = true
	r, err := render.Render(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, r.Objects); len(got) != 1 || !strings.Contains(got[0], `"name":"c"`) {
		t.Errorf("got %s", got)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "kustomization.yaml"), []byte("resources: [link.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := render.Render(t.Context(), o); err == nil || !strings.Contains(err.Error(), `"link.yaml" does not exist`) {
		t.Errorf("with a link: got error %v", err)
	}
}

func TestFluxFillsInAfterwards(t *testing.T) {
	const spec = "{postBuild: {substitute: {tag: '1'}, substituteFrom: [{kind: ConfigMap, name: own}]}}"
	web := strings.Replace(deploy, "web:1", "web:${tag}@${syncgate_pin_web}", 1)
	build := func(text string) (render.Result, error) {
		o := fluxOptions(t, spec, map[string]string{"app/web.yaml": text, "app/c.yaml": config("c", "a: 'x'")})
		o.Flux.Own = "own"
		return render.Render(t.Context(), o)
	}
	r, err := build(web)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Objects, func(o manifest.Object) bool { return o.Kind() == "Deployment" })
	if got := texts(t, r.Objects)[i]; !strings.Contains(got, `"image":"web:1@${syncgate_pin_web}"`) {
		t.Errorf("got %s", got)
	}
	for _, digest := range []string{"sha256:a", "sha256:b"} { // twice: the first must leave nothing
		filled, err := r.Fill(t.Context(), map[string]string{"syncgate_pin_web": digest, "syncgate_latch": "x"})
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(t, filled); len(got) != 2 || !strings.Contains(got[i], `"image":"web:1@`+digest+`"`) {
			t.Errorf("got %s", got)
		}
	}
	if _, err := r.Fill(t.Context(), map[string]string{"syncgate_latch": "x"}); err == nil || !strings.Contains(err.Error(), "variable not set") {
		t.Errorf("without a value: got error %v", err)
	}
	for text, want := range map[string]string{
		strings.Replace(web, "pin_web}", "pin_web:-sha256:a}", 1): "is not bare",
		strings.Replace(web, "pin_web}", "pin_web/a/b}", 1):       "is not bare",
		strings.Replace(web, "${sync", "$${sync", 1):              "behind an escape",
		strings.Replace(web, "  name: web\nspec", "  name: web\n  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\nspec", 1): "leaves them as they are",
	} {
		if r, err := build(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v; want an error with %q", text, texts(t, r.Objects), err, want)
		}
	}
}
