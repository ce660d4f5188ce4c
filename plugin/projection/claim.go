package projection

var (
	claimShape         = shapes["core/v1.PersistentVolumeClaimSpec"]
	claimTemplateShape = shapes["core/v1.PersistentVolumeClaimTemplate"]
)

func claimKind(w *walker, obj map[string]any) {
	w.claim("spec", w.object(obj, "spec"))
}

// claimTemplates of a StatefulSet count like claims, and stand for volumes of
// their names.
func (w *walker) claimTemplates(p *pod, at string, v any) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	for i, x := range list {
		t, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		path := index(at, i)
		name, _ := w.member(path, t, "metadata")["name"].(string)
		if name != "" {
			path = at + key(name)
		}
		before := len(w.leaves)
		w.claim(path+".spec", w.member(path, t, "spec"))
		if len(w.leaves) == before {
			continue
		}
		if p.volumes == nil {
			p.volumes = map[string]*volume{}
		}
		if p.volumes[name] == nil {
			p.volumes[name] = &volume{}
		}
		p.volumes[name].gate(Secret)
	}
}

// claim adds what decides whose data a PersistentVolumeClaim gets. dataSource
// and dataSourceRef default to each other: only the latter is a leaf unless
// they differ.
func (w *walker) claim(at string, spec map[string]any) {
	fields := claimShape.fields
	w.take(Secret, at+".volumeName", fields["volumeName"], spec["volumeName"])
	w.unknown(Secret, at, claimShape, spec)
	w.take(Secret, at+".selector", fields["selector"], spec["selector"])
	ref := spec["dataSourceRef"]
	if ref == nil {
		ref = spec["dataSource"]
	}
	w.take(Secret, at+".dataSourceRef", fields["dataSourceRef"], ref)
	if spec["dataSource"] != nil && spec["dataSourceRef"] != nil && !sameSource(spec["dataSource"], spec["dataSourceRef"]) {
		w.take(Secret, at+".dataSource", fields["dataSource"], spec["dataSource"])
	}
}

func sameSource(a, b any) bool {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	for _, k := range []string{"apiGroup", "kind", "name"} {
		s, _ := x[k].(string)
		t, _ := y[k].(string)
		if s != t {
			return false
		}
	}
	return y["namespace"] == nil || y["namespace"] == ""
}
