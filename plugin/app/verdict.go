package app

import (
	"fmt"
	"io"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/internal/parallel"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Verdict is the gate's answer for a whole application. The zero value
// refuses.
type Verdict struct {
	Results []Result
	Gated   int // objects with at least one gated field

	sentence  gate.Sentence
	lacks     []policy.Lack
	evaluated bool
}

// Result is the answer for one object.
type Result struct {
	Object   *Object
	Decision gate.Decision // zero if Problem stopped the object before
	Items    []gate.Item   // why it is refused; empty if it is not
}

// Evaluate judges every object of the build. now is seconds since the epoch.
func (b *Build) Evaluate(e policy.Effective, now int64) Verdict {
	v := Verdict{evaluated: true, Results: make([]Result, len(b.Objects))}
	parallel.Each(len(b.Objects), func(i int) { v.Results[i] = b.Objects[i].evaluate(e, now) })
	b.explain(v.Results)
	for _, r := range v.Results {
		if r.Object.Problem != nil || len(r.Items) > 0 || e.Rules.Gates(r.Object.Projection) {
			v.Gated++
		}
		v.sentence.Items = append(v.sentence.Items, r.Items...)
		for _, f := range r.Decision.Findings {
			v.lacks = append(v.lacks, policy.Lack{Subject: r.Object.Subject, Finding: f, Object: r.Object.Projection})
		}
	}
	v.sentence.Gated = v.Gated
	v.sentence.Fix = e.Fix(v.sentence.Reason(), v.lacks...)
	v.sentence.Warn = e.Warn
	return v
}

func (o *Object) evaluate(e policy.Effective, now int64) Result {
	if o.Problem != nil {
		return Result{Object: o, Items: []gate.Item{*o.Problem}}
	}
	r := Result{Object: o}
	r.Decision = gate.Evaluate(gate.Request{
		Rules: &e.Rules, Subject: o.Subject, GenerateName: o.generate,
		Object: o.Projection, Receipts: o.Receipts, Now: now, Held: e.Rules.Held(o.Subject, o.Projection, o.Receipts),
	})
	for _, f := range r.Decision.Findings {
		r.Items = append(r.Items, gate.Item{Subject: o.Subject.Short(), Reason: f.Reason, Text: f.Text})
	}
	if !r.Decision.Allowed() && len(r.Items) == 0 { // never allowed for want of words
		r.Items = []gate.Item{{Subject: o.Subject.Short(), Reason: gate.PolicyInvalid, Text: "refused without a reason"}}
	}
	return r
}

// Allowed reports whether every object may run.
func (v Verdict) Allowed() bool { return v.evaluated && len(v.sentence.Items) == 0 }

// Sentence is the refusal, or in Warn mode the warning.
func (v Verdict) Sentence() gate.Sentence { return v.sentence }

// Encode writes the objects, one JSON document a line: exactly the trees that
// were evaluated.
func (b *Build) Encode(w io.Writer) error {
	for _, o := range b.Objects {
		if o.Tree != nil {
			return manifest.Encode(w, b.objects())
		}
		if len(o.encoded) == 0 {
			return fmt.Errorf("%s was not kept", o.Subject)
		}
		if _, err := w.Write(o.encoded); err != nil {
			return err
		}
	}
	return nil
}

// EncodeYAML writes the objects for people.
func (b *Build) EncodeYAML(w io.Writer) error { return manifest.EncodeYAML(w, b.objects()) }

func (b *Build) objects() []manifest.Object {
	out := make([]manifest.Object, len(b.Objects))
	for i, o := range b.Objects {
		out[i] = o.Object
	}
	return out
}
