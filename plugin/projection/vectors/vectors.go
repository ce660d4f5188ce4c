// Package vectors holds the test vectors of gated-fields profile v1
// (docs/spec/gated-fields.md), for syncgate and for other implementations: an
// object, and the canonical form and digest over every category that applies to
// its kind; or the path at which it is malformed.
package vectors

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:generate go run ../internal/vectorgen .

// FS holds the vectors, one JSON file each.
//
//go:embed *.json
var FS embed.FS

// Vector is one of them.
type Vector struct {
	Name      string          `json:"-"`
	Why       string          `json:"why"`
	Object    json.RawMessage `json:"object"`
	Covers    []string        `json:"covers,omitempty"`
	Canonical string          `json:"canonical,omitempty"`
	Digest    string          `json:"digest,omitempty"`
	Malformed string          `json:"malformed,omitempty"` // path of the first fault
}

// All returns every vector, sorted by name.
func All() ([]Vector, error) {
	names, err := fs.Glob(FS, "*.json")
	if err != nil {
		return nil, err
	}
	out := make([]Vector, len(names))
	for i, name := range names {
		data, err := FS.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &out[i]); err != nil {
			return nil, fmt.Errorf("reading vector %s: %w", name, err)
		}
		out[i].Name = strings.TrimSuffix(name, ".json")
	}
	return out, nil
}
