package app

import (
	"context"
	"errors"

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
