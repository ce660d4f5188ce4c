package gate

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// need is what a category takes: who counts, and how many of them.
type need struct {
	category  projection.Category
	empty     bool     // no leaf that matters, old or new: any allowed issuer
	issuers   []string // nil: any whose categories include this one
	threshold int
}

// need reads the requirements for one category of the object at hand.
func (e *evaluation) need(c projection.Category) need {
	n := need{category: c, threshold: 1}
	if e.Object.Harmless(c) && (e.Old == nil || e.Old.Harmless(c)) {
		n.empty = true
		return n
	}
	for _, r := range e.Rules.Requirements {
		if !slices.Contains(r.Categories, c) {
			continue
		}
		if n.issuers == nil {
			n.issuers = append([]string{}, r.Issuers...)
		} else {
			n.issuers = slices.DeleteFunc(n.issuers, func(s string) bool { return !slices.Contains(r.Issuers, s) })
		}
		n.threshold = max(n.threshold, r.Threshold)
	}
	return n
}

// counts reports whether a receipt's issuer may answer for the category.
func (n need) counts(c *candidate) bool {
	switch {
	case !c.covers(n.category):
		return false
	case n.empty, c.issuer.BreakGlass:
		return true
	case len(c.issuer.Categories) > 0 && !slices.Contains(c.issuer.Categories, n.category):
		return false
	}
	return n.issuers == nil || slices.Contains(n.issuers, c.claims.Issuer)
}

// choose returns the indexes of receipts that together meet the need, or nil:
// one break-glass receipt, or threshold receipts that differ pairwise in
// issuer, key and approver.
func (n need) choose(all []candidate, good func(*candidate) bool) []int {
	var usable, glass []int
	for i := range all {
		c := &all[i]
		if c.claims.ID == "" || !good(c) || !n.counts(c) {
			continue
		}
		if c.issuer.BreakGlass {
			glass = append(glass, i)
			continue
		}
		usable = append(usable, i)
	}
	if found := distinct(all, usable, nil, max(n.threshold, 1)); found != nil {
		return found
	}
	if len(glass) > 0 { // loud, so only when nothing else will do
		return glass[:1]
	}
	return nil
}

// distinct searches for k receipts that differ pairwise: at most
// receipt.MaxPerObject of them, so that trying all ways is cheap enough.
func distinct(all []candidate, rest, chosen []int, k int) []int {
	if len(chosen) == k {
		return chosen
	}
	for i, x := range rest {
		if len(rest)-i < k-len(chosen) {
			return nil
		}
		clash := slices.ContainsFunc(chosen, func(y int) bool { return sameParty(&all[x], &all[y]) })
		if clash {
			continue
		}
		if found := distinct(all, rest[i+1:], append(chosen[:len(chosen):len(chosen)], x), k); found != nil {
			return found
		}
	}
	return nil
}

func sameParty(a, b *candidate) bool {
	return a.claims.Issuer == b.claims.Issuer || a.thumbprint == b.thumbprint ||
		a.claims.Approver != "" && a.claims.Approver == b.claims.Approver
}

func (n need) who() string {
	if len(n.issuers) == 0 {
		return "an issuer that policy allows for it"
	}
	return strings.Join(n.issuers, " or ")
}
