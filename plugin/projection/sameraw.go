package projection

import (
	"maps"
	"reflect"
)

// SameRaw reports whether what could hold gated fields is the same, as written,
// in two states of an object. An object that Project cannot read, because it is
// older than the gate or than the table, can so still be scaled and labelled
// (an error is no reason to ask for receipts where nothing moves). Of kinds with
// a pod spec that is the spec, the labels and annotations of its template,
// volume claims, and the annotation that asks for a rollback; of all others
// everything but status, with labels and annotations. Bookkeeping is left out.
func SameRaw(old, obj map[string]any) bool {
	group, kind := groupKind(obj)
	if g, k := groupKind(old); g != group || k != kind {
		return false
	}
	if spec := lookup(obj); spec != nil && spec.pod != nil {
		a, okA := spec.pod.raw(old)
		b, okB := spec.pod.raw(obj)
		if okA && okB {
			return reflect.DeepEqual(a, b)
		}
	}
	return reflect.DeepEqual(rawParts(old), rawParts(obj))
}

// raw lists the parts of an object with a pod spec that could hold gated
// fields; false if one is not where it should be.
func (p *podPlace) raw(obj map[string]any) ([]any, bool) {
	w := &walker{}
	_, spec := w.get(obj, p.spec)
	parts := []any{spec, rawMeta(w, w.object(obj, p.meta))}
	if p.claims != "" {
		_, claims := w.get(obj, p.claims)
		parts = append(parts, claims)
	}
	parts = append(parts, w.object(obj, "metadata.annotations")[rollbackAnnotation])
	return parts, len(w.faults) == 0
}

func rawParts(obj map[string]any) map[string]any {
	out := maps.Clone(obj)
	delete(out, "status")
	delete(out, "apiVersion")
	out["metadata"] = obj["metadata"]
	if meta, ok := obj["metadata"].(map[string]any); ok {
		out["metadata"] = rawMeta(&walker{}, meta)
	}
	return out
}

// rawMeta keeps labels and annotations but bookkeeping.
func rawMeta(w *walker, meta map[string]any) map[string]any {
	out := map[string]any{}
	for _, part := range []string{"annotations", "labels"} {
		values := map[string]any{}
		for k, v := range w.member("metadata", meta, part) {
			if !bookkeeping.has(k) {
				values[k] = v
			}
		}
		out[part] = values
	}
	return out
}
