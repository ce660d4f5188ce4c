package receipt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/projection"
)

// RevocationList is the payload of a verified revocation list (a JWS of type
// RevocationsType). Serial is at least 1 and never decreases.
type RevocationList struct {
	Issuer  string       `json:"iss"`
	Issued  int64        `json:"issued"` // seconds since the epoch
	Serial  int64        `json:"serial"`
	Entries []Revocation `json:"entries"`
}

// Revocation takes back exactly one of: a receipt by nonce, every receipt of
// a key, every receipt of a release, every object whose image leaves hold an
// image digest, or what a floor says.
type Revocation struct {
	ID      string `json:"jti,omitempty"`
	KeyID   string `json:"kid,omitempty"`
	Release string `json:"release,omitempty"`
	Image   string `json:"image,omitempty"` // sha256:...
	Floor   *Floor `json:"floor,omitempty"`
}

// Floor takes back the receipts for matching subjects that were issued before
// a time. An empty member matches everything.
type Floor struct {
	Subject      string `json:"sub,omitempty"` // glob
	Environment  string `json:"environment,omitempty"`
	Category     string `json:"category,omitempty"`
	IssuedBefore int64  `json:"issuedBefore"`
}

// VerifyRevocations verifies a compact revocation list of at most
// MaxRevocationsSize bytes, in the same order as Verify. issuer must know only
// the issuers that policy names for revocation lists: the signature of any
// other receipt issuer must not do. The error is an *Error.
//
// Whether the serial decreased, and whether the list is stale, is for the
// caller to judge.
func VerifyRevocations(compact string, issuer func(name string) (Issuer, bool)) (RevocationList, error) {
	e, failure := openEnvelope(compact, RevocationsType, MaxRevocationsSize)
	if failure != nil {
		return RevocationList{}, failure
	}
	var list RevocationList
	err := jcs.Strict(e.payload, &list)
	if err != nil {
		return RevocationList{}, malformed("payload: %w", err)
	}
	if list.Issuer == "" {
		return RevocationList{}, malformed("payload: iss: empty")
	}
	failure = e.allowed()
	if failure != nil {
		return RevocationList{}, failure
	}
	_, failure = e.verify(list.Issuer, issuer)
	if failure != nil {
		return RevocationList{}, failure
	}
	err = list.validate()
	if err != nil {
		return RevocationList{}, malformed("payload: %w", err)
	}
	return list, nil
}

// validate refuses an entry that could never match what it was meant for: it
// would revoke nothing and nobody would notice.
func (l RevocationList) validate() error {
	var errs []error
	check := func(member string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", member, err))
		}
	}
	check("iss", checkText(l.Issuer, maxName))
	check("issued", checkTime(l.Issued))
	if l.Serial < 1 {
		check("serial", fmt.Errorf("got %d, want at least 1", l.Serial))
	}
	if l.Entries == nil {
		check("entries", errors.New("missing"))
	}
	for i, entry := range l.Entries {
		check(fmt.Sprintf("entries[%d]", i), entry.validate())
	}
	if len(errs) > 5 {
		errs = append(errs[:5:5], fmt.Errorf("and %d more", len(errs)-5))
	}
	return joined(errs)
}

func (r Revocation) validate() error {
	var kinds []string
	var err error
	if r.ID != "" {
		kinds = append(kinds, "jti")
		err = checkNonce(r.ID)
	}
	if r.KeyID != "" {
		kinds = append(kinds, "kid")
		err = checkText(r.KeyID, maxName)
	}
	if r.Release != "" {
		kinds = append(kinds, "release")
		err = checkText(r.Release, maxText)
	}
	if r.Image != "" {
		kinds = append(kinds, "image")
		err = checkDigest(r.Image)
	}
	if r.Floor != nil {
		kinds = append(kinds, "floor")
		err = r.Floor.validate()
	}
	if len(kinds) != 1 {
		return fmt.Errorf("got %q, want exactly one of jti, kid, release, image, floor", kinds)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", kinds[0], err)
	}
	return nil
}

func (f Floor) validate() error {
	if f.Subject != "" {
		err := checkText(f.Subject, maxText)
		if err != nil {
			return fmt.Errorf("sub: %w", err)
		}
		// '*' never crosses a '/', so a pattern of another shape matches no
		// subject.
		parts := strings.Split(f.Subject, "/")
		for _, p := range parts {
			if p == "" || len(parts) != 4 {
				return fmt.Errorf("sub: got %.80q, want group/Kind/namespace/name, each with '*' for any run", f.Subject)
			}
		}
	}
	if f.Environment != "" {
		err := checkText(f.Environment, maxName)
		if err != nil {
			return fmt.Errorf("environment: %w", err)
		}
	}
	if f.Category != "" && !projection.Category(f.Category).Valid() {
		return fmt.Errorf("category: %.80q is not a category", f.Category)
	}
	err := checkTime(f.IssuedBefore)
	if err != nil {
		return fmt.Errorf("issuedBefore: %w", err)
	}
	return nil
}
