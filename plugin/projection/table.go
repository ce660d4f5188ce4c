package projection

import "strings"

// row is one line of the table of gated fields. Path is relative to the
// row's place; "containers[]" stands for all three container lists of a pod
// spec. A row either selects leaves, or says why a field is no leaf (not).
type row struct {
	path string
	cat  Category
	fn   string // the named function that makes the leaves, when a plain walk does not
	not  string // why the field is not gated
	doc  string // one sentence for docs/spec/gated-fields.md

	// harmless tells values that only tighten. rel is the path below the row.
	harmless func(rel string, v any) bool
	// dropEmpty: an empty object means the same as none (securityContext).
	dropEmpty bool
}

// harmlessSecurity holds the values of a pod's or container's securityContext
// that can only take rights away.
func harmlessSecurity(rel string, v any) bool {
	switch rel {
	case ".runAsNonRoot", ".readOnlyRootFilesystem":
		return v == true
	case ".allowPrivilegeEscalation", ".privileged":
		return v == false
	case ".capabilities.drop", ".capabilities":
		return true
	case ".seccompProfile.type", ".appArmorProfile.type":
		return v == "RuntimeDefault"
	}
	return false
}

func harmlessFalse(_ string, v any) bool { return v == false }

// podRows are the fields of a pod spec.
var podRows = []row{
	{path: "containers[]", fn: "containers", doc: "every container, init container and ephemeral container, see below"},
	{path: "initContainers[]", fn: "containers", doc: "likewise; of two or more the order, as the list of their names at `initContainers#order`, is `command`"},
	{path: "ephemeralContainers[]", fn: "containers", doc: "likewise"},
	{path: "volumes[]", fn: "volumes", doc: "every volume, see below"},

	{path: "serviceAccountName", cat: Identity, fn: "serviceAccount", doc: "with the deprecated `serviceAccount` as its alias; `default` is absence"},
	{path: "serviceAccount", cat: Identity, fn: "serviceAccount", doc: "alias of `serviceAccountName`"},
	{path: "automountServiceAccountToken", cat: Identity, harmless: harmlessFalse, doc: "as written"},

	{path: "imagePullSecrets", cat: Secret, fn: "imagePullSecrets", doc: "a set of names; not on a Pod, where admission copies them from the service account"},

	{path: "hostNetwork", cat: Network, doc: "as written"},
	{path: "hostAliases", cat: Network, doc: "by IP"},
	{path: "dnsPolicy", cat: Network, doc: "`ClusterFirst` is absence"},
	{path: "dnsConfig", cat: Network, doc: "whole"},

	{path: "securityContext", cat: Privilege, harmless: harmlessSecurity, dropEmpty: true, doc: "whole"},
	{path: "hostPID", cat: Privilege, doc: "as written"},
	{path: "hostIPC", cat: Privilege, doc: "as written"},
	{path: "hostUsers", cat: Privilege, harmless: harmlessFalse, doc: "as written"},
	{path: "shareProcessNamespace", cat: Privilege, harmless: harmlessFalse, doc: "as written"},
	{path: "runtimeClassName", cat: Privilege, doc: "as written"},
	{path: "resourceClaims", cat: Privilege, doc: "by name"},
	{path: "nodeName", cat: Privilege, fn: "nodeName", doc: "not on a Pod, where a scheduler sets it"},
	{path: "schedulerName", cat: Privilege, doc: "`default-scheduler` is absence"},
	{path: "priorityClassName", cat: Privilege, fn: "priorityClassName", doc: "only `system-*`"},
	{path: "tolerations", cat: Privilege, fn: "tolerations", doc: "the set of those that reach control-plane nodes"},

	{path: "activeDeadlineSeconds", not: "bounds how long a pod runs"},
	{path: "affinity", not: "placement among nodes that the pod may use anyway"},
	{path: "enableServiceLinks", not: "adds environment variables that name Services"},
	{path: "evictionResponders", not: "who is asked before an eviction: availability"},
	{path: "hostname", not: "the pod's own name"},
	{path: "hostnameOverride", not: "the pod's own name"},
	{path: "nodeSelector", not: "placement among nodes that the pod may use anyway"},
	{path: "os", not: "must agree with the node; grants nothing"},
	{path: "overhead", not: "set from the runtime class at admission"},
	{path: "preemptionPolicy", not: "availability; follows the priority class"},
	{path: "priority", not: "set from priorityClassName at admission"},
	{path: "readinessGates", not: "delays readiness"},
	{path: "resources", not: "requests and limits"},
	{path: "restartPolicy", not: "whether an ended program runs again"},
	{path: "schedulingGates", not: "delays scheduling"},
	{path: "schedulingGroup", not: "scheduling in groups: availability"},
	{path: "setHostnameAsFQDN", not: "the pod's own name"},
	{path: "subdomain", not: "the pod's own name"},
	{path: "terminationGracePeriodSeconds", not: "how long an ending program may take"},
	{path: "topologySpreadConstraints", not: "placement among nodes that the pod may use anyway"},
}

// containerRows are the fields of a container.
var containerRows = []row{
	{path: "name", fn: "name", doc: "the merge key, in every path"},
	{path: "image", cat: Image, doc: "as written"},

	{path: "env", fn: "env", doc: "`secretKeyRef` is `secret`; a variable that changes which program runs, or is used in a subPathExpr, is `command`"},
	{path: "envFrom", fn: "envFrom", doc: "`secretRef` is `secret`, `configMapRef` is `command`"},
	{path: "volumeMounts", fn: "volumeMounts", doc: "mounts of gated volumes, in the volume's category; of any volume where programs are found or configured, in `command`"},
	{path: "ports", cat: Network, fn: "ports", doc: "`hostPort` (not under hostNetwork) and `hostIP`"},

	{path: "securityContext", cat: Privilege, harmless: harmlessSecurity, dropEmpty: true, doc: "whole"},
	{path: "volumeDevices", cat: Privilege, fn: "volumeDevices", doc: "by devicePath; binds the repository in the volume's category too"},
	{path: "resources", cat: Privilege, fn: "resources", doc: "only `claims`"},
	{path: "targetContainerName", cat: Privilege, doc: "of an ephemeral container: whose processes it sees"},

	{path: "command", cat: Command, doc: "in order"},
	{path: "args", cat: Command, doc: "in order"},
	{path: "workingDir", cat: Command, doc: "as written"},
	{path: "terminationMessagePath", cat: Command, fn: "messagePath", doc: "where programs are found or configured: the kubelet mounts an empty file there"},
	{path: "livenessProbe", fn: "handler", doc: "`exec.command` is `command`; `host` of httpGet and tcpSocket is `network`"},
	{path: "readinessProbe", fn: "handler", doc: "likewise"},
	{path: "startupProbe", fn: "handler", doc: "likewise"},
	{path: "lifecycle", fn: "lifecycle", doc: "`postStart` and `preStop` likewise"},
	{path: "restartPolicy", cat: Command, fn: "restartPolicy", doc: "`Always` of an init container: it goes on beside the others, and they do not wait for it. What else there is says whether an ended program runs again"},

	{path: "imagePullPolicy", not: "a pinned image is the same image however it is pulled"},
	{path: "resizePolicy", not: "how resources change"},
	{path: "restartPolicyRules", not: "whether an ended program runs again"},
	{path: "stdin", not: "attaching is its own permission"},
	{path: "stdinOnce", not: "attaching is its own permission"},
	{path: "terminationMessagePolicy", not: "where a last message is read from"},
	{path: "tty", not: "attaching is its own permission"},
}

// volumeRows are the sources of a volume.
var volumeRows = []row{
	{path: "name", fn: "name", doc: "the merge key, in every path"},
	{path: "secret", cat: Secret, fn: "secretVolume", doc: "secretName and items (key, path, in order)"},
	{path: "projected", fn: "projectedVolume", doc: "sources: secret is `secret`; serviceAccountToken, podCertificate, clusterTrustBundle are `identity`; configMap and downwardAPI as for such volumes"},
	{path: "configMap", cat: Command, fn: "textVolume", doc: "only with an executable mode, or mounted where programs are found or configured"},
	{path: "downwardAPI", cat: Command, fn: "textVolume", doc: "likewise"},
	{path: "persistentVolumeClaim", cat: Secret, doc: "claimName, readOnly"},
	{path: "ephemeral", cat: Secret, fn: "ephemeralVolume", doc: "what counts in a claim"},
	{path: "image", fn: "imageVolume", doc: "reference is `image`; reference#repository is `privilege`"},
	{path: "hostPath", cat: Privilege, doc: "path and type"},
	{path: "csi", cat: Secret, doc: "whole"},
	{path: "awsElasticBlockStore", cat: Secret, doc: "whole"},
	{path: "azureDisk", cat: Secret, doc: "whole"},
	{path: "azureFile", cat: Secret, doc: "whole"},
	{path: "cephfs", cat: Secret, doc: "whole"},
	{path: "cinder", cat: Secret, doc: "whole"},
	{path: "fc", cat: Secret, doc: "whole"},
	{path: "flexVolume", cat: Secret, doc: "whole"},
	{path: "flocker", cat: Secret, doc: "whole"},
	{path: "gcePersistentDisk", cat: Secret, doc: "whole"},
	{path: "gitRepo", cat: Secret, doc: "whole"},
	{path: "glusterfs", cat: Secret, doc: "whole"},
	{path: "iscsi", cat: Secret, doc: "whole"},
	{path: "nfs", cat: Secret, doc: "whole"},
	{path: "photonPersistentDisk", cat: Secret, doc: "whole"},
	{path: "portworxVolume", cat: Secret, doc: "whole"},
	{path: "quobyte", cat: Secret, doc: "whole"},
	{path: "rbd", cat: Secret, doc: "whole"},
	{path: "scaleIO", cat: Secret, doc: "whole"},
	{path: "storageos", cat: Secret, doc: "whole"},
	{path: "vsphereVolume", cat: Secret, doc: "whole"},
	{path: "emptyDir", not: "starts empty and ends with the pod; mounted where programs are found, the mount counts"},
}

// templateRows are the labels and annotations of a pod template (or Pod) that
// controllers and runtimes act on. A path ending in '*' is a prefix.
var templateRows = []row{
	{path: "labels[azure.workload.identity/use]", cat: Identity, doc: "asks for a cloud identity"},
	{path: "labels[aadpodidbinding]", cat: Identity, doc: "asks for a cloud identity"},
	{path: "labels[sidecar.istio.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "labels[istio.io/dataplane-mode]", cat: Network, doc: "changes the mesh"},
	{path: "labels[istio.io/rev]", cat: Network, doc: "changes the mesh"},
	{path: "labels[kuma.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "labels[admission.datadoghq.com/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[iam.amazonaws.com/*]", cat: Identity, doc: "asks for a cloud identity"},
	{path: "annotations[vault.hashicorp.com/*]", cat: Secret, doc: "injects secrets"},
	{path: "annotations[vault.security.banzaicloud.io/*]", cat: Secret, doc: "injects secrets"},
	{path: "annotations[operator.1password.io/*]", cat: Secret, doc: "injects secrets"},
	{path: "annotations[conjur.org/*]", cat: Secret, doc: "injects secrets"},
	{path: "annotations[dapr.io/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[admission.datadoghq.com/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[instrumentation.opentelemetry.io/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[sidecar.opentelemetry.io/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[injector.tumblr.com/*]", cat: Command, doc: "injects programs"},
	{path: "annotations[k8s.v1.cni.cncf.io/*]", cat: Network, doc: "attaches networks"},
	{path: "annotations[v1.multus-cni.io/*]", cat: Network, doc: "attaches networks"},
	{path: "annotations[cni.projectcalico.org/floatingIPs]", cat: Network, doc: "opens the pod to other networks"},
	{path: "annotations[appmesh.k8s.aws/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[kuma.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[consul.hashicorp.com/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[sidecar.istio.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[traffic.sidecar.istio.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[linkerd.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[config.linkerd.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[inject.istio.io/*]", cat: Network, doc: "changes what is injected"},
	{path: "annotations[proxy.istio.io/*]", cat: Network, doc: "changes the mesh"},
	{path: "annotations[io.kubernetes.cri-o.*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[io.katacontainers.*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[cdi.k8s.io/*]", cat: Privilege, doc: "gives devices of the host"},
	{path: "annotations[dev.gvisor.*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[run.oci.*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[mounts.nri.io/*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[devices.nri.io/*]", cat: Privilege, doc: "changes the runtime"},
	{path: "annotations[container.apparmor.security.beta.kubernetes.io/*]", cat: Privilege, fn: "appArmor", doc: "taken as the container's securityContext.appArmorProfile, which the API server makes of it"},
}

var (
	podIndex       = indexRows(podRows, "core/v1.PodSpec")
	containerIndex = indexRows(containerRows, "core/v1.EphemeralContainer")
	volumeIndex    = indexRows(volumeRows, "core/v1.Volume")
)

// entry is a row with the shape of the field it names.
type entry struct {
	row    *row
	member *member
}

func indexRows(rows []row, typ string) map[string]entry {
	out := make(map[string]entry, len(rows))
	for i := range rows {
		name := strings.TrimSuffix(rows[i].path, "[]")
		m := anyMember
		for _, t := range []string{typ, "core/v1.Container"} {
			if f := shapes[t].fields[name]; f != nil && (t == typ || typ == "core/v1.EphemeralContainer") {
				m = f
				break
			}
		}
		if rows[i].dropEmpty {
			c := *m
			c.pointer = false
			m = &c
		}
		out[name] = entry{&rows[i], m}
	}
	return out
}

// looseRow walks a row in an object that no API type binds. A value of another
// form than the row's is one leaf as it stands, instead of a fault.
func (w *walker) looseRow(e entry, path string, v any, walk func()) {
	leaves, faults := len(w.leaves), len(w.faults)
	walk()
	if len(w.faults) == faults {
		return
	}
	w.leaves, w.faults = w.leaves[:leaves], w.faults[:faults]
	w.take(e.category(), path, anyMember, v)
}

func (e entry) category() Category {
	if e.row.cat == "" {
		return Privilege
	}
	return e.row.cat
}

// takeRow adds the leaves of a row that needs no function of its own.
func (w *walker) takeRow(e entry, path string, v any) {
	w.safe, w.base = e.row.harmless, path
	w.take(e.row.cat, path, e.member, v)
	w.safe = nil
}
