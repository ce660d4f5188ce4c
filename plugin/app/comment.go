package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Comment is the first line of a receipt's file, for the person who reviews
// it: "Deployment shop/web, prod, until 2027-03-01, approver alice: image
// ghcr.io/acme/web:1.5". It follows from the receipt and the object alone, so
// that it can be checked.
func Comment(c receipt.Claims, s receipt.Subject, p *projection.Projection) string {
	text := commentFacts(c, s)
	if images := commentImages(p); images != "" {
		text += ": image " + images
	}
	return text
}

func commentFacts(c receipt.Claims, s receipt.Subject) string {
	text := fmt.Sprintf("%s, %s, until %s", s.Short(), c.Environment, Date(c.Expires))
	if c.Approver != "" {
		text += ", approver " + c.Approver
	}
	if c.Release != "" {
		text += ", release " + c.Release
	}
	return gate.ASCII(text)
}

// commentImages names the images without digests, which nobody reads.
func commentImages(p *projection.Projection) string {
	var out []string
	for _, l := range p.In(projection.Image) {
		ref, _ := l.Value.(string)
		name, _, _ := strings.Cut(ref, "@")
		out = append(out, gate.ASCII(name))
	}
	if len(out) > 4 {
		out = append(out[:4], fmt.Sprintf("and %d more", len(out)-4))
	}
	return strings.Join(out, ", ")
}

// Date writes a time as a day in UTC.
func Date(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.DateOnly) }

// Comments adds to the verdict every receipt file of the lock whose comment
// line says something else than the receipt: reviewers read the line.
func (b *Build) Comments(e policy.Effective, v *Verdict) error {
	if b.Lock == nil {
		return nil
	}
	for i := range v.Results {
		r := &v.Results[i]
		o := r.Object
		if o.Problem != nil {
			continue
		}
		for _, env := range append([]string{e.Rules.Environment}, e.Rules.Accepts...) {
			for _, entry := range b.Lock.Receipts(env, o.Subject) {
				u, err := receipt.ParseUnverified(entry.Receipt)
				if err != nil || entry.Previous {
					continue
				}
				want := commentFacts(u.Claims, o.Subject)
				if matchesObject(u.Claims, o.Projection) {
					want = Comment(u.Claims, o.Subject, o.Projection)
				}
				if entry.Comment == want || strings.HasPrefix(entry.Comment, want+": ") && want == commentFacts(u.Claims, o.Subject) {
					continue
				}
				it := gate.Item{Subject: o.Subject.Short(), Reason: gate.ReceiptMalformed,
					Text: fmt.Sprintf("the comment line of the receipt of issuer %s reads %q, the receipt says %q", entry.Issuer, entry.Comment, want)}
				r.Items = append(r.Items, it)
				v.sentence.Items = append(v.sentence.Items, it)
			}
		}
	}
	v.sentence.Fix = e.Fix(v.sentence.Reason(), v.lacks...)
	return nil
}

func matchesObject(c receipt.Claims, p *projection.Projection) bool {
	covers := make([]projection.Category, len(c.Covers))
	for i, x := range c.Covers {
		covers[i] = projection.Category(x)
	}
	d, err := p.Digest(covers)
	return err == nil && d == c.Digest
}

// Sound refuses a build with objects that can never be allowed as they are:
// unpinned, malformed, protected. What is rendered, shown or signed must be
// more than that.
func (b *Build) Sound(e policy.Effective) error {
	var s gate.Sentence
	for _, o := range b.Objects {
		if o.Problem != nil {
			s.Items = append(s.Items, *o.Problem)
			s.Gated++
		} else if e.Rules.Gates(o.Projection) {
			s.Gated++
		}
	}
	if len(s.Items) == 0 {
		return nil
	}
	s.Fix = e.Fix(s.Reason())
	return &Refusal{s}
}
