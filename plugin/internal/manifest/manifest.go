// Package manifest decodes a stream of Kubernetes manifests into raw trees
// and encodes trees as a stream again, so that what is evaluated is exactly
// what is written out.
//
// A tree is decoded JSON: map[string]any, []any, string, bool, nil, and
// [encoding/json.Number] for every number. YAML means here what the parsers
// in front of the API server take it to mean (sigs.k8s.io/yaml: YAML 1.1
// booleans, leading-zero octal, merge keys); whatever two of those parsers
// could read differently is refused. Lists are flattened one level, as Argo CD
// does.
package manifest

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of one stream. They bound memory before work is done: a decoded YAML
// document takes up to some sixty times its size.
const (
	// MaxStream is the size of a stream in bytes, and also (roughly) of the JSON
	// that its YAML may become: aliases cannot multiply what was committed.
	MaxStream = 64 << 20
	// MaxDocument is the size of one YAML document in bytes; the API server
	// takes 3 MiB a request, a List of everything in a cluster may be larger.
	MaxDocument = 16 << 20
	// MaxDepth is how deep maps and lists may be nested. The deepest schemas
	// of real CustomResourceDefinitions stay below 100.
	MaxDepth = 256
	// MaxObjects is the number of objects in a stream.
	MaxObjects = 50_000
)

// Object is one Kubernetes object: it has an apiVersion, a kind, and a name or
// a generateName, all non-empty strings. The zero value has none of these and
// its methods return "".
type Object struct {
	// Tree is the object, decoded; see the package comment for its types.
	Tree map[string]any
	// File and Document (from 1) say where the object came from. The items of
	// a List share a document; 0 is for what is not a document of that file, but
	// was built by it.
	File     string
	Document int
	// Source is the file that it was written in, where File built it and that is
	// known; for messages.
	Source string
}

// Group returns the API group, "" for the core group.
func (o Object) Group() string {
	group, _, found := strings.Cut(text(o.Tree, "apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// Version returns the API version without the group, for example "v1".
func (o Object) Version() string {
	v := text(o.Tree, "apiVersion")
	if _, version, found := strings.Cut(v, "/"); found {
		return version
	}
	return v
}

// Kind returns the kind, for example "Deployment".
func (o Object) Kind() string { return text(o.Tree, "kind") }

// Namespace returns metadata.namespace, "" if there is none.
func (o Object) Namespace() string { return o.metadata("namespace") }

// Name returns metadata.name, "" if there is only a generateName.
func (o Object) Name() string { return o.metadata("name") }

// GenerateName returns metadata.generateName, "" if there is none.
func (o Object) GenerateName() string { return o.metadata("generateName") }

// Where returns the object's origin for people: "deploy.yaml document 2", or only
// the file.
func (o Object) Where() string {
	if o.Source != "" {
		return printable(o.Source)
	}
	return where(o.File, o.Document)
}

func (o Object) metadata(key string) string {
	m, _ := o.Tree["metadata"].(map[string]any)
	return text(m, key)
}

// text returns the string under key, "" if there is none.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// where names a place in a stream. A file name comes from a repository: it is
// quoted if it could be mistaken for anything else.
func where(file string, document int) string {
	if document == 0 {
		return printable(file)
	}
	return fmt.Sprintf("%s document %d", printable(file), document)
}

func printable(file string) string {
	for _, r := range file {
		if r <= ' ' || r > '~' || r == '"' {
			return strconv.QuoteToASCII(file)
		}
	}
	if file == "" {
		return `""`
	}
	return file
}
