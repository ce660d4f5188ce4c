package migrate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// application is one Application, or the template of an ApplicationSet.
type application struct {
	node, spec  *yaml.Node
	at          string // where spec is
	environment string
	file        *file
}

func (a *application) name() string {
	kind, name := get(a.node, "kind").Value, ""
	if n := get(a.node, "metadata", "name"); n != nil {
		name = n.Value
	}
	return fmt.Sprintf("%s %q", kind, name)
}

func (a *application) rewrite(r *Result) ([]edit, error) {
	cannot := func(at, why, do string) {
		r.Cannot = append(r.Cannot, Finding{a.name() + " " + at, why, do})
	}
	if !empty(get(a.spec, "sourceHydrator")) {
		cannot(a.at+".sourceHydrator", "it renders elsewhere and syncs what it wrote", "remove it")
	}
	for _, f := range a.overrides() {
		cannot(f.At, f.Why, f.Do)
	}
	type sourceAt struct {
		at   string
		node *yaml.Node
	}
	var sources []sourceAt
	if s := get(a.spec, "source"); !empty(s) {
		sources = append(sources, sourceAt{a.at + ".source", s})
	}
	if list := get(a.spec, "sources"); list != nil {
		for i, s := range list.Content {
			sources = append(sources, sourceAt{fmt.Sprintf("%s.sources[%d]", a.at, i), followed(s)})
		}
	}
	if len(sources) == 0 {
		cannot(a.at, "it has no source", "give it one")
	}
	a.file.indent, a.file.compact, a.file.lists = 0, true, false
	if a.file.style(a.node); a.file.indent == 0 {
		a.file.indent = 2
	}
	var turned []turn
	for _, s := range sources {
		m := &mover{at: s.at, environment: a.environment}
		key, value, block := m.plugin(s.node)
		if len(m.cannot) == 0 {
			// What the reader of Applications knows, this must not know better.
			if why := unreadable(s.node); why != "" {
				m.cannot = append(m.cannot, Finding{s.at, why, "correct it"})
			}
		}
		for _, f := range m.cannot {
			cannot(f.At, f.Why, f.Do)
		}
		switch {
		case len(m.cannot) > 0:
		case key == nil:
			r.Already++
		default:
			r.Moved++
			turned = append(turned, turn{s.node, key, value, block})
		}
	}
	a.notes(r, len(sources))
	if len(r.Cannot) > 0 {
		return nil, nil
	}
	return a.edits(turned)
}

// overrides are what changes an ApplicationSet's sources after its template.
func (a *application) overrides() (out []Finding) {
	if patch := get(a.node, "spec", "templatePatch"); patch != nil && a.at != "spec" && strings.Contains(patch.Value, "source") {
		out = append(out, Finding{"spec.templatePatch", "it changes sources after the template", "write what it says of sources into spec.template, or to parameters of the plugin"})
	}
	if a.at == "spec" {
		return out
	}
	var look func(at string, generators *yaml.Node)
	look = func(at string, generators *yaml.Node) {
		if generators == nil {
			return
		}
		for i, g := range generators.Content {
			g = followed(g)
			for j := 0; j+1 < len(g.Content); j += 2 {
				here := fmt.Sprintf("%s[%d].%s", at, i, g.Content[j].Value)
				kind := followed(g.Content[j+1])
				spec := get(kind, "template", "spec")
				if !empty(get(spec, "sources")) || overridden(get(spec, "source")) {
					out = append(out, Finding{here + ".template", "it changes the renderer of spec.template", "write it into spec.template, or make two ApplicationSets"})
				}
				look(here+".generators", get(kind, "generators"))
			}
		}
	}
	look("spec.generators", get(a.node, "spec", "generators"))
	return out
}

func overridden(source *yaml.Node) bool {
	for _, name := range append([]string{plugin, "chart", "ref"}, blocks...) {
		if !empty(get(source, name)) {
			return true
		}
	}
	return false
}

// notes are what nothing here can decide.
func (a *application) notes(r *Result, sources int) {
	note := func(format string, args ...any) {
		r.Notes = append(r.Notes, a.name()+": "+fmt.Sprintf(format, args...))
	}
	if sources > 1 {
		note("each of %d sources is rendered and signed alone", sources)
	}
	metadata := get(a.node, "metadata", "annotations")
	if a.at != "spec" {
		metadata = get(a.node, "spec", "template", "metadata", "annotations")
	}
	if !empty(get(metadata, "argocd.argoproj.io/manifest-generate-paths")) {
		note("manifest-generate-paths must list where .syncgate is, or new receipts are not seen")
	}
	if metadata != nil {
		for i := 0; i+1 < len(metadata.Content); i += 2 {
			if strings.HasPrefix(metadata.Content[i].Value, "argocd-image-updater.argoproj.io/") {
				note("Argo CD Image Updater passes over Applications with a plugin: let it write to Git")
				break
			}
		}
	}
	if options := get(a.spec, "syncPolicy", "syncOptions"); options != nil {
		for _, o := range options.Content {
			switch v := strings.TrimSpace(followed(o).Value); v {
			case "RespectIgnoreDifferences=true":
				note("%s lets the live value of an ignored field win over the signed one", v)
			case "Replace=true", "Force=true":
				note("%s deletes and creates objects: gated ones must not be", v)
			}
		}
	}
}

// turn is one source and the entry that it gets.
type turn struct {
	source, key, value *yaml.Node
	block              string
}

// edits put the entries where the sources' native blocks are. Where a source, or
// what it is in, is written in braces, all that is in braces is written anew.
func (a *application) edits(turned []turn) ([]edit, error) {
	var out []edit
	var anew []*yaml.Node // keys of entries whose value changed
	for _, t := range turned {
		key, flow := enclosing(a.node, t.source)
		i := member(t.source, t.block)
		switch {
		case flow:
			if i >= 0 {
				t.source.Content[i], t.source.Content[i+1] = t.key, t.value
			} else {
				t.source.Content = append(t.source.Content, t.key, t.value)
			}
			t.source.Style &^= yaml.FlowStyle
			if len(anew) == 0 || anew[len(anew)-1] != key {
				anew = append(anew, key)
			}
			continue
		case i >= 0:
			e, err := a.file.replace(t.source.Content[i], t.key, t.value)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		default:
			e, err := a.file.insert(t.source.Content[len(t.source.Content)-2], t.key, t.value)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	for _, key := range anew {
		value := valueOf(a.node, key)
		if value == nil {
			return nil, fmt.Errorf("%s is written in a way that cannot be edited: write it in block style", a.name())
		}
		unfold(value, turned)
		k := *key
		if k.LineComment == "" { // what was in braces is not on the key's line any more
			k.LineComment, value.LineComment = value.LineComment, ""
		}
		e, err := a.file.replace(key, &k, value)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// unfold writes in block style what the sources are in.
func unfold(n *yaml.Node, turned []turn) bool {
	holds := false
	for _, t := range turned {
		holds = holds || n == t.source
	}
	for _, c := range n.Content {
		holds = unfold(c, turned) || holds
	}
	if holds {
		n.Style &^= yaml.FlowStyle
	}
	return holds
}

// enclosing returns the key of the innermost entry in block style that a source
// is the value of, or in; flow is whether braces are between.
func enclosing(o, source *yaml.Node) (key *yaml.Node, flow bool) {
	var walk func(n, key *yaml.Node, flow bool) bool
	walk = func(n, k *yaml.Node, f bool) bool {
		f = f || n.Style&yaml.FlowStyle != 0
		if n == source {
			key, flow = k, f
			return true
		}
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && i%2 == 0 {
				continue
			}
			next := k
			if n.Kind == yaml.MappingNode && !f {
				next = n.Content[i-1]
			}
			if walk(c, next, f) {
				return true
			}
		}
		return false
	}
	walk(o, nil, false)
	return key, flow
}

func valueOf(n, key *yaml.Node) *yaml.Node {
	if key == nil {
		return nil
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && c == key {
			return n.Content[i+1]
		}
		if v := valueOf(c, key); v != nil {
			return v
		}
	}
	return nil
}
