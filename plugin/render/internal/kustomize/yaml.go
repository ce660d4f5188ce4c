package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resource"
)

// maxNodes bounds a document with its aliases written out: kustomize copies
// what each alias points to, and nine lines of YAML can make a billion nodes.
// The largest document of the public corpus has under 100,000.
const maxNodes = 1_000_000

// maxDocuments bounds the documents of one file.
const maxDocuments = 10_000

func documents(data []byte) ([]*yaml.Node, error) {
	var docs []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(docs) == maxDocuments {
			return nil, fmt.Errorf("more than %d documents", maxDocuments)
		}
		if len(n.Content) == 1 && n.Content[0].ShortTag() != "!!null" {
			docs = append(docs, n.Content[0])
		}
	}
}

// checkYAML refuses alias bombs and, if unique is set, duplicate keys. Text
// that is not YAML passes: kustomize, which knows what the file is for, says
// better what is wrong with it.
func checkYAML(data []byte, unique bool) error {
	docs, err := documents(data)
	if err != nil {
		return nil
	}
	for _, d := range docs {
		if err := checkNode(d, unique); err != nil {
			return err
		}
	}
	return nil
}

func checkNode(n *yaml.Node, unique bool) error {
	c := checker{unique: unique, size: map[*yaml.Node]int{}}
	size, err := c.walk(n)
	if err != nil {
		return err
	}
	if size > maxNodes {
		return fmt.Errorf("line %d: more than %d values once its aliases are written out", n.Line, maxNodes)
	}
	return nil
}

type checker struct {
	unique bool
	size   map[*yaml.Node]int // of anchored nodes; 0 while being walked
}

// walk returns the number of nodes under n with aliases written out.
func (c *checker) walk(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		size, seen := c.size[n.Alias]
		if seen && size == 0 {
			return 0, fmt.Errorf("line %d: anchor %q contains itself", n.Line, n.Value)
		}
		if seen {
			return size, nil
		}
		return c.walk(n.Alias)
	}
	if n.Anchor != "" {
		c.size[n] = 0
	}
	if c.unique && n.Kind == yaml.MappingNode {
		if err := uniqueKeys(n); err != nil {
			return 0, err
		}
	}
	size := 1
	for _, child := range n.Content {
		s, err := c.walk(child)
		if err != nil {
			return 0, err
		}
		size = min(size+s, maxNodes+1)
	}
	if n.Anchor != "" {
		c.size[n] = size
	}
	return size, nil
}

func uniqueKeys(n *yaml.Node) error {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if line, ok := seen[key.Value]; ok {
			return fmt.Errorf("line %d: key %q is already on line %d", key.Line, key.Value, line)
		}
		seen[key.Value] = key.Line
	}
	return nil
}

// Tree is a resource as the objects of Build have it.
func Tree(r *resource.Resource) (map[string]any, error) { return object(r) }

// object returns a resource as raw JSON with its numbers as they are written.
// kustomize's own way goes through float64, which turns 1.10 into 1.1.
func object(r *resource.Resource) (map[string]any, error) {
	n := r.YNode()
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, errors.New("not an object")
	}
	v, err := value(n)
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil // value makes a map of a MappingNode, or fails
}

func value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		if err := uniqueKeys(n); err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				return nil, fmt.Errorf("key %q is not a string", key.Value)
			}
			v, err := value(n.Content[i+1])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key.Value, err)
			}
			m[key.Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			v, err := value(item)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			list[i] = v
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n)
	case yaml.AliasNode:
		// kustomize has written out the aliases of everything it loads.
		return nil, fmt.Errorf("alias %q is left over", n.Value)
	default:
		return nil, errors.New("not a YAML value")
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!str":
		if !utf8.ValidString(n.Value) {
			return nil, errors.New("not valid UTF-8")
		}
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value), nil
		}
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("not valid UTF-8")
		}
		return v, nil
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, fmt.Errorf("%q has no form in JSON", n.Value)
		}
	}
	// Octal and hexadecimal integers, ".5", and timestamps: as kustomize
	// writes them, which is by encoding/json.
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if s, ok := strings.CutPrefix(string(text), `"`); ok {
		return strings.TrimSuffix(s, `"`), nil // a time: no escapes in it
	}
	return json.Number(text), nil
}
