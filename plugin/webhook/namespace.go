package webhook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/admission"
)

// argoControllers are the service accounts that apply what Argo CD syncs: in its
// own cluster, and the one that `argocd cluster add` makes in others.
var argoControllers = []string{"argocd-application-controller", "argocd-manager"}

// ofNoManifest says of a Namespace that Argo CD writes without a manifest, for
// the managedNamespaceMetadata of an Application, who writes it, and the next
// step: there is nothing to sign. Both are empty for any other. It tells one from
// a committed Namespace, which carries a receipt or what Argo CD tracks objects
// by, and so only where these have their usual names.
func (j *judgement) ofNoManifest() (text, fix string) {
	r := j.request
	if r.Group != "" || r.Kind != "Namespace" || r.Operation == admission.Delete || len(j.receipts) > 0 {
		return "", ""
	}
	account := strings.Split(r.User, ":")
	if len(account) != 4 || account[0]+":"+account[1] != "system:serviceaccount" || !slices.Contains(argoControllers, account[3]) {
		return "", ""
	}
	if under(r.Object, "annotations", "argocd.argoproj.io/tracking-id") || under(r.Object, "labels", "app.kubernetes.io/instance") {
		return "", ""
	}
	return fmt.Sprintf("; written by %s for no manifest of an Application", clip(r.User)),
		"remove it from managedNamespaceMetadata of the Application, or commit a Namespace that has it and sign that"
}

// under reports whether the metadata of an object has a label or annotation.
func under(tree map[string]any, kind, name string) bool {
	meta, _ := tree["metadata"].(map[string]any)
	list, _ := meta[kind].(map[string]any)
	_, ok := list[name]
	return ok
}
