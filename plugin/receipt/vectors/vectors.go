// Package vectors holds the test vectors of the receipt format, for other
// implementations as well: README.md says how a file is read. Each tests one
// thing.
package vectors

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:generate go run ../internal/vectorgen

// FS holds the files: NAME.txt is a vector, issuers/SET.json what its issuers
// are.
//
//go:embed *.txt issuers/*.json
var FS embed.FS

// Vector is one file.
type Vector struct {
	Name     string
	Expect   string // "valid", or the kind of the failure, a receipt.Kind
	Comment  string // why
	Kind     string // "receipt" or "revocations"
	Issuers  string // the set that it is verified with
	Readable bool   // whether reading it without verifying succeeds
	Raw      string // the receipt or revocation list, which may not be one
}

// Issuer is one issuer of a set.
type Issuer struct {
	Name       string          `json:"name"`
	Algorithms []string        `json:"algorithms"` // empty: all
	JWKS       json.RawMessage `json:"jwks"`       // RFC 7517
}

// All returns every vector, sorted by name.
func All() ([]Vector, error) {
	names, err := fs.Glob(FS, "*.txt")
	if err != nil {
		return nil, fmt.Errorf("listing vectors: %w", err)
	}
	var list []Vector
	for _, name := range names {
		data, err := FS.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading vector: %w", err)
		}
		v, err := parse(string(data))
		if err != nil {
			return nil, fmt.Errorf("parsing vector %s: %w", name, err)
		}
		v.Name = strings.TrimSuffix(name, ".txt")
		list = append(list, v)
	}
	return list, nil
}

func parse(text string) (Vector, error) {
	head, raw, ok := strings.Cut(text, "\n\n")
	if !ok {
		return Vector{}, fmt.Errorf("no blank line")
	}
	v := Vector{Raw: raw}
	for _, line := range strings.Split(head, "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "expect":
			v.Expect = value
		case "comment":
			v.Comment = value
		case "kind":
			v.Kind = value
		case "issuers":
			v.Issuers = value
		case "unverified":
			v.Readable = value == "readable"
		default:
			return Vector{}, fmt.Errorf("unknown header line %q", line)
		}
	}
	return v, nil
}

// IssuerSet returns a set of issuers by name, in the order of the file.
func IssuerSet(name string) ([]Issuer, error) {
	data, err := FS.ReadFile(path.Join("issuers", name+".json"))
	if err != nil {
		return nil, fmt.Errorf("reading issuers: %w", err)
	}
	var set struct {
		Issuers []Issuer `json:"issuers"`
	}
	err = json.Unmarshal(data, &set)
	if err != nil {
		return nil, fmt.Errorf("parsing issuers %q: %w", name, err)
	}
	return set.Issuers, nil
}
