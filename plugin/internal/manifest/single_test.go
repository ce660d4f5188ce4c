package manifest

import (
	"errors"
	"testing"
)

func TestSingleDocument(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		several    bool
	}{
		{"nothing", "", false},
		{"one", "a: 1\n", false},
		{"one with a marker", "# values\n---\na: 1\n", false},
		{"one with both markers", "---\na: 1\n...\n", false},
		{"one with a marker at its end", "a: 1\n---\n", false},
		{"a comment after it", "a: 1\n---\n# b: 2\n", false},
		{"a marker in a text", "a: |\n  x\n  ---\n  b: 2\n", false},
		{"dashes in a key", "a---b: 1\n", false},
		{"two", "a: 1\n---\na: 2\n", true},
		{"two with other line ends", "a: 1\r\n---\r\na: 2\r\n", true},
		{"two with an old line break, which a search for lines does not see", "a: 1\r---\ra: 2\r", true},
		{"two with a comment at the marker", "a: 1\n--- # more\na: 2\n", true},
		{"two by an end marker", "a: 1\n...\n---\na: 2\n", true},
		{"the second on the marker's line", "a: 1\n--- {a: 2}\n", true},
		{"an empty one first, which is all that Helm 3 reads", "---\n---\na: 1\n", true},
		{"the second is no map", "a: 1\n---\nfalse\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := SingleDocument([]byte(tc.text))
			if got := errors.Is(err, ErrSeveralDocuments); got != tc.several || !got && err != nil {
				t.Errorf("got %v, want several documents: %t", err, tc.several)
			}
		})
	}
	// Cut at the marker, as Helm 4 does it, either part is good YAML.
	if err := SingleDocument([]byte("a: 1\n---\f\na: 2\n")); err == nil {
		t.Error("text whose first document cannot be read passes")
	}
}
