// Command vectorgen writes the test vectors of gated-fields profile v1, one file
// each, into a directory: what other implementations must make of an object.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/projection/vectors"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("vectorgen: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: vectorgen DIR")
	}
	old, err := filepath.Glob(filepath.Join(os.Args[1], "*.json"))
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			log.Fatal(err)
		}
	}
	for _, in := range inputs {
		v, err := vector(in)
		if err != nil {
			log.Fatalf("%s: %v", in.name, err)
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(os.Args[1], in.name+".json"), b.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func vector(in input) (vectors.Vector, error) {
	text, err := yaml.YAMLToJSONStrict([]byte(in.object))
	if err != nil {
		return vectors.Vector{}, err
	}
	v := vectors.Vector{Why: in.why, Object: text}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var tree map[string]any
	if err := d.Decode(&tree); err != nil {
		return v, err
	}
	p, err := projection.Project(tree)
	var malformed *projection.MalformedError
	if errors.As(err, &malformed) {
		v.Malformed = malformed.Faults[0].Path
		return v, nil
	}
	if err != nil {
		return v, err
	}
	for _, c := range p.Applies() {
		v.Covers = append(v.Covers, string(c))
	}
	canonical, err := p.Canonical(p.Applies())
	if err != nil {
		return v, err
	}
	v.Canonical = string(canonical)
	v.Digest, err = p.Digest(p.Applies())
	return v, err
}
