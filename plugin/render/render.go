// Package render turns an application's directory into Kubernetes objects:
// with kustomize if it is a kustomization, else by reading its files, as the
// native sources of Argo CD and Flux do (docs/argocd.md, "Parity"). It reads
// one repository and no network, and what it cannot render it refuses.
package render

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// The renderers that Options may name.
const (
	Kustomize = "kustomize"
	Directory = "directory"
)

// helm is recognised, so that a chart is refused by name and its templates
// are never taken for manifests.
const helm = "helm"

// Options say what to render. Only Dir is required.
type Options struct {
	// Dir is the application's directory.
	Dir string

	// Renderer is Kustomize or Directory; empty means by the files in Dir: a
	// kustomization, else a chart (which this build refuses), else plain files.
	Renderer string

	// Root is the repository that nothing may leave; empty means the nearest
	// directory at or above Dir that holds .git, or Dir if there is none. A
	// front end that knows the root says so: the copy of the repository that
	// Argo CD gives to a plugin usually comes without .git.
	Root string

	// Recurse, Include and Exclude are those of Argo CD's directory source:
	// descend into folders (default no), and globs over the path relative to
	// Dir, in which * matches any characters, '/' too, and {a,b} either.
	Recurse          bool
	Include, Exclude string

	// For the Helm renderer; the others ignore them.
	Namespace, ReleaseName, KubeVersion string
	APIVersions                         []string
}

// Result is what was rendered. An empty one is not an error here: the front
// end refuses it as EmptyRender.
type Result struct {
	Objects  []manifest.Object
	Renderer string   // which one ran, with its version: "kustomize v0.21.2" or "directory"
	Warnings []string // sorted, a line each
}

// Error is a failure of the application's manifests, the class RENDER FAILED
// of docs/spec/refusal.md. Its text is one line, holds no absolute path of
// this machine and does not change from run to run. It wraps the context's
// error if that is what ended the render.
type Error struct {
	Renderer string // empty if none was chosen
	File     string // of a kustomize build, relative to Root; of a directory, the *manifest.Error in Err says it
	Err      error
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.File != "" {
		text = e.File + ": " + text
	}
	if e.Renderer != "" {
		text = e.Renderer + ": " + text
	}
	return oneLine(text)
}

func (e *Error) Unwrap() error { return e.Err }

// Render renders o.Dir. Every error but a context's own is an *Error.
func Render(ctx context.Context, o Options) (Result, error) {
	renderer, result, err := render(ctx, o)
	if err == nil {
		return result, nil
	}
	out := &Error{Renderer: renderer, Err: err}
	var inFile *kustomize.FileError
	if errors.As(err, &inFile) {
		out.File, out.Err = inFile.File, inFile.Err
	}
	return Result{}, out
}

func render(ctx context.Context, o Options) (string, Result, error) {
	if o.Dir == "" {
		return "", Result{}, errors.New("no directory to render")
	}
	root := o.Root
	if root == "" {
		top, err := repo.TopLevel(o.Dir)
		if err != nil {
			return "", Result{}, err
		}
		root = top
	}
	tree, err := repo.Open(ctx, root)
	if err != nil {
		return "", Result{}, err
	}
	defer tree.Close()
	dir, err := tree.Rel(o.Dir)
	if err != nil {
		return "", Result{}, fmt.Errorf("the application's directory %q %w", filepath.Base(o.Dir), err)
	}
	renderer := o.Renderer
	if renderer == "" {
		renderer = detect(tree, dir)
	}
	switch renderer {
	case Kustomize:
		objects, warnings, err := kustomize.Build(ctx, tree, dir)
		return renderer, Result{objects, Kustomize + " " + kustomize.Version, warnings}, err
	case Directory:
		objects, warnings, err := directory(tree, dir, o)
		return renderer, Result{objects, Directory, warnings}, err
	case helm:
		return "", Result{}, errors.New("the directory is a Helm chart (Chart.yaml), and this build has no Helm renderer yet: render it in CI and commit the manifests")
	default:
		return "", Result{}, fmt.Errorf("unknown renderer %q: want %q or %q", renderer, Kustomize, Directory)
	}
}

func detect(tree *repo.Tree, dir string) string {
	exists := func(name string) bool { return tree.IsFile(path.Join(dir, name)) }
	switch {
	case slices.ContainsFunc(kustomize.FileNames(), exists):
		return Kustomize
	case exists("Chart.yaml"):
		return helm
	default:
		return Directory
	}
}
