package main

import (
	"encoding/json"
	"strings"
)

// payload has what is signed and is not one JSON object with the members of a
// receipt and their types.
func (m *maker) payload() []vector {
	plain := m.standard()
	add := func(member string) string { return strings.TrimSuffix(plain, "}") + "," + member + "}" }
	refused := func(name, comment, payload string) vector {
		return vector{name: "payload_" + name, expect: bad, comment: comment, opaque: true, raw: m.signed(m.ed, headerOf(m.ed), payload)}
	}
	return []vector{
		refused("not_json", "not JSON", "iss=release"),
		refused("not_object", "an array", "["+plain+"]"),
		refused("trailing_data", "a second object after it", plain+plain),
		refused("duplicate", "sub twice", add(`"sub":"apps/Deployment/shop/admin"`)),
		refused("duplicate_escaped", "sub twice, once with an escape", add(`"s\u0075b":"apps/Deployment/shop/admin"`)),
		refused("duplicate_leaf", "a path of leaves twice", add(`"leaves":{"image a":"q83vEjRWeJA","image a":"q83vEjRWeJA"}`)),
		refused("unknown", "a member that version 1 does not have", add(`"aud":"prod"`)),
		refused("wrong_case", "SUB beside sub", add(`"SUB":"apps/Deployment/shop/admin"`)),
		refused("null", "a claim is null", m.edited(map[string]any{"release": json.RawMessage("null")})),
		refused("string_for_number", "exp is a string", m.edited(map[string]any{"exp": "1775001600"})),
		refused("fraction", "exp has a fraction", m.edited(map[string]any{"exp": json.RawMessage("1775001600.5")})),
		refused("exponent", "exp is written with an exponent", m.edited(map[string]any{"exp": json.RawMessage("1775001600e0")})),
		refused("unsafe_integer", "exp is past 2^53-1", m.edited(map[string]any{"exp": json.RawMessage("9007199254740993")})),
		refused("string_for_list", "covers is a string", m.edited(map[string]any{"covers": "image"})),
		refused("list_for_string", "sub is a list", m.edited(map[string]any{"sub": []string{"apps/Deployment/shop/web"}})),
		refused("string_for_boolean", "generated is a string", m.edited(map[string]any{"generated": "false"})),
		refused("invalid_utf8", "a byte that is not UTF-8", strings.Replace(plain, "1.5", "1.\xff", 1)),
		refused("lone_surrogate", "half of a surrogate pair", strings.Replace(plain, "1.5", `\ud800`, 1)),
		refused("deep", "nested too deep", add(`"leaves":`+strings.Repeat(`{"a":`, 700)+"1"+strings.Repeat("}", 700))),
		refused("iss_missing", "no iss: no key can be selected", m.edited(map[string]any{"iss": nil})),
		refused("iss_empty", "an empty iss", m.edited(map[string]any{"iss": ""})),
	}
}

// claimsVectors has receipts that were signed and say something impossible.
func (m *maker) claimsVectors() []vector {
	refused := func(name, comment, claim string, value any) vector {
		return vector{name: "claim_" + name, expect: bad, comment: comment, raw: m.signed(m.ed, headerOf(m.ed), m.edited(map[string]any{claim: value}))}
	}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	long := strings.Repeat("a", 1025)
	return []vector{
		refused("sub_missing", "no sub", "sub", nil),
		refused("sub_three_parts", "no namespace", "sub", "apps/Deployment/web"),
		refused("sub_five_parts", "a part too many", "sub", "apps/v1/Deployment/shop/web"),
		refused("sub_empty_part", "- stands for cluster scope, not nothing", "sub", "apps/Deployment//web"),
		refused("sub_empty_group", "core stands for the empty group, not nothing", "sub", "/Pod/shop/web"),
		refused("sub_control", "a line break in sub", "sub", "apps/Deployment/shop/web\n"),
		refused("sub_bidirectional", "a character that reverses what follows it", "sub", "apps/Deployment/shop/\u202ebew"),
		refused("sub_long", "sub is longer than 1024 bytes", "sub", "apps/Deployment/shop/"+long),
		refused("environment_missing", "no environment", "environment", nil),
		refused("environment_empty", "an empty environment", "environment", ""),
		refused("environment_space", "a space after the environment", "environment", "prod "),
		refused("profile_missing", "no profile", "profile", nil),
		refused("covers_missing", "no covers", "covers", nil),
		refused("covers_empty", "covers nothing", "covers", []string{}),
		refused("covers_unsorted", "covers is not sorted", "covers", []string{"image", "command"}),
		refused("covers_duplicate", "a category twice", "covers", []string{"image", "image"}),
		refused("covers_unknown", "not a category of profile v1", "covers", []string{"images"}),
		refused("covers_case", "categories are lower-case", "covers", []string{"Image"}),
		refused("covers_empty_category", "an empty category", "covers", []string{"", "image"}),
		refused("covers_custom_unnamed", "x- without a name", "covers", []string{"x-"}),
		refused("digest_missing", "no digest", "digest", nil),
		refused("digest_algorithm", "another hash", "digest", "sha512:"+strings.Repeat("0", 64)),
		refused("digest_bare", "no sha256: before it", "digest", strings.Repeat("0", 64)),
		refused("digest_short", "63 digits", "digest", "sha256:"+strings.Repeat("0", 63)),
		refused("digest_long", "65 digits", "digest", "sha256:"+strings.Repeat("0", 65)),
		refused("digest_case", "upper-case digits", "digest", "sha256:"+strings.Repeat("A", 64)),
		refused("iat_missing", "no iat", "iat", nil),
		refused("iat_negative", "iat before 1970", "iat", -1),
		refused("exp_missing", "no exp: nothing is approved for ever", "exp", nil),
		refused("exp_equal", "exp is iat", "exp", 1767225600),
		refused("exp_before", "exp is before iat", "exp", 1767225599),
		refused("exp_far", "exp is in the year 10000", "exp", raw("253402300800")),
		refused("nbf_negative", "nbf before 1970", "nbf", -1),
		refused("nbf_after_exp", "nbf is exp: never valid", "nbf", 1775001600),
		refused("jti_missing", "no jti", "jti", nil),
		refused("jti_short", "21 characters hold 126 bits", "jti", "mJ8w3Qe5R1uXz0aB7cD9f"),
		refused("jti_short_hexadecimal", "31 hexadecimal digits hold 124 bits", "jti", "0f1e2d3c4b5a69788796a5b4c3d2e1f"),
		refused("jti_alphabet", "a character outside of base64url", "jti", "mJ8w3Qe5R1uXz0aB7cD9f+"),
		refused("jti_long", "257 characters", "jti", strings.Repeat("z", 257)),
		refused("release_control", "an escape sequence for terminals", "release", "1.5\x1b[2J"),
		refused("approver_long", "approver is longer than 1024 bytes", "approver", long),
		refused("leaves_hash", "a hash of 7 bytes", "leaves", map[string]string{"image a": "q83vEjRWeA"}),
		refused("leaves_trailing_bits", "a hash with non-zero trailing bits", "leaves", map[string]string{"image a": "q83vEjRWeJB"}),
		refused("leaves_path", "an empty path", "leaves", map[string]string{"": "q83vEjRWeJA"}),
	}
}
