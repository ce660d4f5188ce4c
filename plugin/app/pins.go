package app

import (
	"cmp"
	"context"
	"errors"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
)

// pins finds digests in the lock first, and in a registry only if policy
// says so: a render whose result depends on what a registry says today makes
// Argo CD flap.
type pins struct {
	lock     *lock.Lock
	source   policy.PinSource
	registry pin.Resolver
}

var _ pin.Resolver = pins{}

func (p pins) Resolve(ctx context.Context, r pin.Reference) (string, error) {
	if p.source != policy.AlreadyPinned && p.lock != nil {
		if digest, ok := p.lock.Pin(r.Name(), r.LookupTag()); ok {
			return digest, nil
		}
	}
	if p.source == policy.Registry {
		if p.registry == nil {
			return "", errors.Join(pin.ErrUnavailable, errors.New("policy asks the registry, and there is none here"))
		}
		return p.registry.Resolve(ctx, r)
	}
	return "", pin.ErrNotLocked
}

// WithoutTests is the other next step where nothing but a chart's tests is in
// the way.
const WithoutTests = ", or leave the chart's tests out: helm.skipTests in plugin.parameters, --skip-tests on the command line"

// offerWithoutTests adds the other next step to the objects without pins, if all
// of them are a chart's tests: their images are often nobody's to pin, and a
// cluster under Argo CD or Flux seldom runs them.
func (b *Build) offerWithoutTests(e policy.Effective) {
	var unpinned []*Object
	for _, o := range b.Objects {
		if o.Problem == nil || o.Problem.Reason != gate.ImageNotPinned && o.Problem.Reason != gate.ImageUnresolvable {
			continue
		}
		if !o.Test {
			return
		}
		unpinned = append(unpinned, o)
	}
	for _, o := range unpinned {
		o.Problem.Fix = cmp.Or(o.Problem.Fix, e.Fix(o.Problem.Reason)) + WithoutTests
	}
}

func (s Settings) resolver(l *lock.Lock) pin.Resolver {
	return pins{l, s.Effective.Pins, s.Registry}
}

// mayStay says which references need no digest.
func (s Settings) mayStay(l *lock.Lock) func(string) bool {
	return func(ref string) bool {
		for _, g := range s.Effective.Rules.AllowUnpinned {
			if g.Match(ref) {
				return true
			}
		}
		if !s.LeaveUnpinned {
			return false
		}
		r, err := pin.Parse(ref)
		if err != nil {
			return true
		}
		_, err = s.resolver(l).Resolve(context.Background(), r)
		return err != nil
	}
}
