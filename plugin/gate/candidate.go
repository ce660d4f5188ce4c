package gate

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// leeway is how far clocks may differ, in seconds (docs/spec/receipt.md).
const leeway = 60

// Steps of verifying, in the order of docs/spec/receipt.md. The furthest step
// that a receipt came to says most about what is wrong.
const (
	stepShape = iota
	stepAlgorithm
	stepIssuer
	stepKey
	stepSignature
	stepAllowed
	stepSubject
	stepEnvironment
	stepProfile
	stepCovers
	stepDigest
	stepTime
	stepRetired
	stepRevoked
	stepUnread // not looked at: whatever else is said of the object, say this
)

// candidate is one receipt and how far it came.
type candidate struct {
	claims     receipt.Claims
	keyID      string
	thumbprint string
	issuer     Issuer
	problem    *Finding // nil: good for this object and time
	step       int      // where it failed
	lapsed     bool     // right in every way but time, revocation, retired key or stale list
	graced     bool     // expired, and counts all the same: Request.Grace
	used       []projection.Category
}

func (c *candidate) covers(cat projection.Category) bool {
	return slices.Contains(c.claims.Covers, string(cat))
}

// judge verifies the receipts one by one. More than fit on an object are not
// looked at: the rest count as one that is malformed.
func (e *evaluation) judge() {
	total := 0
	for i, compact := range e.Receipts {
		total += len(compact)
		if i >= receipt.MaxPerObject || total > receipt.MaxBytesPerObject {
			e.candidates = append(e.candidates, candidate{step: stepUnread, problem: &Finding{Reason: ReceiptMalformed,
				Text: fmt.Sprintf("more than %d receipts or %d KiB on one object", receipt.MaxPerObject, receipt.MaxBytesPerObject>>10)}})
			return
		}
		e.candidates = append(e.candidates, e.verify(compact))
	}
}

func (e *evaluation) verify(compact string) candidate {
	v, err := receipt.Verify(compact, func(name string) (receipt.Issuer, bool) {
		is, ok := e.Rules.Issuers[name]
		return is.Issuer, ok
	})
	if err != nil {
		return e.unverified(compact, err)
	}
	c := candidate{claims: v.Claims(), keyID: v.KeyID(), thumbprint: v.Thumbprint()}
	c.issuer = e.Rules.Issuers[c.claims.Issuer]
	for _, check := range []func(*candidate) *Finding{
		e.checkIssuer, e.checkSubject, e.checkEnvironment, checkProfile, e.checkCovers, e.checkDigest,
		e.checkTime, checkRetired, e.checkRevoked,
	} {
		if f := check(&c); f != nil {
			f.Receipt = c.claims.ID
			c.problem = f
			break
		}
	}
	return c
}

var kinds = map[receipt.Kind]struct {
	reason Reason
	step   int
}{
	receipt.Malformed:           {ReceiptMalformed, stepShape},
	receipt.AlgorithmNotAllowed: {AlgorithmNotAllowed, stepAlgorithm},
	receipt.IssuerUnknown:       {IssuerUnknown, stepIssuer},
	receipt.KeyUnknown:          {KeyUnknown, stepKey},
	receipt.SignatureInvalid:    {SignatureInvalid, stepSignature},
}

func (e *evaluation) unverified(compact string, err error) candidate {
	k := kinds[receipt.Malformed]
	var failure *receipt.Error
	if errors.As(err, &failure) {
		if known, ok := kinds[failure.Kind]; ok {
			k = known
		}
	}
	name := "receipt"
	if u, uerr := receipt.ParseUnverified(compact); uerr == nil && u.Claims.ID != "" {
		name = "receipt " + clip(u.Claims.ID, 40)
	}
	return candidate{step: k.step, problem: &Finding{Reason: k.reason, Text: name + ": " + clip(err.Error(), 200)}}
}

func (e *evaluation) checkIssuer(c *candidate) *Finding {
	c.step = stepAllowed
	if !c.issuer.AllSubjects && !matches(c.issuer.Subjects, c.claims.Subject) {
		return c.finding(IssuerNotAllowed, "issuer %s may not sign %s", c.claims.Issuer, c.claims.Subject)
	}
	if len(c.issuer.Environments) > 0 && !slices.Contains(c.issuer.Environments, c.claims.Environment) {
		return c.finding(IssuerNotAllowed, "issuer %s may not sign for environment %s", c.claims.Issuer, c.claims.Environment)
	}
	if c.issuer.MaxLifetime > 0 && c.claims.Expires-c.claims.IssuedAt > c.issuer.MaxLifetime {
		return c.finding(IssuerNotAllowed, "issuer %s may sign for at most %d days", c.claims.Issuer, c.issuer.MaxLifetime/86400)
	}
	return nil
}

func matches(globs []Glob, s string) bool {
	for _, g := range globs {
		if g.Match(s) {
			return true
		}
	}
	return false
}

func (e *evaluation) checkSubject(c *candidate) *Finding {
	c.step = stepSubject
	if c.claims.Generated {
		want := e.Subject
		want.Name, want.Generated = e.GenerateName, false
		if e.GenerateName != "" && c.claims.Subject == want.String() &&
			(e.Subject.Generated || strings.HasPrefix(e.Subject.Name, e.GenerateName)) {
			return nil
		}
	} else if !e.Subject.Generated && c.claims.Subject == e.Subject.String() {
		return nil
	}
	return c.finding(SubjectMismatch, "is for %s", c.claims.Subject)
}

func (e *evaluation) checkEnvironment(c *candidate) *Finding {
	c.step = stepEnvironment
	if c.claims.Environment == e.Rules.Environment || slices.Contains(e.Rules.Accepts, c.claims.Environment) {
		return nil
	}
	return c.finding(EnvironmentMismatch, "is for environment %s, this is %s", c.claims.Environment, e.Rules.Environment)
}

func checkProfile(c *candidate) *Finding {
	c.step = stepProfile
	if c.claims.Profile == projection.Profile {
		return nil
	}
	return c.finding(ProfileUnsupported, "has gated-fields profile %s, this version knows %s", clip(c.claims.Profile, 20), projection.Profile)
}

func (e *evaluation) checkCovers(c *candidate) *Finding {
	c.step = stepCovers
	for _, cat := range c.claims.Covers {
		if !slices.Contains(e.Object.Applies(), projection.Category(cat)) {
			return c.finding(CategoryNotCovered, "covers %s, which does not apply to a %s", cat, e.Subject.Kind)
		}
	}
	return nil
}

func (e *evaluation) checkDigest(c *candidate) *Finding {
	c.step = stepDigest
	covers := make([]projection.Category, 0, len(c.claims.Covers))
	for _, cat := range c.claims.Covers {
		covers = append(covers, projection.Category(cat))
	}
	digest, err := e.Object.Digest(covers)
	if err != nil {
		return c.finding(CategoryNotCovered, "%v", err)
	}
	if digest == c.claims.Digest {
		return nil
	}
	if f := e.defaulted(c, covers); f != nil {
		return f
	}
	path, text := e.mismatch(covers, c.claims.Leaves)
	return &Finding{Reason: DigestMismatch, Path: path,
		Text: fmt.Sprintf(text, fmt.Sprintf("receipt %s (issuer %s)", c.claims.ID, c.claims.Issuer))}
}

func (e *evaluation) checkTime(c *candidate) *Finding {
	c.step = stepTime
	switch {
	case c.claims.IssuedAt > e.Now+leeway:
		return c.finding(ReceiptNotYetValid, "is issued at %s", utc(c.claims.IssuedAt))
	case c.claims.NotBefore > e.Now+leeway:
		return c.finding(ReceiptNotYetValid, "is valid from %s", utc(c.claims.NotBefore))
	case c.claims.Expires <= e.Now-leeway && !c.issuer.BreakGlass && c.claims.Expires > e.Now-leeway-e.Grace:
		c.graced = true
	case c.claims.Expires <= e.Now-leeway:
		c.lapsed = true
		return c.finding(ReceiptExpired, "expired at %s", utc(c.claims.Expires))
	case !c.issuer.BreakGlass && e.Rules.MinRemaining > 0 && c.claims.Expires-e.Now < e.Rules.MinRemaining:
		// A break-glass receipt is short on purpose: with this it would never count.
		c.lapsed = true
		return c.finding(ReceiptExpired, "expires at %s, sooner than this gate's minRemaining allows", utc(c.claims.Expires))
	}
	return nil
}

func checkRetired(c *candidate) *Finding {
	c.step = stepRetired
	if !c.issuer.Retired[c.keyID] {
		return nil
	}
	c.lapsed = true
	return c.finding(KeyRetired, "is signed with key %s, which is retired", clip(c.keyID, 60))
}

func (e *evaluation) checkRevoked(c *candidate) *Finding {
	c.step = stepRevoked
	r := e.Rules.Revocations
	if r == nil {
		return nil
	}
	c.lapsed = true
	if r.StaleAt != 0 && e.Now >= r.StaleAt {
		return c.finding(RevocationListStale, "cannot be checked: the revocation list is stale since %s", utc(r.StaleAt))
	}
	for _, entry := range r.List.Entries {
		if why := e.revokes(entry, c); why != "" {
			return c.finding(ReceiptRevoked, "is revoked (%s)", why)
		}
	}
	c.lapsed = false
	return nil
}

// revokes says how an entry takes a receipt back, or "".
func (e *evaluation) revokes(r receipt.Revocation, c *candidate) string {
	switch {
	case r.ID != "" && r.ID == c.claims.ID:
		return "by nonce"
	case r.KeyID != "" && r.KeyID == c.keyID:
		return "key " + clip(r.KeyID, 60)
	case r.Release != "" && r.Release == c.claims.Release:
		return "release " + clip(r.Release, 60)
	case r.Image != "" && e.runs(r.Image):
		return "image " + r.Image
	case r.Floor != nil && e.below(r.Floor, c):
		return "issued before " + utc(r.Floor.IssuedBefore)
	}
	return ""
}

func (e *evaluation) runs(digest string) bool {
	for _, l := range e.Object.Images() {
		if ref, ok := l.Value.(string); ok && strings.HasSuffix(ref, "@"+digest) {
			return true
		}
	}
	return false
}

func (e *evaluation) below(f *receipt.Floor, c *candidate) bool {
	return c.claims.IssuedAt < f.IssuedBefore &&
		(f.Subject == "" || Glob(f.Subject).Match(c.claims.Subject)) &&
		(f.Environment == "" || f.Environment == c.claims.Environment) &&
		(f.Category == "" || slices.Contains(c.claims.Covers, f.Category))
}

func (c *candidate) finding(r Reason, format string, args ...any) *Finding {
	who := fmt.Sprintf("receipt %s (issuer %s) ", c.claims.ID, c.claims.Issuer)
	if r == IssuerNotAllowed {
		who = fmt.Sprintf("receipt %s: ", c.claims.ID)
	}
	return &Finding{Reason: r, Text: who + fmt.Sprintf(format, args...)}
}

// mismatch explains a digest that differs. With leaf hashes in the receipt it
// names the fields that moved; without, the categories. The returned text has
// one %s for the receipt.
func (e *evaluation) mismatch(covers []projection.Category, signed map[string]string) (path, text string) {
	if len(signed) == 0 {
		names := make([]string, len(covers))
		for i, c := range covers {
			names[i] = string(c)
		}
		sort.Strings(names)
		return "", "something in " + strings.Join(names, ", ") + " differs from what %s was signed for; it has no leaf hashes to say what"
	}
	return firstMoved(e.touchedFirst(moved(e.Object, covers, signed)))
}
