package projection

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns the RFC 8785 bytes of p restricted to covers. Covers need
// not be sorted; a category twice, or one that does not apply to the kind, is
// an error, because a receipt that says so was not made for this object.
func (p *Projection) Canonical(covers []Category) ([]byte, error) {
	if !p.Valid() {
		return nil, fmt.Errorf("no projection")
	}
	cs := slices.Clone(covers)
	slices.Sort(cs)
	for i, c := range cs {
		if i > 0 && cs[i-1] == c {
			return nil, fmt.Errorf("category %s is covered twice", c)
		}
		if !p.appliesTo(c) {
			return nil, fmt.Errorf("category %s does not apply", c)
		}
	}
	b := make([]byte, 0, 64+96*len(p.leaves))
	b = append(b, `{"fields":{`...)
	for i, c := range cs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, string(c))
		b = append(b, ':', '{')
		for j, l := range p.In(c) {
			if j > 0 {
				b = append(b, ',')
			}
			b = appendString(b, l.Path)
			b = append(b, ':')
			b = appendValue(b, l.Value)
		}
		b = append(b, '}')
	}
	return append(b, `},"profile":"`+Profile+`"}`...), nil
}

// Digest returns the projection digest restricted to covers: "sha256:" and 64
// lower-case hex digits.
func (p *Projection) Digest(covers []Category) (string, error) {
	b, err := p.Canonical(covers)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

func (p *Projection) appliesTo(c Category) bool {
	for _, a := range p.applies {
		if a == c {
			return true
		}
	}
	return false
}

// ShortHash returns the first 8 bytes, in base64url, of the SHA-256 of the
// canonical form of the leaf's value: what a receipt's leaves claim holds.
func (l Leaf) ShortHash() string {
	sum := sha256.Sum256(appendValue(nil, l.Value))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// appendValue appends the RFC 8785 form of a normalised value.
func appendValue(b []byte, v any) []byte {
	switch t := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if t {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case string:
		return appendString(b, t)
	case json.Number:
		return append(b, t...) // already in its shortest form
	case []any:
		b = append(b, '[')
		for i, x := range t {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, x)
		}
		return append(b, ']')
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		slices.SortFunc(keys, comparePaths)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, k)
			b = append(b, ':')
			b = appendValue(b, t[k])
		}
		return append(b, '}')
	}
	// Normalising admits nothing else; a value that cannot be told apart
	// from another would be worse than a panic that the callers recover.
	panic(fmt.Sprintf("projection: value of type %T in a leaf", v))
}

const hexDigits = "0123456789abcdef"

// appendString appends s as RFC 8785 section 3.2.2.2 writes it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// comparePaths orders member names as RFC 8785 section 3.2.3 does: by UTF-16
// code units. For all text without surrogate pairs that is the order of the
// bytes.
func comparePaths(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) || a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
		return strings.Compare(a[i:], b[i:])
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
