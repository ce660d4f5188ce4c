package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
)

// header is the whole protected header: Strict refuses any other member, so
// that no embedded key, URL or critical extension is ever looked at.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// envelope is a JWS that was taken apart and not verified.
type envelope struct {
	compact   string
	header    header
	payload   []byte
	signature []byte
}

// strictBase64 refuses padding and non-zero trailing bits; line breaks, which
// package base64 skips, are refused by openEnvelope.
var strictBase64 = base64.RawURLEncoding.Strict()

// openEnvelope takes the compact form apart: one step, "size and shape; typ".
// One spelling only is accepted, so that a changed byte is a changed receipt.
func openEnvelope(compact, wantType string, limit int) (envelope, *Error) {
	if len(compact) > limit {
		return envelope{}, malformed("%d bytes, want at most %d", len(compact), limit)
	}
	if i := strings.IndexAny(compact, "\r\n"); i >= 0 {
		return envelope{}, malformed("line break at byte %d", i)
	}
	parts := strings.Split(compact, ".")
	if len(parts) != 3 {
		return envelope{}, malformed("got %d parts, want the 3 of a compact JWS", len(parts))
	}
	var decoded [3][]byte
	for i, name := range []string{"header", "payload", "signature"} {
		b, err := strictBase64.DecodeString(parts[i])
		if err != nil {
			return envelope{}, malformed("%s: %w", name, err)
		}
		if len(b) == 0 {
			return envelope{}, malformed("%s: empty", name)
		}
		decoded[i] = b
	}
	var h header
	err := jcs.Strict(decoded[0], &h)
	if err != nil {
		return envelope{}, malformed("header: %w", err)
	}
	if h.Type != wantType {
		return envelope{}, malformed("header: got typ %.80q, want %q", h.Type, wantType)
	}
	err = checkText(h.KeyID, maxName)
	if err != nil {
		return envelope{}, malformed("header: kid: %w", err)
	}
	return envelope{compact: compact, header: h, payload: decoded[1], signature: decoded[2]}, nil
}

// allowed reports whether this version of the format has the algorithm.
func (e envelope) allowed() *Error {
	if !slices.Contains(Algorithms(), e.header.Algorithm) {
		return &Error{Kind: AlgorithmNotAllowed, Err: fmt.Errorf("algorithm %.80q is not one of %q", e.header.Algorithm, Algorithms())}
	}
	return nil
}

// verify goes through the steps from "alg in the issuer's list" to "signature
// over the exact bytes". The name of the issuer, which is not verified yet,
// selects the keys and nothing else.
func (e envelope) verify(name string, issuers func(string) (Issuer, bool)) (Key, *Error) {
	var issuer Issuer
	known := false
	if issuers != nil {
		issuer, known = issuers(name)
	}
	if !known {
		return Key{}, &Error{Kind: IssuerUnknown, Err: fmt.Errorf("issuer %.80q is not known", name)}
	}
	alg := e.header.Algorithm
	if len(issuer.Algorithms) > 0 && !slices.Contains(issuer.Algorithms, alg) {
		return Key{}, &Error{Kind: AlgorithmNotAllowed, Err: fmt.Errorf("algorithm %q is not in the list of issuer %q, %q", alg, name, issuer.Algorithms)}
	}
	key, failure := selectKey(issuer, name, e.header.KeyID)
	if failure != nil {
		return Key{}, failure
	}
	fits, err := algorithmsFor(key.Public)
	if err != nil {
		return Key{}, &Error{Kind: AlgorithmNotAllowed, Err: fmt.Errorf("key %q of issuer %q: %w", key.ID, name, err)}
	}
	if key.Algorithm != "" {
		fits = slices.DeleteFunc(fits, func(a string) bool { return a != key.Algorithm })
	}
	if !slices.Contains(fits, alg) {
		return Key{}, &Error{Kind: AlgorithmNotAllowed, Err: fmt.Errorf("algorithm %q does not fit key %q of issuer %q, which is for %q", alg, key.ID, name, fits)}
	}
	return key, e.verifySignature(key)
}

// selectKey refuses an ID that two keys share: which one was meant would be
// up to their order.
func selectKey(issuer Issuer, name, id string) (Key, *Error) {
	var found []Key
	for _, k := range issuer.Keys {
		if k.ID == id {
			found = append(found, k)
		}
	}
	if len(found) != 1 {
		return Key{}, &Error{Kind: KeyUnknown, Err: fmt.Errorf("key ID %q selects %d keys of issuer %q, want 1", id, len(found), name)}
	}
	return found[0], nil
}

// verifySignature verifies with the one algorithm that was checked against the
// key, and the key itself, so that nothing in the header selects anything. An
// Ed25519 signature is over the bytes before the last '.' as they stand, which is
// all that there is to do; go-jose, which does the rest, would take the compact
// form apart once more and put it together again for that.
func (e envelope) verifySignature(key Key) *Error {
	invalid := &Error{Kind: SignatureInvalid, Err: fmt.Errorf("signature is not that of key %q over these bytes", key.ID)}
	if public, ok := key.Public.(ed25519.PublicKey); ok {
		signed := e.compact[:strings.LastIndexByte(e.compact, '.')]
		if e.header.Algorithm != eddsa || len(public) != ed25519.PublicKeySize || !ed25519.Verify(public, []byte(signed), e.signature) {
			return invalid
		}
		return nil
	}
	jws, err := jose.ParseSignedCompact(e.compact, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(e.header.Algorithm)})
	if err != nil {
		return invalid
	}
	payload, err := jws.Verify(key.Public)
	if err != nil {
		return invalid
	}
	// The claims were read from e.payload. They are the verified ones only if
	// go-jose took the compact form apart in the same way.
	if !bytes.Equal(payload, e.payload) {
		return invalid
	}
	return nil
}
