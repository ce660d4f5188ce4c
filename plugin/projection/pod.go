package projection

// pod is a pod spec being walked. In an object found structurally it is also
// a map around one, whose pod-level fields apply to the containers in it.
type pod struct {
	path       string
	spec       map[string]any
	parent     *pod // the next pod-level map around it, outside the API types
	isPod      bool // a Pod itself, whose admission fills in more than a template's
	containers []*container
	volumes    map[string]*volume
	appArmor   map[string]any // container name -> profile from a template annotation
	bits       uint16         // bound categories with a leaf of the pod itself
}

// container is one container of the pod being walked.
type container struct {
	pod       *pod
	path      string
	name      string
	tree      map[string]any
	init      bool // of an initContainers list
	mounts    []mount
	oddMounts bool   // outside the API types: volumeMounts of another form
	bits      uint16 // bound categories that it contributes leaves to
}

// mount is one volumeMounts item of a container.
type mount struct {
	volume, path string
	tree         map[string]any
}

var podCategories = []Category{Command, Identity, Image, Network, Privilege, Secret}

const initContainers = "initContainers"

var containerLists = []string{"containers", "ephemeralContainers", initContainers}

// at is the path of a member of the pod spec.
func (p *pod) at(k string) string {
	if p.path == "" {
		return fieldName(k)
	}
	return p.path + "." + fieldName(k)
}

// builtinPod adds the leaves of the pod spec of a kind in the table.
func (w *walker) builtinPod(place *podPlace, obj map[string]any) {
	spec := w.object(obj, place.spec)
	if spec == nil {
		return
	}
	p := &pod{path: place.spec, spec: spec, isPod: place.isPod}
	w.findContainers(p)
	w.readVolumes(p)
	if place.claims != "" {
		_, v := w.get(obj, place.claims)
		w.claimTemplates(p, place.claims, v)
	}
	w.podLevel(p, place.meta, w.object(obj, place.meta))
	for _, c := range p.containers {
		w.container(c)
	}
	w.bindRepositories(p.containers)
}

// findContainers reads the three container lists of a pod spec.
func (w *walker) findContainers(p *pod) {
	for _, list := range containerLists {
		v := p.spec[list]
		if v == nil {
			continue
		}
		at := p.at(list)
		items, ok := v.([]any)
		if !ok {
			w.wrongType(at, "a list", v)
			continue
		}
		if list == initContainers {
			w.order(at, items)
		}
		for i, x := range items {
			tree, ok := x.(map[string]any)
			if !ok {
				w.wrongType(index(at, i), "a container", x)
				continue
			}
			w.addContainer(p, at, i, tree, list == initContainers)
		}
	}
}

func (w *walker) addContainer(p *pod, list string, i int, tree map[string]any, init bool) {
	path := index(list, i)
	name, ok := tree["name"].(string)
	if name != "" {
		path = list + key(name)
	} else if tree["name"] != nil && !ok && !w.loose {
		w.wrongType(path+".name", "a string", tree["name"])
	}
	w.newContainer(p, path, name, tree, init)
}

// orderPath is what the path of a list ends in whose order is a leaf.
const orderPath = "#order"

// order adds the names of two or more containers that run one after the other:
// paths name them, so that otherwise nothing would tell which is first.
func (w *walker) order(at string, items []any) {
	if len(items) < 2 {
		return
	}
	names := make([]any, len(items))
	for i, x := range items {
		tree, _ := x.(map[string]any)
		name, _ := tree["name"].(string)
		names[i] = name
	}
	w.take(Command, at+orderPath, containerIndex["command"].member, names)
}

func (w *walker) newContainer(p *pod, path, name string, tree map[string]any, init bool) {
	c := &container{pod: p, path: path, name: name, tree: tree, init: init}
	faults := len(w.faults)
	w.readMounts(c)
	if w.loose && len(w.faults) > faults {
		w.faults, c.mounts, c.oddMounts = w.faults[:faults], nil, true
	}
	p.containers = append(p.containers, c)
}

func (w *walker) readMounts(c *container) {
	v := c.tree["volumeMounts"]
	if v == nil {
		return
	}
	items, ok := v.([]any)
	if !ok {
		w.wrongType(c.path+".volumeMounts", "a list", v)
		return
	}
	for i, x := range items {
		tree, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(c.path+".volumeMounts", i), "an object", x)
			continue
		}
		name, hasName := tree["name"].(string)
		at, hasPath := tree["mountPath"].(string)
		if !hasName || !hasPath {
			w.fault(index(c.path+".volumeMounts", i), "want name and mountPath")
			continue
		}
		c.mounts = append(c.mounts, mount{name, at, tree})
	}
}

// podLevel adds the leaves of the pod itself, and of its template's metadata.
func (w *walker) podLevel(p *pod, metaPath string, meta map[string]any) {
	w.bits = &p.bits
	w.templateMeta(p, metaPath, meta)
	for k, v := range p.spec {
		e, known := podIndex[k]
		switch {
		case v == nil:
		case !known && w.loose:
		case !known: // a field newer than this table is never lost
			w.take(Privilege, p.at(k), anyMember, v)
		case e.row.not != "":
		case w.loose:
			w.looseRow(e, p.at(k), v, func() { w.podField(p, e, k, v) })
		default:
			w.podField(p, e, k, v)
		}
	}
	w.bits = nil
}

func (w *walker) podField(p *pod, e entry, k string, v any) {
	switch e.row.fn {
	case "":
		w.takeRow(e, p.at(k), v)
	case "serviceAccount":
		w.serviceAccount(p, k, v)
	case "imagePullSecrets":
		if !p.isPod { // ServiceAccount admission copies the account's into a Pod that names none
			w.takeRow(e, p.at(k), v)
		}
	case "nodeName":
		if !p.isPod {
			w.takeRow(e, p.at(k), v)
		}
	case "priorityClassName":
		w.priorityClass(p.at(k), v)
	case "tolerations":
		w.tolerations(e, p.at(k), v)
	}
}

// serviceAccount: serviceAccountName wins over the deprecated serviceAccount,
// as the API server's conversion has it; "default" is what an absent one
// becomes.
func (w *walker) serviceAccount(p *pod, k string, v any) {
	s, ok := v.(string)
	if !ok {
		w.wrongType(p.at(k), "a string", v)
		return
	}
	if k == "serviceAccount" && p.spec["serviceAccountName"] != nil && p.spec["serviceAccountName"] != "" {
		return
	}
	if s != "" && s != "default" {
		w.take(Identity, p.at("serviceAccountName"), plainString, s)
	}
}

// volume finds what a name in a container's mounts stands for.
func (c *container) volume(name string) *volume {
	for p := c.pod; p != nil; p = p.parent {
		if v := p.volumes[name]; v != nil {
			return v
		}
	}
	return nil
}

// hostNetwork reports whether the container's ports are the node's own.
func (c *container) hostNetwork() bool {
	for p := c.pod; p != nil; p = p.parent {
		if p.spec["hostNetwork"] == true {
			return true
		}
	}
	return false
}
