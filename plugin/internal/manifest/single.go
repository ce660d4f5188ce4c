package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yaml "go.yaml.in/yaml/v2"
)

// ErrSeveralDocuments is why text that is meant to be one document is refused.
var ErrSeveralDocuments = errors.New("holds several YAML documents, of which Helm 3 reads the first alone and Helm 4 all: leave one")

// SingleDocument returns [ErrSeveralDocuments] if the text, such as values of a
// chart, holds another document with content after the first. Readers differ
// about it: some take the first alone and say nothing, some merge them all. An
// empty document before or after is none, but one before hides the next from
// readers of the first. What is no YAML at all is an error only where it could
// hide a document; the reader of the text says what is wrong elsewhere.
func SingleDocument(text []byte) error {
	// Without a marker there is no second document, and most text has none. In
	// UTF-16 none is seen: there neither Helm 3 nor Helm 4 looks further.
	if !bytes.Contains(text, []byte("---")) && !bytes.Contains(text, []byte("...")) {
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for first := true; ; first = false {
		var value any
		err := d.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading YAML: %w", err)
		case !first && value != nil:
			return ErrSeveralDocuments
		}
	}
}
