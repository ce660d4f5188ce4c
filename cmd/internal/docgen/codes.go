package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
)

// reserved are codes that nothing in this release reports: none. A test keeps
// the list.
var reserved []gate.Reason

var explained = regexp.MustCompile(`^(\w+) \(([A-Z ]+), exit (\d+)\)\n(.+)\nFix: (.+)\n$`)

// codes is the table of every reason, in the order of rank.
func codes() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("| code | first words | exit | means | mend it |\n|---|---|---|---|---|\n")
	for _, r := range gate.Reasons() {
		m, err := explain(r)
		if err != nil {
			return nil, err
		}
		name := "`" + string(r) + "`"
		if slices.Contains(reserved, r) {
			name += " (reserved)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, m[2], m[3], cell(m[4]), cell(m[5]))
	}
	return b.Bytes(), nil
}

// explain asks the command line, so that both say the same.
func explain(r gate.Reason) ([]string, error) {
	var out bytes.Buffer
	c := root()
	c.SetOut(&out)
	c.SetArgs([]string{"explain", string(r)})
	err := c.Execute()
	if err != nil {
		return nil, fmt.Errorf("explaining %s: %w", r, err)
	}
	m := explained.FindStringSubmatch(out.String())
	if m == nil || m[1] != string(r) {
		return nil, fmt.Errorf("explaining %s: got %q", r, out.String())
	}
	return m, nil
}
