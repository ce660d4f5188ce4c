package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

// build parses a stream and takes it up to the receipts.
func (f *fixture) build(data []byte, keep app.Keep) (*app.Build, error) {
	return app.New(context.Background(), app.Settings{Effective: f.effective, Keep: keep, Stream: &app.Stream{Data: data, File: "bench"}})
}

// check is what "syncgate check -" does with a stream.
func (f *fixture) check(data []byte) error {
	b, err := f.build(data, app.KeepNothing)
	if err != nil {
		return err
	}
	if v := b.Evaluate(f.effective, f.now); !v.Allowed() {
		return errors.New(v.Sentence().String())
	}
	return nil
}

// decisionOverFloor: decode, project, digest and verify one signed Deployment,
// over a JSON decode and one raw Ed25519 verification.
func decisionOverFloor(_ context.Context, f *fixture) (float64, error) {
	_, docs, err := f.signed(1)
	if err != nil {
		return 0, err
	}
	doc := docs[0]
	message := make([]byte, 700) // as long as a receipt's signing input
	signature := ed25519.Sign(f.private, message)
	public := f.private.Public().(ed25519.PublicKey)
	const times = 200
	decide := func() error {
		for range times {
			objects, err := manifest.Parse(doc, "bench")
			if err != nil {
				return err
			}
			if err := f.decide(objects[0]); err != nil {
				return err
			}
		}
		return nil
	}
	floor := func() error {
		for range times {
			var v map[string]any
			if err := json.Unmarshal(doc, &v); err != nil {
				return err
			}
			if !ed25519.Verify(public, message, signature) {
				return errors.New("signature")
			}
		}
		return nil
	}
	return ratio(9, decide, floor)
}

func (f *fixture) decide(o manifest.Object) error {
	p, err := projection.Project(o.Tree)
	if err != nil {
		return err
	}
	meta := o.Tree["metadata"].(map[string]any)
	annotations := meta["annotations"].(map[string]any)
	d := gate.Evaluate(gate.Request{
		Rules: &f.effective.Rules, Object: p, Now: f.now,
		Subject:  receipt.Subject{Group: o.Group(), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()},
		Receipts: []string{annotations[f.effective.Annotation].(string)},
	})
	if !d.Allowed() {
		return fmt.Errorf("refused: %+v", d.Findings)
	}
	return nil
}

// checkOverDecode: 3,000 signed Deployments in YAML through check, over
// decoding the same file with sigs.k8s.io/yaml.
func checkOverDecode(_ context.Context, f *fixture) (float64, error) {
	data, _, err := f.signed(3000)
	if err != nil {
		return 0, err
	}
	return ratio(5, func() error { return f.check(data) }, func() error { return decodeAll(data) })
}

func decodeAll(data []byte) error {
	for _, doc := range bytes.Split(data, []byte("\n---\n")) {
		var v map[string]any
		if err := yaml.Unmarshal(bytes.TrimPrefix(doc, []byte("---\n")), &v); err != nil {
			return err
		}
	}
	return nil
}

// scale: the time for 10,000 objects over that for 1,000.
func scale(_ context.Context, f *fixture) (float64, error) {
	small, _, err := f.signed(1000)
	if err != nil {
		return 0, err
	}
	large, _, err := f.signed(10000)
	if err != nil {
		return 0, err
	}
	return ratio(3, func() error { return f.check(large) }, func() error { return f.check(small) })
}

// memory: the live heap of a check of 10,000 objects at its height, the
// manifests themselves included, over the size of the manifests.
func memory(_ context.Context, f *fixture) (float64, error) {
	debug.FreeOSMemory()
	before := live()
	data, _, err := f.signed(10000)
	if err != nil {
		return 0, err
	}
	b, err := f.build(data, app.KeepNothing)
	if err != nil {
		return 0, err
	}
	v := b.Evaluate(f.effective, f.now)
	after := live()
	runtime.KeepAlive(b)
	runtime.KeepAlive(data)
	if !v.Allowed() {
		return 0, errors.New(v.Sentence().String())
	}
	return float64(after-before) / float64(len(data)), nil
}

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// generateOverRender: the whole of generate over the bare renderer, both in
// process: kustomize with 300 Deployments, written as YAML by kustomize alone.
func generateOverRender(ctx context.Context, f *fixture) (float64, error) {
	dir, err := os.MkdirTemp("", "syncgate-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	data, _, err := f.signed(300)
	if err != nil {
		return 0, err
	}
	for name, text := range map[string][]byte{"all.yaml": data, "kustomization.yaml": []byte("resources: [all.yaml]\nlabels: [{pairs: {team: shop}}]\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return 0, err
		}
	}
	generate := func() error {
		b, err := app.New(ctx, app.Settings{Effective: f.effective, Keep: app.KeepBytes, Render: render.Options{Dir: dir, Root: dir}})
		if err != nil {
			return err
		}
		if v := b.Evaluate(f.effective, f.now); !v.Allowed() {
			return errors.New(v.Sentence().String())
		}
		return b.Encode(io.Discard)
	}
	bare := func() error {
		m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			return err
		}
		_, err = m.AsYaml()
		return err
	}
	return ratio(5, generate, bare)
}
