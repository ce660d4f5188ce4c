package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// requiredAnywhere are the categories that some application must have signed,
// with the day from which on.
func (v *validator) requiredAnywhere() map[projection.Category]int64 {
	all := maps.Clone(v.required)
	for _, a := range v.doc.Apps {
		for _, d := range a.Categories {
			if _, on := all[projection.Category(d.Name)]; !on && !d.off() {
				all[projection.Category(d.Name)] = d.since()
			}
		}
	}
	return all
}

// everyCategoryCanBeSigned refuses "a requirement no issuer can meet": the
// first change of such a field would be refused for ever. Break-glass is not
// a way to work, so it does not count.
func (v *validator) everyCategoryCanBeSigned(requirements []gate.Requirement) {
	if len(v.errs) > 0 {
		return // would follow from an error that is named already
	}
	all := v.requiredAnywhere()
	everyone := slices.Sorted(maps.Keys(v.issuers))
	// What is missing only because of retired keys is said once for each
	// issuer, not for each category and environment.
	retired := map[string][]string{}
	blame := func(names []string, c projection.Category) {
		for _, name := range names {
			if q := quoted(c); !v.active(name) && !slices.Contains(retired[name], q) {
				retired[name] = append(retired[name], q)
			}
		}
	}
	for _, e := range v.environments {
		var nobody []string
		for _, c := range slices.Sorted(maps.Keys(all)) {
			may := v.signers(everyone, c, e)
			switch {
			case slices.ContainsFunc(may, v.active):
			case len(may) > 0:
				blame(may, c)
			case all[c] > 0:
				nobody = append(nobody, quoted(c)+" (since "+time.Unix(all[c], 0).UTC().Format(time.DateOnly)+")")
			default:
				nobody = append(nobody, quoted(c))
			}
		}
		if len(nobody) > 0 {
			v.fail("issuers", "none may sign the required %s in environment %q", categoriesWord(nobody), e.name)
		}
		for i, r := range requirements {
			for _, c := range r.Categories {
				may := v.signers(r.Issuers, c, e)
				active := slices.DeleteFunc(slices.Clone(may), func(name string) bool { return !v.active(name) })
				switch {
				case len(active) >= r.Threshold:
				case len(may) >= r.Threshold:
					blame(may, c)
				default:
					v.fail(item("requirements", i), "%d of its issuers may sign %q in environment %q, want at least %d", len(active), c, e.name, r.Threshold)
				}
			}
		}
	}
	for i, d := range v.doc.Issuers {
		if list := retired[d.Name]; len(list) > 0 {
			v.fail(item("issuers", i)+".retired", "every key of %q is retired, and without it too few may sign the required %s", d.Name, categoriesWord(list))
		}
	}
}

func quoted(c projection.Category) string { return fmt.Sprintf("%q", string(c)) }

func categoriesWord(list []string) string {
	if len(list) == 1 {
		return "category " + list[0]
	}
	return "categories " + strings.Join(list, ", ")
}

// signers returns the issuers that may sign a category in an environment, with
// a key that is not retired or without.
func (v *validator) signers(names []string, c projection.Category, e environment) []string {
	var out []string
	for _, name := range names {
		i := v.issuers[name]
		if i.BreakGlass || len(i.Categories) > 0 && !slices.Contains(i.Categories, c) {
			continue
		}
		here := len(i.Environments) == 0 || slices.ContainsFunc(i.Environments, func(name string) bool {
			return name == e.name || slices.Contains(e.accepts, name)
		})
		if here {
			out = append(out, name)
		}
	}
	return out
}

// minRemaining refuses a time that no receipt can have left: the receipt would
// count as expired from its first second on. Break-glass is excepted from it.
func (v *validator) minRemaining(base Effective) {
	longest := int64(0)
	for i, d := range v.doc.Issuers {
		issuer, ok := v.issuers[d.Name]
		if !ok || d.BreakGlass {
			continue
		}
		longest = max(longest, issuer.MaxLifetime)
		if base.Rules.MinRemaining >= issuer.MaxLifetime && issuer.MaxLifetime > 0 {
			v.fail("receipts.minRemaining", "%s is not below the maxLifetime of issuers[%d], %s: no receipt of %q would ever count",
				duration(base.Rules.MinRemaining), i, duration(issuer.MaxLifetime), d.Name)
		}
	}
	for i, a := range v.doc.Apps {
		if m := a.Receipts.MinRemaining; m != nil && longest > 0 && int64(*m) >= longest {
			v.fail(item("apps", i)+".receipts.minRemaining", "%s is not below the maxLifetime of any issuer: no receipt would ever count", duration(int64(*m)))
		}
	}
}

// duration is written as a policy does: 24h, not 24h0m0s.
func duration(s int64) string {
	switch {
	case s > 0 && s%3600 == 0:
		return fmt.Sprintf("%dh", s/3600)
	case s > 0 && s%60 == 0:
		return fmt.Sprintf("%dm", s/60)
	}
	return fmt.Sprintf("%ds", s)
}
