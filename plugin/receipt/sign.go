package receipt

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
)

// Signer makes signatures with one key, wherever that key is.
type Signer interface {
	// KeyID returns the kid that verifiers select the public key by.
	KeyID() string
	// Algorithm returns one of Algorithms.
	Algorithm() string
	// Sign returns the signature of the JWS signing input as it stands in a
	// JWS: for ECDSA r||s, each as long as the curve's order, not DER.
	Sign(signingInput []byte) ([]byte, error)
}

// Sign validates the claims and returns a compact receipt over their RFC 8785
// bytes. If the signer also has a method Key() Key, the receipt is verified
// with that key before it is returned. It returns an error for claims that are
// not well-formed, for a signer that fails, and for a receipt of more than
// MaxSize bytes.
func Sign(c Claims, s Signer) (string, error) {
	err := c.Validate()
	if err != nil {
		return "", fmt.Errorf("signing receipt: claims: %w", err)
	}
	compact, err := sign(c, Type, MaxSize, s)
	if err != nil {
		return "", fmt.Errorf("signing receipt: %w", err)
	}
	return compact, nil
}

// SignRevocations returns a compact revocation list that issuer signs;
// list.Issuer is overwritten with it. Errors are those of Sign, with
// MaxRevocationsSize for the size.
func SignRevocations(list RevocationList, issuer string, s Signer) (string, error) {
	list.Issuer = issuer
	if list.Entries == nil {
		list.Entries = []Revocation{}
	}
	err := list.validate()
	if err != nil {
		return "", fmt.Errorf("signing revocation list: %w", err)
	}
	compact, err := sign(list, RevocationsType, MaxRevocationsSize, s)
	if err != nil {
		return "", fmt.Errorf("signing revocation list: %w", err)
	}
	return compact, nil
}

func sign(payload any, typ string, limit int, s Signer) (string, error) {
	if s == nil {
		return "", errors.New("no signer")
	}
	if !slices.Contains(Algorithms(), s.Algorithm()) {
		return "", fmt.Errorf("algorithm %q is not one of %q", s.Algorithm(), Algorithms())
	}
	h, err := jcs.Marshal(map[string]any{"alg": s.Algorithm(), "kid": s.KeyID(), "typ": typ})
	if err != nil {
		return "", fmt.Errorf("encoding header: %w", err)
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("encoding payload: %w", err)
	}
	text, err = jcs.Transform(text)
	if err != nil {
		return "", fmt.Errorf("encoding payload: %w", err)
	}
	input := base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(text)
	signature, err := s.Sign([]byte(input))
	if err != nil {
		return "", fmt.Errorf("making signature: %w", err)
	}
	compact := input + "." + base64.RawURLEncoding.EncodeToString(signature)
	e, failure := openEnvelope(compact, typ, limit)
	if failure != nil {
		return "", failure
	}
	holder, ok := s.(interface{ Key() Key })
	if !ok {
		return compact, nil
	}
	if id := holder.Key().ID; id != s.KeyID() {
		return "", fmt.Errorf("signer has the key ID %q and a key with the ID %q", s.KeyID(), id)
	}
	failure = e.verifySignature(holder.Key())
	if failure != nil {
		return "", fmt.Errorf("checking signature: %w", failure)
	}
	return compact, nil
}
