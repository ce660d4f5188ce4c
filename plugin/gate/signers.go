package gate

import (
	"slices"
	"sort"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Signers returns the issuers, sorted, whose receipts count for a category of
// a subject, and how many distinct ones it takes. harmless says that the
// category has no leaf that matters: then any issuer of the subject will do.
// Break-glass issuers are left out: they are not who to ask.
func (r *Rules) Signers(s receipt.Subject, c projection.Category, harmless bool) (names []string, threshold int) {
	threshold = 1
	if !harmless {
		for _, q := range r.Requirements {
			if slices.Contains(q.Categories, c) {
				threshold = max(threshold, q.Threshold)
			}
		}
	}
	for name, is := range r.Issuers {
		switch {
		case is.BreakGlass,
			!is.AllSubjects && !matches(is.Subjects, s.String()),
			len(is.Environments) > 0 && !slices.Contains(is.Environments, r.Environment) && !intersects(is.Environments, r.Accepts),
			!harmless && len(is.Categories) > 0 && !slices.Contains(is.Categories, c),
			!harmless && r.excludes(name, c):
			continue
		}
		names = append(names, name)
	}
	sort.Strings(names)
	return names, threshold
}

// excludes reports whether a requirement leaves an issuer out of a category.
func (r *Rules) excludes(issuer string, c projection.Category) bool {
	for _, q := range r.Requirements {
		if slices.Contains(q.Categories, c) && !slices.Contains(q.Issuers, issuer) {
			return true
		}
	}
	return false
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}
