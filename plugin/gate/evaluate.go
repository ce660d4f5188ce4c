package gate

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Request is one object to be judged.
type Request struct {
	Rules   *Rules
	Subject receipt.Subject // with Generated if the object has only a generateName

	// GenerateName is the object's metadata.generateName; a receipt with the
	// claim generated matches by it.
	GenerateName string

	// Object is the projection of what is to run; Old of what it replaces, nil
	// if there is nothing or nobody knows.
	Object, Old *projection.Projection

	Receipts []string // compact, from the object's annotation

	// Held says that the object was signed before, as far as its receipts tell,
	// and that losing its last gated leaf is a change: then the empty projection
	// needs a receipt like any other. Render says so, which sees no old object.
	Held bool
	Now  int64 // seconds since the epoch

	// Grace is for how many seconds an expired receipt still counts: at
	// admission, for what is created anew again and again (docs/policy.md,
	// receipts.grace). A break-glass receipt never has any.
	Grace int64
	// Stored says that Object is what the cluster made of what was applied, so
	// that a field may differ because the cluster filled it in.
	Stored bool
}

// Decision is the verdict on one object. The zero value denies.
type Decision struct {
	allowed bool

	// Findings say why the object is refused, sorted. Empty if allowed.
	Findings []Finding
	// Deferred are findings that render leaves to admission (Rules.Expired).
	Deferred []Finding
	// Ignored are receipts that did not count, in the order given. They never
	// turn deny into allow, or allow into deny.
	Ignored []Finding
	// Used are the receipts that the decision rests on, sorted by nonce.
	Used []Use
}

// Allowed reports whether the object may run.
func (d Decision) Allowed() bool { return d.allowed }

// Use is a receipt that was needed.
type Use struct {
	ID, Issuer, KeyID string
	BreakGlass        bool
	Grace             bool // it had expired: it counts by Request.Grace alone
	Expires           int64
	Categories        []projection.Category
}

// Finding is one reason against an object or a receipt.
type Finding struct {
	Reason     Reason
	Categories []projection.Category // sorted; empty: not about a category
	Path       string                // the gated field, if one is to blame
	Text       string                // the rest of the sentence, without the object
	Receipt    string                // nonce of the receipt, if one came close
}

// Evaluate judges one object.
func Evaluate(r Request) Decision {
	switch {
	case r.Rules == nil || r.Rules.Environment == "":
		return deny(Finding{Reason: PolicyInvalid, Text: "no rules"})
	case !r.Object.Valid() || r.Old != nil && !r.Old.Valid():
		return deny(Finding{Reason: ObjectMalformed, Text: "not evaluated"})
	}
	e := &evaluation{Request: r}
	required := e.required()
	if !r.Held && !gated(r.Object, required) && (r.Old == nil || !gated(r.Old, required)) {
		return Decision{allowed: true}
	}
	e.unpinned(required)
	e.judge()
	for _, q := range required {
		if r.Old != nil && (projection.EqualIn(r.Old, r.Object, q.Category) || freeRemoval(r.Subject, r.Old, r.Object, q.Category)) {
			continue
		}
		e.category(q)
	}
	d := Decision{
		Findings: e.named(merge(e.findings)), Deferred: merge(e.deferred), Ignored: e.ignored(), Used: e.uses(),
	}
	d.allowed = len(d.Findings) == 0
	return d
}

func deny(f Finding) Decision { return Decision{Findings: []Finding{f}} }

type evaluation struct {
	Request
	candidates []candidate
	findings   []Finding
	deferred   []Finding
}

// required lists the categories that apply to the kind and must be covered.
func (e *evaluation) required() []Required {
	all := e.Rules.categories()
	var out []Required
	applies := e.Object.Applies()
	if e.Old != nil { // an object that loses its last container is still what it was
		applies = slices.Concat(applies, e.Old.Applies())
		slices.Sort(applies)
		applies = slices.Compact(applies)
	}
	for _, a := range applies {
		for _, q := range all {
			if q.Category == a {
				out = append(out, q)
				break
			}
		}
	}
	return out
}

func gated(p *projection.Projection, required []Required) bool {
	for _, q := range required {
		if p.Has(q.Category) {
			return true
		}
	}
	return false
}

// unpinned refuses image leaves without a digest: a tag can be pushed again
// after it was signed.
func (e *evaluation) unpinned(required []Required) {
	for _, l := range e.Object.Images() {
		ref, _ := l.Value.(string)
		wanted := slices.ContainsFunc(required, func(q Required) bool { return q.Category == l.Category })
		if !wanted || strings.Contains(ref, "@sha256:") || e.mayBeUnpinned(ref) ||
			e.Old != nil && projection.EqualIn(e.Old, e.Object, l.Category) {
			continue
		}
		e.findings = append(e.findings, Finding{Reason: ImageNotPinned, Categories: []projection.Category{l.Category}, Path: l.Path,
			Text: fmt.Sprintf("%s is %s, which has no digest", ShortPath(l.Path), clip(ref, maxValue))})
	}
}

func (e *evaluation) mayBeUnpinned(ref string) bool {
	for _, g := range e.Rules.AllowUnpinned {
		if g.Match(ref) {
			return true
		}
	}
	return false
}

// category judges one category: are there enough receipts for it, and if
// not, which reason says most?
func (e *evaluation) category(q Required) {
	if e.before(q) {
		return
	}
	need := e.need(q.Category)
	if chosen := need.choose(e.candidates, func(c *candidate) bool { return c.problem == nil }); chosen != nil {
		for _, i := range chosen {
			e.candidates[i].used = append(e.candidates[i].used, q.Category)
		}
		return
	}
	f := e.explain(q.Category, need)
	f.Categories = []projection.Category{q.Category}
	if e.Rules.Expired == LeaveToAdmission && need.choose(e.candidates, func(c *candidate) bool { return c.problem == nil || c.lapsed }) != nil {
		e.deferred = append(e.deferred, f)
		return
	}
	e.findings = append(e.findings, f)
}

// before reports whether the category was not yet required when a receipt
// that is good for the object was issued.
func (e *evaluation) before(q Required) bool {
	for i := range e.candidates {
		c := &e.candidates[i]
		if c.problem == nil && c.claims.IssuedAt < q.Since && !c.covers(q.Category) {
			c.used = append(c.used, q.Category)
			return true
		}
	}
	return false
}

// explain picks the reason that comes furthest in the order of verifying.
func (e *evaluation) explain(c projection.Category, n need) Finding {
	var best *candidate
	for i := range e.candidates {
		k := &e.candidates[i]
		if k.problem != nil && (best == nil || k.step > best.step) && (k.step <= stepCovers || k.step == stepUnread || k.covers(c)) {
			best = k
		}
	}
	var covering, allowed int
	for i := range e.candidates {
		k := &e.candidates[i]
		if k.problem == nil && k.covers(c) {
			covering++
			if n.counts(k) {
				allowed++
			}
		}
	}
	switch {
	case allowed > 0 && best == nil:
		return Finding{Reason: ThresholdNotMet, Text: fmt.Sprintf("%s needs %d distinct approvals, has %d", c, n.threshold, allowed)}
	case covering > 0 && best == nil:
		return Finding{Reason: IssuerNotAllowed, Text: fmt.Sprintf("%s must be signed by %s; %s", c, n.who(), e.signedBy(c)), Receipt: e.firstGood(c)}
	case best != nil:
		return *best.problem
	case len(e.candidates) > 0:
		return Finding{Reason: CategoryNotCovered, Text: noReceiptCovers + e.fields(c), Receipt: e.firstGood("")}
	}
	return Finding{Reason: ReceiptMissing, Text: noReceiptFor + e.fields(c)}
}

// fields names a category with its first leaf, as people would ask for it: a
// category without leaves, old or new, is nothing to ask for. Where the object
// that is replaced is known, the leaf is one that this change touches: the
// debug container that somebody adds, not the one that has run for a year.
func (e *evaluation) fields(c projection.Category) string {
	ls, how := e.Object.In(c), ""
	if e.Old != nil {
		if ls = touched(e.Old, e.Object, c); len(ls) == 0 {
			ls, how = touched(e.Object, e.Old, c), "removed: "
		}
	}
	if len(ls) == 0 {
		return ""
	}
	first := ls[0]
	for _, l := range ls {
		if !projection.IsBinding(l.Path) { // the field itself before what it binds
			first = l
			break
		}
	}
	more := ""
	if len(ls) > 1 {
		more = fmt.Sprintf(" and %d more", len(ls)-1)
	}
	return fmt.Sprintf("%s (%s%s%s)", c, how, clip(ShortPath(first.Path), maxValue), more)
}

func (e *evaluation) signedBy(c projection.Category) string {
	for i := range e.candidates {
		if k := &e.candidates[i]; k.problem == nil && k.covers(c) {
			return fmt.Sprintf("receipt %s is by %s", k.claims.ID, k.claims.Issuer)
		}
	}
	return ""
}

func (e *evaluation) firstGood(c projection.Category) string {
	for i := range e.candidates {
		if k := &e.candidates[i]; k.problem == nil && (c == "" || k.covers(c)) {
			return k.claims.ID
		}
	}
	return ""
}

func (e *evaluation) ignored() []Finding {
	var out []Finding
	for i := range e.candidates {
		if p := e.candidates[i].problem; p != nil {
			out = append(out, *p)
		}
	}
	return out
}

func (e *evaluation) uses() []Use {
	var out []Use
	for i := range e.candidates {
		k := &e.candidates[i]
		if len(k.used) > 0 {
			out = append(out, Use{k.claims.ID, k.claims.Issuer, k.keyID, k.issuer.BreakGlass, k.graced, k.claims.Expires, k.used})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// What findings that merge joins begin with.
const (
	noReceiptFor    = "no receipt for "
	noReceiptCovers = "no receipt covers "
)

// merge joins findings that differ in their category only, and sorts them.
func merge(in []Finding) []Finding {
	var out []Finding
next:
	for _, f := range in {
		for i := range out {
			if out[i].Reason == f.Reason && out[i].Text == f.Text && out[i].Path == f.Path {
				out[i].Categories = append(out[i].Categories, f.Categories...)
				continue next
			}
			for _, list := range []string{noReceiptFor, noReceiptCovers} {
				if rest, ok := strings.CutPrefix(f.Text, list); ok && strings.HasPrefix(out[i].Text, list) {
					out[i].Categories = append(out[i].Categories, f.Categories...)
					switch {
					case out[i].Text == list:
						out[i].Text += rest
					case rest != "":
						out[i].Text += ", " + rest
					}
					continue next
				}
			}
		}
		f.Categories = append([]projection.Category(nil), f.Categories...)
		out = append(out, f)
	}
	sort.SliceStable(out, func(i, j int) bool {
		if a, b := out[i].Reason.rank(), out[j].Reason.rank(); a != b {
			return a < b
		}
		return out[i].Text < out[j].Text
	})
	return out
}
