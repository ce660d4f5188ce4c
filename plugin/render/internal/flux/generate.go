package flux

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/sourceignore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// maxDepth is a depth that no real layout reaches, in folders.
const maxDepth = 64

// generate returns the kustomization that Flux's generator would write, and its
// name. The generator gets the file alone, in a directory of its own: what is in
// the repository is read here, where its size is bounded and links lead nowhere.
func generate(tree *repo.Tree, dir string, kustomization map[string]any) (file string, data []byte, err error) {
	k := unstructured.Unstructured{Object: runtime.DeepCopyJSON(kustomization)}
	if err := missingComponents(tree, dir, k.Object); err != nil {
		return "", nil, err
	}
	name := "kustomization.yaml"
	if found := names(tree, dir); len(found) > 0 {
		name = found[0]
		if data, err = tree.ReadFile(path.Join(dir, name)); err != nil {
			return "", nil, err
		}
	} else if data, err = scan(tree, dir); err != nil {
		return "", nil, err
	}
	file = path.Join(dir, name)
	if err := kustomize.CheckText(data); err != nil {
		return "", nil, &kustomize.FileError{File: file, Err: err}
	}
	alone, err := os.MkdirTemp("", "syncgate-flux-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(alone)
	if err := os.WriteFile(filepath.Join(alone, name), data, 0o600); err != nil {
		return "", nil, err
	}
	out, _, _, err := fluxkustomize.NewGenerator(alone, k).GenerateManifest(alone)
	if err != nil {
		text := strings.ReplaceAll(err.Error(), alone, "")
		return "", nil, &kustomize.FileError{File: file, Err: fmt.Errorf("generating the kustomization: %s", text)}
	}
	return file, out, nil
}

// scan makes the kustomization of a directory that has none: of every YAML file
// below it, and of folders that are kustomizations themselves.
func scan(tree *repo.Tree, dir string) ([]byte, error) {
	k := types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
	w := walker{tree: tree, top: dir}
	if err := w.walk(".", 0); err != nil {
		return nil, err
	}
	if k.Resources = w.found; len(k.Resources) == 0 {
		return nil, fmt.Errorf("the path %q has no manifests", dir)
	}
	return yaml.Marshal(k)
}

type walker struct {
	tree  *repo.Tree
	top   string
	found []string // relative to top, with "./" in front
}

func (w *walker) walk(rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%q is more than %d folders deep", rel, maxDepth)
	}
	list, err := w.tree.ReadDir(path.Join(w.top, rel))
	if err != nil {
		return err
	}
	// In the order of filepath.Walk, which is that of ReadDir.
	for _, e := range list {
		here := path.Join(rel, e.Name())
		full := path.Join(w.top, here)
		switch {
		case e.Name() == ".git" || e.Name() == ".syncgate":
			if err := w.hidden(full); err != nil {
				return err
			}
		case e.Type()&fs.ModeSymlink != 0:
		case w.tree.IsDir(full) && len(names(w.tree, full)) > 0:
			w.found = append(w.found, "./"+here)
		case w.tree.IsDir(full):
			if err := w.walk(here, depth+1); err != nil {
				return err
			}
		case slices.Contains([]string{".yaml", ".yml"}, path.Ext(here)) && w.tree.IsFile(full):
			w.found = append(w.found, "./"+here)
		}
	}
	return nil
}

// hidden refuses manifests where the code here sees none, and Flux would: it
// knows nothing of these folders.
func (w *walker) hidden(dir string) error {
	if w.tree.LeftOut(dir) {
		return nil
	}
	found, err := w.tree.Manifests(dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%q: Flux would apply it, and a folder of this name is for no manifests: move it, or write a kustomization", found[0])
	}
	return nil
}

// missingComponents takes those out of the spec that are not there, if it says
// so: the generator looks for them where it does not find any.
func missingComponents(tree *repo.Tree, dir string, object map[string]any) error {
	ignore, _, err := unstructured.NestedBool(object, "spec", "ignoreMissingComponents")
	if err != nil || !ignore {
		return err
	}
	list, _, err := unstructured.NestedStringSlice(object, "spec", "components")
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(c string) bool {
		_, err := tree.Stat(path.Join(dir, c))
		return fluxkustomize.IsLocalRelativePath(c) && err != nil
	})
	unstructured.RemoveNestedField(object, "spec", "ignoreMissingComponents")
	return unstructured.SetNestedStringSlice(object, list, "spec", "components")
}

// leftOut says what source-controller leaves out of an artifact. What the
// source's own spec.ignore says is not known here.
func leftOut(tree *repo.Tree, checkout bool) (func(rel string, dir bool) bool, error) {
	if !checkout {
		return nil, nil
	}
	patterns, err := sourceignore.LoadIgnorePatterns(tree.Dir(), nil)
	if err != nil {
		return nil, fmt.Errorf("reading .sourceignore: %s", strings.ReplaceAll(err.Error(), tree.Dir(), ""))
	}
	m := sourceignore.NewDefaultMatcher(patterns, nil)
	return func(rel string, dir bool) bool { return m.Match(strings.Split(rel, "/"), dir) }, nil
}
