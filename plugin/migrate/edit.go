package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// edit replaces the lines of one entry of a block mapping. Lines count from 0.
type edit struct {
	from, to int    // [from, to)
	prefix   string // what stays of the first line
	lines    []string
}

// file is the text by lines, with what tells how people write it.
type file struct {
	lines   []string
	indent  int  // of a mapping in a mapping; 0 is not known yet
	compact bool // a list in a mapping stands where its key does
	lists   bool // whether compact is known
}

// encode writes a node in block style.
func encode(n *yaml.Node, indent int, compact bool) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(indent)
	if compact {
		e.CompactSeqIndent()
	} else {
		e.DefaultSeqIndent()
	}
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return b.Bytes(), nil
}

// style learns from the first examples how a document is indented.
func (f *file) style(n *yaml.Node) {
	if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle == 0 {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if v.Style&yaml.FlowStyle != 0 || v.Line == k.Line || len(v.Content) == 0 {
				continue
			}
			switch d := v.Column - k.Column; {
			case v.Kind == yaml.MappingNode && f.indent == 0:
				f.indent = d
			case v.Kind == yaml.SequenceNode && !f.lists:
				f.compact, f.lists = d == 0, true
			}
		}
	}
	for _, c := range n.Content {
		f.style(c)
	}
}

// end returns the line after the last one of the entry whose key stands at a
// line and column (from 0). Comments and empty lines that follow stay outside.
func (f *file) end(line, column int) int {
	end := line + 1
	for i := line + 1; i < len(f.lines); i++ {
		text := strings.TrimRight(f.lines[i], " \t\r")
		if text == "" {
			continue
		}
		if len(text)-len(strings.TrimLeft(text, " ")) <= column {
			break
		}
		end = i + 1
	}
	return end
}

// replace is the edit that puts an entry in the place of the one with the key
// old; insert the one that puts it after that.
func (f *file) replace(old, key, value *yaml.Node) (edit, error) {
	line, column := old.Line-1, old.Column-1
	lines, err := f.entry(key, value, column)
	return edit{line, f.end(line, column), f.lines[line][:column], lines}, err
}

func (f *file) insert(after, key, value *yaml.Node) (edit, error) {
	line, column := after.Line-1, after.Column-1
	at := f.end(line, column)
	lines, err := f.entry(key, value, column)
	return edit{at, at, strings.Repeat(" ", column), lines}, err
}

// entry encodes an entry; all lines but the first are indented.
func (f *file) entry(key, value *yaml.Node, column int) ([]string, error) {
	k := *key
	k.HeadComment, k.FootComment = "", "" // these stand outside of what is replaced
	data, err := encode(mapping(&k, value), f.indent, f.compact)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "" {
			lines[i] = strings.Repeat(" ", column) + lines[i]
		}
	}
	return lines, nil
}

// apply makes the edits, which do not overlap.
func (f *file) apply(edits []edit) string {
	eol := "\n"
	if len(f.lines) > 0 && strings.HasSuffix(f.lines[0], "\r") {
		eol = "\r\n"
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []string
	done := 0
	for _, e := range edits {
		out = append(out, f.lines[done:e.from]...)
		for i, l := range e.lines {
			if i == 0 {
				l = e.prefix + l
			}
			out = append(out, l+strings.TrimSuffix(eol, "\n"))
		}
		done = e.to
	}
	return strings.Join(append(out, f.lines[done:]...), "\n")
}
