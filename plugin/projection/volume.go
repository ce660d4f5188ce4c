package projection

import (
	"encoding/json"
	"strconv"
)

// volume is what a volume of the pod gives to the containers that mount it.
type volume struct {
	cats      []Category // gated categories of its source; its mounts belong to them
	privilege bool       // hostPath or image: propagation counts too
	text      bool       // a ConfigMap or downwardAPI volume: counts only when it can be run
	all       bool       // of a text volume: its files are executable, every mount counts
}

// readVolumes adds the leaves of the volumes' sources and remembers how their
// mounts count.
func (w *walker) readVolumes(p *pod) {
	p.volumes = map[string]*volume{}
	v := p.spec["volumes"]
	if v == nil {
		return
	}
	items, ok := v.([]any)
	at := p.path + ".volumes"
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	for i, x := range items {
		tree, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		name, ok := tree["name"].(string)
		if !ok {
			w.fault(index(at, i), "want a name")
			continue
		}
		if p.isPod && p.injectedToken(name, tree) {
			continue
		}
		vol := &volume{}
		for k, src := range tree {
			if src != nil {
				w.source(p, vol, name, at+key(name), k, src)
			}
		}
		if p.volumes[name] != nil {
			w.fault(at+key(name), "two volumes with one name")
		}
		p.volumes[name] = vol
	}
}

func (w *walker) source(p *pod, vol *volume, name, at, k string, src any) {
	e, known := volumeIndex[k]
	if !known { // a source newer than the table
		w.take(Secret, at+"."+fieldName(k), anyMember, src)
		vol.gate(Secret)
		return
	}
	if e.row.not != "" {
		return
	}
	before := len(w.leaves)
	at += "." + k
	switch e.row.fn {
	case "":
		w.takeRow(e, at, src)
		vol.gate(e.row.cat)
		vol.privilege = vol.privilege || e.row.cat == Privilege
		return
	case "textVolume":
		w.textVolume(p, vol, name, at, e.member, src)
		return
	}
	obj, ok := src.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", src)
		return
	}
	switch e.row.fn {
	case "secretVolume":
		w.take(Secret, at+".secretName", plainString, obj["secretName"])
		w.items(Secret, at, obj["items"])
		vol.gate(Secret)
	case "projectedVolume":
		w.projected(p, vol, name, at, obj)
	case "ephemeralVolume":
		tmpl, _ := obj["volumeClaimTemplate"].(map[string]any)
		spec, _ := tmpl["spec"].(map[string]any)
		w.claim(at+".volumeClaimTemplate.spec", spec)
		if len(w.leaves) > before {
			vol.gate(Secret)
		}
	case "imageVolume":
		w.take(Image, at+".reference", plainString, obj["reference"])
		if ref, ok := obj["reference"].(string); ok {
			w.add(Privilege, at+".reference#repository", Repository(ref))
		}
		vol.gate(Privilege)
		vol.privilege = true
	}
}

func (v *volume) gate(c Category) {
	for _, x := range v.cats {
		if x == c {
			return
		}
	}
	v.cats = append(v.cats, c)
}

// items adds the key and path of each projected file, in order.
func (w *walker) items(c Category, at string, v any) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		w.wrongType(at+".items", "a list", v)
		return
	}
	out := make([]any, 0, len(list))
	for i, x := range list {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at+".items", i), "an object", x)
			continue
		}
		n := map[string]any{}
		for _, k := range []string{"key", "path"} {
			if s, keep := w.normal(index(at+".items", i)+"."+k, plainString, item[k]); keep {
				n[k] = s
			}
		}
		out = append(out, n)
	}
	if len(out) > 0 {
		w.add(c, at+".items", out)
	}
}

// identitySources are the projected sources that make an identity.
var identitySources = []string{"serviceAccountToken", "podCertificate", "clusterTrustBundle"}

// projected adds the gated sources of a projected volume. The position counts
// among the sources of one kind.
func (w *walker) projected(p *pod, vol *volume, name, at string, obj map[string]any) {
	sources, ok := obj["sources"].([]any)
	if !ok && obj["sources"] != nil {
		w.wrongType(at+".sources", "a list", obj["sources"])
		return
	}
	fields := shapes["core/v1.VolumeProjection"].fields
	counts := map[string]int{}
	for i, x := range sources {
		src, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at+".sources", i), "an object", x)
			continue
		}
		for k, v := range src {
			if v == nil {
				continue
			}
			pos := index(at+".sources", counts[k]) + "." + fieldName(k)
			counts[k]++
			switch {
			case contains(identitySources, k):
				w.take(Identity, pos, fields[k], v)
				vol.gate(Identity)
			case k == "secret":
				ref, _ := v.(map[string]any)
				w.take(Secret, pos+".name", plainString, ref["name"])
				w.items(Secret, pos, ref["items"])
				vol.gate(Secret)
			case k == "configMap" || k == "downwardAPI":
				mode := map[string]any{"defaultMode": obj["defaultMode"]}
				if m, ok := v.(map[string]any); ok {
					for n, y := range m {
						mode[n] = y
					}
				}
				w.textVolume(p, vol, name, pos, fields[k], mode)
			default:
				w.take(Secret, pos, anyMember, v)
				vol.gate(Secret)
			}
		}
	}
}

// textVolume adds a ConfigMap or downwardAPI source (name, items, executable)
// when its files can be run: an executable mode, or a mount where programs
// are found or configured. The contents are not gated, so where they can
// become a program, that they are there must be.
func (w *walker) textVolume(p *pod, vol *volume, name, at string, m *member, v any) {
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	executable := hasExecutableMode(obj)
	mounted := false
	for _, c := range p.containers {
		for _, mt := range c.mount {
			mounted = mounted || mt.volume == name && programPath(mt.path)
		}
	}
	vol.text = true
	vol.all = vol.all || executable
	if !executable && !mounted {
		return
	}
	w.take(Command, at+".name", plainString, obj["name"])
	if executable {
		w.add(Command, at+".executable", true)
	}
	if _, isMap := m.shape.fields["name"]; isMap {
		w.items(Command, at, obj["items"])
		return
	}
	w.take(Command, at+".items", m.shape.fields["items"], obj["items"]) // downwardAPI: what each file holds
}

func hasExecutableMode(obj map[string]any) bool {
	if executableMode(obj["defaultMode"]) {
		return true
	}
	items, _ := obj["items"].([]any)
	for _, x := range items {
		if item, ok := x.(map[string]any); ok && executableMode(item["mode"]) {
			return true
		}
	}
	return false
}

// executableMode reports whether a file mode has any x bit. What is no mode at
// all counts as executable: the API server will refuse it anyway.
func executableMode(v any) bool {
	if v == nil {
		return false
	}
	n, ok := v.(json.Number)
	if !ok {
		return true
	}
	mode, err := strconv.ParseInt(n.String(), 10, 64)
	return err != nil || mode&0o111 != 0
}

// claim adds what decides whose data a PersistentVolumeClaim gets. dataSource
// and dataSourceRef default to each other: only the latter is a leaf unless
// they differ.
func (w *walker) claim(at string, spec map[string]any) {
	fields := shapes["core/v1.PersistentVolumeClaimSpec"].fields
	w.take(Secret, at+".volumeName", fields["volumeName"], spec["volumeName"])
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
	return y["namespace"] == nil
}

// mountFields are what counts of a mount, and for privilege what else does.
var (
	mountFields          = []string{"name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"}
	privilegeMountFields = append([]string{"bindMountOptions", "mountPropagation"}, mountFields...)
)

// mounts adds which gated volumes a container mounts, and where.
func (w *walker) mounts(p *pod, c *container) {
	fields := shapes["core/v1.VolumeMount"].fields
	for _, m := range c.mount {
		vol := p.volumes[m.volume]
		if vol == nil {
			continue
		}
		at := c.path + ".volumeMounts" + key(m.path)
		cats := vol.cats
		if vol.text && (vol.all || programPath(m.path)) {
			cats = append(cats[:len(cats):len(cats)], Command)
		}
		for _, cat := range cats {
			names := mountFields
			if cat == Privilege {
				names = privilegeMountFields
			}
			for _, f := range names {
				w.take(cat, at+"."+f, fields[f], m.tree[f])
			}
			for f, v := range m.tree { // newer than the table
				if fields[f] == nil {
					w.take(cat, at+"."+fieldName(f), anyMember, v)
				}
			}
		}
	}
}
