package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/internal/parallel"
	"github.com/syncgate/syncgate/plugin/render"
)

// maxValues bounds the ConfigMap that the gate writes for a Kustomization, in
// bytes; the API server takes 1 MiB.
const maxValues = 1000 << 10

// filled prepares what Flux fills in itself, from a ConfigMap of the gate. Pins
// and receipts get onto an object only where it has placeholders for them: what
// is judged must be what Flux makes of the manifests and the ConfigMap, to the
// last field, and is compared with it.
func (s Settings) filled(ctx context.Context, b *Build, r render.Result) error {
	objects := r.Objects
	raw := make([]map[string]any, len(objects)) // with placeholders; nil if there are none
	problems := make([]error, len(objects))
	parallel.Each(len(objects), func(i int) {
		raw[i], problems[i] = stripped(objects[i], s.Effective.Annotation)
	})
	keep := s.Keep
	s.Keep = KeepTrees // until they are compared
	b.Objects = make([]*Object, len(objects))
	parallel.Each(len(objects), func(i int) { b.Objects[i] = s.prepared(ctx, b.Lock, objects[i]) })
	values := map[string]string{}
	for i, o := range b.Objects {
		err := problems[i]
		if err == nil && raw[i] != nil && o.Problem == nil && !s.LeaveUnpinned {
			err = hook.Fill(values, raw[i], o.Tree, s.Effective.Annotation)
		}
		if err != nil && (o.Problem == nil || problems[i] != nil) { // a placeholder that was left is no image
			o.Problem = &gate.Item{Subject: o.Subject.Short(), Reason: gate.ImageNotPinned, Text: fmt.Sprintf("%v (%s)", err, o.Where()), Fix: scaffold}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	wrong := slices.ContainsFunc(b.Objects, func(o *Object) bool { return o.Problem != nil })
	if !wrong && !s.LeaveUnpinned {
		if err := s.compare(ctx, b, r, raw, values); err != nil {
			return err
		}
	}
	for _, o := range b.Objects {
		s.Keep = keep
		s.drop(o)
	}
	return nil
}

// scaffold is the next step where a placeholder is missing or wrong.
const scaffold = "run: syncgate flux scaffold, and commit"

// stripped takes the placeholders out of an object and returns it as it was.
func stripped(o manifest.Object, annotation string) (map[string]any, error) {
	list, err := manifest.FromTree(o.Tree, o.File, o.Document)
	if err != nil {
		return nil, err
	}
	variables, err := hook.Strip(o.Tree, annotation)
	if err != nil || len(variables) == 0 {
		return nil, err
	}
	return list[0].Tree, nil
}

// compare fills in the values as Flux would, and holds the result against what
// was judged.
func (s Settings) compare(ctx context.Context, b *Build, r render.Result, raw []map[string]any, values map[string]string) error {
	sum := sha256.New()
	if err := fits(values); err != nil {
		return err
	}
	for i, o := range b.Objects {
		if raw[i] != nil && len(o.Receipts) == 0 {
			if err := noReceipts(raw[i], o.Tree, s.Effective.Annotation); err != nil {
				return refuse(gate.RenderFailed, "", err, "")
			}
		}
		if err := digestTree(sum, o); err != nil {
			return refuse(gate.RenderFailed, "", err, "")
		}
	}
	values[hook.Latch] = hex.EncodeToString(sum.Sum(nil))
	got, err := r.Fill(ctx, values)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unrendered(err)
	}
	if len(got) != len(b.Objects) {
		return Refuse(gate.RenderFailed, "with pins and receipts filled in, Flux would apply %d objects, and without %d", len(got), len(b.Objects))
	}
	same := true
	for i, o := range b.Objects {
		if !reflect.DeepEqual(got[i].Tree, o.Tree) {
			o.Problem, same = s.unlike(o, got[i].Tree), false
		}
	}
	if same {
		b.Values = values
	}
	return nil
}

// fits refuses values that no ConfigMap holds.
func fits(values map[string]string) error {
	size := 0
	for k, v := range values {
		size += len(k) + len(v)
	}
	if size <= maxValues {
		return nil
	}
	r := Refuse(gate.RenderFailed, "pins and receipts take %d bytes, and a ConfigMap holds %d", size, maxValues)
	r.Sentence.Fix = "split the Kustomization, or use artifact mode"
	return r
}

// unlike says why what Flux would apply is not what was judged.
func (s Settings) unlike(o *Object, got map[string]any) *gate.Item {
	it := &gate.Item{Subject: o.Subject.Short(), Reason: gate.RenderFailed, Fix: scaffold,
		Text: fmt.Sprintf("Flux would apply something else than what is judged (%s)", o.Where())}
	switch {
	case len(o.Pinned) > 0 && !s.pinnedIn(got):
		var paths []string
		for _, c := range o.Pinned {
			paths = append(paths, gate.ShortPath(c.Path))
		}
		it.Reason = gate.ImageNotPinned
		it.Text = fmt.Sprintf("an image has no placeholder for its digest (%s of %s)", strings.Join(paths[:min(3, len(paths))], ", "), o.Where())
	case len(o.Receipts) > 0 && s.onlyReceipts(o, got):
		it.Reason = gate.ReceiptMissing
		it.Text = fmt.Sprintf("has receipts in the lock, and no placeholder for them (%s)", o.Where())
	}
	return it
}

// onlyReceipts reports whether an object and what Flux would apply are the same
// once both have the object's receipts.
func (s Settings) onlyReceipts(o *Object, got map[string]any) bool {
	list, err := manifest.FromTree(got, o.File, o.Document)
	if err != nil || len(list) != 1 {
		return false
	}
	stamped := &Object{Object: list[0], Subject: o.Subject}
	return stamped.Stamp(s.Effective, o.Receipts...) == nil && reflect.DeepEqual(stamped.Tree, o.Tree)
}

// pinnedIn reports whether every image of an object has a digest, or needs none.
func (s Settings) pinnedIn(tree map[string]any) bool {
	all := true
	err := s.Effective.Projector.EachImage(tree, func(_, ref string) (string, error) {
		all = all && (strings.Contains(ref, "@") || slices.ContainsFunc(s.Effective.Rules.AllowUnpinned, func(g gate.Glob) bool { return g.Match(ref) }))
		return ref, nil
	})
	return err == nil && all
}

// noReceipts writes hook.NoReceipts where a placeholder stood for receipts and
// there are none.
func noReceipts(raw, tree map[string]any, annotation string) error {
	for _, path := range [][]string{{"metadata"}, {"spec", "jobTemplate", "metadata"}} {
		cur := raw
		for _, p := range append(slices.Clone(path), "annotations") {
			cur, _ = cur[p].(map[string]any)
		}
		if text, _ := cur[annotation].(string); text != "" {
			if _, ok := hook.ParsePlaceholder(text); ok {
				if err := annotate(tree, annotation, hook.NoReceipts, path...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func digestTree(sum hash.Hash, o *Object) error {
	return manifest.Encode(sum, []manifest.Object{o.Object})
}
