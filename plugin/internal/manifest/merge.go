package manifest

import (
	"strconv"

	yaml2 "go.yaml.in/yaml/v2"
	yaml3 "go.yaml.in/yaml/v3"
)

// mergeConflict looks through a document with merge keys for what strict
// decoding cannot tell from a legitimate override: a key written twice in one
// map, and a key that stands before the merge which sets it too (the YAML
// specification lets the key win, the API server's parser the merge).
func mergeConflict(text []byte) *yamlError {
	var doc yaml3.Node
	err := yaml3.Unmarshal(text, &doc)
	if err != nil {
		return describeYAML(err)
	}
	m := merges{keys: map[*yaml3.Node]map[string]bool{}}
	return m.check(&doc, 0)
}

type merges struct {
	keys map[*yaml3.Node]map[string]bool // of a mapping, merged ones included
}

// check does not follow aliases: what they name is checked where it stands.
func (m merges) check(n *yaml3.Node, depth int) *yamlError {
	if depth > MaxDepth {
		return &yamlError{line: n.Line, msg: "nested deeper than " + strconv.Itoa(MaxDepth) + " levels"}
	}
	if n.Kind == yaml3.MappingNode {
		if err := m.mapping(n); err != nil {
			return err
		}
	}
	for _, child := range n.Content {
		if err := m.check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (m merges) mapping(n *yaml3.Node) *yamlError {
	seen := map[string]bool{}
	merged := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			if merged {
				return &yamlError{line: key.Line, msg: `duplicate key "<<"`}
			}
			merged = true
			for k := range m.of(value, 0) {
				if seen[k] {
					return &yamlError{line: key.Line, msg: "key " + quote(k) + " stands before the merge key << that sets it too; parsers disagree which wins"}
				}
			}
			continue
		}
		if key.Style&yaml3.TaggedStyle != 0 {
			return &yamlError{line: key.Line, msg: "a key with a tag in a document with merge keys"}
		}
		k, ok := nodeKey(key)
		if !ok {
			continue // not a scalar: decoding refuses it
		}
		if seen[k] {
			return &yamlError{line: key.Line, msg: "duplicate key " + quote(k)}
		}
		seen[k] = true
	}
	return nil
}

// of returns the keys that merging n brings. The result for a mapping is kept,
// or aliases of aliases would take exponential time.
func (m merges) of(n *yaml3.Node, depth int) map[string]bool {
	if n == nil || depth > MaxDepth {
		return nil
	}
	switch n.Kind {
	case yaml3.AliasNode:
		return m.of(n.Alias, depth+1)
	case yaml3.SequenceNode:
		all := map[string]bool{}
		for _, child := range n.Content {
			for k := range m.of(child, depth+1) {
				all[k] = true
			}
		}
		return all
	case yaml3.MappingNode:
		if known, ok := m.keys[n]; ok {
			return known
		}
		all := map[string]bool{}
		m.keys[n] = all // before going on: a map may merge itself
		for i := 0; i+1 < len(n.Content); i += 2 {
			if isMerge(n.Content[i]) {
				for k := range m.of(n.Content[i+1], depth+1) {
					all[k] = true
				}
			} else if k, ok := nodeKey(n.Content[i]); ok {
				all[k] = true
			}
		}
		return all
	}
	return nil
}

func isMerge(n *yaml3.Node) bool {
	return n.Kind == yaml3.ScalarNode && n.Value == "<<" && n.ShortTag() == "!!merge"
}

// nodeKey returns a scalar key as it stands in JSON. A plain one is resolved
// by the parser that decodes the document: yes and true are one key.
func nodeKey(n *yaml3.Node) (string, bool) {
	if n.Kind == yaml3.AliasNode {
		n = n.Alias
	}
	if n == nil || n.Kind != yaml3.ScalarNode {
		return "", false
	}
	if n.Style&(yaml3.DoubleQuotedStyle|yaml3.SingleQuotedStyle|yaml3.LiteralStyle|yaml3.FoldedStyle) != 0 {
		return n.Value, true
	}
	var v any
	if err := yaml2.Unmarshal([]byte(n.Value), &v); err != nil {
		return n.Value, true
	}
	return keyText(v)
}
