package main

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const bad = "Malformed"

// shape has what is not a compact JWS, or not the only spelling of one.
func (m *maker) shape() []vector {
	good := m.plain(m.ed)
	part := strings.Split(good, ".")
	opaque := func(name, comment, raw string) vector {
		return vector{name: "shape_" + name, expect: bad, comment: comment, opaque: true, raw: raw}
	}
	return []vector{
		opaque("empty", "nothing", ""),
		opaque("two_parts", "no signature", part[0]+"."+part[1]),
		opaque("four_parts", "a part too many", good+"."+part[2]),
		opaque("five_parts", "the shape of an encrypted token", good+"."+part[2]+"."+part[2]),
		opaque("empty_header", "the header is empty", "."+part[1]+"."+part[2]),
		opaque("empty_payload", "a detached payload", part[0]+".."+part[2]),
		opaque("empty_signature", "the signature is empty", part[0]+"."+part[1]+"."),
		opaque("padding", "base64 with padding", good+"=="),
		opaque("standard_base64", "'+' and '/' are not base64url", part[0]+"."+part[1]+"."+otherAlphabet(part[2])),
		opaque("trailing_bits_signature", "the unused bits of the last character are not zero: another spelling of one signature", part[0]+"."+part[1]+"."+trailingBits(part[2])),
		opaque("trailing_bits_payload", "the same in a payload that was signed like this", m.trailingPayload()),
		opaque("line_break", "a line break inside, which many base64 decoders skip", good[:40]+"\n"+good[40:]),
		opaque("final_line_break", "a line break at the end", good+"\n"),
		opaque("carriage_return", "a carriage return inside", good[:40]+"\r"+good[40:]),
		opaque("space", "a space before it", " "+good),
		opaque("quotes", "in quotation marks", `"`+good+`"`),
		opaque("json_serialization", "the JSON serialization of a JWS, with an unprotected header",
			fmt.Sprintf(`{"payload":%q,"protected":%q,"header":{"kid":"release-ed"},"signature":%q}`, part[1], part[0], part[2])),
		opaque("too_large", "16385 bytes", m.padded(receipt.MaxSize+1)),
		opaque("cut", "the last character is missing", good[:len(good)-1]),
	}
}

// otherAlphabet replaces '-' and '_', of which every signature of the fixed
// key has some.
func otherAlphabet(s string) string {
	return strings.NewReplacer("-", "+", "_", "/").Replace(s)
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// trailingBits sets the lowest bit of the last character, which a text of 64
// bytes does not use.
func trailingBits(s string) string {
	last := strings.IndexByte(alphabet, s[len(s)-1])
	return s[:len(s)-1] + string(alphabet[last|1])
}

// trailingPayload signs a payload in a spelling that only a lax decoder reads.
func (m *maker) trailingPayload() string {
	payload := m.standard()
	for len(payload)%3 == 0 {
		payload += " "
	}
	input := b64(headerOf(m.ed)) + "." + trailingBits(b64(payload))
	signature, err := m.ed.Sign([]byte(input))
	m.note(err)
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// header has protected headers with something else than the three members.
func (m *maker) header() []vector {
	payload := m.standard()
	refused := func(name, comment, header string) vector {
		return vector{name: "header_" + name, expect: bad, comment: comment, opaque: true, raw: m.signed(m.ed, header, payload)}
	}
	plain := headerOf(m.ed)
	add := func(member string) string { return strings.TrimSuffix(plain, "}") + "," + member + "}" }
	return []vector{
		refused("not_json", "not JSON", "alg=EdDSA"),
		refused("not_object", "an array", "["+plain+"]"),
		refused("trailing_data", "a second object after it", plain+"{}"),
		refused("duplicate_alg", "alg twice: which one counts?", add(`"alg":"none"`)),
		refused("duplicate_kid_escaped", "kid twice, once with an escape", add(`"\u006bid":"security-ed"`)),
		refused("wrong_case", "ALG is not alg", strings.Replace(plain, `"alg"`, `"ALG"`, 1)),
		refused("wrong_case_beside", "Kid beside kid", add(`"Kid":"security-ed"`)),
		{name: "header_jwk", expect: bad, comment: "an embedded key that the signature is right for", opaque: true, raw: m.embedded(payload)},
		refused("jku", "the address of a key set", add(`"jku":"https://attacker.example/keys.json"`)),
		refused("x5u", "the address of a certificate", add(`"x5u":"https://attacker.example/cert.pem"`)),
		refused("x5c", "an embedded certificate", add(`"x5c":["MIIB"]`)),
		refused("crit", "a critical extension", add(`"crit":["exp"],"exp":1`)),
		refused("b64", "an unencoded payload, RFC 7797", add(`"b64":false,"crit":["b64"]`)),
		refused("zip", "compression", add(`"zip":"DEF"`)),
		refused("cty", "a content type", add(`"cty":"JWT"`)),
		refused("kid_missing", "no kid", `{"alg":"EdDSA","typ":"syncgate-receipt+jwt"}`),
		refused("kid_empty", "an empty kid", protected("EdDSA", "", receipt.Type)),
		refused("kid_null", "kid is null", `{"alg":"EdDSA","kid":null,"typ":"syncgate-receipt+jwt"}`),
		refused("kid_number", "kid is a number", `{"alg":"EdDSA","kid":1,"typ":"syncgate-receipt+jwt"}`),
		refused("kid_control", "a line break in kid", `{"alg":"EdDSA","kid":"release-ed\n","typ":"syncgate-receipt+jwt"}`),
		refused("typ_missing", "no typ", `{"alg":"EdDSA","kid":"release-ed"}`),
		refused("typ_jwt", "any other token of the same key is not a receipt", protected("EdDSA", "release-ed", "JWT")),
		refused("typ_case", "typ in capitals", protected("EdDSA", "release-ed", "SYNCGATE-RECEIPT+JWT")),
		refused("typ_media_type", "typ as a full media type", protected("EdDSA", "release-ed", "application/syncgate-receipt+jwt")),
		refused("typ_revocations", "a revocation list is not a receipt", protected("EdDSA", "release-ed", receipt.RevocationsType)),
	}
}

// embedded is signed with an attacker's key, which the header brings along.
func (m *maker) embedded(payload string) string {
	s, err := receipt.NewSigner(edKey("attacker"), "release-ed", "")
	m.note(err)
	set, err := keys.PublicJWKS([]receipt.Key{s.Key()})
	m.note(err)
	key := strings.Split(string(set), "\n")[1]
	return m.signed(s, strings.TrimSuffix(headerOf(s), "}")+`,"jwk":`+key+"}", payload)
}
