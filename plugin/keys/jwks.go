// Package keys reads and writes the keys of issuers: public key sets (RFC 7517
// or PEM), private keys (PEM or JWK), and the command that signs where the
// private key is elsewhere. What it accepts is what package receipt can use;
// everything else is refused by name rather than skipped, because a key that
// silently is not there turns into refused syncs later.
package keys

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// jwk has every member that is accepted in a key. The private ones are here so
// that their presence can be named.
type jwk struct {
	Type       string   `json:"kty"`
	Use        string   `json:"use,omitempty"`
	Operations []string `json:"key_ops,omitempty"`
	Algorithm  string   `json:"alg,omitempty"`
	ID         string   `json:"kid,omitempty"`
	Curve      string   `json:"crv,omitempty"`
	X          string   `json:"x,omitempty"`
	Y          string   `json:"y,omitempty"`
	N          string   `json:"n,omitempty"`
	E          string   `json:"e,omitempty"`
	D          string   `json:"d,omitempty"`
	P          string   `json:"p,omitempty"`
	Q          string   `json:"q,omitempty"`
	DP         string   `json:"dp,omitempty"`
	DQ         string   `json:"dq,omitempty"`
	QI         string   `json:"qi,omitempty"`
	K          string   `json:"k,omitempty"`
}

type jwks struct {
	Keys []jwk `json:"keys"`
}

// LoadJWKS returns the public keys of a JWK set (RFC 7517), or of one or more
// PEM blocks "PUBLIC KEY", in the order in which they stand. A key of a set
// needs a kid; that of a PEM block is its RFC 7638 thumbprint.
//
// It returns an error for a set without keys, unknown or duplicate members, a
// duplicate kid, private or symmetric key material, a use other than "sig", an
// alg that does not fit the key, and every key that receipt.NewKey refuses
// (RSA below 2048 bits, curves other than Ed25519, P-256 and P-384).
func LoadJWKS(data []byte) ([]receipt.Key, error) {
	if isPEM(data) {
		return loadPublicPEM(data)
	}
	var set jwks
	err := jcs.Strict(data, &set)
	if err != nil {
		return nil, fmt.Errorf("parsing JWK set: %w", err)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("parsing JWK set: no keys")
	}
	var list []receipt.Key
	for i, k := range set.Keys {
		key, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("parsing JWK set: keys[%d] (kid %.80q): %w", i, k.ID, err)
		}
		list = append(list, key)
	}
	return list, checkUnique(list)
}

func checkUnique(list []receipt.Key) error {
	seen := map[string]bool{}
	for _, key := range list {
		if seen[key.ID] {
			return fmt.Errorf("duplicate key ID %q", key.ID)
		}
		seen[key.ID] = true
	}
	return nil
}

func (k jwk) public() (receipt.Key, error) {
	if k.Type == "oct" || k.K != "" {
		return receipt.Key{}, errors.New("symmetric key in a public key set")
	}
	if k.D+k.P+k.Q+k.DP+k.DQ+k.QI != "" {
		return receipt.Key{}, errors.New("private key in a public key set: whoever has read it can sign, so retire the key")
	}
	if k.ID == "" {
		return receipt.Key{}, errors.New("kid missing")
	}
	for _, op := range k.Operations {
		if op != "verify" {
			return receipt.Key{}, fmt.Errorf(`key_ops: got %.80q, want "verify"`, op)
		}
	}
	parsed, err := k.parse()
	if err != nil {
		return receipt.Key{}, err
	}
	key, err := receipt.NewKey(k.ID, parsed.Key)
	if err != nil {
		return receipt.Key{}, err
	}
	key.Algorithm = k.Algorithm
	if key.Algorithm != "" && !slices.Contains(receipt.AlgorithmsFor(key.Public), key.Algorithm) {
		return receipt.Key{}, fmt.Errorf("alg %.80q does not fit the key, which is for %q", key.Algorithm, receipt.AlgorithmsFor(key.Public))
	}
	return key, nil
}

// parse hands go-jose a key whose members have been decoded strictly: it
// ignores members and trailing bits that it does not understand.
func (k jwk) parse() (jose.JSONWebKey, error) {
	if k.Use != "" && k.Use != "sig" {
		return jose.JSONWebKey{}, fmt.Errorf(`use: got %.80q, want "sig"`, k.Use)
	}
	for _, member := range []struct{ name, value string }{
		{"x", k.X}, {"y", k.Y}, {"n", k.N}, {"e", k.E}, {"d", k.D}, {"p", k.P}, {"q", k.Q}, {"dp", k.DP}, {"dq", k.DQ}, {"qi", k.QI},
	} {
		_, err := base64.RawURLEncoding.Strict().DecodeString(member.value)
		if err != nil {
			// base64 names the offset only, so that no part of a private key
			// gets into the text.
			return jose.JSONWebKey{}, fmt.Errorf("%s: %w", member.name, err)
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("encoding key: %w", err)
	}
	var parsed jose.JSONWebKey
	err = parsed.UnmarshalJSON(text)
	if err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("kty %.20q, crv %.20q: %w", k.Type, k.Curve, err)
	}
	if !parsed.Valid() {
		return jose.JSONWebKey{}, fmt.Errorf("kty %.20q, crv %.20q: not a valid key", k.Type, k.Curve)
	}
	return parsed, nil
}

// PublicJWKS returns the JWK set of the keys, sorted by key ID, one key a
// line so that it can be compared, with a line break at the end. The same keys
// always give the same bytes. It returns an error for no keys, a duplicate key
// ID and a key that has none.
func PublicJWKS(list []receipt.Key) ([]byte, error) {
	if len(list) == 0 {
		return nil, errors.New("encoding JWK set: no keys")
	}
	err := checkUnique(list)
	if err != nil {
		return nil, fmt.Errorf("encoding JWK set: %w", err)
	}
	sorted := slices.SortedFunc(slices.Values(list), func(a, b receipt.Key) int { return cmp.Compare(a.ID, b.ID) })
	var out bytes.Buffer
	out.WriteString(`{"keys":[`)
	for i, key := range sorted {
		if key.ID == "" {
			return nil, errors.New("encoding JWK set: key without an ID")
		}
		text, err := json.Marshal(jose.JSONWebKey{Key: key.Public, KeyID: key.ID, Algorithm: key.Algorithm, Use: "sig"})
		if err != nil {
			return nil, fmt.Errorf("encoding key %q: %w", key.ID, err)
		}
		text, err = jcs.Transform(text)
		if err != nil {
			return nil, fmt.Errorf("encoding key %q: %w", key.ID, err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(text)
	}
	out.WriteString("\n]}\n")
	_, err = LoadJWKS(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("encoding JWK set: %w", err)
	}
	return out.Bytes(), nil
}
