package render

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// compileGlob compiles a pattern of Argo CD's directory source (gobwas/glob
// without separators): '*' and '**' match any characters, '?' one,
// [abc], [!abc] and [a-z] a set, {a,b} either of two patterns, '\' escapes.
// A pattern that does not parse is an error; Argo CD would skip the file.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxGlob {
		return nil, fmt.Errorf("pattern is longer than %d bytes", maxGlob)
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	depth := 0
	for i := 0; i < len(pattern); {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		switch r {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteString(`.`)
		case '{':
			depth++
			b.WriteString(`(?:`)
		case '}':
			if depth == 0 {
				return nil, fmt.Errorf("pattern %q: unexpected '}'", pattern)
			}
			depth--
			b.WriteString(`)`)
		case ',':
			if depth > 0 {
				b.WriteString(`|`)
			} else {
				b.WriteString(`,`)
			}
		case '[':
			end := strings.IndexByte(pattern[i:], ']')
			if end <= 0 {
				return nil, fmt.Errorf("pattern %q: '[' without ']'", pattern)
			}
			b.WriteString(set(pattern[i : i+end]))
			i += end + 1
		case '\\':
			if i == len(pattern) {
				return nil, fmt.Errorf("pattern %q ends in '\\'", pattern)
			}
			r, size := utf8.DecodeRuneInString(pattern[i:])
			i += size
			b.WriteString(regexp.QuoteMeta(string(r)))
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("pattern %q: '{' without '}'", pattern)
	}
	b.WriteString(`$`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("pattern %q is not a glob", pattern)
	}
	return re, nil
}

// maxGlob is far above any pattern that a person writes.
const maxGlob = 4096

func set(body string) string {
	not := ""
	if rest, ok := strings.CutPrefix(body, "!"); ok {
		not, body = "^", rest
	}
	body = strings.NewReplacer(`\`, `\\`, `^`, `\^`, `[`, `\[`).Replace(body)
	return "[" + not + body + "]"
}
