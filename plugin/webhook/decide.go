package webhook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Verdict is the answer to one request. The zero value denies.
type Verdict struct {
	Allowed bool
	How     How
	Reason  gate.Reason // of a refusal, or of what Warn mode or an off-switch lets pass
	Message string      // the sentence, for a refusal and for a warning
	Uses    []gate.Use  // receipts that the decision rests on
	Note    string      // which off-switch or trusted writer let it pass

	sentence gate.Sentence // that Message says
}

// How says on what an answer rests: a label of the metrics and of the audit
// annotations.
type How string

// How requests are answered.
const (
	Denied        How = "denied"
	Unchanged     How = "unchanged"  // nothing gated, or nothing of it changed
	ByReceipt     How = "receipt"    // receipts cover what changed
	Exempt        How = "exempt"     // a controller's own work
	OutOfScope    How = "scope"      // a namespace that policy leaves alone, or a free DELETE
	Trusted       How = "trusted"    // a trusted writer
	Deleting      How = "deleting"   // an object that is gone with the write
	SwitchedOff   How = "off"        // refused, but an administrator switched the gate off
	Warned        How = "warned"     // refused, but policy says Warn
	Administering How = "administer" // the gate's own objects, by those who may
)

// decide judges one request at a time now, in seconds since the epoch.
func (s *State) decide(r request, now int64) Verdict {
	w := r.writer()
	a := s.policy.Admission()
	scope := r.Namespace
	if r.Group == "" && r.Kind == "Namespace" {
		scope = "" // it is in no namespace, though the request says that it is in itself
	}
	switch {
	case admission.Exempt(a, w):
		return Verdict{Allowed: true, How: Exempt}
	case r.Group == "" && r.Kind == "Namespace" && r.Name == a.Namespace && admission.MayAdminister(a, w):
		// Whoever may change the policy may label where it is, on installing again too.
		return Verdict{Allowed: true, How: Administering}
	case scope != "" && (scope == a.Namespace || !a.Gated(scope)):
		return Verdict{Allowed: true, How: OutOfScope}
	case r.Operation == admission.Delete && !slices.Contains(a.GatedDeletes, r.Kind):
		return Verdict{Allowed: true, How: OutOfScope}
	case !judges(r):
		return refuse("", gate.Item{Reason: gate.PolicyInvalid, Text: fmt.Sprintf(
			"%s of %s/%s is nothing that this webhook judges: its configuration is not the generated one", r.Operation, r.Kind, r.Subresource),
			Fix: "syncgate manifests webhook --configuration, apply it"})
	}
	e, err := s.effective(scope)
	if err != nil {
		return refuse("", gate.Item{Reason: gate.PolicyInvalid, Text: err.Error(), Fix: "mend the policy; retrying does not help"})
	}
	j := judgement{state: s, request: r, effective: e, now: now}
	v := j.judge()
	if v.Allowed {
		v = j.owned(v)
	}
	if v.Allowed {
		return v
	}
	if off, ok := s.switches.Namespace(r.Namespace, now); ok {
		v.Allowed, v.How, v.Note = true, SwitchedOff, off
		return v
	}
	if a.Warn && !(r.DryRun && isProbe(r)) { // a doctor has to be told who answers
		v.sentence.Warn = true
		warned := denied(v.sentence)
		warned.Allowed, warned.How = true, Warned
		return warned
	}
	return v
}

// guard answers for the gate's own ConfigMaps and Secrets.
func (s *State) guard(r request) Verdict {
	a := s.policy.Admission()
	if r.Namespace != a.Namespace {
		return Verdict{Allowed: true, How: OutOfScope}
	}
	if admission.MayAdminister(a, r.writer()) {
		return Verdict{Allowed: true, How: Administering}
	}
	return refuse("", gate.Item{
		Subject: r.Kind + " " + r.Namespace + "/" + r.Name, Reason: gate.ProtectedTarget,
		Text: fmt.Sprintf("user %s is no administrator of the gate", clip(r.User)),
		Fix:  "ask one of those that policy names under administrators",
	})
}

// judgement is one request being judged.
type judgement struct {
	state     *State
	request   request
	effective *effective
	now       int64

	subject     receipt.Subject
	object, old *projection.Projection
	receipts    []string
	unsigned    []policy.Lack // what a signature would mend
}

func (j *judgement) judge() Verdict {
	r := j.request
	if binds(r) {
		return j.bound()
	}
	tree, before := r.Object, r.Old
	if r.Operation == admission.Delete {
		tree = emptied(r.Old)
	}
	if item := j.name(tree); item != nil {
		return j.refuse(*item)
	}
	if r.Operation == admission.Update && gone(r) {
		return Verdict{Allowed: true, How: Deleting}
	}
	project := j.effective.Projector.Project
	var err error
	if before != nil {
		if j.old, err = project(before); err != nil {
			j.old = nil // from before the gate: whatever changes needs receipts for all of it
			if projection.SameRaw(before, tree) || projection.SameRaw(withoutRollback(before), tree) {
				return Verdict{Allowed: true, How: Unchanged}
			}
		}
	}
	if j.object, err = project(tree); err != nil {
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: err.Error()})
	}
	if r.Operation == admission.Delete {
		j.object = j.object.Empty()
	}
	if what := gate.Forced(j.subject, tree, j.object); what != "" && what != j.forcedBefore(before) {
		return j.refuse(gate.Item{Reason: gate.ForceNotAllowed, Text: what + " would delete a running object before its change is refused: remove it"})
	}
	if j.receipts, err = gate.Receipts(receiptsOf(r), j.effective.Annotation); err != nil {
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: err.Error()})
	}
	return j.evaluate()
}

// receiptsOf is the object whose receipts count: of a DELETE the one that is
// there.
func receiptsOf(r request) map[string]any {
	if r.Operation == admission.Delete {
		return r.Old
	}
	return r.Object
}

func (j *judgement) forcedBefore(before map[string]any) string {
	if before == nil || j.old == nil {
		return ""
	}
	return gate.Forced(j.subject, before, j.old)
}

func (j *judgement) evaluate() Verdict {
	if j.subject.Group == "apps" && j.subject.Kind == "ControllerRevision" && j.request.Operation == admission.Create {
		// Its controller would run Pods from it without asking, so that no
		// receipt helps (docs/spec/gated-fields.md, Kinds).
		if v, ok := j.byWriter(); ok {
			return v
		}
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: "a ControllerRevision is written by its controller alone" + j.who(), Fix: "do not create it"})
	}
	d := j.gate(j.effective.rules, j.subject, j.object, j.old)
	if d.Allowed() {
		how := Unchanged
		if len(d.Used) > 0 {
			how = ByReceipt
		}
		return Verdict{Allowed: true, How: how, Uses: d.Used}
	}
	uses, lacks, ok := j.byParent()
	if ok {
		return Verdict{Allowed: true, How: ByReceipt, Uses: uses}
	}
	if v, ok := j.byWriter(); ok {
		return v
	}
	findings := d.Findings
	if len(lacks) > 0 && findings[0].Reason == gate.SubjectMismatch {
		findings = lacks // says which field is not its parent's
	}
	items := make([]gate.Item, 0, len(findings))
	j.unsigned = make([]policy.Lack, 0, len(findings))
	for i, f := range findings {
		j.unsigned = append(j.unsigned, policy.Lack{Subject: j.subject, Finding: f, Object: j.object, Old: j.old})
		text := f.Text
		if i == 0 {
			text += j.who()
		}
		items = append(items, gate.Item{Reason: f.Reason, Text: text})
	}
	return j.refuse(items...)
}

func (j *judgement) gate(rules *gate.Rules, s receipt.Subject, object, old *projection.Projection) gate.Decision {
	q := gate.Request{
		Rules: rules, Subject: s, GenerateName: generateName(j.request.Object),
		Object: object, Old: old, Receipts: j.receipts, Now: j.now, Stored: true,
		Held: j.request.Operation == admission.Delete,
	}
	if j.request.Operation == admission.Create && (s.Group == "" && s.Kind == "Pod" || s.Group == "batch" && (s.Kind == "Job" || s.Kind == "CronJob" && j.request.Kind == "Job")) {
		q.Grace = j.effective.Grace
	}
	return gate.Evaluate(q)
}

// who names the user where the reader is often an operator's owner and not an
// application's (docs/spec/refusal.md).
func (j *judgement) who() string {
	if text, _ := j.beside(); text != "" {
		return text
	}
	switch j.request.Kind {
	case "Pod", "Job", "ReplicaSet", "ControllerRevision":
		return fmt.Sprintf("; written by %s, who is neither a built-in controller nor a trusted writer", clip(j.request.User))
	}
	return ""
}

// refuse makes the refusal; every item is about the object.
func (j *judgement) refuse(items ...gate.Item) Verdict {
	for i := range items {
		items[i].Subject = j.subject.Short()
	}
	if _, fix := j.beside(); fix != "" {
		return refuse(fix, items...)
	}
	fix := j.effective.Fix(gate.Sentence{Items: items}.Reason(), j.unsigned...)
	if j.request.Operation == admission.Delete {
		fix = j.deletionFix(fix)
	}
	return refuse(fix, items...)
}

// refuse makes a refusal of items. Fix is the next step, if no item knows one.
func refuse(fix string, items ...gate.Item) Verdict {
	return denied(gate.Sentence{Items: items, Gated: 1, Fix: fix})
}

// denied is the refusal that a sentence says.
func denied(s gate.Sentence) Verdict {
	s.Stored = true
	return Verdict{How: Denied, Reason: s.Reason(), Message: harmless(s.String()), sentence: s}
}

// harmless takes a word out of a message that may quote an object: a tool that
// may force deletes the live object when it reads it in a refusal.
func harmless(message string) string {
	const word = "immutable"
	for {
		i := strings.Index(strings.ToLower(message), word)
		if i < 0 {
			return message
		}
		message = message[:i+2] + "-" + message[i+2:]
	}
}

// clip bounds a name that somebody else chose.
func clip(s string) string {
	const most = 120
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
