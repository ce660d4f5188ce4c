package artifact

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// digest is one that was parsed: its algorithm and its hex digits.
type digest struct {
	algorithm string
	hex       string
	hash      func() hash.Hash
}

func (d digest) String() string { return d.algorithm + ":" + d.hex }

func (d digest) text(sum hash.Hash) string {
	return d.algorithm + ":" + hex.EncodeToString(sum.Sum(nil))
}

// parseDigest reads the digest of a source's status. Without an algorithm it is
// SHA-256, as kustomize-controller takes it. BLAKE3, which source-controller can
// be told to use, is refused: the product links no code for it.
func parseDigest(text string) (digest, error) {
	algorithm, digits, found := strings.Cut(text, ":")
	if !found {
		algorithm, digits = "sha256", text
	}
	d := digest{algorithm: algorithm, hex: digits}
	switch algorithm {
	case "sha256":
		d.hash = sha256.New
	case "sha384":
		d.hash = sha512.New384
	case "sha512":
		d.hash = sha512.New
	default:
		return digest{}, fmt.Errorf("got a digest of %.40q, want sha256, sha384 or sha512", algorithm)
	}
	if b, err := hex.DecodeString(digits); err != nil || len(b) != d.hash().Size() || digits != strings.ToLower(digits) {
		return digest{}, fmt.Errorf("got digest %.160q, want %s and %d lower-case hex digits", text, algorithm, 2*d.hash().Size())
	}
	return d, nil
}
