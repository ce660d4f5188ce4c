package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Narrowed reads the files that the policy names again and returns the policy
// with what they take away, and with nothing that they add: for somebody who
// cannot load the newest files as a whole and must not wait for that before a
// stolen key stops counting.
//
// A key counts if it is in the key set of before and in that of now, under the
// same ID; one that is new may be meant for a policy that trusts it with less.
// The revocation list is that of now if a key that is left has signed it and its
// serial is higher. A file that cannot be read or verified, or that is not there,
// changes nothing; the error is [Errors] with one for each. Without any change it
// is the same policy.
func (p *Policy) Narrowed() (*Policy, error) {
	if p.read == nil {
		return p, nil
	}
	n := *p
	n.base.Rules.Issuers = maps.Clone(p.base.Rules.Issuers)
	changed := p.hash
	var errs Errors
	for i, d := range p.issuers {
		left, err := p.keysLeft(d)
		if err != nil {
			errs = append(errs, p.named(item("issuers", i)+".keys.file", d.Keys.File, err))
			continue
		}
		issuer := p.base.Rules.Issuers[d.Name]
		for _, k := range issuer.Keys {
			if !slices.ContainsFunc(left, func(l receipt.Key) bool { return l.ID == k.ID }) {
				changed += "\nkey " + k.ID
			}
		}
		issuer.Keys = left
		n.base.Rules.Issuers[d.Name] = issuer
	}
	if d := p.revocations; d != nil {
		list, err := p.newerList(n.base.Rules.Issuers)
		if err != nil {
			errs = append(errs, p.named("revocations.file", d.File, err))
		} else if list != nil {
			changed += fmt.Sprintf("\nrevocations %d %d", list.List.Serial, list.List.Issued)
			n.base.Rules.Revocations = list
		}
	}
	var err error
	if len(errs) > 0 {
		err = errs.sorted()
	}
	if changed == p.hash {
		return p, err
	}
	// A name of its own: what is in force is in no set of files.
	n.hash, n.rulesHash = hash([]byte("narrowed "+changed)), hash([]byte("narrowed "+p.rulesHash+changed))
	ids := map[string]bool{}
	for _, issuer := range n.base.Rules.Issuers {
		for _, k := range issuer.Keys {
			ids[k.ID] = true
		}
	}
	n.keyIDs = slices.Sorted(maps.Keys(ids))
	return &n, err
}

// keysLeft returns the keys of an issuer that are in its key set now, too.
func (p *Policy) keysLeft(d issuerDoc) ([]receipt.Key, error) {
	data, err := p.read(d.Keys.File)
	if err != nil {
		return nil, fmt.Errorf("reading %.200q: %s", d.Keys.File, cause(err))
	}
	now, err := keys.LoadJWKS(data)
	if err != nil {
		return nil, fmt.Errorf("reading %.200q: %w", d.Keys.File, err)
	}
	var left []receipt.Key
	for _, k := range p.base.Rules.Issuers[d.Name].Keys {
		if slices.ContainsFunc(now, func(n receipt.Key) bool { return n.ID == k.ID && n.Thumbprint == k.Thumbprint }) {
			left = append(left, k)
		}
	}
	return left, nil
}

// newerList returns the revocation list, nil if it is the one of before.
func (p *Policy) newerList(issuers map[string]gate.Issuer) (*gate.Revocations, error) {
	data, err := p.read(p.revocations.File)
	if err != nil {
		return nil, fmt.Errorf("reading %.200q: %s", p.revocations.File, cause(err))
	}
	list, err := p.revocations.verify(data, issuers)
	if err != nil {
		return nil, err
	}
	before := p.base.Rules.Revocations
	switch {
	case before != nil && list.List.Serial < before.List.Serial:
		return nil, fmt.Errorf("%.200q has serial %d, and %d is in force", p.revocations.File, list.List.Serial, before.List.Serial)
	case before != nil && list.List.Serial == before.List.Serial:
		return nil, nil
	}
	return list, nil
}

func (p *Policy) named(path, file string, err error) *Error {
	return &Error{Reason: gate.KeysUnavailable, File: p.file, Line: p.lines[path], Path: path, Named: file, Msg: err.Error()}
}
