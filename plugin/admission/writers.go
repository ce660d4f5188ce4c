package admission

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/policy"
)

// The operations of a request (admission.k8s.io/v1).
const (
	Create = "CREATE"
	Update = "UPDATE"
	Delete = "DELETE"
)

// APIServer is the user of the API server itself, whose RBAC bootstrap must
// work whatever else does not (k8s.io/kubernetes, pkg/registry/rbac/rest).
const APIServer = "system:apiserver"

// controllerAccounts is where Kubernetes' controllers have their service
// accounts when each has its own (--use-service-account-credentials).
const controllerAccounts = "system:serviceaccount:kube-system:"

// grant is what one controller writes as part of its work.
type grant struct {
	controller string
	operations []string
	kinds      []GroupKind
}

// GroupKind names a kind; the group of the core is empty.
type GroupKind struct{ Group, Kind string }

// grants is the closed table of what Kubernetes' own controllers may write
// without receipts (docs/spec/policy.md, Built-in controllers): what they make
// is made from objects that were judged. Everything else of theirs is judged
// like anyone's. Nobody is trusted for Deployment, StatefulSet, DaemonSet and
// CronJob: the deployment controller would write an older template into a
// Deployment when an annotation tells it to. The names are those of
// k8s.io/kubernetes, bootstrappolicy/controller_policy.go.
var grants = []grant{
	{"deployment-controller", []string{Create, Update}, []GroupKind{{"apps", "ReplicaSet"}}},
	{"replicaset-controller", []string{Create}, []GroupKind{{"", "Pod"}}},
	{"replication-controller", []string{Create}, []GroupKind{{"", "Pod"}}},
	{"job-controller", []string{Create}, []GroupKind{{"", "Pod"}}},
	{"daemon-set-controller", []string{Create}, []GroupKind{{"", "Pod"}}},
	{"daemon-set-controller", []string{Create, Update}, []GroupKind{{"apps", "ControllerRevision"}}},
	{"statefulset-controller", []string{Create}, []GroupKind{{"", "Pod"}, {"", "PersistentVolumeClaim"}}},
	{"statefulset-controller", []string{Create, Update}, []GroupKind{{"apps", "ControllerRevision"}}},
	{"cronjob-controller", []string{Create, Update}, []GroupKind{{"batch", "Job"}}},
	{"clusterrole-aggregation-controller", []string{Update}, []GroupKind{{"rbac.authorization.k8s.io", "ClusterRole"}}},
	{"service-account-controller", []string{Create}, []GroupKind{{"", "ServiceAccount"}}},
	{"endpoint-controller", []string{Create, Update}, []GroupKind{{"", "Endpoints"}}},
	{"endpointslice-controller", []string{Create, Update}, []GroupKind{{"discovery.k8s.io", "EndpointSlice"}}},
	{"endpointslicemirroring-controller", []string{Create, Update}, []GroupKind{{"discovery.k8s.io", "EndpointSlice"}}},
	{"persistent-volume-binder", []string{Create, Update}, []GroupKind{{"", "PersistentVolume"}, {"", "PersistentVolumeClaim"}}},
	{"ephemeral-volume-controller", []string{Create}, []GroupKind{{"", "PersistentVolumeClaim"}}},
	{"resource-claim-controller", []string{Create, Update}, []GroupKind{{"resource.k8s.io", "ResourceClaim"}}},
}

// deleters are the controllers that delete what a namespace or an owner leaves
// behind.
var deleters = []string{"namespace-controller", "generic-garbage-collector", "pod-garbage-collector", "ttl-after-finished-controller", "job-controller"}

// A Writer is who asks for what: as much of a request as decides whether it is
// a controller's own work.
type Writer struct {
	User        string
	Groups      []string
	Operation   string
	Kind        GroupKind
	Namespace   string
	Name        string
	Subresource string
	Mirror      bool // the object is a Pod with the annotation of a mirror Pod
}

// mirror is the annotation that the kubelet gives the Pod of a static manifest.
const mirror = "kubernetes.io/config.mirror"

// IsMirror reports whether an object carries the annotation of a mirror Pod.
func IsMirror(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	v, _ := annotations[mirror].(string)
	return v != ""
}

// Exempt reports whether a request is never judged: the API server's own, a
// controller's by the table, a node's mirror Pod (NodeRestriction admission
// keeps a node to its own), or that of a trusted writer marked exempt. The
// conditions of the configuration say the same.
func Exempt(a policy.Admission, w Writer) bool {
	if w.User == APIServer {
		return true
	}
	if w.Subresource != "" {
		return false
	}
	for _, g := range grants {
		if w.User == controllerUser(a, g.controller) && slices.Contains(g.operations, w.Operation) && slices.Contains(g.kinds, w.Kind) {
			return true
		}
	}
	if w.Operation == Delete {
		for _, d := range deleters {
			if w.User == controllerUser(a, d) {
				return true
			}
		}
	}
	if w.Kind == (GroupKind{"", "Pod"}) && w.Operation == Create && w.Mirror &&
		strings.HasPrefix(w.User, nodeUser) && slices.Contains(w.Groups, nodeGroup) {
		return true
	}
	if !builtinExempt[w.Kind] || w.Operation == Delete {
		return false
	}
	// An exemption has no end: a condition of the API server knows no clock.
	for _, t := range a.Trusted(policy.Write{User: w.User, Group: w.Kind.Group, Kind: w.Kind.Kind, Namespace: w.Namespace, Name: w.Name}) {
		if t.Exempt {
			return true
		}
	}
	return false
}

const (
	nodeUser  = "system:node:"
	nodeGroup = "system:nodes"
)

// builtinExempt are the kinds that a trusted writer can be exempt for: a kind's
// name alone could be that of another group.
var builtinExempt = map[GroupKind]bool{{"", "Pod"}: true, {"apps", "ReplicaSet"}: true}

// controllerUser is who a controller is in this cluster.
func controllerUser(a policy.Admission, controller string) string {
	if a.SharedControllerIdentity != "" {
		return a.SharedControllerIdentity
	}
	return controllerAccounts + controller
}
