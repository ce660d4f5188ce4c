package receipt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// The algorithms (RFC 7518, section 3.1; EdDSA is Ed25519 of RFC 8037).
const (
	eddsa = string(jose.EdDSA)
	es256 = string(jose.ES256)
	es384 = string(jose.ES384)
	ps256 = string(jose.PS256)
	rs256 = string(jose.RS256)
)

// RSA moduli in bits: below the first a key is weak, above the second
// verifying costs whoever checks the receipt too much.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// Algorithms returns the signature algorithms of receipts, sorted. None of
// them is symmetric, and "none" is not one of them.
func Algorithms() []string {
	return []string{es256, es384, eddsa, ps256, rs256}
}

// NewKey returns the key with its RFC 7638 thumbprint. An empty id stands for
// the thumbprint. It returns an error for an id that is not printable or
// longer than 256 bytes, and for a key that no algorithm fits: another type or
// curve, a point that is not on the curve, a low-order Ed25519 point, RSA
// outside of 2048 to 8192 bits.
func NewKey(id string, public crypto.PublicKey) (Key, error) {
	_, err := algorithmsFor(public)
	if err != nil {
		return Key{}, err
	}
	jwk := jose.JSONWebKey{Key: public}
	if !jwk.Valid() {
		return Key{}, fmt.Errorf("public key is not a valid point or modulus")
	}
	if point, ok := public.(*ecdsa.PublicKey); ok {
		// Bytes fails for a point that is not on the curve; go-jose does not look.
		_, err = point.Bytes()
		if err != nil {
			return Key{}, fmt.Errorf("public key: %w", err)
		}
	}
	sum, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return Key{}, fmt.Errorf("computing key thumbprint: %w", err)
	}
	thumbprint := base64.RawURLEncoding.EncodeToString(sum)
	if id == "" {
		id = thumbprint
	}
	err = checkText(id, maxName)
	if err != nil {
		return Key{}, fmt.Errorf("key ID: %w", err)
	}
	return Key{ID: id, Public: public, Thumbprint: thumbprint}, nil
}

// algorithmsFor returns the algorithms that a key fits, the default first.
func algorithmsFor(public crypto.PublicKey) ([]string, error) {
	switch key := public.(type) {
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("Ed25519 key of %d bytes, want %d", len(key), ed25519.PublicKeySize)
		}
		return []string{eddsa}, nil
	case *ecdsa.PublicKey:
		if key == nil {
			return nil, fmt.Errorf("no public key")
		}
		switch key.Curve {
		case elliptic.P256():
			return []string{es256}, nil
		case elliptic.P384():
			return []string{es384}, nil
		}
		return nil, fmt.Errorf("elliptic curve is neither P-256 nor P-384")
	case *rsa.PublicKey:
		if key == nil || key.N == nil {
			return nil, fmt.Errorf("no public key")
		}
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("RSA key of %d bits, want %d to %d", bits, minRSABits, maxRSABits)
		}
		if key.E < 3 || key.E%2 == 0 {
			return nil, fmt.Errorf("RSA key with the exponent %d", key.E)
		}
		return []string{ps256, rs256}, nil
	}
	return nil, fmt.Errorf("key type %T is not Ed25519, ECDSA or RSA", public)
}

// AlgorithmsFor returns the algorithms that a public key fits, the default
// first; none for a key that NewKey refuses.
func AlgorithmsFor(public crypto.PublicKey) []string {
	fits, err := algorithmsFor(public)
	if err != nil {
		return nil
	}
	return fits
}

// SignatureSize returns the length in bytes of a raw JWS signature by the key,
// 0 for a key that NewKey refuses.
func SignatureSize(public crypto.PublicKey) int {
	if len(AlgorithmsFor(public)) == 0 {
		return 0
	}
	switch key := public.(type) {
	case ed25519.PublicKey:
		return ed25519.SignatureSize
	case *ecdsa.PublicKey:
		return 2 * ((key.Curve.Params().BitSize + 7) / 8)
	case *rsa.PublicKey:
		return key.Size()
	}
	return 0
}
