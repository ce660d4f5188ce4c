package receipt

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
)

// KeySigner is a Signer over a private key in memory or behind a
// crypto.Signer (a hardware module, a key service).
type KeySigner struct {
	private   crypto.Signer
	key       Key
	algorithm string
}

var _ Signer = (*KeySigner)(nil)

// NewSigner returns a signer. An empty keyID stands for the key's RFC 7638
// thumbprint; an empty algorithm for the one that fits the key, PS256 for RSA.
// It returns an error for a key that NewKey refuses and for an algorithm that
// does not fit it.
func NewSigner(private crypto.Signer, keyID, algorithm string) (*KeySigner, error) {
	if private == nil {
		return nil, fmt.Errorf("no private key")
	}
	key, err := NewKey(keyID, private.Public())
	if err != nil {
		return nil, err
	}
	fits, err := algorithmsFor(key.Public)
	if err != nil {
		return nil, err
	}
	if algorithm == "" {
		algorithm = fits[0]
	}
	if !slices.Contains(fits, algorithm) {
		return nil, fmt.Errorf("algorithm %q does not fit the key, which is for %q", algorithm, fits)
	}
	return &KeySigner{private: private, key: key, algorithm: algorithm}, nil
}

// KeyID returns the key ID.
func (s *KeySigner) KeyID() string { return s.key.ID }

// Algorithm returns the algorithm.
func (s *KeySigner) Algorithm() string { return s.algorithm }

// Key returns the public key.
func (s *KeySigner) Key() Key { return s.key }

// Sign returns the signature of the signing input.
func (s *KeySigner) Sign(signingInput []byte) ([]byte, error) {
	switch s.algorithm {
	case eddsa:
		return s.private.Sign(rand.Reader, signingInput, &ed25519.Options{})
	case es256:
		sum := sha256.Sum256(signingInput)
		return s.signECDSA(sum[:], crypto.SHA256)
	case es384:
		sum := sha512.Sum384(signingInput)
		return s.signECDSA(sum[:], crypto.SHA384)
	case ps256:
		sum := sha256.Sum256(signingInput)
		return s.private.Sign(rand.Reader, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	case rs256:
		sum := sha256.Sum256(signingInput)
		return s.private.Sign(rand.Reader, sum[:], crypto.SHA256)
	}
	return nil, fmt.Errorf("algorithm %q is not one of %q", s.algorithm, Algorithms())
}

func (s *KeySigner) signECDSA(sum []byte, hash crypto.Hash) ([]byte, error) {
	der, err := s.private.Sign(rand.Reader, sum, hash)
	if err != nil {
		return nil, err
	}
	return RawECDSA(der, s.algorithm)
}

// RawECDSA turns an ECDSA signature in DER, which most key services return,
// into the r||s that a JWS holds (RFC 7518, section 3.4). It returns an error
// for an algorithm that is not ES256 or ES384, and for bytes that are not one
// DER sequence of two positive integers of at most the algorithm's size.
func RawECDSA(der []byte, algorithm string) ([]byte, error) {
	size := map[string]int{es256: 32, es384: 48}[algorithm]
	if size == 0 {
		return nil, fmt.Errorf("algorithm %q is not ECDSA", algorithm)
	}
	var pair struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &pair)
	if err != nil {
		return nil, fmt.Errorf("parsing ECDSA signature: %w", err)
	}
	if len(rest) > 0 || pair.R.Sign() <= 0 || pair.S.Sign() <= 0 || pair.R.BitLen() > 8*size || pair.S.BitLen() > 8*size {
		return nil, fmt.Errorf("parsing ECDSA signature: want two integers of at most %d bytes", size)
	}
	raw := make([]byte, 2*size)
	pair.R.FillBytes(raw[:size])
	pair.S.FillBytes(raw[size:])
	return raw, nil
}
