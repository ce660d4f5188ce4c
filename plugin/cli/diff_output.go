package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

// maxShown bounds one value in a table.
const maxShown = 120

func diffText(w io.Writer, changes []objectChange, e policy.Effective) error {
	for _, c := range changes {
		fmt.Fprintf(w, "%s (%s)\n", gate.ASCII(c.Short), c.What)
		if c.Text != "" {
			fmt.Fprintf(w, "  %s\n", gate.ASCII(c.Text))
		}
		for _, f := range c.Fields {
			fmt.Fprintf(w, "  %-9s %s: %s -> %s\n", f.Category, gate.ASCII(gate.ShortPath(f.Path)), shownValue(f.Old), shownValue(f.New))
		}
		for _, x := range c.Categories {
			fmt.Fprintf(w, "  sign      %s: %s\n", x.Category, who(x))
		}
	}
	_, err := fmt.Fprintln(w, summary(changes, e))
	return err
}

func summary(changes []objectChange, e policy.Effective) string {
	if len(changes) == 0 {
		return "no gated field changes: nobody has to sign"
	}
	open := 0
	for _, c := range changes {
		for _, x := range c.Categories {
			if !x.Signed {
				open++
				break
			}
		}
	}
	where := ""
	if e.Rules.Environment != "" {
		where = " for " + e.Rules.Environment
	}
	return fmt.Sprintf("%d objects change gated fields, %d need a signature%s", len(changes), open, where)
}

func diffJSON(w io.Writer, changes []objectChange) error {
	if changes == nil {
		changes = []objectChange{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(changes)
}

// diffMarkdown is for a pull request: a summary, then a table an object.
func diffMarkdown(w io.Writer, changes []objectChange, e policy.Effective) error {
	fmt.Fprintf(w, "**syncgate:** %s.\n", summary(changes, e))
	for _, c := range changes {
		fmt.Fprintf(w, "\n#### %s (%s)\n\n", cell(c.Short), c.What)
		if c.Text != "" {
			fmt.Fprintf(w, "%s\n", cell(c.Text))
		}
		if len(c.Fields) > 0 {
			fmt.Fprint(w, "| category | field | before | after | sign |\n|---|---|---|---|---|\n")
		}
		last := ""
		for _, f := range c.Fields {
			sign := ""
			if string(f.Category) != last {
				for _, x := range c.Categories {
					if x.Category == f.Category {
						sign = who(x)
					}
				}
			}
			last = string(f.Category)
			fmt.Fprintf(w, "| %s | `%s` | %s | %s | %s |\n", f.Category, codeText(gate.ShortPath(f.Path)), codeCell(f.Old), codeCell(f.New), cell(sign))
		}
	}
	return nil
}

func shownValue(v any) string {
	if v == nil {
		return "(none)"
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "?"
	}
	s := gate.ASCII(strings.TrimSpace(b.String()))
	if t, ok := v.(string); ok {
		s = gate.ASCII(shortDigest(t))
	}
	if len(s) > maxShown {
		s = s[:maxShown-3] + "..."
	}
	return s
}

// shortDigest keeps of a digest what people compare.
func shortDigest(s string) string {
	if i := strings.Index(s, "@sha256:"); i >= 0 && len(s) > i+20 {
		return s[:i+20] + "..."
	}
	return s
}

func codeCell(v any) string {
	if v == nil {
		return ""
	}
	return "`" + codeText(shownValue(v)) + "`"
}

// codeText and cell keep text of a manifest from ending its cell, or from being
// Markdown of its own.
func codeText(s string) string {
	return strings.NewReplacer("`", "'", "|", "\\|", "\n", " ").Replace(s)
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "`", "'", "<", "&lt;", "*", "\\*", "_", "\\_", "[", "\\[").Replace(s)
}
