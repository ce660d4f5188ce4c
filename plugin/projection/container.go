package projection

// container adds the leaves of one container.
func (w *walker) container(c *container) {
	w.bits = &c.bits
	for k, v := range c.tree {
		e, known := containerIndex[k]
		switch {
		case v == nil:
		case !known && w.loose:
			w.program(c, k, v)
		case !known: // a field newer than this table is never lost
			w.take(Privilege, c.path+"."+fieldName(k), anyMember, v)
		case e.row.not != "":
		case w.loose:
			w.looseRow(e, c.path+"."+k, v, func() { w.containerField(c, e, c.path+"."+k, v) })
		default:
			w.containerField(c, e, c.path+"."+k, v)
		}
	}
	w.appArmor(c)
	w.bits = nil
}

func (w *walker) appArmor(c *container) {
	if c.name == "" {
		return
	}
	if sc, _ := c.tree["securityContext"].(map[string]any); sc["appArmorProfile"] != nil {
		return
	}
	for p := c.pod; p != nil; p = p.parent {
		if profile := p.appArmor[c.name]; profile != nil {
			at := c.path + ".securityContext"
			w.safe, w.base = harmlessSecurity, at
			w.take(Privilege, at+".appArmorProfile", shapes["core/v1.SecurityContext"].fields["appArmorProfile"], profile)
			w.safe = nil
			return
		}
	}
}

func (w *walker) containerField(c *container, e entry, at string, v any) {
	switch e.row.fn {
	case "":
		w.takeRow(e, at, v)
	case "env":
		w.env(c, at, v)
	case "envFrom":
		w.envFrom(at, v)
	case "ports":
		w.ports(c, e, at, v)
	case "volumeMounts":
		w.volumeMounts(c, at, v)
	case "volumeDevices":
		w.takeRow(e, at, v)
		w.devices(c, v)
	case "resources":
		w.resourceClaims(at, v)
	case "restartPolicy":
		w.restartPolicy(c, at, v)
	case "messagePath":
		w.messagePath(at, v)
	case "handler":
		w.handler(at, probeShape, v)
	case "lifecycle":
		obj, ok := v.(map[string]any)
		if !ok {
			w.wrongType(at, "an object", v)
			return
		}
		w.handler(at+".postStart", hookShape, obj["postStart"])
		w.handler(at+".preStop", hookShape, obj["preStop"])
		w.unknown(Command, at, shapes["core/v1.Lifecycle"], obj)
	}
}

// sidecar is the restartPolicy that makes an init container go on beside the
// others, which no longer wait for its end.
const sidecar = "Always"

func (w *walker) restartPolicy(c *container, at string, v any) {
	if !c.init {
		return
	}
	if s, ok := v.(string); !ok {
		w.wrongType(at, "a string", v)
	} else if s == sidecar {
		w.take(Command, at, plainString, s)
	}
}

// messagePath: the kubelet mounts an empty file that the container may write at
// this path, in the place of what the image has there.
func (w *walker) messagePath(at string, v any) {
	if s, ok := v.(string); !ok {
		w.wrongType(at, "a string", v)
	} else if programPath(s) && s != "" {
		w.take(Command, at, plainString, s)
	}
}

func (w *walker) resourceClaims(at string, v any) {
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	s := shapes["core/v1.ResourceRequirements"]
	w.take(Privilege, at+".claims", s.fields["claims"], obj["claims"])
	w.unknown(Privilege, at, s, obj)
}

var (
	probeShape = shapes["core/v1.Probe"]
	hookShape  = shapes["core/v1.LifecycleHandler"]
)

// actions are the parts of a probe or hook that count: what it runs, and the
// host that it calls when that is not the pod itself.
var actions = []struct {
	name, member string
	cat          Category
	shape        *shape
}{
	{"exec", "command", Command, shapes["core/v1.ExecAction"]},
	{"httpGet", "host", Network, shapes["core/v1.HTTPGetAction"]},
	{"tcpSocket", "host", Network, shapes["core/v1.TCPSocketAction"]},
}

func (w *walker) handler(at string, s *shape, v any) {
	if v == nil {
		return
	}
	obj, ok := v.(map[string]any)
	if !ok {
		w.wrongType(at, "an object", v)
		return
	}
	for i := range actions {
		a := &actions[i]
		if obj[a.name] == nil {
			continue
		}
		action, ok := obj[a.name].(map[string]any)
		if !ok {
			w.wrongType(at+"."+a.name, "an object", obj[a.name])
			continue
		}
		if x := action[a.member]; x != nil {
			w.take(a.cat, at+"."+a.name+"."+a.member, a.shape.fields[a.member], x)
		}
		if hasUnknown(a.shape, action) {
			w.unknown(a.cat, at+"."+a.name, a.shape, action)
		}
	}
	w.unknown(Command, at, s, obj)
}

// ports adds host ports. Under hostNetwork the API server copies
// containerPort into hostPort, so that only hostNetwork itself counts.
func (w *walker) ports(c *container, e entry, at string, v any) {
	items, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	s := e.member.shape
	for i, x := range items {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		if item["hostPort"] == nil && item["hostIP"] == nil && !hasUnknown(s.elem, item) {
			continue
		}
		k, ok := w.itemKey(at, i, s, item)
		if !ok {
			continue
		}
		if !c.hostNetwork() {
			w.take(Network, at+k+".hostPort", s.elem.fields["hostPort"], item["hostPort"])
		}
		w.take(Network, at+k+".hostIP", s.elem.fields["hostIP"], item["hostIP"])
		w.unknown(Network, at+k, s.elem, item)
	}
}

func hasUnknown(s *shape, obj map[string]any) bool {
	for k := range obj {
		if s.fields[k] == nil {
			return true
		}
	}
	return false
}
