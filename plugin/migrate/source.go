package migrate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// blocks are the native renderers, in the order in which they are looked for.
var blocks = []string{"kustomize", "helm", "directory"}

const plugin = "plugin"

// mover turns one source.
type mover struct {
	at          string // where the source is: "spec.source"
	environment string
	cannot      []Finding
}

func (m *mover) refuse(field string, s Setting) {
	m.cannot = append(m.cannot, Finding{m.at + "." + field, s.Why, s.Do})
}

// member returns the index of a key of a mapping in its Content, or -1.
func member(n *yaml.Node, name string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// get returns the value of a key, with aliases followed, or nil.
func get(n *yaml.Node, names ...string) *yaml.Node {
	n = followed(n)
	for _, name := range names {
		i := member(n, name)
		if i < 0 {
			return nil
		}
		n = followed(n.Content[i+1])
	}
	return n
}

func followed(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// empty reports whether a value is as good as none.
func empty(n *yaml.Node) bool {
	switch {
	case n == nil:
		return true
	case n.Kind == yaml.ScalarNode:
		return n.Value == "" || n.Tag == "!!null" || n.Tag == "!!bool" && n.Value == "false"
	}
	return len(n.Content) == 0
}

// plugin returns the entry (key, value) that takes the place of the source's
// native block, and the name of that block, "" if there is none. It returns nil
// if the source names the plugin already, or cannot move.
func (m *mover) plugin(source *yaml.Node) (key, value *yaml.Node, block string) {
	for _, name := range []string{"chart", "ref"} {
		if !empty(get(source, name)) {
			s, _ := of(name)
			m.refuse(name, s)
		}
	}
	if p := get(source, plugin); p != nil {
		if name := get(p, "name"); empty(p) || name == nil || name.Value != "syncgate" && !strings.HasPrefix(name.Value, "syncgate-") {
			m.refuse(plugin, specially(plugin))
		}
		return nil, nil, ""
	}
	for _, name := range blocks {
		if get(source, name) == nil || get(source, name).Tag == "!!null" {
			continue
		}
		if block != "" {
			m.cannot = append(m.cannot, Finding{m.at, "it has " + block + " and " + name + ", which exclude each other", "keep the one that is meant"})
			return nil, nil, ""
		}
		block = name
	}
	var parameters []*yaml.Node
	key = word(plugin)
	if block != "" {
		i := member(source, block)
		key.HeadComment, key.LineComment, key.FootComment = source.Content[i].HeadComment, source.Content[i].LineComment, source.Content[i].FootComment
		parameters = m.parameters(block, get(source, block))
	}
	if len(m.cannot) > 0 {
		return nil, nil, ""
	}
	value = mapping(word("name"), word("syncgate"))
	if m.environment != "" {
		entry := mapping(word("name"), word("SYNCGATE_ENVIRONMENT"), word("value"), word(m.environment))
		value.Content = append(value.Content, word("env"), &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}})
	}
	if len(parameters) > 0 {
		value.Content = append(value.Content, word("parameters"), &yaml.Node{Kind: yaml.SequenceNode, Content: parameters})
	}
	return key, value, block
}

// parameters are those that say what the block says.
func (m *mover) parameters(block string, n *yaml.Node) []*yaml.Node {
	out := []*yaml.Node{parameter("renderer", "string", word(block))}
	if n.Kind != yaml.MappingNode {
		return out // which the reader refuses
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], copied(n.Content[i+1])
		if empty(v) {
			continue
		}
		field := block + "." + key.Value
		s, known := of(field)
		switch {
		case !known:
			m.cannot = append(m.cannot, Finding{m.at + "." + field, "it is not known here, and may change what is rendered", "remove it, or ask for it"})
			continue
		case s.Becomes == "", field == "helm.version" && v.Value != "v3":
			m.refuse(field, s)
			continue
		case field == "helm.values" && !empty(get(n, "valuesObject")):
			continue // the object wins, as in Argo CD
		}
		m.literal(field, s, v)
		list := m.parameter(s, v)
		if len(list) > 0 && list[0].HeadComment == "" {
			list[0].HeadComment = key.HeadComment
		}
		out = append(out, list...)
	}
	return out
}

// literal refuses what Argo CD would replace, fetch or expand.
func (m *mover) literal(field string, s Setting, v *yaml.Node) {
	switch {
	case field == "helm.valueFiles":
		for i, f := range v.Content {
			at := fmt.Sprintf("%s[%d]", field, i)
			switch f := followed(f); {
			case strings.Contains(f.Value, "://"):
				m.refuse(at, specially("helm.valueFiles by address"))
			case strings.Contains(f.Value, "$"):
				m.refuse(at, specially("helm.valueFiles with `$`"))
			case strings.ContainsAny(f.Value, "*?["):
				m.refuse(at, specially("helm.valueFiles by pattern"))
			}
		}
	case s.form == pairs:
		for i, p := range v.Content {
			for _, name := range []string{"value", "path"} {
				if x := get(p, name); x != nil && strings.Contains(x.Value, "$") {
					m.refuse(fmt.Sprintf("%s[%d].%s", field, i, name), specially("helm.parameters with `$`"))
				}
			}
		}
	}
}

// parameter writes a value in the parameter's form. What has another type is
// left to the reader, which refuses it by name.
func (m *mover) parameter(s Setting, v *yaml.Node) []*yaml.Node {
	switch s.form {
	case text:
		return []*yaml.Node{parameter(s.to, "string", v)}
	case flag:
		v.Tag, v.Style = "!!str", yaml.DoubleQuotedStyle
		return []*yaml.Node{parameter(s.to, "string", v)}
	case list:
		return []*yaml.Node{parameter(s.to, "array", v)}
	case inline:
		if v.Kind != yaml.ScalarNode {
			v = asText(v)
		}
		return []*yaml.Node{parameter(s.to, "string", v)}
	case pairs:
		return m.pairs(s, v)
	}
	return nil
}

// pairs are one map, or two if some of the values must stay strings.
func (m *mover) pairs(s Setting, v *yaml.Node) []*yaml.Node {
	plain, forced := mapping(), mapping()
	for _, p := range v.Content {
		into := plain
		if f := get(p, "forceString"); f != nil && f.Value == "true" {
			into = forced
		}
		name, value := get(p, "name"), get(p, "value")
		if value == nil {
			value = get(p, "path")
		}
		if name == nil {
			continue
		}
		if value == nil {
			value = word("")
		}
		key := *name
		key.LineComment = ""
		if p.HeadComment != "" {
			key.HeadComment = p.HeadComment
		}
		if value.LineComment == "" {
			value.LineComment = name.LineComment
		}
		if i := member(into, key.Value); i >= 0 {
			into.Content[i+1] = value // the last one counts
			continue
		}
		into.Content = append(into.Content, &key, value)
	}
	var out []*yaml.Node
	if len(plain.Content) > 0 {
		out = append(out, parameter(s.to, "map", plain))
	}
	if len(forced.Content) > 0 {
		out = append(out, parameter("helm.setString", "map", forced))
	}
	return out
}

func parameter(name, form string, v *yaml.Node) *yaml.Node {
	n := mapping(word("name"), word(name), word(form), v)
	simple := v.Kind == yaml.ScalarNode && v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(v.Value, "\n")
	if simple && v.HeadComment == "" && v.LineComment == "" && v.FootComment == "" {
		n.Style = yaml.FlowStyle
	}
	return n
}

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: content}
}

// word is a string that needs no quotes, or gets them from the encoder.
func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// copied is a deep copy without anchors: what refers to them may stand elsewhere.
func copied(n *yaml.Node) *yaml.Node {
	n = followed(n)
	out := *n
	out.Anchor, out.Content = "", slices.Clone(n.Content)
	for i, c := range out.Content {
		out.Content[i] = copied(c)
	}
	return &out
}

// asText is a value as YAML in a string. Comments stay with it.
func asText(n *yaml.Node) *yaml.Node {
	out := word("")
	out.HeadComment, n.HeadComment = n.HeadComment, ""
	data, err := encode(n, 2, true)
	if err != nil {
		return n // which the reader refuses
	}
	out.Value, out.Style = string(data), yaml.LiteralStyle
	return out
}
