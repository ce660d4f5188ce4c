package projection

import "strings"

// decision is a gated field that a cluster fills in by its own choice where a
// manifest leaves it out. A '*' ends a prefix.
type decision struct{ group, kind, path, doc string }

// decides are those fields: what is filled in is another value in another
// cluster, so no rule of the table can take it for absence.
var decides = []decision{
	{"networking.k8s.io", "Ingress", "spec.ingressClassName", "the IngressClass marked as default"},
	{"", "Service", "spec.loadBalancerClass", "the webhook of a load balancer controller"},
	{"", "PersistentVolumeClaim", "spec.volumeName", "the volume binder"},
	{"", "PersistentVolume", "spec.claimRef.name", "the volume binder"},
	{"", "PersistentVolume", "spec.claimRef.namespace", "the volume binder"},
	{"", "Pod", "spec.tolerations", "the runtime class, and PodTolerationRestriction"},
	{"", "Pod", "spec.runtimeClassName", "the webhook of a sandbox"},
	{"", "Pod", "spec.schedulerName", "the webhook of a scheduler"},
	{"", "ServiceAccount", "imagePullSecrets", "OpenShift's own registry"},
	{"", "Namespace", `metadata.annotations["openshift.io/sa.scc.*`, "OpenShift's security context constraints"},
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

// field is the decision as a row of the documentation.
func (d decision) field() Field {
	k := kindSpec{group: d.group, kind: d.kind}
	path := d.path
	if prefix, any := strings.CutSuffix(path, "*"); any {
		path = prefix + `*"]`
	}
	return Field{Of: OfDecision, Path: k.name() + " " + path, Doc: d.doc}
}
