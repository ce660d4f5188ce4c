package receipt

import (
	"maps"
	"slices"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
)

// Limits on what is read and verified for one object. Kubernetes objects hold
// 256 KiB of annotations, client-side apply stores them twice and ReplicaSets
// inherit them, so 64 KiB of receipts is what fits beside everything else.
const (
	// MaxSize bounds one receipt, in bytes.
	MaxSize = 16 << 10
	// MaxPerObject bounds the receipts of one object.
	MaxPerObject = 16
	// MaxBytesPerObject bounds the receipts of one object together, in bytes.
	MaxBytesPerObject = 64 << 10
	// MaxRevocationsSize bounds a revocation list, in bytes: some ten thousand
	// entries.
	MaxRevocationsSize = 1 << 20
)

// The typ values of protected headers.
const (
	Type            = "syncgate-receipt+jwt"
	RevocationsType = "syncgate-revocations+jwt"
)

// Verified is a receipt whose signature is that of a known key of a known
// issuer and whose claims are well-formed. It says nothing about whether the
// issuer may sign this, for which object, or when: package gate does. Only
// Verify makes one that holds anything; the zero value has no claims.
type Verified struct {
	claims    Claims
	key       Key
	algorithm string
}

// Claims returns the verified claims. They are the caller's to change.
func (v Verified) Claims() Claims {
	c := v.claims
	c.Covers = slices.Clone(c.Covers)
	c.Leaves = maps.Clone(c.Leaves)
	return c
}

// KeyID returns the ID of the key that signed.
func (v Verified) KeyID() string { return v.key.ID }

// Algorithm returns the algorithm of the signature, one of Algorithms.
func (v Verified) Algorithm() string { return v.algorithm }

// Thumbprint returns the RFC 7638 thumbprint of the key that signed, as the
// issuer's key set has it.
func (v Verified) Thumbprint() string { return v.key.Thumbprint }

// Verify verifies a compact receipt, in the order of docs/spec/receipt.md up
// to "claims well-formed". issuer returns an issuer by name; it is called with
// a name that is not verified yet and must have no side effect that matters.
//
// The error is an *Error, and the Verified is then the zero value.
func Verify(compact string, issuer func(name string) (Issuer, bool)) (Verified, error) {
	e, failure := openEnvelope(compact, Type, MaxSize)
	if failure != nil {
		return Verified{}, failure
	}
	claims, failure := e.claims()
	if failure != nil {
		return Verified{}, failure
	}
	failure = e.allowed()
	if failure != nil {
		return Verified{}, failure
	}
	key, failure := e.verify(claims.Issuer, issuer)
	if failure != nil {
		return Verified{}, failure
	}
	err := claims.Validate()
	if err != nil {
		return Verified{}, malformed("claims: %w", err)
	}
	return Verified{claims: claims, key: key, algorithm: e.header.Algorithm}, nil
}

// claims decodes the payload, once: what Verify returns are these claims,
// after the signature over the same bytes was found right.
func (e envelope) claims() (Claims, *Error) {
	var c Claims
	err := jcs.Strict(e.payload, &c)
	if err != nil {
		return Claims{}, malformed("payload: %w", err)
	}
	if c.Issuer == "" {
		return Claims{}, malformed("payload: iss: empty")
	}
	return c, nil
}

// Unverified is a receipt that anybody may have written: for display and for
// selecting what to verify, never for a decision. Its claims need not be
// well-formed.
type Unverified struct {
	Claims           Claims
	KeyID, Algorithm string
}

// ParseUnverified reads a compact receipt without verifying it: size, shape,
// typ, and the names and types of the claims. The error is an *Error of the
// kind Malformed.
func ParseUnverified(compact string) (Unverified, error) {
	e, failure := openEnvelope(compact, Type, MaxSize)
	if failure != nil {
		return Unverified{}, failure
	}
	claims, failure := e.claims()
	if failure != nil {
		return Unverified{}, failure
	}
	return Unverified{Claims: claims, KeyID: e.header.KeyID, Algorithm: e.header.Algorithm}, nil
}
