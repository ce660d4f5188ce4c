// Command docgen writes the tables of docs/spec/gated-fields.md, between
// marker comments, from the table that the projection works by.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("docgen: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: docgen FILE.md")
	}
	old, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	doc, err := render(string(old), projection.Table())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], []byte(doc), 0o644); err != nil {
		log.Fatal(err)
	}
}

const (
	begin = "<!-- begin generated: "
	end   = "<!-- end generated -->"
)

// render replaces what stands between the markers. Each marker names a table.
func render(doc string, fields []projection.Field) (string, error) {
	tables := map[string]string{
		"kinds":        kinds(fields),
		"pod spec":     rows(fields, projection.OfPodSpec),
		"container":    rows(fields, projection.OfContainer),
		"volume":       rows(fields, projection.OfVolume),
		"pod metadata": rows(fields, projection.OfPodMetadata),
		"variables":    names(fields, projection.OfVariable),
		"bookkeeping":  names(fields, projection.OfBookkeeping),
		"tuning":       names(fields, projection.OfTuning),
		"not leaves":   notLeaves(fields),
		"decisions":    decisions(fields),
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(doc, begin)
		b.WriteString(before)
		if !found {
			break
		}
		name, rest, ok := strings.Cut(rest, " -->")
		table, known := tables[name]
		_, after, closed := strings.Cut(rest, end)
		if !ok || !known || !closed {
			return "", fmt.Errorf("marker %q: unknown, or not closed", name)
		}
		b.WriteString(begin + name + " -->\n\n" + table + "\n" + end)
		delete(tables, name)
		doc = after
	}
	for name := range tables {
		return "", fmt.Errorf("no marker for the table %q", name)
	}
	return b.String(), nil
}

func kinds(fields []projection.Field) string {
	var b strings.Builder
	b.WriteString("| kind | categories that apply | leaves |\n|---|---|---|\n")
	for i := 0; i < len(fields); {
		f := fields[i]
		if !isKind(f) {
			break
		}
		group := []string{f.Of} // neighbours that say the same share a line
		for i++; i < len(fields) && isKind(fields[i]) && fields[i].Doc == f.Doc && categories(fields[i]) == categories(f); i++ {
			group = append(group, fields[i].Of)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(group, ", "), categories(f), f.Doc)
	}
	return b.String()
}

func isKind(f projection.Field) bool { return f.Path == "" }

func rows(fields []projection.Field, of string) string {
	var b strings.Builder
	b.WriteString("| field | category | what counts |\n|---|---|---|\n")
	for _, f := range fields {
		if f.Of == of && f.Not == "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Path, categories(f), f.Doc)
		}
	}
	return b.String()
}

func categories(f projection.Field) string {
	if len(f.Categories) == 6 {
		return "the six of pods"
	}
	var out []string
	for _, c := range f.Categories {
		out = append(out, string(c))
	}
	return strings.Join(out, ", ")
}

func names(fields []projection.Field, of string) string {
	var out []string
	for _, f := range fields {
		if f.Of == of {
			out = append(out, "`"+f.Path+"`")
		}
	}
	return strings.Join(out, ", ") + "\n"
}

func decisions(fields []projection.Field) string {
	var b strings.Builder
	b.WriteString("| kind | field | filled in by |\n|---|---|---|\n")
	for _, f := range fields {
		if kind, path, ok := strings.Cut(f.Path, " "); ok && f.Of == projection.OfDecision {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", kind, path, f.Doc)
		}
	}
	return b.String()
}

// notLeaves lists what is not gated, the fields of one reason together.
func notLeaves(fields []projection.Field) string {
	var b strings.Builder
	b.WriteString("| of | not gated | why |\n|---|---|---|\n")
	for i := 0; i < len(fields); {
		f := fields[i]
		owner, name := ownerOf(f)
		i++
		if f.Not == "" || owner == "" {
			continue
		}
		group := []string{"`" + name + "`"}
		for i < len(fields) {
			o, n := ownerOf(fields[i])
			if o != owner || fields[i].Not != f.Not {
				break
			}
			group = append(group, "`"+n+"`")
			i++
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", owner, strings.Join(group, ", "), f.Not)
	}
	return b.String()
}

func ownerOf(f projection.Field) (owner, name string) {
	switch f.Of {
	case projection.OfPodSpec, projection.OfContainer, projection.OfVolume:
		return f.Of, f.Path
	case projection.OfAPIType:
		i := strings.LastIndexByte(f.Path, '.')
		return strings.Replace(f.Path[:i], "*", "every kind", 1), f.Path[i+1:]
	}
	return "", ""
}
