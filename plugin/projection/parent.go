package projection

import "strings"

// AsCronJob returns the projection of a Job as the CronJob that would make it
// has it: the same leaves under spec.jobTemplate. A receipt of the CronJob then
// fits the Job (docs/spec/gated-fields.md, Receipts of the parent).
func (p *Projection) AsCronJob() *Projection {
	out := *p
	out.leaves = make([]Leaf, len(p.leaves))
	for i, l := range p.leaves {
		if rest, ok := strings.CutPrefix(l.Path, "spec.template."); ok {
			l.Path = "spec.jobTemplate.spec.template." + rest
		}
		out.leaves[i] = l
	}
	return &out // one prefix for all keeps the order
}

// Empty returns the projection of the same object without any gated field: what
// is left of it when it is deleted.
func (p *Projection) Empty() *Projection {
	return &Projection{applies: p.applies, own: p.own, valid: p.valid}
}

// AsFound returns the projection of an object without any gated field as that of
// one which is found structurally: the pod categories apply to it. An object
// that was signed for its containers, and has lost them all, is still what it
// was.
func (p *Projection) AsFound() *Projection {
	if p.Gated() || len(p.applies) > 0 {
		return p
	}
	return &Projection{applies: withCategories(podCategories, p.own), own: p.own, valid: p.valid}
}
