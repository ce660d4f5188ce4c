package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const header = "path\tdocument\tkind\toutcome\tbefore\tafter\tfield"

// table writes one line a document.
func table(w io.Writer, rows []*row) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, header)
	for _, r := range rows {
		fmt.Fprintf(b, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", r.path, r.document, r.name(), r.outcome, r.before, r.after, strings.ReplaceAll(r.field, "\t", " "))
	}
	return b.Flush() // an earlier error comes out here
}

// name is "Deployment.apps", or empty for a file.
func (r *row) name() string {
	if r.document == 0 {
		return "-"
	}
	if g := r.group(); g != "" {
		return r.object.Kind() + "." + g
	}
	return r.object.Kind()
}

var outcomes = []string{same, defaulted, dropped, rejected, malformed, unreadable, differs}

// summarise counts the outcomes, of each kind that the server accepted and
// altogether.
func summarise(w io.Writer, rows []*row) {
	kinds, total := map[string]map[string]int{}, map[string]int{}
	for _, r := range rows {
		total[r.outcome]++
		if kinds[r.name()] == nil {
			kinds[r.name()] = map[string]int{}
		}
		kinds[r.name()][r.outcome]++
	}
	fmt.Fprintf(w, "%-60s", "kind")
	for _, o := range outcomes {
		fmt.Fprintf(w, " %15s", o)
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		count := kinds[name]
		if count[same]+count[defaulted]+count[dropped]+count[differs] > 0 {
			line(w, name, count)
		}
	}
	line(w, fmt.Sprintf("all %d", len(rows)), total)
	fmt.Fprintln(w)
}

func line(w io.Writer, name string, count map[string]int) {
	fmt.Fprintf(w, "\n%-60s", name)
	for _, o := range outcomes {
		fmt.Fprintf(w, " %15d", count[o])
	}
}
