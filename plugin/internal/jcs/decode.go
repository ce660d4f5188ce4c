package jcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

var errUnexpectedEnd = errors.New("unexpected end of JSON")

// Decode decodes exactly one JSON value (RFC 8259) into nil, bool, string,
// json.Number, []any and map[string]any. It returns an error for a duplicate
// member, invalid UTF-8, a lone surrogate, trailing data, and nesting past 512
// levels. Numbers are kept as they are written.
//
// Errors carry the byte offset. The caller bounds the size of raw.
func Decode(raw []byte) (any, error) {
	d := decoder{raw: raw}
	return d.all()
}

// DecodeShared is Decode, but the strings of the tree are parts of one copy of
// raw: whoever keeps one of them keeps all.
func DecodeShared(raw []byte) (any, error) {
	d := decoder{raw: raw, shared: string(raw)}
	return d.all()
}

func (d *decoder) all() (any, error) {
	v, err := d.document()
	if err != nil {
		return nil, fmt.Errorf("offset %d: %w", d.pos, err)
	}
	return v, nil
}

type decoder struct {
	raw    []byte
	shared string // of the same bytes, to take strings from; or empty
	pos    int
}

// part is what stands from one byte to another, as a string.
func (d *decoder) part(from, to int) string {
	if d.shared != "" {
		return d.shared[from:to]
	}
	return string(d.raw[from:to])
}

func (d *decoder) document() (any, error) {
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	d.space()
	if d.pos != len(d.raw) {
		return nil, errors.New("trailing data")
	}
	return v, nil
}

func (d *decoder) space() {
	for d.pos < len(d.raw) {
		switch d.raw[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// take consumes c after white space and reports whether it was there.
func (d *decoder) take(c byte) bool {
	d.space()
	if d.pos < len(d.raw) && d.raw[d.pos] == c {
		d.pos++
		return true
	}
	return false
}

func (d *decoder) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	d.space()
	if d.pos == len(d.raw) {
		return nil, errUnexpectedEnd
	}
	switch c := d.raw[d.pos]; {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		return d.text()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	}
	switch {
	case d.word("true"):
		return true, nil
	case d.word("false"):
		return false, nil
	case d.word("null"):
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected byte %q", d.raw[d.pos:d.pos+1])
}

// word consumes w and reports whether it was there.
func (d *decoder) word(w string) bool {
	if len(d.raw)-d.pos < len(w) || string(d.raw[d.pos:d.pos+len(w)]) != w {
		return false
	}
	d.pos += len(w)
	return true
}

func (d *decoder) object(depth int) (map[string]any, error) {
	d.pos++
	object := map[string]any{}
	if d.take('}') {
		return object, nil
	}
	for {
		d.space()
		if d.pos == len(d.raw) || d.raw[d.pos] != '"' {
			return nil, errors.New("member name missing")
		}
		name, err := d.text()
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("duplicate member %.80q", name)
		}
		if !d.take(':') {
			return nil, errors.New("colon missing")
		}
		object[name], err = d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if d.take('}') {
			return object, nil
		}
		if !d.take(',') {
			return nil, errors.New("comma or closing brace missing")
		}
	}
}

func (d *decoder) array(depth int) ([]any, error) {
	d.pos++
	list := []any{}
	if d.take(']') {
		return list, nil
	}
	for {
		item, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
		if d.take(']') {
			return list, nil
		}
		if !d.take(',') {
			return nil, errors.New("comma or closing bracket missing")
		}
	}
}

func (d *decoder) number() (json.Number, error) {
	n := numberLength(d.raw[d.pos:min(len(d.raw), d.pos+maxNumber)])
	if n == 0 {
		return "", errors.New("malformed number")
	}
	literal := json.Number(d.part(d.pos, d.pos+n))
	d.pos += n
	if d.pos < len(d.raw) {
		switch c := d.raw[d.pos]; {
		case c >= '0' && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
			return "", errors.New("malformed number")
		}
	}
	return literal, nil
}

// maxNumber bounds a number literal: 17 digits tell any double apart from the
// next, so a longer literal than this is padding.
const maxNumber = 1024

// numberLength returns the length of the longest prefix of s that is a number
// of RFC 8259, section 6, or 0.
func numberLength[T string | []byte](s T) int {
	i := 0
	digits := func() bool {
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return 0
	}
	end := i
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return end
		}
		end = i
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return end
		}
		end = i
	}
	return end
}

// text decodes a string, the opening quote of which is at d.pos.
func (d *decoder) text() (string, error) {
	d.pos++
	start := d.pos
	var all byte // the bits of all bytes
	for i := start; i < len(d.raw); i++ {
		c := d.raw[i]
		all |= c
		switch {
		case c == '"':
			if all >= utf8.RuneSelf && !utf8.Valid(d.raw[start:i]) {
				return "", errUTF8
			}
			d.pos = i + 1
			return d.part(start, i), nil
		case c == '\\':
			return d.escapedText(start, i)
		case c < 0x20:
			d.pos = i
			return "", errors.New("control character in string")
		}
	}
	return "", errUnexpectedEnd
}

// escapedText goes on where text met the first backslash.
func (d *decoder) escapedText(start, at int) (string, error) {
	out := append([]byte(nil), d.raw[start:at]...)
	d.pos = at
	for d.pos < len(d.raw) {
		c := d.raw[d.pos]
		switch {
		case c == '"':
			d.pos++
			if !utf8.Valid(out) {
				return "", errUTF8
			}
			return string(out), nil
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < 0x20:
			return "", errors.New("control character in string")
		default:
			out = append(out, c)
			d.pos++
		}
	}
	return "", errUnexpectedEnd
}

func (d *decoder) escape() (rune, error) {
	if d.pos+1 >= len(d.raw) {
		return 0, errUnexpectedEnd
	}
	c := d.raw[d.pos+1]
	d.pos += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, fmt.Errorf("unknown escape %q", string([]byte{'\\', c}))
	}
	r, err := d.hex4()
	if err != nil {
		return 0, err
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if d.pos+2 > len(d.raw) || d.raw[d.pos] != '\\' || d.raw[d.pos+1] != 'u' {
		return 0, errLoneSurrogate
	}
	d.pos += 2
	low, err := d.hex4()
	if err != nil {
		return 0, err
	}
	pair := utf16.DecodeRune(r, low)
	if pair == utf8.RuneError {
		return 0, errLoneSurrogate
	}
	return pair, nil
}

var errLoneSurrogate = errors.New("lone surrogate")

func (d *decoder) hex4() (rune, error) {
	if d.pos+4 > len(d.raw) {
		return 0, errUnexpectedEnd
	}
	var r rune
	for _, c := range d.raw[d.pos : d.pos+4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, errors.New("malformed \\u escape")
		}
	}
	d.pos += 4
	return r, nil
}
