package gate

import (
	"fmt"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// freeRemoval reports whether what a category lost only takes away
// (docs/spec/gated-fields.md, Removals): a Service that stops exposing
// anything, the type of a Secret, a ServiceAccount's pull secrets and cloud
// identity. Every other loss is a change like any other.
func freeRemoval(s receipt.Subject, from, to *projection.Projection, c projection.Category) bool {
	switch {
	case s.Group != "":
		return false
	case s.Kind == "Service" && c == projection.Network, s.Kind == "Secret" && c == projection.Identity:
		return !to.Has(c)
	case s.Kind != "ServiceAccount":
		return false
	}
	for _, ch := range projection.Diff(from, to) {
		if ch.Category != c {
			continue
		}
		if ch.New != nil || ch.Path != "imagePullSecrets" && !strings.HasPrefix(ch.Path, "metadata.annotations[") {
			return false
		}
	}
	return true
}

// defaulted explains a digest that differs only in fields which the cluster
// fills in when they are left out: that is no tampering, and the next step is
// to write them down. It needs the receipt's leaf hashes, and decides nothing.
func (e *evaluation) defaulted(c *candidate, covers []projection.Category) *Finding {
	if !e.Stored || len(c.claims.Leaves) == 0 {
		return nil
	}
	moves := moved(e.Object, covers, c.claims.Leaves)
	if len(moves) == 0 {
		return nil
	}
	var parts, lines []string
	for _, m := range moves {
		if m.signed || !projection.ClusterDecides(e.Subject.Group, e.Subject.Kind, m.leaf.Path) {
			return nil
		}
		parts = append(parts, m.describe())
		lines = append(lines, m.leaf.Path+": "+clip(value(m.leaf.Value), maxValue))
	}
	return &Finding{Reason: FieldDefaulted, Path: moves[0].leaf.Path, Text: fmt.Sprintf(
		"%s, which the cluster filled in after receipt %s (issuer %s) was signed; set %s explicitly, and sign that",
		strings.Join(parts, ", "), c.claims.ID, c.claims.Issuer, strings.Join(lines, ", "))}
}
