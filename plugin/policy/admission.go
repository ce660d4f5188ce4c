package policy

import (
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Admission is the part of a policy that the webhook alone uses. Namespaces
// are exact names.
type Admission struct {
	Warn bool // report what would be refused

	// Namespace is where the gate's own objects live. The main entries never
	// judge it; a small one guards its ConfigMaps and Secrets.
	Namespace string
	// Administrators may change those, and use the off-switch.
	Administrators Administrators

	// Include is the list of gated namespaces; if it is nil, all but Exclude,
	// which then holds Namespace.
	Include, Exclude []string
	// ClusterScoped are the cluster-scoped kinds that the webhook judges, Kinds
	// the namespaced ones beside those that it always judges: "Kind", of the
	// table of gated fields, or "Kind.group". Kinds of the policy's own are in
	// one of them.
	ClusterScoped, Kinds []string

	TrustedWriters []TrustedWriter
	// GatedDeletes are the kinds whose DELETE needs a receipt, without group.
	GatedDeletes []string
	// SharedControllerIdentity is the user of all built-in controllers in a
	// cluster where they share one; empty: each has its own.
	SharedControllerIdentity string
}

// TrustedWriter is a user who may write gated objects without receipts, within
// these limits. An empty Kinds, Names or Images does not limit. The entry of a
// preset stands for several of them.
type TrustedWriter struct {
	Preset     string // the one that filled this in; empty: none
	User       string
	Namespaces []gate.Glob // ClusterScope: cluster-scoped objects, which no other pattern matches
	Kinds      []string    // "Kind" or "Kind.group"
	Names      []gate.Glob
	Categories []projection.Category
	Images     []gate.Glob
	Until      int64 // seconds since the epoch, midnight UTC of the first day that is too late; 0: no end
	Exempt     bool  // never sent to the webhook; kinds ReplicaSet and Pod only
}

// ClusterScope stands for the namespace of an object that has none: in subjects
// of receipts, in the namespaces of a trusted writer, and as App.Namespace.
const ClusterScope = "-"

// Gated reports whether the webhook is asked about objects in a namespace.
func (a Admission) Gated(namespace string) bool {
	if a.Include != nil {
		return slices.Contains(a.Include, namespace)
	}
	return !slices.Contains(a.Exclude, namespace)
}

// grants are the kinds by which whoever may write them gives anybody any right.
// They have no namespace, so that the webhook judges them only if policy says so.
var grants = []string{"ClusterRole", "ClusterRoleBinding"}

// UnjudgedGrants are the kinds, of ClusterRole and ClusterRoleBinding, that the
// webhook is not asked about.
func (a Admission) UnjudgedGrants() []string {
	var out []string
	for _, kind := range grants {
		if !slices.Contains(a.ClusterScoped, kind) && !slices.Contains(a.ClusterScoped, kind+".rbac.authorization.k8s.io") {
			out = append(out, kind)
		}
	}
	return out
}

func (v *validator) admissionPart() Admission {
	a := Admission{
		Warn:                     v.doc.Mode.Admission.is(warn),
		Namespace:                v.namespace(),
		GatedDeletes:             v.doc.GatedDeletes,
		SharedControllerIdentity: v.doc.SharedControllerIdentity,
	}
	a.Include, a.Exclude = v.gatedNamespaces(a.Namespace)
	v.judgedKinds(&a)
	v.gatedDeletes(a)
	if a.SharedControllerIdentity != "" {
		v.user("sharedControllerIdentity", a.SharedControllerIdentity)
	}
	a.Administrators = v.administrators(a)
	for i, d := range v.doc.TrustedWriters {
		a.TrustedWriters = append(a.TrustedWriters, v.trustedWriters(item("trustedWriters", i), d, a)...)
	}
	return a
}

// ownNamespace is where the gate's own objects live. What is in it decides what
// may run, so it is protected at render, and at admission guarded instead of
// judged, whatever the lists of namespaces say.
func (v *validator) ownNamespace() string {
	if v.doc.Namespace == "" {
		return defaultNamespace
	}
	return v.doc.Namespace
}

func (v *validator) namespace() string {
	own := v.ownNamespace()
	if v.word("namespace", own, namespaceWord, "the exact name of a namespace") && own == "kube-system" {
		v.fail("namespace", "%q belongs to the cluster; the gate has one of its own", own)
	}
	return own
}

func (v *validator) gatedNamespaces(own string) (include, exclude []string) {
	ns := v.doc.Scope.Admission.Namespaces
	const path = "scope.admission.namespaces"
	const name = "the exact name of a namespace"
	v.words(path+".include", ns.Include, namespaceWord, name)
	v.words(path+".exclude", ns.Exclude, namespaceWord, name)
	if i := slices.Index(ns.Include, own); i >= 0 {
		v.fail(item(path+".include", i), "%q holds the gate's own objects, which are guarded apart", own)
	}
	switch {
	case ns.Include != nil && ns.Exclude != nil:
		v.fail(path, "include and exclude are given; want one of the two")
	case ns.Include != nil && len(ns.Include) == 0:
		v.fail(path+".include", "an empty list: the webhook would judge nothing")
	case ns.Include != nil:
		return ns.Include, nil
	case ns.Exclude == nil:
		return nil, []string{"kube-system", own}
	}
	if slices.Contains(ns.Exclude, own) {
		return nil, ns.Exclude
	}
	return nil, append(slices.Clone(ns.Exclude), own)
}
