package gate

import (
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Rules are what an operator decided, as data: which issuers may sign what,
// what must be signed, and what has been revoked. Package policy makes them
// from a GatePolicy file. The zero value trusts nobody and requires every
// category, so that it refuses whatever is gated.
type Rules struct {
	// Environment is the one that this gate stands for. Accepts are further
	// environment names whose receipts are good here too.
	Environment string
	Accepts     []string

	// Issuers by name.
	Issuers map[string]Issuer

	// Required categories. Nil means all built-in ones but service.
	Required []Required

	// Requirements narrow who may sign a category, and how many must.
	Requirements []Requirement

	// Expired says what becomes of a category whose receipt is right in every
	// way but time, revocation, retired key, stale list or a category that is
	// required only now. The zero value refuses.
	Expired ExpiredMode

	// MinRemaining is the time, in seconds, that a receipt must still have to
	// count at render (so that a cached render cannot outlive its receipt).
	MinRemaining int64

	// AllowUnpinned are image references (globs) that need no digest, such
	// as "auto", which a mesh's injector replaces.
	AllowUnpinned []Glob

	// Revocations is nil when policy names no list.
	Revocations *Revocations
}

// categories returns the required categories, the default ones filled in.
func (r *Rules) categories() []Required {
	if r.Required != nil {
		return r.Required
	}
	var out []Required
	for _, c := range projection.Categories() {
		if c != projection.Service {
			out = append(out, Required{Category: c})
		}
	}
	return out
}

// Gates reports whether an object with this projection needs a receipt: it
// has a leaf in a required category.
func (r *Rules) Gates(p *projection.Projection) bool { return gated(p, r.categories()) }

// Requires reports whether a category must be covered.
func (r *Rules) Requires(c projection.Category) bool {
	for _, q := range r.categories() {
		if q.Category == c {
			return true
		}
	}
	return false
}

// Issuer is one party that signs receipts and what it may sign.
type Issuer struct {
	receipt.Issuer                       // name, algorithms, keys
	Categories     []projection.Category // empty: all
	Subjects       []Glob                // empty: none, unless AllSubjects
	AllSubjects    bool                  // the only issuer of a minimal policy
	Environments   []string              // empty: all that the policy knows
	Retired        map[string]bool       // key IDs judged like expired receipts
	MaxLifetime    int64                 // seconds; bounds exp - iat
	BreakGlass     bool                  // counts for every requirement; loud; never grace
}

// Required is a category that must be covered. Receipts issued before Since
// (seconds since the epoch, 0: always required) need not cover it.
type Required struct {
	Category projection.Category
	Since    int64
}

// Requirement says that, for these categories, only these issuers count, and
// how many distinct ones (by name, key thumbprint and approver) it takes.
type Requirement struct {
	Categories []projection.Category
	Issuers    []string
	Threshold  int // at least 1
}

// Revocations is a verified revocation list. StaleAt is the time, in seconds
// since the epoch, from which changes are refused because no newer list came
// (0: never).
type Revocations struct {
	List    receipt.RevocationList
	StaleAt int64
}

// ExpiredMode is what a front end does with a receipt that was right once.
type ExpiredMode int

const (
	// RefuseExpired refuses, changed or not.
	RefuseExpired ExpiredMode = iota
	// LeaveToAdmission lets render pass: the webhook, which sees the old
	// object, decides whether the category changed.
	LeaveToAdmission
	// AllowUnchanged compares with the live object (Request.Old).
	AllowUnchanged
)
