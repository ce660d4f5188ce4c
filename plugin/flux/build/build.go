// Package build takes a Flux Kustomization and an artifact of its source to what
// kustomize-controller would apply, pinned and with receipts, for a verdict. It
// is what `syncgate check --application` does with a checkout:
//
//	source, err := application.FromObject(kustomization)
//	err = artifacts.Fetch(ctx, url, digest, dir)
//	b, err := build.Build(ctx, build.Request{Source: source, Root: dir, Look: look, Effective: e})
//	v := b.Evaluate(e, now)
//
// In postBuild mode b.Values is then the data of the gate's ConfigMap: b's
// objects are what Flux makes of the artifact and these values, which was tried.
// In artifact mode b's objects are what the gate publishes.
package build

import (
	"context"
	"errors"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Request says what to build.
type Request struct {
	Source application.Source // of a Flux Kustomization
	Root   string             // the unpacked artifact

	// Look finds the ConfigMaps and Secrets of Source.Flux().Variables; nil if it
	// has none.
	Look application.Lookup

	Effective policy.Effective // what policy means for Source.App
	Registry  pin.Resolver     // asked if policy says so; nil otherwise
	Keep      app.Keep         // of each object
}

// Build renders, pins, projects and stamps. The error is an *app.Refusal, or
// ctx's.
func Build(ctx context.Context, r Request) (*app.Build, error) {
	o, err := r.Source.Built(r.Root, r.Look)
	if err == nil && o.Flux == nil {
		err = errors.New("the manifest is no Flux Kustomization")
	}
	if err != nil {
		return nil, app.Refuse(gate.RenderFailed, "%v", err)
	}
	return app.New(ctx, app.Settings{
		Render: o, Namespace: r.Source.App.Namespace, Effective: r.Effective, Registry: r.Registry, Keep: r.Keep,
	})
}
