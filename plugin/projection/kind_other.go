package projection

const rollbackAnnotation = "deprecated.deployment.rollback.to"

// noRollback: the deployment controller, which admission trusts for
// ReplicaSets, answers this annotation by writing an older pod template into
// the Deployment itself.
func noRollback(w *walker, obj map[string]any) {
	if _, set := w.object(obj, "metadata.annotations")[rollbackAnnotation]; set {
		w.fault("metadata.annotations"+key(rollbackAnnotation), "makes the deployment controller restore an older image: remove it")
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

var cloudIdentity = &metaRule{names: nameSet("eks.amazonaws.com/*", "iam.gke.io/*", "azure.workload.identity/*",
	"iam.amazonaws.com/*", "pod-identity.alibabacloud.com/*", "serviceaccounts.openshift.io/*", "vault.hashicorp.com/*")}

func serviceAccountKind(w *walker, obj map[string]any) {
	fields := shapes["core/v1.ServiceAccount"].fields
	if obj["automountServiceAccountToken"] != true { // true is what absence means
		w.safe = harmlessFalse
		w.take(Identity, "automountServiceAccountToken", fields["automountServiceAccountToken"], obj["automountServiceAccountToken"])
		w.safe = nil
	}
	w.take(Identity, "imagePullSecrets", fields["imagePullSecrets"], obj["imagePullSecrets"])
	w.unknownTop(Identity, shapes["core/v1.ServiceAccount"], obj)
	w.annotations(Identity, obj, cloudIdentity)
}

// identityTypes are the types of Secrets that make an identity, argoSecret is
// the label by which Argo CD finds its clusters and repositories, and
// secretAccount whose token it is.
var (
	identityTypes = []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"}
	secretType    = &metaRule{names: nameSet(argoSecret)}
	secretAccount = &metaRule{names: nameSet("kubernetes.io/service-account.name")}
)

const argoSecret = "argocd.argoproj.io/secret-type"

// secretKind gates only Secrets that make an identity or tell Argo CD about a
// cluster or repository; never what a Secret holds.
func secretKind(w *walker, obj map[string]any) {
	typ, _ := obj["type"].(string)
	if obj["type"] != nil && typ == "" && obj["type"] != "" {
		w.wrongType("type", "a string", obj["type"])
	}
	labels := w.object(obj, "metadata.labels")
	special := contains(identityTypes, typ)
	if labels[argoSecret] == nil && !special {
		return
	}
	if special {
		w.add(Identity, "type", typ)
	}
	w.take(Identity, "metadata.labels"+key(argoSecret), keptString, labels[argoSecret])
	w.annotations(Identity, obj, secretAccount)
}

// Tracking labels of Argo CD and Flux, and those that only warn, do not count.
var (
	namespaceLabels = &metaRule{except: []*names{nameSet("kubernetes.io/metadata.name", "argocd.argoproj.io/instance",
		"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "app.kubernetes.io/instance",
		"pod-security.kubernetes.io/warn*", "pod-security.kubernetes.io/audit*")}}
	namespaceAnnotations = &metaRule{except: []*names{bookkeeping},
		names: nameSet("scheduler.alpha.kubernetes.io/*", "iam.amazonaws.com/*", "linkerd.io/*", "config.linkerd.io/*", "kuma.io/*",
			"openshift.io/sa.scc.*", "openshift.io/node-selector", "cni.projectcalico.org/*", "cnrm.cloud.google.com/*")}
)

// namespaceKind: other people's webhooks, NetworkPolicies and pod security
// select namespaces by label.
func namespaceKind(w *walker, obj map[string]any) {
	for k, v := range w.object(obj, "metadata.labels") {
		if namespaceLabels.counts(k, v) {
			w.entry(Privilege, "metadata.labels"+key(k), v)
		}
	}
	w.annotations(Privilege, obj, namespaceAnnotations)
}
