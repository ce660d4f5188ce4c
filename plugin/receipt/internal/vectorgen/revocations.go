package main

import (
	"strings"

	"github.com/syncgate/syncgate/plugin/receipt"
)

// revocations has revocation lists, verified with the one issuer that policy
// names for them.
func (m *maker) revocations() []vector {
	header := protected("EdDSA", "security-ed", receipt.RevocationsType)
	list := func(entries string) string {
		return `{"entries":` + entries + `,"iss":"security","issued":1767225600,"serial":41}`
	}
	build := func(name, expect, comment, payload string) vector {
		return vector{name: "revocations_" + name, expect: expect, comment: comment, kind: "revocations", issuers: "revokers", opaque: true, raw: m.signed(m.security, header, payload)}
	}
	refused := func(name, comment, entry string) vector {
		return build(name, bad, comment, list("["+entry+"]"))
	}
	image := `"sha256:` + strings.Repeat("0", 64) + `"`
	other := build("issuer", "IssuerUnknown", "release may sign receipts, not revocation lists", "")
	other.raw = m.signed(m.ed, protected("EdDSA", "release-ed", receipt.RevocationsType), strings.Replace(list("[]"), "security", "release", 1))
	typ := build("typ", bad, "a receipt is not a revocation list", "")
	typ.raw, typ.opaque = m.plain(m.ed), false
	changed := build("signature", "SignatureInvalid", "an entry taken out of the signed list", "")
	signed := strings.Split(m.signed(m.security, header, list(`[{"kid":"release-ed"}]`)), ".")
	changed.raw = signed[0] + "." + b64(list("[]")) + "." + signed[2]
	return []vector{
		build("valid", "valid", "an entry of each kind", list(`[{"jti":"mJ8w3Qe5R1uXz0aB7cD9fg"},{"kid":"release-ed"},{"release":"1.4"},{"image":`+image+`},{"floor":{"category":"image","environment":"prod","issuedBefore":1767225600,"sub":"apps/*/shop/*"}}]`)),
		build("valid_empty", "valid", "nothing is revoked", list("[]")),
		other, typ, changed,
		build("entries_missing", bad, "no entries: not the same as none", `{"iss":"security","issued":1767225600,"serial":41}`),
		build("serial_missing", bad, "no serial", `{"entries":[],"iss":"security","issued":1767225600}`),
		build("serial_zero", bad, "serials start at 1", `{"entries":[],"iss":"security","issued":1767225600,"serial":0}`),
		build("issued_missing", bad, "no time of issue", `{"entries":[],"iss":"security","serial":41}`),
		build("unknown", bad, "a member that version 1 does not have", `{"entries":[],"exp":1,"iss":"security","issued":1767225600,"serial":41}`),
		refused("no_kind", "an entry that revokes nothing", `{}`),
		refused("two_kinds", "an entry of two kinds: both, or either?", `{"kid":"release-ed","release":"1.4"}`),
		refused("unknown_kind", "a kind that version 1 does not have", `{"approver":"alice"}`),
		refused("jti", "a nonce that no receipt can have", `{"jti":"1"}`),
		refused("image", "an image by tag", `{"image":"ghcr.io/acme/web:1.5"}`),
		refused("floor_sub", "a pattern of another shape matches no subject", `{"floor":{"issuedBefore":1767225600,"sub":"*"}}`),
		refused("floor_time", "a floor without a time", `{"floor":{"sub":"apps/*/shop/*"}}`),
		refused("floor_category", "not a category", `{"floor":{"category":"images","issuedBefore":1767225600}}`),
	}
}
