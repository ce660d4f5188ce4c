package projection

import "strings"

// kindSpec is what the table knows of one kind.
type kindSpec struct {
	group, kind string
	applies     []Category
	pod         *podPlace // where its pod spec is
	rows        []kindRow
	fn          func(*walker, map[string]any) // leaves that a plain walk does not make
	doc         string                        // what counts, for docs/spec/gated-fields.md

	// What the matchConditions must know of a kind without rows, beside
	// notLeaves (see tree.go). They compare everything but metadata and status,
	// so that what is missing here costs calls and never hides a change.
	typ                 string            // API type of the object, or after "spec=" of its spec
	only                []string          // nothing counts but what is at these paths
	free                []string          // paths of what is no leaf
	absent              map[string]string // path -> what absence means, in CEL
	labels, annotations *metaRule         // the object's own that count; nil: none
	when                when              // what must hold for any of it to count
	quiet               bool              // many objects of the kind have no leaf

	members []string // of the object itself: what the table and the API type name
}

// kindRow takes a whole field at path (rooted at the object), in the shape of
// an API type.
type kindRow struct {
	path    string
	cat     Category
	typ     string // shape of the parent, "storage/v1.CSIDriverSpec", or after '=' of the field itself
	pointer bool   // the zero value counts

	member *member // of the field, from typ
	parent *shape  // nil after '='
}

// compile looks up the shapes that the row names.
func (r *kindRow) compile() {
	if whole, ok := strings.CutPrefix(r.typ, "="); ok {
		r.member = &member{shape: shapes[whole]}
		return
	}
	r.parent = shapes[r.typ]
	m := *r.parent.fields[r.path[strings.LastIndexByte(r.path, '.')+1:]]
	m.pointer = m.pointer || r.pointer
	r.member = &m
}

// podPlace is where a kind keeps a pod spec and the metadata of its template.
// An empty meta stands for the object's own metadata.
type podPlace struct {
	spec, meta string
	claims     string // volume claim templates, which stand for volumes
	isPod      bool
	anyData    bool // what stands around it may be anything (a ControllerRevision)
}

func template(prefix string) *podPlace {
	return &podPlace{spec: prefix + ".spec", meta: prefix + ".metadata"}
}

// kindTable is the table of kinds. Kinds match by group and kind, in any
// version; extensions counts as the group that took its kinds over.
var kindTable = []kindSpec{
	{group: "", kind: "Pod", applies: podCategories, pod: &podPlace{spec: "spec", meta: "metadata", isPod: true}, doc: "pod spec"},
	{group: "", kind: "ReplicationController", applies: podCategories, pod: template("spec.template"), doc: "pod spec"},
	{group: "", kind: "PodTemplate", applies: podCategories, pod: template("template"), doc: "pod spec"},
	{group: "apps", kind: "Deployment", applies: podCategories, pod: template("spec.template"), fn: noRollback, doc: "pod spec; annotation `deprecated.deployment.rollback.to` is malformed"},
	{group: "apps", kind: "ReplicaSet", applies: podCategories, pod: template("spec.template"), doc: "pod spec"},
	{group: "apps", kind: "DaemonSet", applies: podCategories, pod: template("spec.template"), doc: "pod spec"},
	{group: "apps", kind: "StatefulSet", applies: podCategories, pod: &podPlace{spec: "spec.template.spec", meta: "spec.template.metadata", claims: "spec.volumeClaimTemplates"}, doc: "pod spec; of volumeClaimTemplates what counts in a claim"},
	{group: "apps", kind: "ControllerRevision", applies: podCategories, pod: &podPlace{spec: "data.spec.template.spec", meta: "data.spec.template.metadata", anyData: true}, doc: "pod spec; only its controllers may create one"},
	{group: "batch", kind: "Job", applies: podCategories, pod: template("spec.template"), doc: "pod spec"},
	{group: "batch", kind: "CronJob", applies: podCategories, pod: template("spec.jobTemplate.spec.template"), doc: "pod spec"},

	{group: rbacGroup, kind: "Role", applies: []Category{RBAC}, rows: []kindRow{{path: "rules", cat: RBAC, typ: "rbac/v1.Role"}}, doc: "rules"},
	{group: rbacGroup, kind: "ClusterRole", applies: []Category{RBAC}, fn: clusterRole, typ: "rbac/v1.ClusterRole", labels: roleLabels, doc: "rules, aggregationRule, every label except bookkeeping; rules beside an aggregationRule are malformed"},
	{group: rbacGroup, kind: "RoleBinding", applies: []Category{RBAC}, fn: roleBinding, typ: "rbac/v1.RoleBinding", doc: "roleRef, subjects"},
	{group: rbacGroup, kind: "ClusterRoleBinding", applies: []Category{RBAC}, fn: roleBinding, typ: "rbac/v1.RoleBinding", doc: "roleRef, subjects"},

	{group: "", kind: "ServiceAccount", applies: []Category{Identity}, fn: serviceAccountKind, typ: "core/v1.ServiceAccount", annotations: cloudIdentity, quiet: true,
		absent: map[string]string{"automountServiceAccountToken": "true"}, doc: "automountServiceAccountToken: false, imagePullSecrets, cloud-identity annotations"},
	{group: "", kind: "Secret", applies: []Category{Identity}, fn: secretKind, typ: "core/v1.Secret", when: secretCounts, labels: secretType, annotations: secretAccount, quiet: true,
		doc: "types that make an identity, their account; Argo CD's cluster and repository secrets. Contents are never leaves"},
	{group: "certificates.k8s.io", kind: "CertificateSigningRequest", applies: []Category{Identity}, rows: []kindRow{
		{path: "spec.signerName", cat: Identity, typ: "certificates/v1.CertificateSigningRequestSpec"},
		{path: "spec.request", cat: Identity, typ: "certificates/v1.CertificateSigningRequestSpec"},
		{path: "spec.usages", cat: Identity, typ: "certificates/v1.CertificateSigningRequestSpec"}}, doc: "signerName, request, usages"},
	{group: "certificates.k8s.io", kind: "ClusterTrustBundle", applies: []Category{Identity}, rows: []kindRow{
		{path: "spec.signerName", cat: Identity, typ: "certificates/v1beta1.ClusterTrustBundleSpec"},
		{path: "spec.trustBundle", cat: Identity, typ: "certificates/v1beta1.ClusterTrustBundleSpec"}}, doc: "signerName, trustBundle"},
	{group: "storage.k8s.io", kind: "CSIDriver", applies: []Category{Identity}, rows: []kindRow{
		{path: "spec.tokenRequests", cat: Identity, typ: "storage/v1.CSIDriverSpec"}}, quiet: true, doc: "tokenRequests"},

	{group: "", kind: "Service", applies: []Category{Network, Service}, fn: serviceKind, typ: "spec=core/v1.ServiceSpec", when: serviceCounts,
		free: []string{"spec.selector." + rolloutsHash}, quiet: true, doc: "if it exposes something outside: type, selector, ports, externalIPs, loadBalancer*, externalName, annotations (network); else selector and ports (service)"},
	{group: "", kind: "Endpoints", applies: []Category{Network}, fn: endpoints, typ: "core/v1.Endpoints", quiet: true, doc: "addresses, ports"},
	{group: "discovery.k8s.io", kind: "EndpointSlice", applies: []Category{Network}, fn: endpointSlice, typ: "discovery/v1.EndpointSlice", labels: sliceService, doc: "addresses, ports, the service-name label"},
	{group: "networking.k8s.io", kind: "Ingress", applies: []Category{Network}, fn: ingress, annotations: exposureAnnotations, doc: "spec; every annotation except bookkeeping and tuning"},
	{group: "networking.k8s.io", kind: "IngressClass", applies: []Category{Network}, fn: ingressClass, annotations: exposureAnnotations, doc: "spec; every annotation except bookkeeping and tuning"},
	{group: "networking.k8s.io", kind: "NetworkPolicy", applies: []Category{Network}, fn: networkPolicy, doc: "spec; policyTypes as defaulted"},

	{group: gatewayGroup, kind: "Gateway", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "GatewayClass", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "ListenerSet", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "HTTPRoute", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "GRPCRoute", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "TLSRoute", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "TCPRoute", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "UDPRoute", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "BackendTLSPolicy", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},
	{group: gatewayGroup, kind: "ReferenceGrant", applies: []Category{Network}, fn: gateway, free: []string{gatewayWeight}, annotations: exposureAnnotations, doc: gatewayDoc},

	{group: "", kind: "PersistentVolume", applies: []Category{Privilege, Secret}, fn: persistentVolume, typ: "spec=core/v1.PersistentVolumeSpec", doc: "whole source (hostPath and local: privilege), claimRef, mountOptions"},
	{group: "", kind: "PersistentVolumeClaim", applies: []Category{Secret}, fn: claimKind, typ: "spec=core/v1.PersistentVolumeClaimSpec", quiet: true, doc: "volumeName, selector, dataSource, dataSourceRef"},
	{group: "storage.k8s.io", kind: "StorageClass", applies: []Category{Secret}, rows: []kindRow{
		{path: "provisioner", cat: Secret, typ: "storage/v1.StorageClass"},
		{path: "parameters", cat: Secret, typ: "storage/v1.StorageClass"},
		{path: "mountOptions", cat: Secret, typ: "storage/v1.StorageClass"}}, doc: "provisioner, parameters, mountOptions"},
	{group: "storage.k8s.io", kind: "VolumeAttributesClass", applies: []Category{Secret}, rows: []kindRow{
		{path: "driverName", cat: Secret, typ: "storage/v1.VolumeAttributesClass"},
		{path: "parameters", cat: Secret, typ: "storage/v1.VolumeAttributesClass"}}, doc: "driverName, parameters"},

	{group: "node.k8s.io", kind: "RuntimeClass", applies: []Category{Privilege}, rows: []kindRow{{path: "handler", cat: Privilege, typ: "node/v1.RuntimeClass"}}, doc: "handler"},
	{group: "scheduling.k8s.io", kind: "PriorityClass", applies: []Category{Privilege}, rows: []kindRow{
		{path: "value", cat: Privilege, typ: "scheduling/v1.PriorityClass", pointer: true},
		{path: "globalDefault", cat: Privilege, typ: "scheduling/v1.PriorityClass"}}, doc: "value, globalDefault"},
	{group: "resource.k8s.io", kind: "ResourceClaim", applies: []Category{Privilege}, rows: []kindRow{{path: "spec", cat: Privilege, typ: "=resource/v1.ResourceClaimSpec"}}, doc: "spec"},
	{group: "resource.k8s.io", kind: "ResourceClaimTemplate", applies: []Category{Privilege}, rows: []kindRow{{path: "spec", cat: Privilege, typ: "=resource/v1.ResourceClaimTemplateSpec"}}, doc: "spec"},
	{group: "resource.k8s.io", kind: "DeviceClass", applies: []Category{Privilege}, rows: []kindRow{{path: "spec", cat: Privilege, typ: "=resource/v1.DeviceClassSpec"}}, doc: "spec"},
	{group: "", kind: "Namespace", applies: []Category{Privilege}, fn: namespaceKind, only: []string{"metadata"}, labels: namespaceLabels, annotations: namespaceAnnotations, quiet: true, doc: "labels and annotations that other people's admission and networks act on"},

	{group: admissionGroup, kind: "ValidatingWebhookConfiguration", applies: []Category{Admission}, fn: webhooks, doc: "webhooks, without caBundle"},
	{group: admissionGroup, kind: "MutatingWebhookConfiguration", applies: []Category{Admission}, fn: webhooks, doc: "webhooks, without caBundle"},
	{group: admissionGroup, kind: "ValidatingAdmissionPolicy", applies: []Category{Admission}, rows: []kindRow{{path: "spec", cat: Admission, typ: "=admissionregistration/v1.ValidatingAdmissionPolicySpec"}}, doc: "spec"},
	{group: admissionGroup, kind: "ValidatingAdmissionPolicyBinding", applies: []Category{Admission}, rows: []kindRow{{path: "spec", cat: Admission, typ: "=admissionregistration/v1.ValidatingAdmissionPolicyBindingSpec"}}, doc: "spec"},
	{group: admissionGroup, kind: "MutatingAdmissionPolicy", applies: []Category{Admission}, rows: []kindRow{{path: "spec", cat: Admission, typ: "=admissionregistration/v1.MutatingAdmissionPolicySpec"}}, doc: "spec"},
	{group: admissionGroup, kind: "MutatingAdmissionPolicyBinding", applies: []Category{Admission}, rows: []kindRow{{path: "spec", cat: Admission, typ: "=admissionregistration/v1.MutatingAdmissionPolicyBindingSpec"}}, doc: "spec"},
	{group: "apiregistration.k8s.io", kind: "APIService", applies: []Category{Admission}, fn: apiService, free: []string{"spec.caBundle"}, doc: "spec, without caBundle"},
	{group: "apiextensions.k8s.io", kind: "CustomResourceDefinition", applies: []Category{Admission}, fn: conversion, only: []string{"spec.conversion"}, free: []string{"spec.conversion.webhook.clientConfig.caBundle"}, quiet: true,
		absent: map[string]string{"spec.conversion": "{'strategy': 'None'}"}, doc: "spec.conversion, without caBundle"},

	{group: "argoproj.io", kind: "Application", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "argoproj.io", kind: "ApplicationSet", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "argoproj.io", kind: "AppProject", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "kustomize.toolkit.fluxcd.io", kind: "Kustomization", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: fluxSource, kind: "GitRepository", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: fluxSource, kind: "OCIRepository", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: fluxSource, kind: "HelmRepository", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: fluxSource, kind: "HelmChart", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: fluxSource, kind: "Bucket", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: fluxSource, kind: "ExternalArtifact", applies: []Category{Delivery}, fn: source, free: sourceTuning, doc: sourceDoc},
	{group: "helm.toolkit.fluxcd.io", kind: "HelmRelease", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "helm.cattle.io", kind: "HelmChart", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "operators.coreos.com", kind: "Subscription", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "kubernetes.crossplane.io", kind: "Object", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
	{group: "work.open-cluster-management.io", kind: "ManifestWork", applies: []Category{Delivery}, fn: delivery, free: deliveryTuning, annotations: deliveryAnnotations, doc: deliveryDoc},
}

const (
	admissionGroup = "admissionregistration.k8s.io"
	gatewayGroup   = "gateway.networking.k8s.io"
	rbacGroup      = "rbac.authorization.k8s.io"
	gatewayDoc     = "whole spec except `weight`; every annotation except bookkeeping and tuning"
	fluxSource     = "source.toolkit.fluxcd.io"
	sourceDoc      = "whole spec except ref, interval, timeout, suspend"
	deliveryDoc    = "whole spec except source revisions, intervals, sync automation and history limits"
)

type kindKey struct{ group, kind string }

var kindIndex = indexKinds()

func indexKinds() map[kindKey]*kindSpec {
	out := make(map[kindKey]*kindSpec, len(kindTable))
	for i := range kindTable {
		k := &kindTable[i]
		for j := range k.rows {
			k.rows[j].compile()
		}
		k.members = k.topMembers()
		out[kindKey{k.group, k.kind}] = k
	}
	return out
}

// CanonicalGroup returns the API group that a kind belongs to today: what
// stood in extensions counts as its successor.
func CanonicalGroup(group, kind string) string {
	if group != "extensions" {
		return group
	}
	switch kind {
	case "Deployment", "DaemonSet", "ReplicaSet":
		return "apps"
	case "Ingress", "NetworkPolicy":
		return "networking.k8s.io"
	}
	return group
}

// clusterScoped are the built-in kinds without a namespace.
var clusterScoped = map[string]bool{
	"/Namespace": true, "/Node": true, "/PersistentVolume": true, "/ComponentStatus": true,
	rbacGroup + "/ClusterRole": true, rbacGroup + "/ClusterRoleBinding": true,
	"apiextensions.k8s.io/CustomResourceDefinition": true, "apiregistration.k8s.io/APIService": true,
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration": true, "admissionregistration.k8s.io/MutatingWebhookConfiguration": true,
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy": true, "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding": true,
	"admissionregistration.k8s.io/MutatingAdmissionPolicy": true, "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding": true,
	"certificates.k8s.io/CertificateSigningRequest": true, "certificates.k8s.io/ClusterTrustBundle": true,
	"networking.k8s.io/IngressClass": true, "networking.k8s.io/IPAddress": true, "networking.k8s.io/ServiceCIDR": true,
	"node.k8s.io/RuntimeClass": true, "scheduling.k8s.io/PriorityClass": true, "policy/PodSecurityPolicy": true,
	"storage.k8s.io/StorageClass": true, "storage.k8s.io/CSIDriver": true, "storage.k8s.io/CSINode": true,
	"storage.k8s.io/VolumeAttachment": true, "storage.k8s.io/VolumeAttributesClass": true, "storagemigration.k8s.io/StorageVersionMigration": true,
	"resource.k8s.io/DeviceClass": true, "resource.k8s.io/ResourceSlice": true, "resource.k8s.io/DeviceTaintRule": true,
	"flowcontrol.apiserver.k8s.io/FlowSchema": true, "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration": true,
	"internal.apiserver.k8s.io/StorageVersion": true, "gateway.networking.k8s.io/GatewayClass": true,
}

// ClusterScoped reports whether a built-in kind has no namespace. Custom kinds
// count as namespaced here; only an API server knows better.
func ClusterScoped(group, kind string) bool {
	return clusterScoped[CanonicalGroup(group, kind)+"/"+kind]
}

// Known reports whether the table has rows of its own for a kind.
func Known(group, kind string) bool {
	return kindIndex[kindKey{CanonicalGroup(group, kind), kind}] != nil
}

// name is "Deployment.apps", as people write kinds.
func (k *kindSpec) name() string {
	if k.group == "" {
		return k.kind
	}
	return k.kind + "." + k.group
}
