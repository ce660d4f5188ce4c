package policy

import "github.com/syncgate/syncgate/plugin/gate"

// Fix names the next step after a refusal for a reason: the policy's help where
// receipts are missing or wrong, else the command that mends it
// (docs/spec/refusal.md: one way out, and one that the reader can take).
func (e Effective) Fix(reason gate.Reason) string {
	switch reason {
	case gate.ImageNotPinned:
		return "syncgate pin, commit .syncgate"
	case gate.ImageUnresolvable:
		return "syncgate pin where the registry can be reached, commit .syncgate; retrying may help"
	case gate.ProtectedTarget:
		return "move the object to a namespace of its own, or ask who keeps the policy"
	case gate.RevocationListStale: // no signature helps
		return "whoever keeps the revocation list: syncgate revoke --reissue"
	case gate.ForceNotAllowed, gate.ObjectMalformed, gate.DuplicateObject:
		return "change the manifest it names"
	}
	if e.Help != "" {
		return e.Help
	}
	issuer, ordinary := "NAME", 0 // whom to sign as, if there is no choice
	for name, is := range e.Rules.Issuers {
		if !is.BreakGlass {
			issuer, ordinary = name, ordinary+1
		}
	}
	if ordinary != 1 {
		issuer = "NAME"
	}
	return "syncgate sign --key FILE --issuer " + issuer + " --environment " + e.Rules.Environment + ", commit .syncgate"
}
