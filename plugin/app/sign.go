package app

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Signing says who signs what, and for how long.
type Signing struct {
	Issuer      string
	Environment string
	Now         int64
	Lifetime    int64 // seconds
	RenewWithin int64 // seconds: a receipt with less left than this is made anew
	Release     string
	Approver    string
	RenewOnly   bool                  // only what was signed already and is unchanged
	NoLeaves    bool                  // leave the leaf hashes out
	Covers      []projection.Category // nil: what the issuer may sign
	Signer      receipt.Signer
	Policy      *policy.Effective // if given, what it would not count is not written
}

// Draft is one receipt to be made.
type Draft struct {
	Object  *Object
	Claims  receipt.Claims
	Changes []gate.Moved // against the last receipt, if it has leaf hashes
	First   bool         // there is no last receipt
	Renewal bool         // nothing gated changed; the last receipt runs out, or is no good
}

// maxLeafBytes bounds the leaf hashes of one receipt, so that it stays within
// receipt.MaxSize.
const maxLeafBytes = 8 << 10

// Drafts lists the receipts that are missing: for every object that needs one
// from this issuer, unless the lock already has one that says the same, is
// verified by the signer's key and lasts. Signing again what is signed drafts
// nothing.
func (b *Build) Drafts(s Signing, e policy.Effective) ([]Draft, error) {
	var out []Draft
	for _, o := range b.Objects {
		old, have := b.last(s, o)
		if !e.Rules.Gates(o.Projection) && !have {
			continue
		}
		covers := s.covers(o, e, have)
		if len(covers) == 0 {
			continue
		}
		digest, err := o.Projection.Digest(covers)
		if err != nil {
			return nil, fmt.Errorf("digesting %s: %w", o.Subject, err)
		}
		claims := s.claims(o, covers, digest)
		same := have && old.Digest == digest && slices.Equal(old.Covers, claims.Covers) && old.Profile == claims.Profile
		if same && old.Expires-s.Now > s.RenewWithin && b.counts(s, o, e) {
			continue
		}
		if s.RenewOnly && !same {
			continue // a change, which a person must look at
		}
		d := Draft{Object: o, Claims: claims, First: !have, Renewal: same}
		if have && !same {
			d.Changes = movedSince(old, o.Projection)
		}
		out = append(out, d)
	}
	return out, nil
}

// entry finds the last receipt of the signing issuer and environment: in the
// lock, else on the object itself.
func (b *Build) entry(s Signing, o *Object) (lock.Entry, bool) {
	if b.Lock != nil {
		for _, x := range b.Lock.Receipts(s.Environment, o.Subject) {
			if x.Issuer == s.Issuer && !x.Previous {
				return x, true
			}
		}
	}
	for _, x := range o.Receipts {
		u, err := receipt.ParseUnverified(x)
		if err == nil && u.Claims.Issuer == s.Issuer && u.Claims.Environment == s.Environment {
			return lock.Entry{Receipt: x}, true
		}
	}
	return lock.Entry{}, false
}

func (b *Build) last(s Signing, o *Object) (receipt.Claims, bool) {
	x, ok := b.entry(s, o)
	if !ok {
		return receipt.Claims{}, false
	}
	u, err := receipt.ParseUnverified(x.Receipt)
	return u.Claims, err == nil
}

// counts reports whether the lock's receipt is one that the gate would accept:
// by policy, if it knows the issuer, so that what is revoked or retired is made
// anew, and else by the signer's key.
func (b *Build) counts(s Signing, o *Object, e policy.Effective) bool {
	if !b.verifies(s, o) {
		return false
	}
	if _, known := e.Rules.Issuers[s.Issuer]; !known {
		return true
	}
	x, _ := b.entry(s, o)
	d := gate.Evaluate(gate.Request{
		Rules: &e.Rules, Subject: o.Subject, GenerateName: o.generate,
		Object: o.Projection, Receipts: []string{x.Receipt}, Now: s.Now,
	})
	return len(d.Ignored) == 0
}

// verifies reports whether the lock's receipt is of the key that signs now. A
// signer that does not tell its key is taken at its key ID.
func (b *Build) verifies(s Signing, o *Object) bool {
	x, ok := b.entry(s, o)
	if !ok {
		return false
	}
	holder, ok := s.Signer.(interface{ Key() receipt.Key })
	if !ok {
		u, err := receipt.ParseUnverified(x.Receipt)
		return err == nil && u.KeyID == s.Signer.KeyID()
	}
	_, err := receipt.Verify(x.Receipt, func(name string) (receipt.Issuer, bool) {
		return receipt.Issuer{Name: s.Issuer, Keys: []receipt.Key{holder.Key()}}, name == s.Issuer
	})
	return err == nil
}

// covers is what the receipt answers for: what was asked for, or every
// category that applies except those with leaves that this issuer may not
// sign, or leaves to another. An empty category may be covered by anybody;
// where there is nothing else, and signed says that nothing was signed before,
// nothing is.
func (s Signing) covers(o *Object, e policy.Effective, signed bool) []projection.Category {
	var out []projection.Category
	is, known := e.Rules.Issuers[s.Issuer]
	choose := s.Covers == nil && known && !is.BreakGlass
	left, own := false, false // categories with leaves
	for _, c := range o.Projection.Applies() {
		empty := o.Projection.Harmless(c)
		switch {
		case s.Covers != nil && !slices.Contains(s.Covers, c):
		case choose && !empty && !maySign(is, c, e.Rules.Requirements):
		case choose && !empty && leftToOthers(s.Issuer, o.Subject, c, &e.Rules):
			left = true
		default:
			out = append(out, c)
			own = own || !empty
		}
	}
	if left && !own && !signed {
		return nil
	}
	return out
}

// leftToOthers reports whether an issuer that policy's requirements name, as
// they do a security team, leaves a category to the one that signs every day:
// else each of its changes would need both.
func leftToOthers(issuer string, subject receipt.Subject, c projection.Category, rules *gate.Rules) bool {
	special := map[string]bool{}
	for _, r := range rules.Requirements {
		if slices.Contains(r.Categories, c) {
			return false
		}
		for _, name := range r.Issuers {
			special[name] = true
		}
	}
	signers, _ := rules.Signers(subject, c, false)
	return special[issuer] && slices.ContainsFunc(signers, func(name string) bool { return !special[name] })
}

func maySign(is gate.Issuer, c projection.Category, requirements []gate.Requirement) bool {
	if len(is.Categories) > 0 && !slices.Contains(is.Categories, c) {
		return false
	}
	for _, r := range requirements {
		if slices.Contains(r.Categories, c) && !slices.Contains(r.Issuers, is.Name) {
			return false
		}
	}
	return true
}

func (s Signing) claims(o *Object, covers []projection.Category, digest string) receipt.Claims {
	c := receipt.Claims{
		Issuer: s.Issuer, Subject: o.Subject.String(), Generated: o.Subject.Generated,
		Environment: s.Environment, Profile: projection.Profile, Digest: digest,
		IssuedAt: s.Now, Expires: s.Now + s.Lifetime, ID: nonce(), Release: s.Release, Approver: s.Approver,
	}
	for _, x := range covers {
		c.Covers = append(c.Covers, string(x))
	}
	if s.NoLeaves {
		return c
	}
	size := 0
	leaves := map[string]string{}
	for _, x := range covers {
		for _, l := range o.Projection.In(x) {
			k := gate.LeafKey(l)
			leaves[k] = l.ShortHash()
			size += len(k) + 16
		}
	}
	if size <= maxLeafBytes && len(leaves) > 0 {
		c.Leaves = leaves
	}
	return c
}

// nonce returns 128 random bits in base64url. crypto/rand never fails: it ends
// the process instead.
func nonce() string {
	b := make([]byte, 16)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

func movedSince(old receipt.Claims, p *projection.Projection) []gate.Moved {
	if len(old.Leaves) == 0 {
		return nil
	}
	return gate.MovedSince(p, old.Covers, old.Leaves)
}

// Sign makes the receipts of the drafts, in their order.
func Sign(drafts []Draft, s Signing) ([]string, error) {
	out := make([]string, len(drafts))
	for i, d := range drafts {
		compact, err := receipt.Sign(d.Claims, s.Signer)
		if err != nil {
			return nil, fmt.Errorf("signing %s: %w", d.Object.Subject, err)
		}
		out[i] = compact
	}
	return out, nil
}

// Refused says which of the receipts that were just made the policy would not
// count, and why: a key that it does not know for this issuer, an image that is
// revoked. Signing them would only move the refusal to the cluster.
func Refused(drafts []Draft, receipts []string, s Signing) error {
	if s.Policy == nil {
		return nil
	}
	for i, d := range drafts {
		v := gate.Evaluate(gate.Request{
			Rules: &s.Policy.Rules, Subject: d.Object.Subject, GenerateName: d.Object.generate,
			Object: d.Object.Projection, Receipts: receipts[i : i+1], Now: s.Now, Held: true,
		})
		for _, f := range v.Ignored {
			return fmt.Errorf("nothing is signed: the policy would not count the receipt of %s: [%s] %s", d.Object.Subject.Short(), f.Reason, f.Text)
		}
	}
	return nil
}

// Write signs the drafts and saves them in the lock, with what the render
// depended on. Nothing is written unless every receipt could be made.
func (b *Build) Write(drafts []Draft, s Signing) error {
	receipts, err := Sign(drafts, s)
	if err != nil {
		return err
	}
	if err := Refused(drafts, receipts, s); err != nil {
		return err
	}
	for i, d := range drafts {
		err := b.Lock.PutReceipt(lock.Entry{
			Environment: s.Environment, Subject: d.Object.Subject, Issuer: s.Issuer,
			Comment: Comment(d.Claims, d.Object.Subject, d.Object.Projection), Receipt: receipts[i],
		})
		if err != nil {
			return fmt.Errorf("locking the receipt of %s: %w", d.Object.Subject, err)
		}
	}
	if err := b.Lock.Save(); err != nil {
		return err
	}
	return b.writeInputs(b.dir)
}

// Prune drops the lock's receipts of the signing issuer and environment for
// subjects that the application no longer has: an object that comes back must
// be approved again. It returns how many.
func (b *Build) Prune(s Signing) int {
	there := map[string]bool{}
	for _, o := range b.Objects {
		there[o.Subject.String()] = true
	}
	return b.Lock.Remove(func(e lock.Entry) bool {
		return e.Issuer == s.Issuer && e.Environment == s.Environment && !there[e.Subject.String()]
	})
}

// Replace returns the receipts of an object with those of the signing issuer
// and environment taken out and one put in: what an annotation holds is for all
// environments and issuers.
func Replace(have []string, s Signing, compact string) []string {
	out := []string{compact}
	for _, x := range have {
		u, err := receipt.ParseUnverified(x)
		if err == nil && u.Claims.Issuer == s.Issuer && u.Claims.Environment == s.Environment {
			continue
		}
		out = append(out, x)
	}
	return out
}
