package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

// row is the outcome of one unit.
type row struct {
	unit                           unit
	document                       int // where known, from 1
	outcome                        string
	code                           gate.Reason
	sentence                       string
	objects, gated, leaves, images int
}

// The outcomes. All but the first three are wrong.
const (
	allowed     = "allowed"
	refused     = "refused"
	explained   = "explained" // another renderer can do it, and a line says why this one does not
	panicked    = "panic"
	dropped     = "dropped"
	unstable    = "not-a-fixed-point"
	unexplained = "unexplained"
)

func (r row) wrong() bool {
	return r.outcome != allowed && r.outcome != refused && r.outcome != explained
}

// gateUnderTest is the gate with one issuer, whose key is thrown away.
type gateUnderTest struct {
	policy   *policy.Policy
	signer   *receipt.KeySigner
	registry *loopback
}

const policyText = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: corpus
issuers:
- {name: release, keys: {file: keys}}
protected: {namespaces: [syncgate-system], writers: ["*"]}
`

func newGate() (*gateUnderTest, error) {
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
	l, err := newLoopback()
	if err != nil {
		return nil, err
	}
	return &gateUnderTest{p, s, l}, nil
}

func (g *gateUnderTest) close() { g.registry.close() }

// judge takes one unit through the whole gate.
func (g *gateUnderTest) judge(ctx context.Context, dir string, u unit) (r row) {
	r = row{unit: u}
	defer func() {
		if p := recover(); p != nil {
			r.outcome, r.sentence = panicked, fmt.Sprintf("%v at %s", p, firstFrame(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err := g.run(ctx, filepath.Join(dir, u.path), &r)
	var refusal *app.Refusal
	switch {
	case err == nil:
		r.outcome = allowed
	case errors.As(err, &refusal):
		r.outcome, r.code, r.sentence = refused, refusal.Sentence.Reason(), refusal.Sentence.String()
		r.document = documentOf(r.sentence)
		if r.code == "" || r.sentence == "" {
			r.outcome = unexplained
		}
	case r.outcome == "":
		r.outcome, r.sentence = unexplained, err.Error()
	default:
		r.sentence = err.Error()
	}
	return r
}

var documentPattern = regexp.MustCompile(`document (\d+)`)

func documentOf(sentence string) int {
	if m := documentPattern.FindStringSubmatch(sentence); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

func firstFrame(stack []byte) string {
	for _, line := range strings.Split(string(stack), "\n") {
		if strings.Contains(line, "/plugin/") {
			return strings.TrimSpace(line[strings.LastIndexByte(line, '/')+1:])
		}
	}
	return "unknown"
}

func (g *gateUnderTest) run(ctx context.Context, path string, r *row) error {
	e, err := app.Effective(g.policy, policy.App{Name: "corpus", Namespace: "corpus"}, "")
	if err != nil {
		return err
	}
	e.Pins = policy.Registry
	s := app.Settings{Namespace: "corpus", Effective: e}
	switch r.unit.kind {
	case "manifest":
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.Stream = &app.Stream{Data: data, File: r.unit.path}
	default:
		s.Render = render.Options{Dir: path, Root: root(path, r.unit.path), Renderer: r.unit.kind, Namespace: "corpus", ReleaseName: "corpus"}
	}
	if s.Registry, err = g.registry.resolver(ctx, s); err != nil {
		return err
	}
	b, err := app.New(ctx, s)
	if err != nil {
		return err
	}
	if s.Stream != nil {
		if n, ok := count(s.Stream.Data); ok && n != len(b.Objects) {
			r.outcome = dropped
			return fmt.Errorf("%d objects in the file, %d seen", n, len(b.Objects))
		}
	}
	if err := b.Sound(e); err != nil {
		return err
	}
	if err := g.sign(b, e); err != nil {
		return err
	}
	return g.check(ctx, b, s, r)
}

// root is the repository that the unit is part of: the first folders of its
// path, OWNER+NAME.
func root(path, rel string) string {
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return filepath.Join(strings.TrimSuffix(path, rel), first)
}

// sign stamps a receipt on every object that needs one.
func (g *gateUnderTest) sign(b *app.Build, e policy.Effective) error {
	drafts, err := b.Drafts(app.Signing{Issuer: "release", Environment: e.Rules.Environment, Now: time.Now().Unix(), Lifetime: 3600, Signer: g.signer}, e)
	if err != nil {
		return err
	}
	for _, d := range drafts {
		compact, err := receipt.Sign(d.Claims, g.signer)
		if err != nil {
			return app.Refuse(gate.ObjectMalformed, "%s: %v", d.Object.Subject.Short(), err)
		}
		if err := d.Object.Stamp(e, compact); err != nil {
			return err
		}
	}
	return nil
}

// check reads what would be synced again, as a stream, which must be allowed
// and come out byte for byte.
func (g *gateUnderTest) check(ctx context.Context, b *app.Build, s app.Settings, r *row) error {
	var first, second bytes.Buffer
	if err := b.Encode(&first); err != nil {
		return err
	}
	s.Stream = &app.Stream{Data: first.Bytes(), File: "output"}
	again, err := app.New(ctx, s)
	if err != nil {
		r.outcome = unstable
		return fmt.Errorf("the output: %w", err)
	}
	if v := again.Evaluate(s.Effective, time.Now().Unix()); !v.Allowed() {
		r.outcome = unstable
		return errors.New("signed, and still: " + v.Sentence().String())
	}
	if err := again.Encode(&second); err != nil {
		return err
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		r.outcome = unstable
		return errors.New("a second pass changes the output")
	}
	for _, o := range b.Objects {
		r.objects++
		r.leaves += len(o.Projection.Leaves())
		r.images += len(o.Pinned)
		if s.Effective.Rules.Gates(o.Projection) {
			r.gated++
		}
	}
	return nil
}
