package projection

import (
	"strings"
)

// systemClasses begin the names of the classes that only the system uses.
const systemClasses = "system-"

// priorityClass: the classes of the system pre-empt everything else.
func (w *walker) priorityClass(at string, v any) {
	s, ok := v.(string)
	if !ok {
		w.wrongType(at, "a string", v)
	} else if strings.HasPrefix(s, systemClasses) {
		w.take(Privilege, at, plainString, s)
	}
}

// controlPlaneTaints are the keys of tolerations that reach control-plane nodes;
// one without a key tolerates every taint.
var controlPlaneTaints = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/controlplane", "node-role.kubernetes.io/etcd", // of RKE
}

// tolerations adds the set of those that let a pod onto control-plane nodes.
func (w *walker) tolerations(e entry, at string, v any) {
	items, ok := v.([]any)
	if !ok {
		w.wrongType(at, "a list", v)
		return
	}
	var reaching []any
	for i, x := range items {
		item, ok := x.(map[string]any)
		if !ok {
			w.wrongType(index(at, i), "an object", x)
			continue
		}
		k, ok := item["key"].(string)
		if !ok && item["key"] != nil {
			w.wrongType(index(at, i)+".key", "a string", item["key"])
			continue
		}
		switch {
		case contains(controlPlaneTaints, k), k == "" && item["operator"] == "Exists":
			reaching = append(reaching, item)
		}
	}
	if len(reaching) > 0 {
		w.take(Privilege, at, e.member, reaching)
	}
}

// templateMeta adds the labels and annotations of a pod template that
// controllers and runtimes act on.
func (w *walker) templateMeta(p *pod, at string, meta map[string]any) {
	for _, part := range []string{"annotations", "labels"} {
		values, ok := meta[part].(map[string]any)
		if !ok {
			if meta[part] != nil {
				w.wrongType(at+"."+part, "an object", meta[part])
			}
			continue
		}
		for k, v := range values {
			if templateRecords.has(k) {
				continue
			}
			r := templateRow(part, k)
			if r == nil {
				continue
			}
			if r.fn == "appArmor" {
				if c, profile := appArmorField(k, v); profile != nil {
					if p.appArmor == nil {
						p.appArmor = map[string]any{}
					}
					p.appArmor[c] = profile
					continue
				}
			}
			w.entry(r.cat, at+"."+part+key(k), v)
		}
	}
}

func templateRow(part, k string) *row {
	for i := range templateRows {
		pattern := strings.TrimSuffix(strings.TrimPrefix(templateRows[i].path, part+"["), "]")
		if pattern == templateRows[i].path {
			continue
		}
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if k == pattern || isPrefix && strings.HasPrefix(k, prefix) {
			return &templateRows[i]
		}
	}
	return nil
}

// appArmorField turns a deprecated AppArmor annotation into the container
// field that the API server makes of it on a Pod (k8s.io/kubernetes
// pkg/api/pod/util.go, ApparmorFieldForAnnotation). nil: not a valid one.
func appArmorField(k string, v any) (string, map[string]any) {
	name := strings.TrimPrefix(k, "container.apparmor.security.beta.kubernetes.io/")
	switch s, _ := v.(string); {
	case s == "unconfined":
		return name, map[string]any{"type": "Unconfined"}
	case s == "runtime/default":
		return name, map[string]any{"type": "RuntimeDefault"}
	case strings.HasPrefix(s, "localhost/") && s != "localhost/":
		return name, map[string]any{"type": "Localhost", "localhostProfile": strings.TrimPrefix(s, "localhost/")}
	}
	return "", nil
}
