// Package fluxgen runs the generator of Flux's kustomize-controller over
// applications with a lock. It is a module of its own, so that Flux's
// dependencies bind nothing else.
package fluxgen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manifests are the application, with names that end like those of manifests.
var manifests = map[string]string{
	"web.yaml":     deployment("web.yaml", image),
	"tool.yaml":    deployment("tool", "ghcr.io/acme/x.yaml:1.yml"),
	"sub/role.yml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: 'system:web', namespace: shop}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}\n",

	// What syncgate pin writes; syncgate sign refuses another name or form.
	".syncgate/images/ghcr.io+acme+x.yaml.lock": `- {name: ghcr.io/acme/x.yaml, tag: "1.yml", digest: sha256:` + strings.Repeat("a", 64) + "}\n",
}

const image = "ghcr.io/acme/web:1.5@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func deployment(name, image string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + name + `, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "` + image + `"}]}}}}` + "\n"
}

// program is the command of this tree.
var program string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	bin, err := os.MkdirTemp("", "fluxgen")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	program = filepath.Join(bin, "syncgate")
	build := exec.Command("go", "build", "-o", program, "./cmd/syncgate")
	build.Dir, build.Stderr = "../..", os.Stderr // of the product's own module
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building syncgate:", err)
		return 1
	}
	return m.Run()
}

// locked is an application's directory, with a lock that the command made.
func locked(t *testing.T, more map[string]string) (root, dir string) {
	t.Helper()
	root = t.TempDir()
	dir = filepath.Join(root, "apps", "shop")
	for _, files := range []map[string]string{manifests, more} {
		for file, text := range files {
			write(t, filepath.Join(dir, file), text)
		}
	}
	key := filepath.Join(t.TempDir(), "release.pem")
	run(t, dir, program, "keys", "new", "--out", key)
	run(t, dir, program, "sign", "--recurse", "--key", key, "--issuer", "release", "--environment", "prod", "--yes")
	receipts, err := filepath.Glob(filepath.Join(dir, ".syncgate/prod/*.jwt"))
	if err != nil || len(receipts) != 3 {
		t.Fatalf("got receipts %q, %v; want three", receipts, err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".syncgate/images/ghcr.io+acme+x.yaml.lock")); err != nil {
		t.Fatal(err)
	}
	return root, dir
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("running %s %q: %v\n%s", name, args, err, out)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// generate is what kustomize-controller does with the path of a Kustomization.
func generate(root, dir string) (objects []string, action kustomize.Action, err error) {
	k := unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "shop", "namespace": "flux-system"}, "spec": map[string]any{},
	}}
	action, err = kustomize.NewGenerator(root, k).WriteFile(dir)
	if err != nil {
		return nil, action, err
	}
	built, err := kustomize.SecureBuild(root, dir, false)
	if err != nil {
		return nil, action, err
	}
	for _, r := range built.Resources() {
		objects = append(objects, r.GetKind()+" "+r.GetName())
	}
	slices.Sort(objects)
	return objects, action, nil
}

func TestFluxsGeneratorPassesOverTheLock(t *testing.T) {
	for _, tc := range []struct {
		name   string
		more   map[string]string
		action kustomize.Action
	}{
		{"a plain directory", nil, kustomize.CreatedAction},
		{"a kustomization", map[string]string{"kustomization.yaml": "resources: [web.yaml, tool.yaml, sub/role.yml]\n"}, kustomize.UnchangedAction},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root, dir := locked(t, tc.more)
			got, action, err := generate(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"Deployment tool", "Deployment web.yaml", "Role system:web"}; !slices.Equal(got, want) {
				t.Errorf("got objects %q, want %q", got, want)
			}
			if action != tc.action {
				t.Errorf("got action %q, want %q", action, tc.action)
			}
		})
	}
}

// The generator does look into hidden folders: this is why the lock's names
// end as they do.
func TestALockOfYAMLFilesWouldBreakFluxsGenerator(t *testing.T) {
	root, dir := locked(t, nil)
	lock := filepath.Join(dir, ".syncgate/images/ghcr.io+acme+x.yaml.lock")
	if err := os.Rename(lock, strings.TrimSuffix(lock, ".lock")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := generate(root, dir); err == nil || !strings.Contains(err.Error(), "failed to decode Kubernetes YAML") {
		t.Errorf("got error %v, want the generator to fail on the renamed lock", err)
	}
}
