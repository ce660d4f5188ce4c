package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// newRSABits is the size of RSA keys that New makes: 128 bits of strength.
const newRSABits = 3072

// LoadSigner returns the signer of a private key: PEM (PKCS #8, SEC 1,
// PKCS #1, none of them encrypted) or one private JWK, of Ed25519, P-256,
// P-384 or RSA with 2048 bits at least. An empty kid stands for that of the
// JWK, or else the key's RFC 7638 thumbprint. RSA keys sign PS256 unless the
// JWK's alg says RS256.
//
// Errors never hold a part of the key.
func LoadSigner(data []byte, kid string) (*receipt.KeySigner, error) {
	if isPEM(data) {
		private, err := privatePEM(data)
		if err != nil {
			return nil, err
		}
		return newSigner(private, kid, "")
	}
	var k jwk
	err := jcs.Strict(data, &k)
	if err != nil {
		// The error of Strict may quote a member, hence a part of the key.
		return nil, errors.New("parsing private key: neither PEM nor a private JWK")
	}
	if k.D == "" {
		return nil, errors.New("parsing private key: got a JWK without d, want a private one")
	}
	if kid != "" && k.ID != "" && kid != k.ID {
		return nil, fmt.Errorf("parsing private key: got kid %.80q, want %q", k.ID, kid)
	}
	if kid == "" {
		kid = k.ID
	}
	parsed, err := k.parse()
	if err != nil {
		return nil, fmt.Errorf("parsing private key: %w", err)
	}
	return newSigner(parsed.Key, kid, k.Algorithm)
}

func newSigner(private any, kid, algorithm string) (*receipt.KeySigner, error) {
	signer, ok := private.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parsing private key: key type %T cannot sign", private)
	}
	s, err := receipt.NewSigner(signer, kid, algorithm)
	if err != nil {
		return nil, fmt.Errorf("parsing private key: %w", err)
	}
	return s, nil
}

// New makes a private key for one of receipt.Algorithms (RSA: 3072 bits) and
// returns it with its key ID, the RFC 7638 thumbprint.
func New(algorithm string) (private crypto.Signer, kid string, err error) {
	switch algorithm {
	case "EdDSA":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "PS256", "RS256":
		private, err = rsa.GenerateKey(rand.Reader, newRSABits)
	default:
		return nil, "", fmt.Errorf("algorithm %.80q is not one of %q", algorithm, receipt.Algorithms())
	}
	if err != nil {
		return nil, "", fmt.Errorf("generating key: %w", err)
	}
	key, err := receipt.NewKey("", private.Public())
	if err != nil {
		return nil, "", fmt.Errorf("generating key: %w", err)
	}
	return private, key.ID, nil
}

// MarshalPrivatePEM returns the private key as a PKCS #8 PEM block.
func MarshalPrivatePEM(private crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encoding private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
