// Package flux builds what Flux's kustomize-controller would apply for a
// Kustomization: its generator (the kustomization of a directory, with what the
// spec adds to it), kustomize, its substitution of variables, and its common
// metadata. The first and the third are Flux's own code; the second is package
// kustomize, which is kept off the network; the directory is read by package
// repo, within its bounds.
package flux

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
)

// Settings say what to build.
type Settings struct {
	// Kustomization is the object, as the API server has it.
	Kustomization map[string]any

	// Look returns the data of a ConfigMap or Secret (kind) in the Kustomization's
	// own namespace; found is false if there is none. It is asked once for each.
	Look func(ctx context.Context, kind, name string) (data map[string]string, found bool, err error)

	// Own is the name of a ConfigMap that is not looked up: Fill gives its data.
	// Prefix begins the names of its variables, and of no other's.
	Own, Prefix string

	// Checkout says that the directory is not an artifact yet: what
	// source-controller leaves out of one, by default or by .sourceignore, is not
	// seen.
	Checkout bool
}

// Result is what a build made.
type Result struct {
	Objects  []manifest.Object
	Warnings []string

	// Fill substitutes once more, in the same resources, with data for the
	// ConfigMap of Settings.Own. Before it, its variables stand for themselves.
	// Nil if there is no such ConfigMap.
	Fill func(data map[string]string) ([]manifest.Object, error)
}

// Build builds the directory dir, relative to the root of tree.
func Build(ctx context.Context, tree *repo.Tree, dir string, s Settings) (Result, error) {
	spec, err := read(s.Kustomization)
	if err != nil {
		return Result{}, err
	}
	left, err := leftOut(tree, s.Checkout)
	if err != nil {
		return Result{}, err
	}
	tree.Packed(left)
	if !tree.IsDir(dir) {
		return Result{}, &Advice{Fix: "correct the path of the Kustomization", Err: fmt.Errorf("the path %q is no directory of the artifact", dir)}
	}
	all := len(names(tree, dir)) == 0
	r, err := build(ctx, tree, dir, s, spec)
	if err != nil && ctx.Err() == nil {
		return Result{}, advised(err, dir, all)
	}
	for i := range r.Objects {
		if all {
			r.Objects[i].File = dir // there is no kustomization to look into
		}
	}
	if fill := r.Fill; fill != nil {
		r.Fill = func(data map[string]string) ([]manifest.Object, error) {
			objects, err := fill(data)
			if err != nil {
				return nil, advised(err, dir, all)
			}
			return objects, nil
		}
	}
	return r, err
}

func build(ctx context.Context, tree *repo.Tree, dir string, s Settings, spec spec) (Result, error) {
	file, data, err := generate(tree, dir, s.Kustomization)
	if err != nil {
		return Result{}, err
	}
	vars, err := spec.variables(ctx, s)
	if err != nil {
		return Result{}, err
	}
	e := editor{ctx: ctx, spec: spec, vars: vars, settings: s}
	objects, warnings, err := kustomize.Build(ctx, tree, dir, kustomize.Options{File: file, Data: data, Then: e.first, Decrypted: spec.decrypts})
	if err != nil {
		return Result{}, err
	}
	r := Result{Warnings: warnings}
	if r.Objects, err = e.finish(objects); err != nil {
		return Result{}, err
	}
	if s.Own != "" {
		r.Fill = func(data map[string]string) ([]manifest.Object, error) { return e.fill(file, data) }
	}
	return r, nil
}

// editor does what follows kustomize.
type editor struct {
	ctx      context.Context
	spec     spec
	vars     map[string]string // but those of Own
	settings Settings
	kept     []*resource.Resource // as they were before the substitution, for fill
}

// first is the first substitution.
func (e *editor) first(m resmap.ResMap) error {
	for _, r := range m.Resources() {
		if r.GetName() == "" || r.GetKind() == "" || r.GetApiVersion() == "" {
			return fmt.Errorf("%s %q has no apiVersion, kind or name: Flux applies nothing without a name", r.GetKind(), r.GetName())
		}
		if err := checkEncrypted(r); err != nil {
			return fmt.Errorf("%s %q: %w", r.GetKind(), r.GetName(), err)
		}
		if e.settings.Own != "" {
			e.kept = append(e.kept, r.DeepCopy())
		}
		if err := e.substitute(r, nil); err != nil {
			return fmt.Errorf("%s %q: %w", r.GetKind(), r.GetName(), err)
		}
		if r.GetName() == "" || r.GetKind() == "" || r.GetApiVersion() == "" {
			return fmt.Errorf("%s %q has no apiVersion, kind or name once its variables are substituted", r.GetKind(), r.GetName())
		}
	}
	return nil
}

// fill is the second one. What kept is of stays as it is.
func (e *editor) fill(file string, own map[string]string) ([]manifest.Object, error) {
	if own == nil {
		own = map[string]string{}
	}
	var out []manifest.Object
	for _, kept := range e.kept {
		r := kept.DeepCopy()
		if err := e.substitute(r, own); err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.GetKind(), r.GetName(), err)
		}
		tree, err := kustomize.Tree(r)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.GetKind(), r.GetName(), err)
		}
		list, err := manifest.FromTree(tree, file, 0)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", r.GetKind(), r.GetName(), err)
		}
		out = append(out, list...)
	}
	return e.finish(out)
}

// finish is what kustomize-controller does with objects before it applies
// them, apart from its own labels and from defaults.
func (e *editor) finish(objects []manifest.Object) ([]manifest.Object, error) {
	out := make([]manifest.Object, 0, len(objects))
	for _, o := range objects {
		if strings.EqualFold(o.Kind(), "kustomization") && o.Group() == "kustomize.config.k8s.io" {
			continue // a file for kustomize, not an object
		}
		if err := common(o.Tree, "labels", e.spec.labels); err != nil {
			return nil, fmt.Errorf("%s %q: %w", o.Kind(), o.Name(), err)
		}
		if err := common(o.Tree, "annotations", e.spec.annotations); err != nil {
			return nil, fmt.Errorf("%s %q: %w", o.Kind(), o.Name(), err)
		}
		out = append(out, o)
	}
	return out, nil
}

// common sets what commonMetadata says on an object.
func common(tree map[string]any, member string, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	meta, ok := tree["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata is not an object")
	}
	have, ok := meta[member].(map[string]any)
	if !ok {
		if meta[member] != nil {
			return fmt.Errorf("metadata.%s is not an object", member)
		}
		have = map[string]any{}
		meta[member] = have
	}
	for k, v := range have {
		// Flux would drop all of them, with the receipts.
		if _, ok := v.(string); !ok {
			return fmt.Errorf("metadata.%s: %.80q is not a string", member, k)
		}
	}
	for k, v := range values {
		have[k] = v
	}
	return nil
}

// names are the files of dir by which it is a kustomization.
func names(tree *repo.Tree, dir string) []string {
	return slices.DeleteFunc(kustomize.FileNames(), func(name string) bool { return !tree.IsFile(path.Join(dir, name)) })
}
