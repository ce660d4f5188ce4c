package gate

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// maxValue bounds one value or path in a message, in bytes.
const maxValue = 160

// move is one leaf that differs from what was signed.
type move struct {
	leaf   projection.Leaf
	signed bool // the receipt has this path
	there  bool // the object has this path
}

// LeafKey is the member of a receipt's leaves claim for a leaf.
func LeafKey(l projection.Leaf) string { return string(l.Category) + " " + l.Path }

// moved compares the object's leaves with the hashes that a receipt holds.
func moved(p *projection.Projection, covers []projection.Category, signed map[string]string) []move {
	var out []move
	seen := make(map[string]bool, len(signed))
	for _, c := range covers {
		for _, l := range p.In(c) {
			k := LeafKey(l)
			seen[k] = true
			h, ok := signed[k]
			if !ok || h != l.ShortHash() {
				out = append(out, move{leaf: l, signed: ok, there: true})
			}
		}
	}
	for k := range signed {
		cat, path, ok := strings.Cut(k, " ")
		if ok && !seen[k] && slices.Contains(covers, projection.Category(cat)) {
			out = append(out, move{leaf: projection.Leaf{Category: projection.Category(cat), Path: path}, signed: true})
		}
	}
	// An image#repository leaf moves with the field it belongs to: name that.
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i].leaf, out[j].leaf
		if x, y := projection.IsBinding(a.Path), projection.IsBinding(b.Path); x != y {
			return y
		}
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.Category < b.Category
	})
	return out
}

// touched returns the leaves of category c that to has and from has not, or
// with another value.
func touched(from, to *projection.Projection, c projection.Category) []projection.Leaf {
	changed := map[string]bool{}
	for _, ch := range projection.Diff(from, to) {
		if ch.Category == c && ch.New != nil {
			changed[ch.Path] = true
		}
	}
	var out []projection.Leaf
	for _, l := range to.In(c) {
		if changed[l.Path] {
			out = append(out, l)
		}
	}
	return out
}

// touchedFirst puts first what this very change touches: what differed from the
// receipt before it is somebody else's.
func (e *evaluation) touchedFirst(moves []move) []move {
	if e.Old == nil {
		return moves
	}
	now := map[string]bool{}
	for _, ch := range projection.Diff(e.Old, e.Object) {
		now[string(ch.Category)+" "+ch.Path] = true
	}
	sort.SliceStable(moves, func(i, j int) bool {
		return now[LeafKey(moves[i].leaf)] && !now[LeafKey(moves[j].leaf)]
	})
	return moves
}

// Moved is one gated field that differs from what a receipt was signed for.
type Moved struct {
	Category projection.Category
	Path     string
	What     string // "changed", "new" or "gone"
}

// MovedSince lists the fields of p that differ from the leaf hashes of a
// receipt, for the person who is about to sign.
func MovedSince(p *projection.Projection, covers []string, signed map[string]string) []Moved {
	cs := make([]projection.Category, len(covers))
	for i, c := range covers {
		cs[i] = projection.Category(c)
	}
	var out []Moved
	for _, m := range moved(p, cs, signed) {
		what := "changed"
		switch {
		case !m.there:
			what = "gone"
		case !m.signed:
			what = "new"
		}
		out = append(out, Moved{m.leaf.Category, m.leaf.Path, what})
	}
	return out
}

// firstMoved describes up to three moved fields; the text has one %s for the
// receipt.
func firstMoved(moves []move) (path, text string) {
	if len(moves) == 0 {
		return "", "differs from what %s was signed for, although its leaf hashes agree: the receipt was not made by this format"
	}
	var parts []string
	for i, m := range moves {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(moves)-3))
			break
		}
		parts = append(parts, escapePercent(m.describe()))
	}
	if len(moves) > 1 {
		return moves[0].leaf.Path, strings.Join(parts, ", ") + "; %s was signed for something else"
	}
	how := "for another value"
	switch m := moves[0]; {
	case !m.signed:
		how = "without it"
	case !m.there:
		how = "with it"
	case m.leaf.Category == projection.Image:
		how = "for another image"
	}
	return moves[0].leaf.Path, parts[0] + ", %s was signed " + how
}

func (m move) describe() string {
	p := clip(ShortPath(m.leaf.Path), maxValue)
	switch {
	case !m.there:
		return p + " is gone"
	case !m.signed && !shown(m.leaf):
		return p + " is new"
	case !shown(m.leaf):
		return p + " is changed"
	}
	return p + " is " + clip(value(m.leaf.Value), maxValue)
}

// shown tells whether a value may stand in a message that every reader of the
// application sees. Arguments, annotations and foreign specs can hold
// passwords; references and switches cannot.
func shown(l projection.Leaf) bool {
	switch l.Category {
	case projection.Image, projection.Identity, projection.Privilege, projection.RBAC, projection.Network, projection.Service:
		return !strings.Contains(l.Path, "annotations[")
	}
	return false
}

func value(v any) string {
	if s, ok := v.(string); ok {
		if i := strings.Index(s, "@sha256:"); i >= 0 && len(s) > i+24 {
			return s[:i+20] + "..." // as much of a digest as people compare
		}
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	return string(b)
}

func escapePercent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// ShortPath leaves out what every path of a workload has in common.
func ShortPath(p string) string {
	for _, prefix := range []string{"spec.jobTemplate.spec.template.spec.", "spec.template.spec."} {
		if s, ok := strings.CutPrefix(p, prefix); ok {
			return s
		}
	}
	return p
}
