package receipt

import "crypto"

// Key is a public key that an issuer signs with. ID selects it and proves
// nothing. Thumbprint is its RFC 7638 SHA-256 thumbprint (base64url): two IDs
// with one thumbprint are one key. Algorithm, if it is not empty, is the only
// one that the key signs with; else every one that it fits.
type Key struct {
	ID         string
	Public     crypto.PublicKey // ed25519.PublicKey, *ecdsa.PublicKey (P-256, P-384), *rsa.PublicKey
	Thumbprint string
	Algorithm  string
}

// Issuer is the part of an operator's trust that verifying a signature needs.
type Issuer struct {
	Name       string
	Algorithms []string // of Algorithms(); empty means all of them
	Keys       []Key
}
