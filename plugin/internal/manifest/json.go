package manifest

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonParser reads JSON values into trees. encoding/json keeps the last of two
// equal keys, replaces invalid UTF-8 and folds nothing that could be told from
// the result, so it cannot be used here; its tokens are four times slower.
type jsonParser struct {
	data []byte
	pos  int
}

// jsonError is a fault at an offset. A syntax fault means that the text is not
// JSON, any other that it is JSON but not allowed.
type jsonError struct {
	offset int
	msg    string
	syntax bool
}

func (p *jsonParser) syntax(format string, args ...any) *jsonError {
	return &jsonError{p.pos, "reading JSON: " + fmt.Sprintf(format, args...), true}
}

func (p *jsonParser) refuse(format string, args ...any) *jsonError {
	return &jsonError{p.pos, fmt.Sprintf(format, args...), false}
}

// more skips white space and reports whether anything follows.
func (p *jsonParser) more() bool {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return true
		}
	}
	return false
}

// next skips white space and returns the next byte, 0 at the end.
func (p *jsonParser) next() byte {
	if !p.more() {
		return 0
	}
	return p.data[p.pos]
}

// value reads one value; depth counts the maps and lists around it. At depth
// 0 only an object is JSON to kubectl.
func (p *jsonParser) value(depth int) (any, *jsonError) {
	if depth > MaxDepth {
		return nil, p.refuse("nested deeper than %d levels", MaxDepth)
	}
	c := p.next()
	switch {
	case c == '{':
		return p.object(depth)
	case depth == 0:
		return nil, p.syntax("want an object, got %q", c)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.str()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return true, p.literal("true")
	case c == 'f':
		return false, p.literal("false")
	case c == 'n':
		return nil, p.literal("null")
	}
	return nil, p.syntax("want a value, got %q", c)
}

func (p *jsonParser) object(depth int) (any, *jsonError) {
	p.pos++
	m := map[string]any{}
	if p.next() == '}' {
		p.pos++
		return m, nil
	}
	for {
		if c := p.next(); c != '"' {
			return nil, p.syntax("want a key, got %q", c)
		}
		at := p.pos
		key, err := p.str()
		if err != nil {
			return nil, err
		}
		if c := p.next(); c != ':' {
			return nil, p.syntax("want ':' after a key, got %q", c)
		}
		p.pos++
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if _, dup := m[key]; dup {
			p.pos = at
			return nil, p.refuse("duplicate key %s", quote(key))
		}
		m[key] = value
		switch c := p.next(); c {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return m, nil
		default:
			return nil, p.syntax("want ',' or '}', got %q", c)
		}
	}
}

func (p *jsonParser) array(depth int) (any, *jsonError) {
	p.pos++
	list := []any{}
	if p.next() == ']' {
		p.pos++
		return list, nil
	}
	for {
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		switch c := p.next(); c {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return list, nil
		default:
			return nil, p.syntax("want ',' or ']', got %q", c)
		}
	}
}

func (p *jsonParser) literal(want string) *jsonError {
	if len(p.data)-p.pos < len(want) || string(p.data[p.pos:p.pos+len(want)]) != want {
		return p.syntax("want %s", want)
	}
	p.pos += len(want)
	return nil
}

// str reads a string; most hold neither escapes nor anything but ASCII.
func (p *jsonParser) str() (string, *jsonError) {
	start := p.pos + 1
	ascii := true
	for i := start; i < len(p.data); i++ {
		switch c := p.data[i]; {
		case c == '"':
			p.pos = i + 1
			return p.text(p.data[start:i], ascii)
		case c == '\\':
			p.pos = i
			return p.escaped(start)
		case c < ' ':
			p.pos = i
			return "", p.syntax("control character in a string")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	p.pos = len(p.data)
	return "", p.syntax("string without end")
}

// escaped goes on with a string at its first backslash.
func (p *jsonParser) escaped(start int) (string, *jsonError) {
	out := append(make([]byte, 0, 2*(p.pos-start)+16), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		p.pos++
		switch {
		case c == '"':
			return p.text(out, false)
		case c < ' ':
			return "", p.syntax("control character in a string")
		case c != '\\':
			out = append(out, c)
			continue
		}
		if p.pos == len(p.data) {
			break
		}
		e := p.data[p.pos]
		p.pos++
		if e == 'u' {
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		plain, ok := escapes[e]
		if !ok {
			return "", p.syntax("unknown escape %q", e)
		}
		out = append(out, plain)
	}
	return "", p.syntax("string without end")
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unicode reads the rest of \uXXXX, and the second half of a surrogate pair.
// Half a pair is no character: encoding/json would put U+FFFD in its place.
func (p *jsonParser) unicode() (rune, *jsonError) {
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if len(p.data)-p.pos < 6 || p.data[p.pos] != '\\' || p.data[p.pos+1] != 'u' {
		return 0, p.refuse("unpaired surrogate in a string")
	}
	p.pos += 2
	low, err := p.hex4()
	if err != nil {
		return 0, err
	}
	r = utf16.DecodeRune(r, low)
	if r == utf8.RuneError {
		return 0, p.refuse("unpaired surrogate in a string")
	}
	return r, nil
}

func (p *jsonParser) hex4() (rune, *jsonError) {
	if len(p.data)-p.pos < 4 {
		return 0, p.syntax("string without end")
	}
	var r rune
	for _, c := range p.data[p.pos : p.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, p.syntax("want four hexadecimal digits after \\u")
		}
	}
	p.pos += 4
	return r, nil
}

func (p *jsonParser) text(b []byte, ascii bool) (string, *jsonError) {
	if !ascii && !utf8.Valid(b) {
		return "", p.refuse("invalid UTF-8 in a string")
	}
	return string(b), nil
}

// number keeps a number as it is written.
func (p *jsonParser) number() (any, *jsonError) {
	n := numberLen(p.data[p.pos:])
	if n == 0 {
		return nil, p.syntax("malformed number")
	}
	s := json.Number(p.data[p.pos : p.pos+n])
	p.pos += n
	return s, nil
}

// numberLen returns the length of the JSON number that b starts with, 0 if
// there is none.
func numberLen(b []byte) int {
	i := 0
	digits := func() bool {
		start := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return 0
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return 0
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return 0
		}
	}
	return i
}
