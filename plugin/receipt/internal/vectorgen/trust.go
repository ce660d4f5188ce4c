package main

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// trust has well-formed receipts of algorithms, issuers and keys that are not
// to be trusted.
func (m *maker) trust() []vector {
	algorithm := func(name, comment, raw string) vector {
		return vector{name: "alg_" + name, expect: "AlgorithmNotAllowed", comment: comment, raw: raw}
	}
	under := func(s *receipt.KeySigner, alg, kid string) string {
		return m.signed(s, protected(alg, kid, receipt.Type), m.standard())
	}
	narrow := algorithm("not_in_list", "right, but the issuer's list holds ES256 alone", m.plain(m.ed))
	narrow.issuers = "narrow"
	listed := vector{name: "valid_in_list", expect: "valid", comment: "the issuer's list holds this algorithm", issuers: "narrow", raw: m.plain(m.es256)}
	as := func(issuer string) string { return m.edited(map[string]any{"iss": issuer}) }
	return []vector{
		algorithm("none", "alg none", under(m.ed, "none", "release-ed")),
		algorithm("none_case", "alg nOnE", under(m.ed, "nOnE", "release-ed")),
		algorithm("empty", "an empty alg", under(m.ed, "", "release-ed")),
		algorithm("hs256_public_key", "HMAC with the public key as the secret", m.hmac()),
		algorithm("es512", "not an algorithm of receipts", under(m.es256, "ES512", "release-p256")),
		algorithm("rs512", "not an algorithm of receipts", under(m.rs256, "RS512", "release-rsa")),
		algorithm("case", "eddsa is not EdDSA", under(m.ed, "eddsa", "release-ed")),
		algorithm("ed25519", "the name of RFC 9864 is another name", under(m.ed, "Ed25519", "release-ed")),
		algorithm("of_another_key", "ES256 with the ID of an Ed25519 key", under(m.es256, "ES256", "release-ed")),
		algorithm("of_another_curve", "ES384 with the ID of a P-256 key", under(m.es256, "ES384", "release-p256")),
		algorithm("not_that_of_the_jwk", "RS256 with a key that the key set gives to PS256", m.otherPadding()),
		narrow, listed,
		{name: "issuer_unknown", expect: "IssuerUnknown", comment: "nobody of that name", raw: m.signed(m.ed, headerOf(m.ed), as("releases"))},
		{name: "issuer_case", expect: "IssuerUnknown", comment: "names are compared byte by byte", raw: m.signed(m.ed, headerOf(m.ed), as("Release"))},
		{name: "key_unknown", expect: "KeyUnknown", comment: "no key of that ID", raw: under(m.ed, "EdDSA", "release-2")},
		{name: "key_case", expect: "KeyUnknown", comment: "key IDs are compared byte by byte", raw: under(m.ed, "EdDSA", "Release-ed")},
		{name: "key_of_another_issuer", expect: "KeyUnknown", comment: "security's key under release's name", raw: m.signed(m.security, headerOf(m.security), m.standard())},
		{name: "valid_other_issuer", expect: "valid", comment: "the same key under its own name", raw: m.signed(m.security, headerOf(m.security), as("security"))},
	}
}

func (m *maker) hmac() string {
	der, err := x509.MarshalPKIXPublicKey(m.rs256.Key().Public)
	m.note(err)
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	input := b64(protected("HS256", "release-rsa", receipt.Type)) + "." + b64(m.standard())
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// otherPadding signs RS256 with the key that the set gives to PS256.
func (m *maker) otherPadding() string {
	private, err := rsaKey(2048, "release rsa 1")
	m.note(err)
	s, err := receipt.NewSigner(private, "release-pss", "RS256")
	m.note(err)
	return m.plain(s)
}

// signature has well-formed receipts with the signature of something else.
func (m *maker) signature() []vector {
	invalid := func(name, comment, raw string) vector {
		return vector{name: "signature_" + name, expect: "SignatureInvalid", comment: comment, raw: raw}
	}
	ed, ec, rsa := strings.Split(m.plain(m.ed), "."), strings.Split(m.plain(m.es256), "."), strings.Split(m.plain(m.rs256), ".")
	other := m.edited(map[string]any{"sub": "apps/Deployment/shop/admin"})
	bytesOf := func(part string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(part)
		m.note(err)
		return b
	}
	encode := base64.RawURLEncoding.EncodeToString
	flipped := bytesOf(ed[2])
	flipped[0] ^= 1
	edTwice := append(bytesOf(ed[2]), bytesOf(ed[2])...)
	pair := bytesOf(ec[2])
	der, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(pair[:32]), new(big.Int).SetBytes(pair[32:])})
	m.note(err)
	return []vector{
		invalid("bit", "one bit of the signature changed", ed[0]+"."+ed[1]+"."+encode(flipped)),
		invalid("payload", "another subject under the signature", ed[0]+"."+b64(other)+"."+ed[2]),
		invalid("header", "white space in the header, added after signing", b64(headerOf(m.ed)+" ")+"."+ed[1]+"."+ed[2]),
		invalid("other_key", "signed with security's key under the ID of release's", m.signed(m.security, headerOf(m.ed), m.standard())),
		invalid("of_another_receipt", "the signature of another receipt of the same key", ed[0]+"."+ed[1]+"."+strings.Split(m.signed(m.ed, headerOf(m.ed), other), ".")[2]),
		invalid("short", "63 bytes", ed[0]+"."+ed[1]+"."+encode(bytesOf(ed[2])[:63])),
		invalid("long", "a byte too many", ed[0]+"."+ed[1]+"."+encode(append(bytesOf(ed[2]), 0))),
		invalid("twice", "the signature twice", ed[0]+"."+ed[1]+"."+encode(edTwice)),
		invalid("malleated_eddsa", "S plus the order of the group, which lax verifiers accept", ed[0]+"."+ed[1]+"."+encode(plusOrder(bytesOf(ed[2])))),
		invalid("ecdsa_der", "DER instead of r||s", ec[0]+"."+ec[1]+"."+encode(der)),
		invalid("ecdsa_zero", "r and s are 0, which some verifiers accepted for every message", ec[0]+"."+ec[1]+"."+encode(make([]byte, 64))),
		invalid("ecdsa_order", "r and s are the order of the curve", ec[0]+"."+ec[1]+"."+encode(m.orderTwice())),
		invalid("rsa_padding", "PS256 over the header, RS256 in the signature", b64(protected("PS256", "release-rsa", receipt.Type))+"."+rsa[1]+"."+m.pkcs1Under("PS256")),
		invalid("rsa_short", "a leading byte cut", rsa[0]+"."+rsa[1]+"."+encode(bytesOf(rsa[2])[1:])),
		invalid("over_decoded", "signed over the decoded parts", ed[0]+"."+ed[1]+"."+m.overDecoded()),
	}
}

// plusOrder adds the order of edwards25519's group to S (RFC 8032, section
// 5.1.7 says that S must be below it).
func plusOrder(signature []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	little := func(b []byte) []byte {
		out := make([]byte, len(b))
		for i := range b {
			out[i] = b[len(b)-1-i]
		}
		return out
	}
	s := new(big.Int).SetBytes(little(signature[32:]))
	sum := s.Add(s, order).FillBytes(make([]byte, 32))
	return append(append([]byte{}, signature[:32]...), little(sum)...)
}

func (m *maker) orderTwice() []byte {
	public, ok := m.es256.Key().Public.(*ecdsa.PublicKey)
	if !ok {
		return nil
	}
	n := public.Curve.Params().N.FillBytes(make([]byte, 32))
	return append(append([]byte{}, n...), n...)
}

// pkcs1Under signs RS256 over a header that says another algorithm.
func (m *maker) pkcs1Under(alg string) string {
	compact := m.signed(m.rs256, protected(alg, "release-rsa", receipt.Type), m.standard())
	return strings.Split(compact, ".")[2]
}

func (m *maker) overDecoded() string {
	signature, err := m.ed.Sign([]byte(headerOf(m.ed) + "." + m.standard()))
	m.note(err)
	return base64.RawURLEncoding.EncodeToString(signature)
}
