package policy

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Admission is the part of a policy that the webhook alone uses. Namespaces
// are exact names, kinds are names without group.
type Admission struct {
	Warn bool // report what would be refused

	// Include is the list of gated namespaces; if it is nil, all but Exclude.
	Include, Exclude []string
	// ClusterScoped are the cluster-scoped kinds that the webhook judges.
	ClusterScoped []string

	TrustedWriters []TrustedWriter
	// GatedDeletes are the kinds whose DELETE needs a receipt.
	GatedDeletes []string
	// SharedControllerIdentity is the user of all built-in controllers in a
	// cluster where they share one; empty: each has its own.
	SharedControllerIdentity string
}

// TrustedWriter is a user who may write gated objects without receipts, within
// these limits. An empty Kinds, Names or Images does not limit.
type TrustedWriter struct {
	User       string
	Namespaces []gate.Glob
	Kinds      []string
	Names      []gate.Glob
	Categories []projection.Category
	Images     []gate.Glob
	Until      int64 // seconds since the epoch, midnight UTC of the first day that is too late; 0: no end
	Exempt     bool  // never sent to the webhook; ReplicaSets and Pods only
}

// Gated reports whether the webhook is asked about objects in a namespace.
func (a Admission) Gated(namespace string) bool {
	if a.Include != nil {
		return slices.Contains(a.Include, namespace)
	}
	return !slices.Contains(a.Exclude, namespace)
}

func (v *validator) admissionPart() Admission {
	ns := v.doc.Scope.Admission.Namespaces
	a := Admission{
		Warn:    v.doc.Mode.Admission.is(warn),
		Include: ns.Include, Exclude: ns.Exclude,
		ClusterScoped:            v.doc.Scope.Admission.ClusterScoped,
		GatedDeletes:             v.doc.GatedDeletes,
		SharedControllerIdentity: v.doc.SharedControllerIdentity,
	}
	const path = "scope.admission.namespaces"
	const name = "the exact name of a namespace"
	switch {
	case ns.Include != nil && ns.Exclude != nil:
		v.fail(path, "include and exclude are given; want one of the two")
	case ns.Include != nil && len(ns.Include) == 0:
		v.fail(path+".include", "an empty list: the webhook would judge nothing")
	case ns.Include == nil && ns.Exclude == nil:
		a.Exclude = defaultExcluded
	}
	v.words(path+".include", ns.Include, namespaceWord, name)
	v.words(path+".exclude", ns.Exclude, namespaceWord, name)
	if a.ClusterScoped == nil {
		a.ClusterScoped = defaultClusterScoped
	}
	v.words("scope.admission.clusterScoped", a.ClusterScoped, kindWord, "a kind such as ClusterRole")
	v.words("gatedDeletes", a.GatedDeletes, kindWord, "a kind such as NetworkPolicy")
	if a.SharedControllerIdentity != "" {
		v.user("sharedControllerIdentity", a.SharedControllerIdentity)
	}
	for i, d := range v.doc.TrustedWriters {
		a.TrustedWriters = append(a.TrustedWriters, v.trustedWriter(item("trustedWriters", i), d, a))
	}
	return a
}

func (v *validator) trustedWriter(path string, d writerDoc, a Admission) TrustedWriter {
	if v.user(path+".user", d.User) {
		v.impersonation(path, d, a)
	}
	if len(d.Namespaces) == 0 {
		v.fail(path+".namespaces", "missing: where this writer is trusted")
	}
	if len(d.Categories) == 0 {
		v.fail(path+".categories", "missing: what this writer may write")
	}
	v.words(path+".kinds", d.Kinds, kindWord, "a kind such as Pod")
	unique(v, path+".categories", d.Categories)
	if d.Exempt {
		v.exempt(path, d)
	}
	w := TrustedWriter{
		User: d.User, Namespaces: globs(d.Namespaces), Kinds: d.Kinds, Names: globs(d.Names),
		Categories: categories(d.Categories), Images: globs(d.Images), Exempt: d.Exempt,
	}
	if d.Until != nil {
		w.Until = int64(*d.Until)
	}
	return w
}

// exempt is decided by a condition of the API server, which sees the user, the
// kind, the namespace and the name, and must work when the webhook does not.
func (v *validator) exempt(path string, d writerDoc) {
	if len(d.Kinds) == 0 || slices.ContainsFunc(d.Kinds, func(k string) bool { return k != "ReplicaSet" && k != "Pod" }) {
		v.fail(path+".exempt", "for writers of ReplicaSet and Pod alone; name them in kinds")
	}
	if len(d.Images) > 0 {
		v.fail(path+".images", "nobody judges the images of an exempt writer")
	}
}

// serviceAccountUser is how the API server calls a service account.
const serviceAccountUser = "system:serviceaccount:"

func (v *validator) user(path, user string) bool {
	account, isAccount := strings.CutPrefix(user, serviceAccountUser)
	parts := strings.Split(account, ":")
	switch {
	case user == "":
		v.fail(path, "missing: the user name that the API server shows")
	case strings.ContainsAny(user, "*\n\r\t") || strings.TrimSpace(user) != user:
		v.fail(path, "got %.40q, want the exact name of a user", user)
	case user == "system:anonymous":
		v.fail(path, "anybody can be %q", user)
	case isAccount && (len(parts) != 2 || !namespaceWord.MatchString(parts[0]) || !groupWord.MatchString(parts[1])):
		v.fail(path, "got %.40q, want %sNAMESPACE:NAME", user, serviceAccountUser)
	default:
		return true
	}
	return false
}

// impersonation: "whoever is editor of its namespace can impersonate it or mint
// its token", so a writer that lives in a gated namespace must be accepted
// knowingly.
func (v *validator) impersonation(path string, d writerDoc, a Admission) {
	account, isAccount := strings.CutPrefix(d.User, serviceAccountUser)
	if !isAccount || d.AcceptImpersonation {
		return
	}
	namespace, _, _ := strings.Cut(account, ":")
	if a.Gated(namespace) {
		v.fail(path+".user", "its namespace %q is gated itself, so its editors can be this writer; exclude it or say acceptImpersonation: true", namespace)
	}
}
