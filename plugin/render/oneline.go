package render

import (
	"strings"
	"unicode"
)

// maxError bounds the text of an error, in bytes. kustomize repeats itself
// once for each base it was in; what matters stands at the beginning.
const maxError = 1000

// oneLine folds white space and drops control characters.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "..."
	}
	return s
}
