package controller

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/registry"
	"github.com/syncgate/syncgate/plugin/render"
	"github.com/syncgate/syncgate/plugin/settings"
)

// judge fetches what the source has, builds it as Flux would, and evaluates it.
// The error is ctx's, or one of reading from the cluster.
func (r *Reconciler) judge(ctx context.Context, s subject, p *policy.Policy, from *meta.Artifact, off switched) (outcome, error) {
	root, release, err := r.Fetcher.Checkout(ctx, from.URL, from.Digest)
	if err != nil {
		return notFetched(ctx, err)
	}
	defer release()
	o, err := r.evaluate(ctx, s, p, root, off)
	var refusal *app.Refusal
	switch {
	case errors.As(err, &refusal):
		return refused(within(refusal, root)), nil
	case err != nil:
		return outcome{}, err
	}
	return o, nil
}

// notFetched tells what may pass when it is tried again from what that digest
// will always be: that is a verdict, and waits for another revision.
func notFetched(ctx context.Context, err error) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	if !errors.Is(err, artifact.ErrTooLarge) && !errors.Is(err, artifact.ErrUnsafe) {
		return unavailable(fetchReason, err), nil
	}
	r := app.Refuse(gate.RenderFailed, "%v", err)
	r.Sentence.Fix = "change what the source packs: leave out what Flux does not apply (.sourceignore, spec.ignore of the source)"
	return refused(r), nil
}

// within leaves the folder, which is another one for each artifact, out of a refusal:
// the same verdict has the same words.
func within(r *app.Refusal, root string) *app.Refusal {
	for i := range r.Sentence.Items {
		it := &r.Sentence.Items[i]
		it.Text = strings.ReplaceAll(strings.ReplaceAll(it.Text, root+"/", ""), root, ".")
	}
	return r
}

// evaluate judges what is in a folder.
func (r *Reconciler) evaluate(ctx context.Context, s subject, p *policy.Policy, root string, off switched) (outcome, error) {
	settings, err := r.settings(s, p, root)
	if err != nil {
		return outcome{}, err
	}
	b, err := app.New(ctx, settings)
	if err != nil {
		return outcome{}, err
	}
	e := settings.Effective
	v := b.Evaluate(e, r.Now().Unix())
	refusal := v.Sentence()
	refusal.Warn = false
	if !v.Allowed() && !e.Warn && !off.passes(&refusal) {
		return outcome{}, &app.Refusal{Sentence: refusal}
	}
	o := outcome{approved: true, reason: approvedReason}
	o.sentence = fmt.Sprintf("%d objects, %d gated, all allowed in %s", len(v.Results), v.Gated, e.Rules.Environment)
	switch warning := v.Sentence(); {
	case v.Allowed() && off.why != "":
		o.sentence += "; the gate is " + off.why
	case v.Allowed():
	case e.Warn:
		o.reason, o.sentence = warnedReason, warning.String()
	default:
		warning.Warn = true
		o.reason, o.sentence = offReason, gate.ASCII(off.why)+"; "+warning.String()
	}
	if s.mode == application.PostBuild {
		if o.values = b.Values; o.values[hook.Latch] == "" { // it may pass, and Flux could not build it all the same
			return outcome{}, &app.Refusal{Sentence: refusal}
		}
		o.content = o.values[hook.Latch]
		return o, nil
	}
	var lines bytes.Buffer
	if err := b.Encode(&lines); err != nil {
		return outcome{}, app.Refuse(gate.RenderFailed, "encoding manifests: %v", err)
	}
	o.manifests = documents(lines.Bytes())
	if err := o.rebuilds(ctx, lines.Bytes()); err != nil {
		return outcome{}, err
	}
	sum := sha256.Sum256(o.manifests)
	o.content = hex.EncodeToString(sum[:])
	return o, nil
}

// documents makes YAML documents of objects that stand one a line, as JSON,
// which is YAML.
func documents(lines []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(lines) {
		out.WriteString("---\n")
		out.Write(line)
	}
	return out.Bytes()
}

// rebuilds holds what Flux will build from the artifact against what was judged:
// kustomize gives annotations a meaning, and must find none left.
func (o outcome) rebuilds(ctx context.Context, lines []byte) error {
	dir, err := os.MkdirTemp("", "syncgate-rebuild-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := o.write(dir); err != nil {
		return err
	}
	built, err := render.Render(ctx, render.Options{Dir: dir, Root: dir, Renderer: render.Kustomize})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return app.Refuse(gate.RenderFailed, "building what was approved once more: %v", err)
	}
	var again bytes.Buffer
	if err := manifest.Encode(&again, built.Objects); err != nil {
		return app.Refuse(gate.RenderFailed, "building what was approved once more: %v", err)
	}
	if !bytes.Equal(again.Bytes(), lines) {
		r := app.Refuse(gate.RenderFailed, "kustomize makes something else of what was approved when it builds it once more: an annotation of kustomize is left on an object")
		r.Sentence.Fix = "take the annotations that are for kustomize (config.kubernetes.io, kustomize.config.k8s.io) off the manifests"
		return r
	}
	return nil
}

// settings are those of one Kustomization under a policy.
func (r *Reconciler) settings(s subject, p *policy.Policy, root string) (app.Settings, error) {
	asked := settings.Parse(s.GetAnnotations(), p.Annotation(), hook.SourceAnnotation, hook.PathAnnotation)
	e, err := app.EffectiveAsking(p, app.Kustomization, s.says.App, r.Environment, asked)
	if err != nil {
		return app.Settings{}, err
	}
	out := app.Settings{Namespace: s.says.App.Namespace, Effective: e, Keep: app.KeepBytes}
	if out.Render, err = s.says.Built(root, r.look(s)); err != nil {
		return out, app.Refuse(gate.RenderFailed, "%v", err)
	}
	if err := out.Ask(asked); err != nil {
		return out, err
	}
	out.Registry, err = resolver(e)
	return out, err
}

func resolver(e policy.Effective) (pin.Resolver, error) {
	if e.Pins != policy.Registry {
		return nil, nil
	}
	r, err := registry.New(registry.Options{Mirrors: e.Mirrors})
	if err != nil {
		return nil, app.Refuse(gate.PolicyInvalid, "images.mirrors: %v", err)
	}
	return r, nil
}

// write puts what was approved into a folder, as a kustomization of its own.
func (o outcome) write(dir string) error {
	for name, data := range map[string][]byte{
		"manifests.yaml":     o.manifests,
		"kustomization.yaml": []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [manifests.yaml]\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("writing what is published: %w", err)
		}
	}
	return nil
}
