package projection

import (
	"encoding/json"
	"strings"
)

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// injectedToken reports whether a volume of a Pod is the service account
// token that the ServiceAccount admission plugin injects: its name, exactly
// its form, mounted at its place only, and automounting not turned off. By
// hand, or otherwise, it is a leaf like any other.
func (p *pod) injectedToken(name string, tree map[string]any) bool {
	if !strings.HasPrefix(name, "kube-api-access-") || p.spec["automountServiceAccountToken"] == false || len(tree) != 2 {
		return false
	}
	proj, _ := tree["projected"].(map[string]any)
	sources, _ := proj["sources"].([]any)
	if len(sources) != 3 || !keysWithin(proj, "sources", "defaultMode") {
		return false
	}
	if mode, set := proj["defaultMode"]; set && mode != json.Number("420") {
		return false
	}
	if !standardToken(sources[0]) || !standardRootCA(sources[1]) || !standardNamespace(sources[2]) {
		return false
	}
	for _, c := range p.containers {
		for _, m := range c.mounts {
			if m.volume == name && (m.path != tokenPath || m.tree["readOnly"] != true || !keysWithin(m.tree, "name", "mountPath", "readOnly")) {
				return false
			}
		}
	}
	return true
}

func standardToken(v any) bool {
	src, _ := v.(map[string]any)
	t, _ := src["serviceAccountToken"].(map[string]any)
	return len(src) == 1 && keysWithin(t, "expirationSeconds", "path") &&
		t["path"] == "token" && t["expirationSeconds"] == json.Number("3607")
}

func standardRootCA(v any) bool {
	src, _ := v.(map[string]any)
	cm, _ := src["configMap"].(map[string]any)
	items, _ := cm["items"].([]any)
	if len(src) != 1 || cm["name"] != "kube-root-ca.crt" || len(items) != 1 || !keysWithin(cm, "name", "items") {
		return false
	}
	item, _ := items[0].(map[string]any)
	return keysWithin(item, "key", "path") && item["key"] == "ca.crt" && item["path"] == "ca.crt"
}

func standardNamespace(v any) bool {
	src, _ := v.(map[string]any)
	d, _ := src["downwardAPI"].(map[string]any)
	items, _ := d["items"].([]any)
	if len(src) != 1 || len(d) != 1 || len(items) != 1 {
		return false
	}
	item, _ := items[0].(map[string]any)
	ref, _ := item["fieldRef"].(map[string]any)
	return keysWithin(item, "path", "fieldRef") && item["path"] == "namespace" &&
		keysWithin(ref, "apiVersion", "fieldPath") && ref["fieldPath"] == "metadata.namespace"
}

func keysWithin(m map[string]any, allowed ...string) bool {
	if m == nil {
		return false
	}
	for k := range m {
		if !contains(allowed, k) {
			return false
		}
	}
	return true
}
