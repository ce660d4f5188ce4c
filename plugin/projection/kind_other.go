package projection

import (
	"strings"
)

// noRollback: the deployment controller, which admission trusts for
// ReplicaSets, answers this annotation by writing an older pod template into
// the Deployment itself.
func noRollback(w *walker, obj map[string]any) {
	if _, set := w.object(obj, "metadata.annotations")["deprecated.deployment.rollback.to"]; set {
		w.fault(`metadata.annotations["deprecated.deployment.rollback.to"]`, "makes the deployment controller restore an older image: remove it")
	}
}

// persistentVolume: whose data it is. Everything else in the spec says how
// much there is and what becomes of it.
func persistentVolume(w *walker, obj map[string]any) {
	spec := w.object(obj, "spec")
	fields := shapes["core/v1.PersistentVolumeSpec"].fields
	for k, v := range spec {
		f := fields[k]
		switch k {
		case "accessModes", "capacity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName", "volumeMode", "nodeAffinity":
		case "hostPath", "local":
			w.take(Privilege, "spec."+k, f, v)
		case "claimRef":
			ref := w.member("spec", spec, k)
			w.take(Secret, "spec.claimRef.namespace", plainString, ref["namespace"])
			w.take(Secret, "spec.claimRef.name", plainString, ref["name"])
			w.unknown(Secret, "spec.claimRef", f.shape, ref)
		default: // mountOptions, every other source, and what is newer than the table
			if f == nil {
				f = anyMember
			}
			w.take(Secret, "spec."+fieldName(k), f, v)
		}
	}
}

var cloudIdentity = []string{"eks.amazonaws.com/", "iam.gke.io/", "azure.workload.identity/"}

func serviceAccountKind(w *walker, obj map[string]any) {
	fields := shapes["core/v1.ServiceAccount"].fields
	if obj["automountServiceAccountToken"] != true { // true is what absence means
		w.safe = harmlessFalse
		w.take(Identity, "automountServiceAccountToken", fields["automountServiceAccountToken"], obj["automountServiceAccountToken"])
		w.safe = nil
	}
	w.take(Identity, "imagePullSecrets", fields["imagePullSecrets"], obj["imagePullSecrets"])
	w.unknownTop(Identity, shapes["core/v1.ServiceAccount"], obj)
	w.annotations(Identity, obj, func(k string) bool {
		for _, p := range cloudIdentity {
			if strings.HasPrefix(k, p) {
				return true
			}
		}
		return false
	})
}

// secretKind gates only Secrets that make an identity or tell Argo CD about a
// cluster or repository; never what a Secret holds.
func secretKind(w *walker, obj map[string]any) {
	typ, _ := obj["type"].(string)
	if obj["type"] != nil && typ == "" && obj["type"] != "" {
		w.wrongType("type", "a string", obj["type"])
	}
	labels := w.object(obj, "metadata.labels")
	const argo = "argocd.argoproj.io/secret-type"
	special := typ == "kubernetes.io/service-account-token" || typ == "bootstrap.kubernetes.io/token"
	if labels[argo] == nil && !special {
		return
	}
	if special {
		w.add(Identity, "type", typ)
	}
	w.take(Identity, `metadata.labels["`+argo+`"]`, keptString, labels[argo])
	w.annotations(Identity, obj, func(k string) bool { return k == "kubernetes.io/service-account.name" })
}

var namespaceAnnotations = []string{"scheduler.alpha.kubernetes.io/", "iam.amazonaws.com/", "linkerd.io/", "openshift.io/sa.scc."}

// namespaceKind: other people's webhooks, NetworkPolicies and pod security
// select namespaces by label.
func namespaceKind(w *walker, obj map[string]any) {
	for k, v := range w.object(obj, "metadata.labels") {
		switch {
		case k == "kubernetes.io/metadata.name", strings.HasPrefix(k, "argocd.argoproj.io/"),
			k == "kustomize.toolkit.fluxcd.io/name", k == "kustomize.toolkit.fluxcd.io/namespace",
			k == "app.kubernetes.io/instance", // Argo CD's default tracking label
			strings.HasPrefix(k, "pod-security.kubernetes.io/warn"), strings.HasPrefix(k, "pod-security.kubernetes.io/audit"):
			continue
		}
		w.take(Privilege, "metadata.labels"+key(k), keptString, v)
	}
	w.annotations(Privilege, obj, func(k string) bool {
		for _, p := range namespaceAnnotations {
			if strings.HasPrefix(k, p) {
				return !bookkeeping(k)
			}
		}
		return false
	})
}
