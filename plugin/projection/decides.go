package projection

import "strings"

// decides are the gated fields that a cluster fills in by its own choice where
// a manifest leaves them out: what it fills in is another value in another
// cluster, so no rule of the table can take it for absence. A '*' ends a
// prefix.
var decides = []struct{ group, kind, path string }{
	{"networking.k8s.io", "Ingress", "spec.ingressClassName"},
	{"", "Service", "spec.loadBalancerClass"},
	{"", "Pod", "spec.tolerations"},
	{"", "Pod", "spec.runtimeClassName"},
	{"", "Pod", "spec.schedulerName"},
	{"", "Pod", "spec.volumes*"},
}

// ClusterDecides reports whether a cluster may fill in the field at path of a
// kind by its own choice, so that a receipt for a manifest that leaves it out
// does not fit what the cluster stores (FieldDefaulted).
func ClusterDecides(group, kind, path string) bool {
	for _, d := range decides {
		if d.group != group || d.kind != kind {
			continue
		}
		if prefix, any := strings.CutSuffix(d.path, "*"); d.path == path || any && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
