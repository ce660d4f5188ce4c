package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// The outcomes. Only differs is wrong.
const (
	same      = "Same"           // one digest, whether created or applied, and again when resubmitted
	defaulted = "FieldDefaulted" // the cluster decided a field: write it down
	dropped   = "FieldDropped"   // the server does not have the field
	rejected  = "Rejected"       // by the server, so that nothing is stored
	malformed = "ObjectMalformed"
	// unreadable: render refuses the file.
	unreadable = "Unreadable"
	differs    = "Differs"
)

// verdict is what became of one document. field names the field, with the line
// to add where one is to be added, or says why.
type verdict struct {
	outcome, before, after, field string
}

// compare holds what was sent against what is stored. warnings are the
// server's own: it names the fields that it does not know.
func compare(group, kind string, sent, stored map[string]any, warnings []string) verdict {
	p, err := projection.Project(sent)
	if err != nil {
		return verdict{outcome: malformed, field: short(err.Error())}
	}
	before, err := p.Digest(p.Applies())
	if err != nil {
		return verdict{outcome: malformed, field: short(err.Error())}
	}
	q, err := projection.Project(stored)
	if err != nil {
		return verdict{outcome: differs, before: before, field: "stored: " + short(err.Error())}
	}
	after, err := q.Digest(q.Applies())
	if err != nil {
		return verdict{outcome: differs, before: before, field: "stored: " + short(err.Error())}
	}
	v := verdict{before: before, after: after}
	if before == after {
		v.outcome = same
		return v
	}
	decided, rest := split(group, kind, projection.Diff(p, q))
	switch {
	case len(rest) == 0:
		v.outcome, v.field = defaulted, lines(decided)
	case explained(group, kind, withoutDropped(sent, warnings), q):
		v.outcome, v.field = dropped, paths(rest)
	default:
		v.outcome, v.field = differs, describe(rest)
	}
	return v
}

// split sorts changes: what the cluster may decide, and the rest.
func split(group, kind string, changes []projection.Change) (decided, rest []projection.Change) {
	for _, c := range changes {
		if c.Old == nil && projection.ClusterDecides(group, kind, c.Path) {
			decided = append(decided, c)
		} else {
			rest = append(rest, c)
		}
	}
	return decided, rest
}

// explained reports whether an object projects as what is stored, but for what
// the cluster decides.
func explained(group, kind string, obj map[string]any, stored *projection.Projection) bool {
	p, err := projection.Project(obj)
	if err != nil {
		return false
	}
	_, rest := split(group, kind, projection.Diff(p, stored))
	return len(rest) == 0
}

// lines are what a person adds to the manifest.
func lines(changes []projection.Change) string {
	var out []string
	for _, c := range changes {
		value, isText := c.New.(string)
		if !isText {
			j, _ := json.Marshal(c.New) // of decoded JSON: cannot fail
			value = string(j)
		}
		out = append(out, c.Path+": "+value)
	}
	return strings.Join(out, "; ")
}

func paths(changes []projection.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return strings.Join(out, "; ")
}

func describe(changes []projection.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s %s: %s -> %s", c.Category, c.Path, shown(c.Old), shown(c.New)))
	}
	return short(strings.Join(out, "; "))
}

func shown(v any) string {
	if v == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", fmt.Sprint(v))
}

// maxField bounds the last column: a table is read by people.
const maxField = 300

// short makes one line of a text that may be long.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxField {
		return strings.ToValidUTF8(s[:maxField], "") + "..."
	}
	return s
}
