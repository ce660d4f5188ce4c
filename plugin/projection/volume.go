package projection

import "strconv"

// volume is what a volume of the pod gives to the containers that mount it.
type volume struct {
	cats []Category // gated categories of its source; its mounts belong to them
	all  bool       // a ConfigMap or downwardAPI volume with executable files: every mount counts
}

// readVolumes adds the leaves of the volumes' sources and remembers how their
// mounts count.
func (w *walker) readVolumes(p *pod) {
	v := p.spec["volumes"]
	if v == nil {
		return
	}
	p.volumes = map[string]*volume{}
	items, ok := v.([]any)
	at := p.at("volumes")
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
	if e.row.not != "" || e.row.fn == "name" {
		return
	}
	before := len(w.leaves)
	at += "." + k
	switch e.row.fn {
	case "":
		w.takeRow(e, at, src)
		vol.gate(e.row.cat)
		return
	case "textVolume":
		obj, _ := src.(map[string]any)
		w.textVolume(p, vol, name, at, e.member, src, obj["defaultMode"])
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
		w.unknown(Secret, at, e.member.shape, obj)
		vol.gate(Secret)
	case "projectedVolume":
		w.projected(p, vol, name, at, e.member.shape, obj)
	case "ephemeralVolume":
		tmpl := w.member(at, obj, "volumeClaimTemplate")
		w.unknown(Secret, at+".volumeClaimTemplate", claimTemplateShape, omit(tmpl, "metadata"))
		w.claim(at+".volumeClaimTemplate.spec", w.member(at+".volumeClaimTemplate", tmpl, "spec"))
		w.unknown(Secret, at, e.member.shape, obj)
		if len(w.leaves) > before {
			vol.gate(Secret)
		}
	case "imageVolume":
		w.take(Image, at+".reference", plainString, obj["reference"])
		if ref, ok := obj["reference"].(string); ok {
			w.add(Privilege, at+".reference"+repositoryPath, Repository(ref))
		}
		w.unknown(Privilege, at, e.member.shape, obj)
		vol.gate(Privilege)
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

var keyToPath = shapes["core/v1.KeyToPath"]

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
		n := make(map[string]any, len(item))
		for k, y := range item {
			f := keyToPath.fields[k]
			switch {
			case k == "mode": // whether the file can be run is .executable
				continue
			case f == nil:
				f = anyMember
			}
			if z, keep := w.normal(index(at+".items", i)+"."+fieldName(k), f, y); keep {
				n[k] = z
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
func (w *walker) projected(p *pod, vol *volume, name, at string, s *shape, obj map[string]any) {
	w.unknown(Secret, at, s, obj)
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
				ref, ok := v.(map[string]any)
				if !ok {
					w.wrongType(pos, "an object", v)
					continue
				}
				w.take(Secret, pos+".name", plainString, ref["name"])
				w.items(Secret, pos, ref["items"])
				w.unknown(Secret, pos, fields[k].shape, ref)
				vol.gate(Secret)
			case k == "configMap" || k == "downwardAPI":
				w.textVolume(p, vol, name, pos, fields[k], v, obj["defaultMode"])
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
// mode is the default mode of its files; a source's own is a volume's.
func (w *walker) textVolume(p *pod, vol *volume, name, at string, m *member, v, mode any) {
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	executable := executableMode(mode) || executableItem(obj["items"])
	mounted := false
	for _, c := range p.containers {
		for _, mt := range c.mounts {
			mounted = mounted || mt.volume == name && programPath(mt.path)
		}
	}
	vol.all = vol.all || executable
	if !executable && !mounted {
		return
	}
	w.take(Command, at+".name", plainString, withoutContentHash(obj["name"]))
	w.unknown(Command, at, m.shape, obj)
	if executable {
		w.add(Command, at+".executable", true)
	}
	if _, isMap := m.shape.fields["name"]; isMap {
		w.items(Command, at, obj["items"])
		return
	}
	w.take(Command, at+".items", m.shape.fields["items"], obj["items"]) // downwardAPI: what each file holds
}

func executableItem(v any) bool {
	items, _ := v.([]any)
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
	n, ok := integer(v)
	if !ok {
		return true
	}
	mode, err := strconv.ParseInt(n.String(), 10, 64)
	return err != nil || mode&0o111 != 0
}
