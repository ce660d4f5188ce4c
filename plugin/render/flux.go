package render

import (
	"context"
	"errors"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/flux"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// FluxOptions say how Flux's kustomize-controller builds a directory.
type FluxOptions struct {
	// Kustomization is the object of Flux, decoded JSON. Which fields of it may be
	// set is the caller's to decide.
	Kustomization map[string]any

	// Look returns the data of a ConfigMap or Secret (kind, "ConfigMap" or
	// "Secret") in the Kustomization's own namespace, which its variables come
	// from; those of a Secret decoded. It is asked once for each. Nil knows none.
	Look func(ctx context.Context, kind, name string) (data map[string]string, found bool, err error) `json:"-"`

	// Own is the ConfigMap among them that is not looked up, because what is
	// rendered here decides what is in it, and Prefix begins the names of its
	// variables and of no other's. Empty: there is none.
	Own, Prefix string

	// Checkout says that the directory is not an artifact yet: what
	// source-controller leaves out of one, by default or by .sourceignore, is
	// passed over. Symbolic links are in no artifact.
	Checkout bool
}

// kustomization builds as Flux does.
func kustomization(ctx context.Context, tree *repo.Tree, dir string, o Options) (Result, error) {
	if o.Flux == nil {
		return Result{}, errors.New("the renderer flux needs the manifest of a Flux Kustomization")
	}
	if err := enter(ctx); err != nil {
		return Result{}, err
	}
	defer leave()
	built, err := flux.Build(ctx, tree, dir, flux.Settings{
		Kustomization: o.Flux.Kustomization, Look: o.Flux.Look, Own: o.Flux.Own, Prefix: o.Flux.Prefix, Checkout: o.Flux.Checkout,
	})
	if err != nil {
		return Result{}, err
	}
	r := Result{Objects: built.Objects, Renderer: Kustomize + " " + kustomize.Version, Warnings: built.Warnings}
	if built.Fill == nil {
		return r, nil
	}
	r.Fill = func(ctx context.Context, data map[string]string) ([]manifest.Object, error) {
		if err := enter(ctx); err != nil {
			return nil, err
		}
		defer leave()
		objects, err := built.Fill(data)
		if err != nil {
			return nil, failed(Flux, err)
		}
		return objects, nil
	}
	return r, nil
}
