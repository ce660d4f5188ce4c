// Package jcs encodes decoded JSON values as RFC 8785 bytes (the JSON
// Canonicalization Scheme), and decodes JSON strictly.
//
// Signatures and digests are made over these bytes, so what has no single
// agreed meaning is refused rather than repaired: a duplicate member, invalid
// UTF-8, a lone surrogate, and a number that two readers would take for
// different values (an integer past 2^53-1, which one reads exactly and
// another as the nearest double; anything past the range of a double).
//
// Numbers are formatted by github.com/gowebpki/jcs. Its Transform is not used:
// it reads text, and most of what is encoded here is a tree already; in tests
// the two are compared.
package jcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// maxDepth bounds the nesting of objects and arrays: far above what any
// Kubernetes schema nests, far below what would exhaust a stack.
const maxDepth = 512

// maxSafeInteger is 2^53-1, the largest integer that every reader of JSON
// takes for the same number (RFC 7493, section 2.2).
const maxSafeInteger = 1<<53 - 1

var (
	errTooDeep = fmt.Errorf("nested more than %d levels deep", maxDepth)
	errUTF8    = errors.New("invalid UTF-8")
)

// Marshal returns the RFC 8785 bytes of v, which is made of nil, bool, string,
// json.Number, float64, int, int64, []any and map[string]any. It returns an
// error for any other type and for what the package refuses.
func Marshal(v any) ([]byte, error) {
	return Append(nil, v)
}

// Append appends the RFC 8785 bytes of v to dst, as Marshal returns them. On
// an error the bytes past len(dst) mean nothing.
func Append(dst []byte, v any) ([]byte, error) {
	return appendValue(dst, v, 0)
}

// Transform returns the RFC 8785 bytes of a JSON text. It is Decode followed
// by Marshal.
func Transform(raw []byte) ([]byte, error) {
	v, err := Decode(raw)
	if err != nil {
		return nil, err
	}
	return Marshal(v)
}

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v)
	case json.Number:
		return appendNumber(dst, string(v))
	case float64:
		return appendDouble(dst, v)
	case int:
		return appendInteger(dst, int64(v))
	case int64:
		return appendInteger(dst, v)
	case []any:
		return appendArray(dst, v, depth)
	case map[string]any:
		return appendObject(dst, v, depth)
	}
	return nil, fmt.Errorf("cannot encode a %T", v)
}

func appendArray(dst []byte, list []any, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, err = appendValue(dst, item, depth+1)
		if err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, object map[string]any, depth int) ([]byte, error) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.SortFunc(names, compareNames)
	var err error
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, err = appendString(dst, name)
		if err != nil {
			return nil, err
		}
		dst = append(dst, ':')
		dst, err = appendValue(dst, object[name], depth+1)
		if err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// compareNames orders member names by their UTF-16 code units (RFC 8785,
// section 3.2.3). That is the order of their bytes except that U+E000 to
// U+FFFF come after the characters that UTF-16 writes as two surrogates.
func compareNames(a, b string) int {
	for len(a) > 0 && len(b) > 0 {
		if a[0] < utf8.RuneSelf && a[0] == b[0] {
			a, b = a[1:], b[1:]
			continue
		}
		r, n := utf8.DecodeRuneInString(a)
		s, m := utf8.DecodeRuneInString(b)
		if r == s {
			a, b = a[n:], b[m:]
			continue
		}
		rPair, sPair := r > 0xFFFF, s > 0xFFFF
		switch {
		case rPair && !sPair && s >= 0xE000:
			return -1
		case sPair && !rPair && r >= 0xE000:
			return 1
		case r < s:
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}

const hexDigits = "0123456789abcdef"

// appendString escapes what RFC 8785, section 3.2.2.2 says and nothing else.
func appendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errUTF8
	}
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"'), nil
}

// appendNumber encodes a JSON number literal. An integer is exact or refused;
// a literal with a fraction or an exponent is the double that it names.
func appendNumber(dst []byte, literal string) ([]byte, error) {
	if numberLength(literal) != len(literal) || literal == "" {
		return nil, fmt.Errorf("malformed number %.40q", literal)
	}
	if !strings.ContainsAny(literal, ".eE") {
		n, err := strconv.ParseInt(literal, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("integer %.40q is past 2^53-1", literal)
		}
		return appendInteger(dst, n)
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40q is past the range of a double", literal)
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
	if f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return nil, fmt.Errorf("number %.40q is past the range of a double", literal)
	}
	return appendDouble(dst, f)
}

func appendInteger(dst []byte, n int64) ([]byte, error) {
	if n > maxSafeInteger || n < -maxSafeInteger {
		return nil, fmt.Errorf("integer %d is past 2^53-1", n)
	}
	return strconv.AppendInt(dst, n, 10), nil
}

func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("number is not finite")
	}
	// RFC 8785 would write these as plain integers, which a reader with 64-bit
	// integers takes for another number than the double it came from.
	if abs := math.Abs(f); abs > maxSafeInteger && abs < 1e21 {
		return nil, fmt.Errorf("integer %.0f is past 2^53-1", f)
	}
	s, err := jcs.NumberToJSON(f)
	if err != nil {
		return nil, fmt.Errorf("formatting number: %w", err)
	}
	return append(dst, s...), nil
}
