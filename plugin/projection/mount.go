package projection

// mountFields are what counts of a mount, and for privilege what else does.
var (
	mountFields          = []string{"name", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr"}
	privilegeMountFields = append([]string{"bindMountOptions", "mountPropagation"}, mountFields...)
	mountShape           = shapes["core/v1.VolumeMount"]
)

// volumeMounts adds which gated volumes a container mounts, and where. Whatever
// is mounted where programs are found or configured is command: an empty volume
// there hides what the image has, and holds what another container puts in it.
func (w *walker) volumeMounts(c *container, at string, v any) {
	if c.oddMounts {
		w.take(Privilege, at, anyMember, v)
		return
	}
	for _, m := range c.mounts {
		vol := c.volume(m.volume)
		if vol == nil { // the injected token, a StatefulSet's plain claim, or nothing
			vol = &volume{}
		}
		program := vol.all || programPath(m.path)
		if !program && len(vol.cats) == 0 {
			continue
		}
		at := at + key(m.path)
		for _, cat := range vol.cats {
			w.mount(cat, at, m)
		}
		if program {
			w.mount(Command, at, m)
		}
	}
}

func (w *walker) mount(cat Category, at string, m mount) {
	names := mountFields
	if cat == Privilege {
		names = privilegeMountFields
	}
	for _, f := range names {
		if v := m.tree[f]; v != nil {
			w.take(cat, at+"."+f, mountShape.fields[f], v)
		}
	}
	w.unknown(cat, at, mountShape, m.tree)
}

// devices: a container that gets a volume as a block device has its data as
// much as one that mounts it.
func (w *walker) devices(c *container, v any) {
	items, _ := v.([]any)
	for _, x := range items {
		item, _ := x.(map[string]any)
		name, _ := item["name"].(string)
		if vol := c.volume(name); vol != nil {
			for _, cat := range vol.cats {
				c.bits |= bit(cat)
			}
		}
	}
}
