package main

import (
	"encoding/base64"
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func (m *maker) valid() []vector {
	with := func(change func(*receipt.Claims)) string {
		return m.signed(m.ed, headerOf(m.ed), m.claims(change))
	}
	return []vector{
		{name: "valid_eddsa", expect: "valid", comment: "Ed25519", raw: m.plain(m.ed)},
		{name: "valid_es256", expect: "valid", comment: "ECDSA on P-256, r||s", raw: m.plain(m.es256)},
		{name: "valid_es384", expect: "valid", comment: "ECDSA on P-384, r||s", raw: m.plain(m.es384)},
		{name: "valid_ps256", expect: "valid", comment: "RSASSA-PSS, salt as long as the hash; the key set says the algorithm", raw: m.plain(m.ps256)},
		{name: "valid_rs256", expect: "valid", comment: "RSASSA-PKCS1-v1_5", raw: m.plain(m.rs256)},
		{name: "valid_every_claim", expect: "valid", comment: "every optional claim is there", raw: with(func(c *receipt.Claims) {
			c.NotBefore = c.IssuedAt + 3600
			c.Approver = "Alice Example, change 4711"
			c.Leaves = map[string]string{"image containers[web].image": "q83vEjRWeJA"}
		})},
		{name: "valid_generated", expect: "valid", comment: "the name is a prefix, as in metadata.generateName", raw: with(func(c *receipt.Claims) {
			c.Subject, c.Generated = "batch/Job/shop/migrate-", true
		})},
		{name: "valid_cluster_scope", expect: "valid", comment: "an RBAC object: - for cluster scope, a name with ':', '*' and '~'", raw: with(func(c *receipt.Claims) {
			c.Subject, c.Covers = "rbac.authorization.k8s.io/ClusterRole/-/system:auth*~", []string{"rbac"}
		})},
		{name: "valid_core_group", expect: "valid", comment: "core for the empty group", raw: with(func(c *receipt.Claims) {
			c.Subject = "core/Pod/shop/web-0"
		})},
		{name: "valid_custom_category", expect: "valid", comment: "a category that policy added", raw: with(func(c *receipt.Claims) {
			c.Covers = []string{"image", "x-operators"}
		})},
		{name: "valid_later_profile", expect: "valid", comment: "a profile and a category that this version does not know are well-formed: the gate judges them", raw: with(func(c *receipt.Claims) {
			c.Profile, c.Covers = "v2", []string{"image", "sidecar"}
		})},
		{name: "valid_hex_nonce", expect: "valid", comment: "128 bits in hexadecimal", raw: with(func(c *receipt.Claims) {
			c.ID = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
		})},
		{name: "valid_unicode", expect: "valid", comment: "printable characters outside of ASCII, in what people read", raw: with(func(c *receipt.Claims) {
			c.Approver = "Zoë Müller 😀"
		})},
		{name: "valid_not_canonical", expect: "valid", comment: "white space and another order in header and payload: the signature is over the bytes as they are",
			raw: m.signed(m.ed, ` {"typ": "syncgate-receipt+jwt", "kid": "release-ed", "alg": "EdDSA"}`, reversed(m.standard()))},
		{name: "valid_escapes", expect: "valid", comment: "an escaped member name and value mean what they say",
			raw: m.signed(m.ed, headerOf(m.ed), strings.Replace(m.standard(), `"iss":"release"`, `"\u0069ss":"\u0072elease"`, 1))},
		{name: "valid_largest", expect: "valid", comment: "16384 bytes, the most that is allowed", raw: m.padded(receipt.MaxSize)},
	}
}

// reversed puts the last member first.
func reversed(object string) string {
	inner := strings.TrimSuffix(strings.TrimPrefix(object, "{"), "}")
	i := strings.LastIndex(inner, `,"`)
	return "{\n  " + inner[i+1:] + ",\n  " + inner[:i] + "\n}\n"
}

// padded is a receipt of that size: spaces in the payload fill it up, and
// where base64 has no text of the length, one in the header.
func (m *maker) padded(size int) string {
	for spaces := range 3 {
		header := headerOf(m.ed) + strings.Repeat(" ", spaces)
		for n := range size {
			payload := m.standard()
			total := base64.RawURLEncoding.EncodedLen(len(header)) + base64.RawURLEncoding.EncodedLen(len(payload)+n) + base64.RawURLEncoding.EncodedLen(64) + 2
			if total == size {
				return m.signed(m.ed, header, payload+strings.Repeat(" ", n))
			}
			if total > size {
				break
			}
		}
	}
	return ""
}
