package kustomize

import (
	"bytes"

	"sigs.k8s.io/kustomize/api/resource"
)

// origins tells in which file of the repository an object is written, for
// messages and nothing else: what is rendered follows from no guess.
type origins struct {
	listed map[string]bool        // files under resources, relative to the root
	files  map[declaration]string // "" of what stands in several
}

// declaration names an object as its manifest does.
type declaration struct{ kind, name string }

// list notes that a kustomization has a file among its resources.
func (o *origins) list(rel string) {
	if o.listed == nil {
		o.listed, o.files = map[string]bool{}, map[declaration]string{}
	}
	o.listed[rel] = true
}

// scan notes what stands in a file, if it is one of those.
func (o *origins) scan(rel string, data []byte) {
	if !o.listed[rel] {
		return
	}
	for _, d := range declared(data) {
		if other, there := o.files[d]; there && other != rel {
			rel = ""
		}
		o.files[d] = rel
	}
}

// of returns the file of a resource, "" if it is not known: kustomize does not
// say any more what one was called that it has given another name.
func (o *origins) of(r *resource.Resource) string {
	return o.files[declaration{r.GetKind(), r.GetName()}]
}

// declared finds the objects of a file by how people write them: kind at the
// beginning of a line, and the first name below metadata.
func declared(data []byte) []declaration {
	var out []declaration
	var d declaration
	indent := 0 // of the members of metadata, 0 outside
	inside := false
	end := func() {
		if d.kind != "" && d.name != "" {
			out = append(out, d)
		}
		d, inside, indent = declaration{}, false, 0
	}
	for line := range bytes.Lines(data) {
		text := bytes.TrimLeft(line, " ")
		in := len(line) - len(text)
		switch {
		case bytes.HasPrefix(line, []byte("---")):
			end()
		case len(bytes.TrimSpace(text)) == 0 || text[0] == '#':
		case in == 0:
			value, metadata := bytes.CutPrefix(text, []byte("metadata:"))
			inside, indent = metadata && written(value) == "", 0
			if value, ok := bytes.CutPrefix(text, []byte("kind:")); ok {
				d.kind = written(value)
			}
			if members, ok := bytes.CutPrefix(value, []byte(" {")); metadata && ok {
				d.name = inlineName(members)
			}
		case inside:
			if indent == 0 {
				indent = in
			}
			if value, ok := bytes.CutPrefix(text, []byte("name:")); ok && in == indent {
				d.name = written(value)
			}
		}
	}
	end()
	return out
}

// inlineName is the name among the members of an object in braces, behind the
// first of them; "" if it is not on that line.
func inlineName(members []byte) string {
	depth, begin := 0, 0
	for i, c := range members {
		switch {
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == '}'):
			if value, ok := bytes.CutPrefix(bytes.TrimLeft(members[begin:i], " "), []byte("name:")); ok {
				return written(value)
			}
			begin = i + 1
		}
	}
	return ""
}

// written is a plain or quoted text, without a comment.
func written(value []byte) string {
	if i := bytes.Index(value, []byte(" #")); i >= 0 {
		value = value[:i]
	}
	return string(bytes.Trim(value, " \r\n\"'"))
}
