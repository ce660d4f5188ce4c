package gate

import (
	"fmt"
	"strings"
)

// A Glob matches a string as a whole: '*' stands for any run of characters
// except '/', '**' is not special. It has no other operators, so that a
// subject such as "apps/*/shop/*" can be read at a glance.
type Glob string

// ParseGlob refuses an empty pattern and control characters.
func ParseGlob(s string) (Glob, error) {
	if s == "" {
		return "", fmt.Errorf("empty pattern")
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return "", fmt.Errorf("control character in pattern %q", s)
		}
	}
	return Glob(s), nil
}

// Match reports whether s matches. '*' never crosses a '/'.
func (g Glob) Match(s string) bool {
	p, t := strings.Split(string(g), "/"), strings.Split(s, "/")
	if len(p) != len(t) {
		return false
	}
	for i := range p {
		if !matchSegment(p[i], t[i]) {
			return false
		}
	}
	return true
}

// matchSegment is linear in len(s): on a mismatch it goes back to the last
// star only, which is enough because a later star can take over its job.
func matchSegment(p, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && p[i] == s[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
