package projection

import (
	"strings"
)

func (w *walker) imagePullSecrets(p *pod) {
	if p.isPod { // ServiceAccount admission copies the account's into a Pod that names none
		return
	}
	w.pullSecrets(p.path+".imagePullSecrets", p.spec["imagePullSecrets"])
}

// pullSecrets adds a set of secret names as one leaf: [{"name":"a"}].
func (w *walker) pullSecrets(at string, v any) {
	w.take(Secret, at, podIndex["imagePullSecrets"].member, v)
}

// placement adds what puts a pod on particular, powerful nodes.
func (w *walker) placement(p *pod) {
	if !p.isPod {
		w.take(Privilege, p.path+".nodeName", plainString, p.spec["nodeName"])
	}
	if v := p.spec["priorityClassName"]; v != nil {
		if s, ok := v.(string); !ok {
			w.wrongType(p.path+".priorityClassName", "a string", v)
		} else if strings.HasPrefix(s, "system-") {
			w.add(Privilege, p.path+".priorityClassName", s)
		}
	}
	w.tolerations(p)
}

func (w *walker) tolerations(p *pod) {
	v := p.spec["tolerations"]
	if v == nil {
		return
	}
	items, ok := v.([]any)
	at := p.path + ".tolerations"
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
		switch k, _ := item["key"].(string); {
		case k == "node-role.kubernetes.io/control-plane", k == "node-role.kubernetes.io/master",
			k == "" && item["operator"] == "Exists":
			reaching = append(reaching, item)
		}
	}
	w.take(Privilege, at, podIndex["tolerations"].member, reaching)
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
			if v == nil || bookkeeping(k) {
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
			w.take(r.cat, at+"."+part+key(k), &member{shape: plainString.shape, pointer: true}, v)
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
