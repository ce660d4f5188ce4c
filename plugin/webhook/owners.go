package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// owned judges an allowed write once more if it gives an object, whose deletion
// policy gates, an owner that it did not have: the garbage collector deletes the
// object when its owner goes, and is never asked. So the write is judged as the
// deletion of what is there after it.
func (j *judgement) owned(v Verdict) Verdict {
	r := j.request
	if r.Operation == admission.Delete || v.How == Deleting || !slices.Contains(j.state.policy.Admission().GatedDeletes, r.Kind) {
		return v
	}
	added := admission.NewOwners(r.Object, r.Old)
	if len(added) == 0 {
		return v
	}
	q := r
	q.Operation, q.Subresource, q.Old, q.Object = admission.Delete, "", r.Object, nil
	k := judgement{state: j.state, request: q, effective: j.effective, now: j.now}
	d := k.judge()
	if d.Allowed {
		if v.How == Unchanged {
			v.How, v.Note = d.How, d.Note
		}
		for _, u := range d.Uses {
			if !slices.ContainsFunc(v.Uses, func(x gate.Use) bool { return x.ID == u.ID }) {
				v.Uses = append(v.Uses, u)
			}
		}
		return v
	}
	s := d.sentence
	s.Items[0].Text = fmt.Sprintf("metadata.ownerReferences would have it deleted with %s, and its deletion is gated: %s", describe(added[0]), s.Items[0].Text)
	s.Items[0].Fix = "leave that owner out, or else: " + cmp.Or(s.Items[0].Fix, s.Fix)
	return denied(s)
}

// deletionFix is the next step for who may sign a deletion: what is gone has no
// place for a receipt, so that no application can commit it.
func (j *judgement) deletionFix(fix string) string {
	if !strings.HasPrefix(fix, "syncgate sign ") { // no signature helps, or policy says what does
		return fix
	}
	where := ""
	if j.subject.Namespace != "" {
		where = " --namespace " + clip(j.subject.Namespace)
	}
	return fmt.Sprintf("kubectl get -o yaml%s %s %s | syncgate sign - --deletion --policy FILE --key FILE --issuer NAME, and what that prints",
		where, projection.Resource(j.subject.Group, j.request.Kind), clip(j.subject.Name))
}

func describe(o admission.Owner) string {
	return fmt.Sprintf("%s %s", clip(o.Kind), clip(o.Name))
}
