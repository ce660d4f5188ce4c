package webhook

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// name fills in the subject and checks that the object is what the request says
// it is: a body of another kind (a Scale, say) is never judged as an object
// without gated fields.
func (j *judgement) name(tree map[string]any) *gate.Item {
	r := j.request
	j.subject = receipt.Subject{Group: projection.CanonicalGroup(r.Group, r.Kind), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if tree == nil {
		return &gate.Item{Reason: gate.ObjectMalformed, Text: "the request has no object"}
	}
	meta, _ := tree["metadata"].(map[string]any)
	if s, _ := meta["name"].(string); s != "" {
		j.subject.Name = s
	}
	if j.subject.Name == "" {
		j.subject.Name, j.subject.Generated = generateName(tree), true
	}
	if r.Kind == "Namespace" && r.Group == "" {
		j.subject.Namespace = "" // the request names it as its own namespace
	}
	group, kind := groupKind(tree)
	if kind != r.Kind || projection.CanonicalGroup(group, kind) != j.subject.Group {
		return &gate.Item{Reason: gate.ObjectMalformed, Text: fmt.Sprintf("the request is about a %s, the object is a %s", clip(r.Kind), clip(kind))}
	}
	if ns, _ := meta["namespace"].(string); ns != j.subject.Namespace && ns != "" {
		return &gate.Item{Reason: gate.ObjectMalformed, Text: fmt.Sprintf("the object is in namespace %s, the request in %s", clip(ns), clip(r.Namespace))}
	}
	if r.Old != nil {
		if g, k := groupKind(r.Old); k != r.Kind || projection.CanonicalGroup(g, k) != j.subject.Group {
			return &gate.Item{Reason: gate.ObjectMalformed, Text: "the old object is of another kind"}
		}
	}
	if r.Operation == admission.Update && r.Old == nil {
		return &gate.Item{Reason: gate.ObjectMalformed, Text: "an UPDATE without the old object"}
	}
	return nil
}

func groupKind(tree map[string]any) (group, kind string) {
	version, _ := tree["apiVersion"].(string)
	kind, _ = tree["kind"].(string)
	for i := range len(version) {
		if version[i] == '/' {
			return version[:i], kind
		}
	}
	return "", kind
}

func generateName(tree map[string]any) string {
	meta, _ := tree["metadata"].(map[string]any)
	s, _ := meta["generateName"].(string)
	return s
}

// controllerOf is the name of the owner of a kind that an object's metadata says
// is its controller; empty if there is none.
func controllerOf(tree map[string]any, group, kind string) string {
	meta, _ := tree["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	for _, x := range owners {
		owner, _ := x.(map[string]any)
		if owner["controller"] != true {
			continue
		}
		// The API server takes no second controller; whatever comes first is it.
		if g, k := groupKind(owner); g != group || k != kind {
			return ""
		}
		name, _ := owner["name"].(string)
		return name
	}
	return ""
}

// gone reports whether the API server deletes the object instead of storing what
// the request writes: it was being deleted, and the write takes its last
// finalizer (k8s.io/apiserver, registry/generic/registry, ShouldDeleteDuringUpdate).
// Nobody ever sees what else the write holds, and who takes finalizers away by
// writing whole objects may not know all their fields. Any other write of an
// object on its way out is judged: RBAC honours a RoleBinding until it is gone,
// a Service selects its Pods, the StatefulSet controller makes a revision of the
// template, and other people's controllers may read what they like.
func gone(r request) bool {
	before, _ := r.Old["metadata"].(map[string]any)
	after, _ := r.Object["metadata"].(map[string]any)
	if r.Subresource != "" || r.Group == "" && r.Kind == "Namespace" { // which has finalizers in its spec, too
		return false
	}
	at, _ := before["deletionTimestamp"].(string)
	grace, waits := before["deletionGracePeriodSeconds"]
	left, ok := after["finalizers"].([]any)
	return at != "" && (!waits || grace == nil || grace == json.Number("0")) && (after["finalizers"] == nil || ok && len(left) == 0)
}

// rollback asks the deployment controller to write an older template into a
// Deployment: no projection has it.
const rollback = "deprecated.deployment.rollback.to"

// withoutRollback is an old object that nobody asked to roll back: taking the
// question away is the way out of it, and needs no receipt.
func withoutRollback(old map[string]any) map[string]any {
	meta, _ := old["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if _, asked := annotations[rollback]; !asked {
		return old
	}
	old, meta, annotations = maps.Clone(old), maps.Clone(meta), maps.Clone(annotations)
	delete(annotations, rollback)
	meta["annotations"], old["metadata"] = annotations, meta
	return old
}

// emptied is an object after its deletion, for its name and kind alone.
func emptied(old map[string]any) map[string]any {
	if old == nil {
		return nil
	}
	return map[string]any{"apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": old["metadata"]}
}
