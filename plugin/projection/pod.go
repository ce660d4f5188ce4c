package projection

// container is one container of the pod being walked, and which categories
// it contributes leaves to.
type container struct {
	path  string
	name  string
	tree  map[string]any
	bits  uint16
	mount []mount
}

type mount struct {
	volume, path string
	tree         map[string]any
}

// pod is the pod spec being walked.
type pod struct {
	path       string
	spec       map[string]any
	isPod      bool // a Pod itself, whose admission fills in more than a template's
	structural bool // found by its form: the API types do not bind it
	hostNet    bool
	containers []*container
	volumes    map[string]*volume
	appArmor   map[string]any // container name -> profile from a template annotation
}

var podCategories = []Category{Command, Identity, Image, Network, Privilege, Secret}

var containerLists = []string{"containers", "ephemeralContainers", "initContainers"}

// podSpec adds the leaves of a pod spec at p, whose template metadata (or the
// Pod's own) is meta.
func (w *walker) podSpec(specPath string, spec map[string]any, metaPath string, meta map[string]any, isPod, structural bool) {
	p := &pod{path: specPath, spec: spec, isPod: isPod, structural: structural}
	p.hostNet = spec["hostNetwork"] == true
	w.podBits = 0
	w.findContainers(p)
	w.templateMeta(p, metaPath, meta)
	w.readVolumes(p)
	for k, v := range spec {
		e, known := podIndex[k]
		switch {
		case v == nil:
		case !known:
			if !structural { // a field newer than this table is never lost
				w.take(Privilege, specPath+"."+fieldName(k), anyMember, v)
			}
		case e.row.not != "":
		case e.row.fn == "":
			w.takeRow(e, specPath+"."+k, v)
		}
	}
	w.serviceAccount(p)
	w.imagePullSecrets(p)
	w.placement(p)
	for _, c := range p.containers {
		w.owner = c
		w.container(p, c)
	}
	w.owner = nil
	w.bindRepositories(p)
}

func (w *walker) findContainers(p *pod) {
	for _, list := range containerLists {
		v := p.spec[list]
		if v == nil {
			continue
		}
		items, ok := v.([]any)
		if !ok {
			w.wrongType(p.path+"."+list, "a list", v)
			continue
		}
		for i, x := range items {
			tree, ok := x.(map[string]any)
			if !ok {
				w.wrongType(index(p.path+"."+list, i), "a container", x)
				continue
			}
			c := &container{tree: tree, path: index(p.path+"."+list, i)}
			if name, ok := tree["name"].(string); ok && name != "" {
				c.name, c.path = name, p.path+"."+list+key(name)
			} else if tree["name"] != nil && !ok {
				w.wrongType(c.path+".name", "a string", tree["name"])
			}
			w.readMounts(c)
			p.containers = append(p.containers, c)
		}
	}
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
		name, ok1 := tree["name"].(string)
		at, ok2 := tree["mountPath"].(string)
		if !ok1 || !ok2 {
			w.fault(index(c.path+".volumeMounts", i), "want name and mountPath")
			continue
		}
		c.mount = append(c.mount, mount{name, at, tree})
	}
}

// container adds the leaves of one container.
func (w *walker) container(p *pod, c *container) {
	for k, v := range c.tree {
		e, known := containerIndex[k]
		at := c.path + "." + k
		switch {
		case v == nil:
		case !known:
			if !p.structural {
				w.take(Privilege, c.path+"."+fieldName(k), anyMember, v)
			}
		case e.row.not != "":
		case e.row.fn == "":
			w.takeRow(e, at, v)
		default:
			w.containerField(p, c, e.row.fn, at, v)
		}
	}
	if profile := p.appArmor[c.name]; profile != nil && c.name != "" && !hasAppArmor(c.tree) {
		w.safe, w.base = harmlessSecurity, c.path+".securityContext"
		w.take(Privilege, w.base+".appArmorProfile", shapes["core/v1.SecurityContext"].fields["appArmorProfile"], profile)
		w.safe = nil
	}
}

func hasAppArmor(tree map[string]any) bool {
	sc, _ := tree["securityContext"].(map[string]any)
	return sc["appArmorProfile"] != nil
}

func (w *walker) containerField(p *pod, c *container, fn, at string, v any) {
	switch fn {
	case "env":
		w.env(c, at, v)
	case "envFrom":
		w.envFrom(at, v)
	case "ports":
		w.ports(p, at, v)
	case "volumeMounts":
		w.mounts(p, c)
	case "resources":
		if res, ok := v.(map[string]any); ok && res["claims"] != nil {
			w.take(Privilege, at+".claims", shapes["core/v1.ResourceRequirements"].fields["claims"], res["claims"])
		} else if !ok {
			w.wrongType(at, "an object", v)
		}
	case "handler":
		w.handler(at, v)
	case "lifecycle":
		obj, ok := v.(map[string]any)
		if !ok {
			w.wrongType(at, "an object", v)
			return
		}
		w.handler(at+".postStart", obj["postStart"])
		w.handler(at+".preStop", obj["preStop"])
	}
}

var (
	execCommand = shapes["core/v1.ExecAction"].fields["command"]
	plainString = &member{shape: &shape{kind: stringShape}}
)

// handler adds what a probe or lifecycle hook runs, and the host that it
// calls when that is not the pod itself.
func (w *walker) handler(at string, v any) {
	if v == nil {
		return
	}
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	for _, f := range []struct {
		name, member string
		cat          Category
		m            *member
	}{{"exec", "command", Command, execCommand}, {"httpGet", "host", Network, plainString}, {"tcpSocket", "host", Network, plainString}} {
		if obj[f.name] == nil {
			continue
		}
		action, ok := obj[f.name].(map[string]any)
		if !ok {
			w.wrongType(at+"."+f.name, "an object", obj[f.name])
			continue
		}
		w.take(f.cat, at+"."+f.name+"."+f.member, f.m, action[f.member])
	}
}

// ports adds host ports. Under hostNetwork the API server copies
// containerPort into hostPort, so that only hostNetwork itself counts.
func (w *walker) ports(p *pod, at string, v any) {
	items, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	s := containerIndex["ports"].member.shape
	for i, x := range items {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		if item["hostPort"] == nil && item["hostIP"] == nil {
			continue
		}
		k, ok := w.itemKey(at, i, s, item)
		if !ok {
			continue
		}
		if !p.hostNet {
			w.take(Network, at+k+".hostPort", s.elem.fields["hostPort"], item["hostPort"])
		}
		w.take(Network, at+k+".hostIP", s.elem.fields["hostIP"], item["hostIP"])
	}
}

// serviceAccount: serviceAccountName wins over the deprecated serviceAccount,
// as in SetDefaults_PodSpec; "default" is what an absent one becomes.
func (w *walker) serviceAccount(p *pod) {
	for _, name := range []string{"serviceAccountName", "serviceAccount"} {
		v := p.spec[name]
		s, ok := v.(string)
		if v != nil && !ok {
			w.wrongType(p.path+"."+name, "a string", v)
			return
		}
		if s != "" {
			if s != "default" {
				w.add(Identity, p.path+".serviceAccountName", s)
			}
			return
		}
	}
}
