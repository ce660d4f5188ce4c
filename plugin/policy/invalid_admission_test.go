package policy

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

func TestInvalidAdmissionPartsAreRefused(t *testing.T) {
	writer := func(s string) string { return minimal + "trustedWriters:\n- {" + s + "}\n" }
	scope := func(s string) string { return minimal + "scope:\n  admission:\n    " + s + "\n" }
	admins := func(s string) string { return minimal + "administrators:\n  " + s + "\n" }
	const accept = ", namespaces: [shop], acceptImpersonation: true"
	for _, tt := range []struct{ name, in, want string }{
		// Presets.
		{"unknown preset", writer("preset: certmanager, namespaces: [shop]"), `line 8: trustedWriters[0].preset: got "certmanager", want one of arc, argo-rollouts, argo-workflows, cert-manager, csi-provisioner, flagger, keda, knative, tekton, velero`},
		{"preset without namespaces", writer("preset: cert-manager, acceptImpersonation: true"), "line 8: trustedWriters[0].namespaces: missing: where this writer is trusted"},
		{"preset whose namespace is gated", writer("preset: tekton, namespaces: [shop]"), `line 8: trustedWriters[0].user: its namespace "tekton-pipelines" is gated itself, so its editors can be this user; exclude it or say acceptImpersonation: true`},
		{"preset of a driver", writer("preset: csi-provisioner, namespaces: ['-']"), "line 8: trustedWriters[0].user: missing: csi-provisioner runs as the service account of a driver; name that"},
		{"restore without end", writer("preset: velero" + accept), "line 8: trustedWriters[0].until: missing: velero writes everything that was backed up; trust it for a restore and no longer"},
		{"more kinds than a preset's", writer("preset: keda, kinds: [Job, Pod]" + accept), "line 8: trustedWriters[0].kinds[1]: preset keda does not write \"Pod\" but Job; for more, an entry without preset"},
		{"more categories than a preset's", writer("preset: keda, categories: [rbac]" + accept), `line 8: trustedWriters[0].categories[0]: preset keda does not write "rbac"; for more, an entry without preset`},
		{"nothing of a preset", writer("preset: argo-rollouts, kinds: [Ingress], categories: [image]" + accept), "line 8: trustedWriters[0]: these kinds and categories leave nothing of preset argo-rollouts"},
		{"volumes in namespaces", writer("preset: csi-provisioner, user: ops, namespaces: [shop]"), "line 8: trustedWriters[0].namespaces: PersistentVolume has no namespace; write '-'"},
		{"exempt preset with images", writer("preset: cert-manager, exempt: true" + accept), "line 8: trustedWriters[0].exempt: preset cert-manager writes no ReplicaSet or Pod of any image; nothing of it can be exempt"},
		{"exempt preset of other kinds", writer("preset: keda, exempt: true" + accept), "line 8: trustedWriters[0].exempt: preset keda writes no ReplicaSet or Pod of any image; nothing of it can be exempt"},
		{"exempt for a time", writer("user: ops, namespaces: [a], kinds: [Pod], categories: [image], exempt: true, until: 2027-01-01"), "line 8: trustedWriters[0].until: given beside exempt: a condition of the API server sees no clock, so the exemption would not end"},
		{"exempt preset for a time", writer("preset: argo-rollouts, exempt: true, until: 2027-01-01" + accept), "line 8: trustedWriters[0].until: given beside exempt: a condition of the API server sees no clock, so the exemption would not end"},
		{"namespaces of a writer that are none", writer("user: ops, namespaces: [shop/*, ''], categories: [image]"), "line 8: trustedWriters[0].namespaces[1]: empty pattern"},
		{"a path as the namespace of a writer", writer("user: ops, namespaces: [shop/*], categories: [image]"), `line 8: trustedWriters[0].namespaces[0]: got "shop/*", want a namespace, with '*' for any run, or '-' for cluster-scoped objects`},
		{"cluster-scoped kind of a writer in namespaces", writer("user: ops, namespaces: ['*'], kinds: [Pod, Namespace], categories: [privilege]"), "line 8: trustedWriters[0].namespaces: Namespace has no namespace; write '-'"},

		// The gate's own.
		{"the gate in the cluster's namespace", minimal + "namespace: kube-system\n", `line 7: namespace: "kube-system" belongs to the cluster; the gate has one of its own`},
		{"a namespace that is none", minimal + "namespace: Gate\n", `line 7: namespace: got "Gate", want the exact name of a namespace`},
		{"the gate's namespace is gated", minimal + "namespace: gate\nscope: {admission: {namespaces: {include: [shop, gate]}}}\n", `line 8: scope.admission.namespaces.include[1]: "gate" holds the gate's own objects, which are guarded apart`},
		{"no administrators", minimal + "administrators: {}\n", "line 7: administrators: nobody; name users or groups, or leave it out to mean the group syncgate:administrators"},
		{"everybody administrates", admins("groups: [system:authenticated]"), `line 8: administrators.groups[0]: "system:authenticated" is not a group of people; name service accounts one by one, under users`},
		{"strangers administrate", admins("groups: [a, system:unauthenticated]"), `line 8: administrators.groups[1]: "system:unauthenticated" is not a group of people; name service accounts one by one, under users`},
		{"every service account administrates", admins("groups: [system:serviceaccounts]"), `line 8: administrators.groups[0]: "system:serviceaccounts" is not a group of people; name service accounts one by one, under users`},
		{"every service account of a namespace administrates", admins("groups: ['system:serviceaccounts:argocd']"), `line 8: administrators.groups[0]: "system:serviceaccounts:argocd" is not a group of people; name service accounts one by one, under users`},
		{"pattern of administrators", admins("groups: ['ops-*']"), `line 8: administrators.groups[0]: got "ops-*", want the exact name of a group`},
		{"pattern of an administrator", admins("users: ['*']"), `line 8: administrators.users[0]: got "*", want the exact name of a user`},
		{"anybody administrates", admins("users: ['system:anonymous']"), `line 8: administrators.users[0]: anybody can be "system:anonymous"`},
		{"administrator twice", admins("users: [a, a]"), `line 8: administrators.users[1]: "a" is there twice`},
		{"administrators twice", admins("groups: [a, a]"), `line 8: administrators.groups[1]: "a" is there twice`},
		{"administrator whose namespace is gated", admins("users: ['system:serviceaccount:ops:robot']"), `line 8: administrators.users[0]: its namespace "ops" is gated itself, so its editors can be this user; exclude it or say acceptImpersonation: true`},
		{"what Argo CD applies could change the gate", admins("{users: ['system:serviceaccount:argocd:argocd-application-controller'], acceptImpersonation: true}"), `line 8: administrators.users[0]: "system:serviceaccount:argocd:argocd-application-controller" applies applications, so a commit could change the gate`},
		{"what Flux applies could change the gate", admins("{users: ['system:serviceaccount:kube-system:kustomize-controller'], acceptImpersonation: true}"), `line 8: administrators.users[0]: "system:serviceaccount:kube-system:kustomize-controller" applies applications, so a commit could change the gate`},

		// Kinds.
		{"admission kind", scope("clusterScoped: [Namespace, ValidatingWebhookConfiguration]"), `line 9: scope.admission.clusterScoped[1]: "ValidatingWebhookConfiguration" is shown to no webhook; guard it by RBAC`},
		{"admission kind with its group", scope("clusterScoped: [MutatingAdmissionPolicyBinding.admissionregistration.k8s.io]"), `line 9: scope.admission.clusterScoped[0]: "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io" is shown to no webhook; guard it by RBAC`},
		{"admission kind among the namespaced", scope("kinds: [ValidatingAdmissionPolicy]"), `line 9: scope.admission.kinds[0]: "ValidatingAdmissionPolicy" is shown to no webhook; guard it by RBAC`},
		{"unknown cluster-scoped kind", scope("clusterScoped: [Fleet]"), `line 9: scope.admission.clusterScoped[0]: "Fleet" is not in the table of gated fields; write it as Kind.group`},
		{"namespaced kind as cluster-scoped", scope("clusterScoped: [Deployment.apps]"), `line 9: scope.admission.clusterScoped[0]: "Deployment.apps" has a namespace; it is judged, or named in scope.admission.kinds`},
		{"cluster-scoped kind as namespaced", scope("kinds: [ClusterRole]"), `line 9: scope.admission.kinds[0]: "ClusterRole" has no namespace; name it in scope.admission.clusterScoped`},
		{"unknown kind", scope("kinds: [Rollout]"), `line 9: scope.admission.kinds[0]: "Rollout" is not in the table of gated fields; write it as Kind.group`},
		{"kind in lower case", scope("kinds: [endpoints]"), `line 9: scope.admission.kinds[0]: got "endpoints", want a kind such as Endpoints or Rollout.argoproj.io`},
		{"kind twice", scope("kinds: [Endpoints, Endpoints]"), `line 9: scope.admission.kinds[1]: "Endpoints" is there twice`},
		{"kind with and without namespace", scope("clusterScoped: [Fleet.example.com]") + "kinds: [{group: example.com, kind: Fleet, path: spec.image, category: x-a}]\n", "line 9: scope.admission.clusterScoped[0]: Fleet.example.com is cluster-scoped here and namespaced elsewhere; kinds[].scope says which"},
		{"two plurals", minimal + "kinds:\n- {group: a.io, kind: A, path: b, category: x-a, resource: as}\n- {group: a.io, kind: A, path: c, category: x-a, resource: aas}\n", `line 9: kinds[1].resource: got "aas", but an entry before says "as"`},
		{"plural in capitals", minimal + "kinds: [{group: a.io, kind: A, path: b, category: x-a, resource: As}]\n", `line 7: kinds[0].resource: got "As", want a plural such as prometheuses`},
		{"unknown scope", minimal + "kinds: [{group: a.io, kind: A, path: b, category: x-a, scope: cluster}]\n", `line 7: kinds[0].scope: got "cluster", want Namespaced or Cluster`},
		{"scope that a kind does not have", minimal + "kinds: [{group: apps, kind: Deployment, path: spec.b, category: x-a, scope: Cluster}]\n", `line 7: kinds[0].scope: got "Cluster", which Deployment.apps does not have`},
		{"deletes of what is not judged", minimal + "gatedDeletes: [NetworkPolicy, ClusterRole]\n", `line 7: gatedDeletes[1]: the webhook does not judge "ClusterRole"; name it in scope.admission.kinds or clusterScoped`},
		{"deletes of delivery kinds", minimal + "gatedDeletes: [Application]\n", `line 7: gatedDeletes[0]: the webhook does not judge "Application"; name it in scope.admission.kinds or clusterScoped`},
		{"deletes of what no webhook sees", minimal + "gatedDeletes: [ValidatingAdmissionPolicyBinding]\n", `line 7: gatedDeletes[0]: the webhook does not judge "ValidatingAdmissionPolicyBinding"; name it in scope.admission.kinds or clusterScoped`},

		// Time left.
		{"more time left than there is", minimal + "receipts: {minRemaining: 2160h}\n", `line 7: receipts.minRemaining: 2160h is not below the maxLifetime of issuers[0], 2160h: no receipt of "a" would ever count`},
		{"more time left than one issuer gives", strings.Replace(two, "{name: b,", "{name: b, maxLifetime: 90m,", 1) + "receipts: {minRemaining: 24h}\n", `line 7: receipts.minRemaining: 24h is not below the maxLifetime of issuers[1], 90m: no receipt of "b" would ever count`},
		{"more time left than there is, for an app", minimal + "apps: [{match: {name: a}, receipts: {minRemaining: 7776001s}}]\n", "line 7: apps[0].receipts.minRemaining: 7776001s is not below the maxLifetime of any issuer: no receipt would ever count"},

		// Who may sign.
		{"every key is retired", strings.Replace(minimal, "a.json}\n", "a.json}\n  retired: [a1, a2]\n", 1), `line 7: issuers[0].retired: every key of "a" is retired, and without it too few may sign the required categories "admission", "command", "delivery", "identity", "image", "network", "privilege", "rbac", "secret"`},
		{"nobody for two categories, one later", header + "environment: prod\nissuers:\n- {name: a, keys: {file: a.json}, categories: [command, image, identity, network, secret, privilege, delivery]}\ncategories: [{name: rbac, since: 2027-01-15}]\n", `line 4: issuers: none may sign the required categories "admission", "rbac" (since 2027-01-15) in environment "prod"`},
	} {
		t.Run(tt.name, func(t *testing.T) { wantInvalid(t, tt.in, gate.PolicyInvalid, tt.want) })
	}
}
