package webhook

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// judges reports whether a request is of those that the configuration asks
// about: an operation on an object, or on a subresource that can write what
// counts.
func judges(r request) bool {
	switch r.Operation {
	case admission.Create:
		return r.Subresource == "" || r.Subresource == admission.Binds && binds(r)
	case admission.Update:
		kind := admission.GroupKind{Group: projection.CanonicalGroup(r.Group, r.Kind), Kind: r.Kind}
		return r.Subresource == "" || r.Subresource == "ephemeralcontainers" || admission.WritesMetadata(kind, r.Subresource)
	case admission.Delete:
		return r.Subresource == ""
	}
	return false
}

func binds(r request) bool {
	return admission.GroupKind{Group: r.Group, Kind: r.Kind} == admission.BindingKind
}

// bound judges a Binding, whose labels and annotations the API server puts over
// those of the Pod that it sends to a node (k8s.io/kubernetes
// pkg/registry/core/pod/storage, setPodNodeAndMetadata). The Pod is not shown,
// so that no receipt can be held against what it becomes: what counts may only
// come from a trusted writer of Pods.
func (j *judgement) bound() Verdict {
	r := j.request
	meta, _ := r.Object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	j.subject = receipt.Subject{Kind: "Pod", Namespace: r.Namespace, Name: name}
	if group, kind := groupKind(r.Object); kind != r.Kind || group != r.Group {
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: fmt.Sprintf("the request is about a %s, the object is a %s", clip(r.Kind), clip(kind))})
	}
	pod := func(labels, annotations any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": r.Namespace, "labels": labels, "annotations": annotations},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "any", "image": "any"}}}} // as every Pod has, so that it is a gated object
	}
	after := pod(meta["labels"], meta["annotations"])
	var err error
	if j.object, err = j.effective.Projector.Project(after); err != nil {
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: err.Error(), Fix: bindPlain})
	}
	if j.old, err = j.effective.Projector.Project(pod(nil, nil)); err != nil {
		return j.refuse(gate.Item{Reason: gate.ObjectMalformed, Text: err.Error()})
	}
	if what := gate.Forced(j.subject, after, j.object); what != "" {
		return j.refuse(gate.Item{Reason: gate.ForceNotAllowed, Text: "a Binding would put " + what + " on the Pod, which makes a tool delete it before its change is refused", Fix: bindPlain})
	}
	d := j.gate(j.effective.rules, j.subject, j.object, j.old)
	if d.Allowed() {
		return Verdict{Allowed: true, How: Unchanged}
	}
	j.request.Kind = j.subject.Kind // what a trusted writer has to be trusted with
	if v, ok := j.byWriter(); ok {
		return v
	}
	var fields []string
	for _, l := range j.object.Leaves() {
		if strings.HasPrefix(l.Path, "metadata.") {
			fields = append(fields, l.Path)
		}
	}
	return j.refuse(gate.Item{
		Reason: gate.ReceiptMissing, Fix: bindPlain,
		Text: fmt.Sprintf("a Binding by %s would put %s on the Pod, for which no receipt can be given there", clip(r.User), strings.Join(fields, ", ")),
	})
}

const bindPlain = "bind without it; what the Pod is to have belongs into its manifest, and is signed there"

// beside is what a refusal says of a write through a subresource: which one it
// was, and the next step for whoever writes so. Of what such a write left
// behind, before there was a gate, it says the next step alone. So it does of
// what has no manifest. Both are empty for any other.
func (j *judgement) beside() (text, fix string) {
	switch s := j.request.Subresource; s {
	case admission.Status, admission.Finalize, admission.Approval:
		return fmt.Sprintf("; written by %s through the subresource %s", clip(j.request.User), s),
			"change labels and annotations in the manifest, where they are signed, and leave them as they are in a write of " + s
	}
	if len(j.unsigned) > 0 && j.lingers(j.unsigned[0].Finding) {
		return "", "take " + j.unsigned[0].Finding.Path + " off the live object, which had it before, or write it into the manifest and sign that"
	}
	return j.ofNoManifest()
}

// lingers reports whether what differs from what was signed is a label or
// annotation that the object had before this request: a tool that applies a
// manifest leaves alone what others wrote.
func (j *judgement) lingers(f gate.Finding) bool {
	if f.Reason != gate.DigestMismatch || j.old == nil || !strings.HasPrefix(f.Path, "metadata.") {
		return false
	}
	for _, l := range j.object.Leaves() {
		if l.Path == f.Path {
			return slices.ContainsFunc(j.old.Leaves(), func(o projection.Leaf) bool { return o.Path == l.Path && reflect.DeepEqual(o.Value, l.Value) })
		}
	}
	return false
}
