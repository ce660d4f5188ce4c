package jcs

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	peer "github.com/gowebpki/jcs"
)

func TestTransformEncodesAsRFC8785Says(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
	}{
		{
			"section 3.2.2: literals, numbers, strings",
			`{
				"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
				"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
				"literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{
			"section 3.2.3: members in the order of UTF-16 code units",
			`{
				"\u20ac": "Euro Sign",
				"\r": "Carriage Return",
				"\ufb33": "Hebrew Letter Dalet With Dagesh",
				"1": "One",
				"\ud83d\ude00": "Emoji: Grinning Face",
				"\u0080": "Control",
				"\u00f6": "Latin Small Letter O With Diaeresis"
			}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{"a prefix comes before the longer name", `{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		{"two pairs with one high surrogate", `{"😁":1,"😀":2}`, `{"😀":2,"😁":1}`},
		{"the short escapes", `"\b\t\n\f\r\u0000\u001f\u007f"`, "\"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\""},
		{"what HTML would escape stays", `"<&>\u2028"`, "\"<&>\u2028\""},
		{"negative zero", `[-0, -0.0, 0e9]`, `[0,0,0]`},
		{"the largest safe integers", `[9007199254740991, -9007199254740991]`, `[9007199254740991,-9007199254740991]`},
		{"empty containers", ` { "b" : [ ] , "a" : { } } `, `{"a":{},"b":[]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Transform([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("canonical bytes (-want +got):\n%s", diff)
			}
			again, err := Transform(got)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("canonicalizing twice: got %q, %v, want %q", again, err, got)
			}
			theirs, err := peer.Transform([]byte(tc.in))
			if err != nil || string(theirs) != tc.want {
				t.Errorf("gowebpki/jcs differs: got %q, %v, want %q", theirs, err, tc.want)
			}
		})
	}
}

// The appendix's doubles from 2^53 up to 1e21 are left out: they are refused
// (TestMarshalRefusesWhatHasNoSingleMeaning).
func TestMarshalFormatsDoublesAsRFC8785AppendixB(t *testing.T) {
	for _, tc := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		got, err := Marshal(math.Float64frombits(tc.bits))
		if err != nil || string(got) != tc.want {
			t.Errorf("%016x: got %q, %v, want %q", tc.bits, got, err, tc.want)
		}
	}
}

func TestMarshalRefusesWhatHasNoSingleMeaning(t *testing.T) {
	deep := any("x")
	for range maxDepth + 1 {
		deep = []any{deep}
	}
	for _, tc := range []struct {
		name string
		in   any
		want string
	}{
		{"not a number", math.NaN(), "not finite"},
		{"infinity", math.Inf(-1), "not finite"},
		{"an integer past 2^53-1", json.Number("9007199254740992"), "2^53-1"},
		{"an integer past 2^53-1 below zero", json.Number("-9007199254740993"), "2^53-1"},
		{"an integer past 64 bits", json.Number("99999999999999999999"), "2^53-1"},
		{"an int64 past 2^53-1", int64(1 << 53), "2^53-1"},
		{"an int past 2^53-1", -1 << 53, "2^53-1"},
		{"a double that would be written as an unsafe integer", math.Float64frombits(0x4340000000000000), "2^53-1"},
		{"a literal that would be written as one", json.Number("1e17"), "2^53-1"},
		{"the last double before exponents are written", math.Float64frombits(0x444b1ae4d6e2ef4f), "2^53-1"},
		{"an overflow", json.Number("1e400"), "range of a double"},
		{"an underflow", json.Number("1e-400"), "range of a double"},
		{"a literal that JSON has not", json.Number("0x10"), "malformed number"},
		{"a leading zero", json.Number("007"), "malformed number"},
		{"a plus sign", json.Number("+7"), "malformed number"},
		{"an empty literal", json.Number(""), "malformed number"},
		{"invalid UTF-8", "a\xffb", "UTF-8"},
		{"invalid UTF-8 in a name", map[string]any{"a\xff": true}, "UTF-8"},
		{"another type", []string{"a"}, "cannot encode a []string"},
		{"another type inside", []any{map[string]any{"a": uint8(1)}}, "cannot encode a uint8"},
		{"too deep", deep, "levels deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Marshal(tc.in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, %v, want an error with %q", got, err, tc.want)
			}
		})
	}
}

func TestDecodeRefusesWhatIsNotStrictJSON(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
	}{
		{"nothing", "", "unexpected end"},
		{"white space alone", " \n", "unexpected end"},
		{"duplicate member", `{"a":1,"a":1}`, "duplicate member"},
		{"duplicate member, escaped", `{"a":1,"\u0061":1}`, "duplicate member"},
		{"duplicate member deep inside", `[{"b":{"a":1,"c":0,"a":2}}]`, "duplicate member"},
		{"trailing data", `{} {}`, "trailing data"},
		{"trailing comma in an object", `{"a":1,}`, "member name missing"},
		{"trailing comma in an array", `[1,]`, "unexpected byte"},
		{"missing colon", `{"a" 1}`, "colon missing"},
		{"missing comma", `[1 2]`, "comma or closing bracket"},
		{"missing comma in an object", `{"a":1 "b":2}`, "comma or closing brace"},
		{"unquoted name", `{a:1}`, "member name missing"},
		{"single quotes", `'a'`, "unexpected byte"},
		{"a comment", `/* */ 1`, "unexpected byte"},
		{"a byte order mark", "\xef\xbb\xbf{}", "unexpected byte"},
		{"a word", `nul`, "unexpected byte"},
		{"a longer word", `nulls`, "trailing data"},
		{"leading zero", `01`, "malformed number"},
		{"bare minus", `-`, "malformed number"},
		{"bare point", `1.`, "malformed number"},
		{"bare exponent", `1e+`, "malformed number"},
		{"padded number", strings.Repeat("1", maxNumber+1), "malformed number"},
		{"control character", "\"a\nb\"", "control character"},
		{"control character after an escape", "\"\\n\x01\"", "control character"},
		{"unknown escape", `"\x41"`, "unknown escape"},
		{"escape that is not hexadecimal", `"\u00g0"`, "malformed \\u"},
		{"escape at the end", `"\`, "unexpected end"},
		{"half an escape", `"\u00`, "unexpected end"},
		{"lone high surrogate", `"\ud800"`, "lone surrogate"},
		{"lone low surrogate", `"\udc00\ud800"`, "lone surrogate"},
		{"high surrogate and a letter", `"\ud800\u0041"`, "lone surrogate"},
		{"invalid UTF-8", "\"a\xff\"", "UTF-8"},
		{"a surrogate written in UTF-8", "\"\xed\xa0\x80\"", "UTF-8"},
		{"invalid UTF-8 after an escape", "\"\\n\xff\"", "UTF-8"},
		{"open string", `"a`, "unexpected end"},
		{"open array", `[1`, "comma or closing bracket"},
		{"open object", `{"a":`, "unexpected end"},
		{"too deep", strings.Repeat("[", 1<<20), "levels deep"},
		{"too deep in objects", strings.Repeat(`{"a":`, 1<<16), "levels deep"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Decode([]byte(tc.in))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tc.want)
			}
			if len(tc.in) > 0 && err != nil && !strings.HasPrefix(err.Error(), "offset ") {
				t.Errorf("got %v, want an error that says where", err)
			}
		})
	}
}

func TestDecodeKeepsNumbersAsWritten(t *testing.T) {
	got, err := Decode([]byte(`{"a":[1.50,1E2,9007199254740993,-0],"b":"\ud83d\ude00\/","c":null}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{json.Number("1.50"), json.Number("1E2"), json.Number("9007199254740993"), json.Number("-0")},
		"b": "😀/",
		"c": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// FuzzTransform: what is accepted is a fixed point, and gowebpki/jcs, which
// was written independently, agrees on its bytes.
func FuzzTransform(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[true,null,"\u20ac"],"😀":1e21,"\ufb33":0.1}`, `[-0,5e-324,1E400,9007199254740992]`,
		`{"a":1,"\u0061":2}`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", `{"":{"":[]}}`, `1 2`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tree, err := Decode(raw)
		shared, sharedErr := DecodeShared(raw)
		if (err == nil) != (sharedErr == nil) || !reflect.DeepEqual(tree, shared) {
			t.Errorf("DecodeShared differs on %q: got %v (%v), want %v (%v)", raw, shared, sharedErr, tree, err)
		}
		got, err := Transform(raw)
		if err != nil {
			return
		}
		again, err := Transform(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("not a fixed point: %q became %q, %v", got, again, err)
		}
		theirs, err := peer.Transform(raw)
		if err != nil || !bytes.Equal(theirs, got) {
			t.Errorf("gowebpki/jcs differs on %q: got %q, want %q (%v)", raw, theirs, got, err)
		}
		if !json.Valid(got) {
			t.Errorf("not JSON: %q", got)
		}
	})
}
