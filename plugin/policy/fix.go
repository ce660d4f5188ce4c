package policy

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Lack is one finding about an object, for [Effective.Fix] to say whose
// signature would mend it. Old is what the object replaces, nil if that is not
// known.
type Lack struct {
	Subject     receipt.Subject
	Finding     gate.Finding
	Object, Old *projection.Projection
}

// Fix names the next step after a refusal for a reason: the policy's help where
// receipts are missing or wrong, else the command that mends it
// (docs/spec/refusal.md: one way out, and one that the reader can take). Where
// policy has several issuers, lacks tell which of them may sign what is missing.
func (e Effective) Fix(reason gate.Reason, lacks ...Lack) string {
	if fix := withoutSigning(reason); fix != "" {
		return fix
	}
	if e.Help != "" {
		return e.Help
	}
	issuer, note := e.signer(lacks)
	return "syncgate sign --key FILE --issuer " + issuer + " --environment " + e.Rules.Environment + ", commit .syncgate" + note
}

// withoutSigning is the next step where no signature helps.
func withoutSigning(reason gate.Reason) string {
	switch reason {
	case gate.ImageNotPinned:
		return "syncgate pin, commit .syncgate"
	case gate.ImageUnresolvable:
		return "syncgate pin where the registry can be reached, commit .syncgate; retrying may help"
	case gate.ProtectedTarget:
		return "move the object to a namespace of its own, or ask who keeps the policy"
	case gate.RevocationListStale:
		return "whoever keeps the revocation list: syncgate revoke --reissue"
	case gate.ForceNotAllowed, gate.ObjectMalformed, gate.DuplicateObject:
		return "change the manifest it names"
	}
	return ""
}

// signer is whom to sign as: the one that may, or NAME and a note of who may
// sign which category.
func (e Effective) signer(lacks []Lack) (issuer, note string) {
	var ordinary []string
	for name, is := range e.Rules.Issuers {
		if !is.BreakGlass {
			ordinary = append(ordinary, name)
		}
	}
	if len(ordinary) == 1 {
		return ordinary[0], ""
	}
	signs := map[string][]string{} // who, in words -> categories
	for _, l := range lacks {
		if withoutSigning(l.Finding.Reason) != "" {
			continue
		}
		for _, c := range l.Finding.Categories {
			if !l.Object.Has(c) && (l.Old == nil || !l.Old.Has(c)) {
				continue // nothing to ask a particular issuer for
			}
			harmless := l.Object.Harmless(c) && (l.Old == nil || l.Old.Harmless(c))
			who := e.who(e.Rules.Signers(l.Subject, c, harmless))
			if !slices.Contains(signs[who], string(c)) {
				signs[who] = append(signs[who], string(c))
			}
		}
	}
	if len(signs) == 0 {
		return "NAME", ""
	}
	var parts []string
	for who, categories := range signs {
		if _, one := e.Rules.Issuers[who]; one && len(signs) == 1 {
			return who, ""
		}
		sort.Strings(categories)
		parts = append(parts, who+" for "+strings.Join(categories, ", "))
	}
	sort.Strings(parts)
	return "NAME", " (NAME: " + strings.Join(parts, "; ") + ")"
}

// who puts issuers into words. An issuer's own name stands for itself alone.
func (e Effective) who(names []string, threshold int) string {
	switch {
	case len(names) == 0:
		return "nobody whom policy names"
	case threshold > 1:
		return strconv.Itoa(threshold) + " of " + strings.Join(names, ", ")
	}
	return strings.Join(names, " or ")
}
