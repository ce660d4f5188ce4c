package app

import (
	"fmt"

	"github.com/syncgate/syncgate/plugin/policy"
)

// Deletions drafts receipts that let the objects be deleted where policy gates
// that: each for the empty projection of its object, which is what is left of
// it. An object without gated fields needs none, and is an error, like one that
// cannot be projected.
func (b *Build) Deletions(s Signing, e policy.Effective) ([]Draft, error) {
	var out []Draft
	for _, o := range b.Objects {
		if o.Projection == nil {
			return nil, fmt.Errorf("%s: %s", o.Subject.Short(), o.Problem.Text)
		}
		if !e.Rules.Gates(o.Projection) {
			return nil, fmt.Errorf("%s has no gated field: its deletion needs no receipt", o.Subject.Short())
		}
		gone := *o
		covers := s.covers(o, e, true)
		gone.Projection = o.Projection.Empty()
		if len(covers) == 0 {
			return nil, fmt.Errorf("issuer %s may sign nothing of %s", s.Issuer, o.Subject.Short())
		}
		digest, err := gone.Projection.Digest(covers)
		if err != nil {
			return nil, fmt.Errorf("digesting %s: %w", o.Subject, err)
		}
		out = append(out, Draft{Object: &gone, Claims: s.claims(&gone, covers, digest), First: true})
	}
	return out, nil
}
