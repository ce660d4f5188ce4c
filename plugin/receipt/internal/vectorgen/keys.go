package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"io"
	"math/big"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// stream is SHA-256 in counter mode over a seed: the randomness of everything
// here that would be random elsewhere.
type stream struct {
	seed  string
	block uint64
	rest  []byte
}

func (s *stream) Read(p []byte) (int, error) {
	for i := range p {
		if len(s.rest) == 0 {
			sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(s.seed), s.block))
			s.block++
			s.rest = sum[:]
		}
		p[i], s.rest = s.rest[0], s.rest[1:]
	}
	return len(p), nil
}

// fixed is a private key whose signatures are the same at every run.
type fixed struct{ crypto.Signer }

func (f fixed) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if _, ok := f.Signer.(*ecdsa.PrivateKey); ok {
		// Without a source of randomness it is RFC 6979.
		return f.Signer.Sign(nil, digest, opts)
	}
	return f.Signer.Sign(&stream{seed: "salt" + string(digest)}, digest, opts)
}

func edKey(seed string) fixed {
	sum := sha256.Sum256([]byte(seed))
	return fixed{ed25519.NewKeyFromSeed(sum[:])}
}

func ecKey(curve elliptic.Curve, seed string) (fixed, error) {
	sum := sha512.Sum384([]byte(seed))
	private, err := ecdsa.ParseRawPrivateKey(curve, sum[:(curve.Params().BitSize+7)/8])
	return fixed{private}, err
}

// rsaKey finds two primes of half the bits in the stream of the seed.
func rsaKey(bits int, seed string) (fixed, error) {
	random := &stream{seed: seed}
	e := big.NewInt(65537)
	one := big.NewInt(1)
	prime := func() (*big.Int, error) {
		for {
			b := make([]byte, bits/16)
			_, err := io.ReadFull(random, b)
			if err != nil {
				return nil, err
			}
			// The two top bits make the product as long as it must be.
			b[0] |= 0xC0
			b[len(b)-1] |= 1
			p := new(big.Int).SetBytes(b)
			if p.ProbablyPrime(20) && new(big.Int).GCD(nil, nil, e, new(big.Int).Sub(p, one)).Cmp(one) == 0 {
				return p, nil
			}
		}
	}
	p, err := prime()
	if err != nil {
		return fixed{}, err
	}
	q, err := prime()
	if err != nil {
		return fixed{}, err
	}
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	private := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: 65537},
		D:         new(big.Int).ModInverse(e, phi),
		Primes:    []*big.Int{p, q},
	}
	private.Precompute()
	return fixed{private}, private.Validate()
}

// ring holds the signers that the vectors are made with.
type ring struct {
	ed, es256, es384, ps256, rs256, security *receipt.KeySigner
}

func newRing() (ring, error) {
	var r ring
	p256, err := ecKey(elliptic.P256(), "release es256")
	if err != nil {
		return r, err
	}
	p384, err := ecKey(elliptic.P384(), "release es384")
	if err != nil {
		return r, err
	}
	rsa1, err := rsaKey(2048, "release rsa 1")
	if err != nil {
		return r, err
	}
	rsa2, err := rsaKey(2048, "release rsa 2")
	if err != nil {
		return r, err
	}
	for _, k := range []struct {
		to      **receipt.KeySigner
		private fixed
		id, alg string
	}{
		{&r.ed, edKey("release eddsa"), "release-ed", "EdDSA"},
		{&r.es256, p256, "release-p256", "ES256"},
		{&r.es384, p384, "release-p384", "ES384"},
		{&r.ps256, rsa1, "release-pss", "PS256"},
		{&r.rs256, rsa2, "release-rsa", "RS256"},
		{&r.security, edKey("security eddsa"), "security-ed", "EdDSA"},
	} {
		*k.to, err = receipt.NewSigner(k.private, k.id, k.alg)
		if err != nil {
			return r, err
		}
	}
	return r, nil
}
