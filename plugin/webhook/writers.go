package webhook

import (
	"fmt"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// byParent tries the receipts of what an object was made from: a ReplicaSet may
// use those of its Deployment, a Job those of its CronJob (docs/spec/gated-fields.md,
// Receipts of the parent). kubectl create job --from passes by it. Whose it is
// says its controller reference: it can be forged, but an object whose owner is
// not there is collected, and one whose owner is there is the owner's to scale.
// Otherwise byParent returns what the first parent's receipts lack, if there is
// one.
func (j *judgement) byParent() (uses []gate.Use, lacks []gate.Finding, ok bool) {
	parent, object, old := "", j.object, j.old
	switch {
	case j.subject.Group == "apps" && j.subject.Kind == "ReplicaSet":
		parent = "Deployment"
	case j.subject.Group == "batch" && j.subject.Kind == "Job":
		parent, object = "CronJob", object.AsCronJob()
		if old != nil {
			old = old.AsCronJob()
		}
	default:
		return nil, nil, false
	}
	owner := controllerOf(receiptsOf(j.request), j.subject.Group, parent)
	var stranger []gate.Finding
	tried := map[receipt.Subject]bool{}
	for i, compact := range j.receipts {
		if i == receipt.MaxPerObject {
			break
		}
		u, err := receipt.ParseUnverified(compact)
		if err != nil || u.Claims.Generated {
			continue
		}
		s, err := receipt.ParseSubject(u.Claims.Subject)
		if err != nil || tried[s] || s.Group != j.subject.Group || s.Kind != parent || s.Namespace != j.subject.Namespace {
			continue
		}
		tried[s] = true
		if s.Name != owner {
			if stranger == nil {
				stranger = []gate.Finding{{Reason: gate.SubjectMismatch, Receipt: u.Claims.ID, Text: fmt.Sprintf(
					"receipt %s is for %s, which its ownerReferences do not name as its controller", clip(u.Claims.ID), clip(u.Claims.Subject))}}
			}
			continue
		}
		d := j.gate(j.effective.rules, s, object, old)
		if d.Allowed() {
			return d.Used, nil, true
		}
		if lacks == nil {
			lacks = d.Findings
		}
	}
	if lacks == nil {
		lacks = stranger
	}
	return nil, lacks, false
}

// byWriter lets a trusted writer write what policy trusts it with: the
// categories that it is trusted for need no receipt, the others do.
func (j *judgement) byWriter() (Verdict, bool) {
	r := j.request
	for _, w := range j.state.policy.Admission().Trusted(policy.Write{
		User: r.User, Group: j.subject.Group, Kind: r.Kind, Namespace: j.subject.Namespace, Name: j.subject.Name, Now: j.now,
	}) {
		rules := *j.effective.rules
		rules.Required = []gate.Required{} // nil would mean the default
		for _, q := range j.effective.required {
			if !w.Allows(q.Category, j.object, j.old) {
				rules.Required = append(rules.Required, q)
			}
		}
		if d := j.gate(&rules, j.subject, j.object, j.old); d.Allowed() {
			return Verdict{Allowed: true, How: Trusted, Uses: d.Used, Note: w.User}, true
		}
	}
	return Verdict{}, false
}
