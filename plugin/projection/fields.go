package projection

import "strings"

// Field is one row of the table of gated fields, for people to read: in
// docs/spec/gated-fields.md and in the output of syncgate fields.
type Field struct {
	// Of is a kind ("Deployment.apps"), or the part of a pod spec that the
	// path is relative to: one of the Of constants.
	Of   string
	Path string // of a kind: empty, Doc says what counts

	Categories []Category // of a kind: all that apply; empty where Doc names them
	Doc        string     // what counts, as Markdown
	Not        string     // why it does not count; empty if it does
}

// The parts of a pod spec, and the lists of names, that fields belong to.
const (
	OfPodSpec     = "pod spec"
	OfContainer   = "container"
	OfVolume      = "volume"
	OfPodMetadata = "pod metadata"
	OfAPIType     = "API type"    // Path is Type.field, Not the reason
	OfBookkeeping = "bookkeeping" // labels and annotations that are a tool's record
	OfTuning      = "tuning"      // annotations of Ingresses and Services
	OfVariable    = "variable"    // environment variables that decide what runs
	OfDecision    = "decision"    // Path is kind and field, Doc who in a cluster fills it in
)

// Table returns every row: the kinds, the fields of pod specs, what is not
// gated and why, and the lists of names, in the order of the documentation.
func Table() []Field {
	var out []Field
	for i := range kindTable {
		k := &kindTable[i]
		out = append(out, Field{Of: k.name(), Categories: k.applies, Doc: k.doc})
	}
	for _, part := range []struct {
		of   string
		rows []row
	}{{OfPodSpec, podRows}, {OfContainer, containerRows}, {OfVolume, volumeRows}, {OfPodMetadata, templateRows}} {
		for _, r := range part.rows {
			f := Field{Of: part.of, Path: r.path, Doc: r.doc, Not: r.not}
			if r.cat != "" {
				f.Categories = []Category{r.cat}
			}
			out = append(out, f)
		}
	}
	for _, e := range notLeaves {
		for _, name := range strings.Fields(e.fields) {
			out = append(out, Field{Of: OfAPIType, Path: e.typ + "." + name, Not: e.why})
		}
	}
	for _, name := range bookkeeping.list {
		out = append(out, Field{Of: OfBookkeeping, Path: name, Not: "a tool's record"})
	}
	for _, name := range tuning.list {
		out = append(out, Field{Of: OfTuning, Path: name, Not: "how traffic is served"})
	}
	for _, name := range programVariables.list {
		out = append(out, Field{Of: OfVariable, Path: name, Categories: []Category{Command}})
	}
	for _, d := range decides {
		out = append(out, d.field())
	}
	return out
}
