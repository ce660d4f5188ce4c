package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/migrate"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

// ours is the gate with one issuer, whose key is thrown away.
type ours struct {
	effective policy.Effective
	signer    *receipt.KeySigner
}

// everything is a registry that has every image.
type everything struct{}

func (everything) Resolve(_ context.Context, r pin.Reference) (string, error) {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.String()))), nil
}

const policyText = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: parity
issuers:
- {name: release, keys: {file: keys}}
protected: {namespaces: [syncgate-system], writers: ["*"]}
`

func newOurs() (*ours, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	s, err := receipt.NewSigner(private, "", "")
	if err != nil {
		return nil, err
	}
	set, err := keys.PublicJWKS([]receipt.Key{s.Key()})
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse([]byte(policyText), "policy.yaml", func(string) ([]byte, error) { return set, nil })
	if err != nil {
		return nil, err
	}
	e, err := app.Effective(p, policy.App{Name: "parity", Namespace: "parity"}, "")
	if err != nil {
		return nil, err
	}
	e.Pins = policy.Registry
	return &ours{e, s}, nil
}

// render returns the objects that the plugin hands to Argo CD, pinned and with
// receipts. An Application is moved to the plugin first.
func (g *ours) render(ctx context.Context, root string, u unit) ([]map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	o, err := optionsOf(root, u)
	if err != nil {
		return nil, err
	}
	if o.KubeVersion == "" {
		o.KubeVersion = kubeVersion
	}
	b, err := app.New(ctx, app.Settings{Render: o, Namespace: u.namespace, Effective: g.effective, Registry: everything{}})
	if err != nil {
		return nil, err
	}
	if err := b.Sound(g.effective); err != nil {
		return nil, err
	}
	drafts, err := b.Drafts(app.Signing{Issuer: "release", Environment: "parity", Now: time.Now().Unix(), Lifetime: 3600, Signer: g.signer}, g.effective)
	if err != nil {
		return nil, err
	}
	for _, d := range drafts {
		compact, err := receipt.Sign(d.Claims, g.signer)
		if err != nil {
			return nil, app.Refuse(gate.ObjectMalformed, "%s: %v", d.Object.Subject.Short(), err)
		}
		if err := d.Object.Stamp(g.effective, compact); err != nil {
			return nil, err
		}
	}
	if v := b.Evaluate(g.effective, time.Now().Unix()); !v.Allowed() {
		return nil, &app.Refusal{Sentence: v.Sentence()}
	}
	var out bytes.Buffer
	if err := b.Encode(&out); err != nil {
		return nil, err
	}
	var objects []map[string]any
	for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		object, err := decode(line)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func optionsOf(root string, u unit) (render.Options, error) {
	if u.flux != nil {
		return fluxOptions(root, u)
	}
	if u.manifest == nil {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(u.dir), ".argocd-source.yaml")); err == nil {
			return render.Options{}, errors.New(".argocd-source.yaml changes the source in the cluster")
		}
		return render.Options{Dir: filepath.Join(root, filepath.FromSlash(u.dir)), Root: root, Namespace: u.namespace, ReleaseName: u.name}, nil
	}
	r, err := migrate.Rewrite(u.manifest, "application.yaml", "")
	if err != nil {
		return render.Options{}, err
	}
	if len(r.Cannot) > 0 {
		return render.Options{}, fmt.Errorf("cannot move: %s: %s", r.Cannot[0].At, r.Cannot[0].Why)
	}
	s, err := application.Parse(r.Text, "application.yaml")
	if err != nil {
		return render.Options{}, err
	}
	return s.Options(root)
}
