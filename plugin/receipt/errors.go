package receipt

import "fmt"

// A Kind says which step of verifying a receipt failed. The steps after the
// signature and the claims (subject, environment, time, revocation) need a
// policy and belong to package gate. The zero value is not a kind.
type Kind string

// The kinds, in the order of the steps (docs/spec/receipt.md, Verifying).
const (
	// Malformed: not of the format of this version, or claims that are not
	// well-formed.
	Malformed Kind = "Malformed"
	// AlgorithmNotAllowed: not in Algorithms, not in the issuer's list, or one
	// that the selected key does not fit.
	AlgorithmNotAllowed Kind = "AlgorithmNotAllowed"
	// IssuerUnknown: the caller knows no issuer of that name.
	IssuerUnknown Kind = "IssuerUnknown"
	// KeyUnknown: the key ID does not select one key of the issuer.
	KeyUnknown Kind = "KeyUnknown"
	// SignatureInvalid: the signature over these bytes is not the key's.
	SignatureInvalid Kind = "SignatureInvalid"
)

// Error is what Verify, VerifyRevocations and ParseUnverified return. Its text
// is one line, quotes what came from the receipt, and never holds the receipt.
type Error struct {
	Kind Kind
	Err  error // what exactly; never nil in an Error of this package
}

// Error returns the text.
func (e *Error) Error() string {
	if e.Err == nil {
		return string(e.Kind)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

func malformed(format string, args ...any) *Error {
	return &Error{Kind: Malformed, Err: fmt.Errorf(format, args...)}
}
