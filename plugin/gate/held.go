package gate

import (
	"slices"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// SignedBefore reports whether one of the receipts that an object carries says
// that it is for it. None of them is verified.
func SignedBefore(s receipt.Subject, receipts []string) bool {
	return slices.ContainsFunc(receipts, func(compact string) bool {
		u, err := receipt.ParseUnverified(compact)
		return err == nil && u.Claims.Subject == s.String()
	})
}

// Held reports whether the receipts of an object without gated leaves are for
// leaves that it had, and whose loss is a change: a namespace's labels, a
// webhook's rules. Some losses only take away and are free: exposure of a
// Service, the type of a Secret, a ServiceAccount's pull secrets and cloud
// identity (docs/spec/gated-fields.md, Removals). It is for Request.Held, where
// no old object is known.
func (r *Rules) Held(s receipt.Subject, object *projection.Projection, receipts []string) bool {
	if len(receipts) == 0 || r.Gates(object) || s.Group == "" && (s.Kind == "Service" || s.Kind == "Secret") {
		return false
	}
	for _, compact := range receipts {
		u, err := receipt.ParseUnverified(compact)
		if err != nil || u.Claims.Environment != r.Environment && !slices.Contains(r.Accepts, u.Claims.Environment) {
			continue
		}
		if s.Group != "" || s.Kind != "ServiceAccount" {
			return true
		}
		if _, token := u.Claims.Leaves[LeafKey(projection.Leaf{Category: projection.Identity, Path: "automountServiceAccountToken"})]; token {
			return true
		}
	}
	return false
}
