package projection

import "strings"

// exclusion says of fields of an API type why they are not gated. With the
// rows that have a not of their own, these are all fields of the built-in
// kinds that are no leaves: a test sets every field of the API types and
// changes each, and what changes nothing must be here.
type exclusion struct {
	typ    string // "core/v1.Probe"; "*" stands for every kind itself
	fields string // separated by spaces
	why    string

	// decides: another leaf hangs on the field (an executable mode), so that
	// the matchConditions compare it all the same.
	decides bool
}

const (
	rollout    = "how many run and how changes roll out"
	statusOnly = "written by the cluster, never rendered"
	executable = "an executable mode is the leaf `executable`"
)

var notLeaves = []exclusion{
	{"apimachinery/meta/v1.ObjectMeta", "annotations labels", "only those that the table names", false},
	{"apimachinery/meta/v1.ObjectMeta", "creationTimestamp deletionGracePeriodSeconds deletionTimestamp generation managedFields resourceVersion selfLink uid", statusOnly, false},
	{"apimachinery/meta/v1.ObjectMeta", "generateName name namespace", "the subject of the receipt", false},
	{"apimachinery/meta/v1.ObjectMeta", "finalizers ownerReferences", "when an object is deleted; nothing is granted by them", false},
	{"*", "status", statusOnly, false},
	{"core/v1.PersistentVolumeClaim", "status", statusOnly, false},

	{"apps/v1.DeploymentSpec", "minReadySeconds paused progressDeadlineSeconds replicas revisionHistoryLimit strategy", rollout, false},
	{"apps/v1.DeploymentSpec", "selector", "which pods are counted as its own; immutable", false},
	{"apps/v1.ReplicaSetSpec", "minReadySeconds replicas", rollout, false},
	{"apps/v1.ReplicaSetSpec", "selector", "which pods are counted as its own; immutable", false},
	{"apps/v1.DaemonSetSpec", "minReadySeconds revisionHistoryLimit updateStrategy", rollout, false},
	{"apps/v1.DaemonSetSpec", "selector", "which pods are counted as its own; immutable", false},
	{"apps/v1.StatefulSetSpec", "minReadySeconds ordinals persistentVolumeClaimRetentionPolicy podManagementPolicy replicas revisionHistoryLimit updateStrategy", rollout + "; a partition can hold pods on an older revision (threat model)", false},
	{"apps/v1.StatefulSetSpec", "selector serviceName", "which pods are counted as its own, and their DNS name; immutable", false},
	{"core/v1.ReplicationControllerSpec", "minReadySeconds replicas", rollout, false},
	{"core/v1.ReplicationControllerSpec", "selector", "which pods are counted as its own", false},
	{"batch/v1.CronJobSpec", "concurrencyPolicy failedJobsHistoryLimit schedule startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone", "when and how often it runs", false},
	{"batch/v1.JobSpec", "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector maxFailedIndexes parallelism podFailurePolicy podReplacementPolicy selector successPolicy suspend ttlSecondsAfterFinished", "how many run, how failures count, and when", false},

	{"batch/v1.JobSpec", "scheduling", "in groups; its claims count where a pod names the same ones, which is a leaf", false},

	{"core/v1.PodSpec", "nodeName imagePullSecrets", "of a Pod itself: the scheduler, and admission of its service account, write them", true},
	{"core/v1.Container", "restartPolicy", "whether an ended program runs again; `Always` of an init container makes a sidecar", true},
	{"core/v1.Container", "terminationMessagePath", "where a last message is read from; where programs are found it is a leaf", true},
	{"core/v1.EphemeralContainer", "terminationMessagePath", "likewise", true},
	{"core/v1.EphemeralContainer", "restartPolicy", "refused by the API server", true},
	{"core/v1.Probe", "failureThreshold initialDelaySeconds periodSeconds successThreshold terminationGracePeriodSeconds timeoutSeconds", "when and how often a probe runs", false},
	{"core/v1.Probe", "grpc", "asks the pod itself", false},
	{"core/v1.HTTPGetAction", "httpHeaders path port protocol scheme", "what the pod itself is asked; another host is a leaf", false},
	{"core/v1.TCPSocketAction", "port", "what the pod itself is asked; another host is a leaf", false},
	{"core/v1.LifecycleHandler", "sleep", "waits", false},
	{"core/v1.Lifecycle", "stopSignal", "how the program is told to end", false},
	{"core/v1.ContainerPort", "name", "a name for the port", false},
	{"core/v1.ContainerPort", "hostPort", "under hostNetwork the API server copies containerPort into it", true},
	{"core/v1.ResourceRequirements", "limits requests", "how much of each resource", false},
	{"core/v1.SecretVolumeSource", "defaultMode defaultUser optional", "who in the pod may read the files, and whether a missing Secret stops it", false},
	{"core/v1.SecretProjection", "optional", "whether a missing Secret stops the pod", false},
	{"core/v1.SecretEnvSource", "optional", "whether a missing Secret stops the pod", false},
	{"core/v1.ConfigMapEnvSource", "optional", "whether a missing ConfigMap stops the pod", false},
	{"core/v1.ConfigMapProjection", "optional", "whether a missing ConfigMap stops the pod", false},
	{"core/v1.ConfigMapVolumeSource", "defaultMode", executable, true},
	{"core/v1.ConfigMapVolumeSource", "defaultUser optional", executable, false},
	{"core/v1.DownwardAPIVolumeSource", "defaultMode", executable, true},
	{"core/v1.DownwardAPIVolumeSource", "defaultUser", executable, false},
	{"core/v1.ProjectedVolumeSource", "defaultMode", executable, true},
	{"core/v1.ProjectedVolumeSource", "defaultUser", executable, false},
	{"core/v1.KeyToPath", "mode", executable, true},
	{"core/v1.ImageVolumeSource", "pullPolicy", "a pinned image is the same image however it is pulled", false},
	{"core/v1.PersistentVolumeClaimSpec", "accessModes resources storageClassName volumeAttributesClassName volumeMode", "how much and how fast; the cluster decides the class", false},

	{"core/v1.ServiceSpec", "clusterIP clusterIPs healthCheckNodePort ipFamilies ipFamilyPolicy", "the cluster allocates them", false},
	{"core/v1.ServiceSpec", "allocateLoadBalancerNodePorts externalTrafficPolicy internalTrafficPolicy publishNotReadyAddresses sessionAffinity sessionAffinityConfig trafficDistribution", "which of the same backends answers", false},
	{"core/v1.ServicePort", "nodePort", "the cluster allocates it", false},
	{"core/v1.ServicePort", "appProtocol", "a hint to the load balancer", false},
	{"core/v1.ServiceAccount", "secrets", "names what may be mounted; pods that mount it have the leaf", false},
	{"core/v1.Secret", "data immutable stringData", "contents are never leaves", false},
	{"core/v1.NamespaceSpec", "finalizers", statusOnly, false},
	{"certificates/v1.CertificateSigningRequestSpec", "extra groups uid username", "the API server writes the requesting user into them", false},
	{"certificates/v1.CertificateSigningRequestSpec", "expirationSeconds", "a wish; the signer decides", false},
	{"discovery/v1.Endpoint", "conditions deprecatedTopology hints hostname nodeName targetRef zone", "how an address is doing and which is near", false},
	{"core/v1.ObjectReference", "apiVersion fieldPath kind resourceVersion uid", "of a claimRef: the binder writes them", true},
	{"core/v1.PersistentVolumeSpec", "accessModes capacity nodeAffinity persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName volumeMode", "how much, where, and what becomes of it", false},
	{"storage/v1.StorageClass", "allowVolumeExpansion allowedTopologies reclaimPolicy volumeBindingMode", "how much, where, and what becomes of it", false},
	{"storage/v1.CSIDriverSpec", "attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount preventPodSchedulingIfMissing requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity volumeLifecycleModes", "how the driver is called; installing one needs a privileged pod", false},
	{"node/v1.RuntimeClass", "overhead scheduling", "where its pods run and what they cost", false},
	{"scheduling/v1.PriorityClass", "description preemptionPolicy", "what it is for; whether it pre-empts follows from the value", false},
	{"admissionregistration/v1.WebhookClientConfig", "caBundle", "rewritten at each certificate rotation", false},
}

// exclusionIndex maps a field of an API type to the reason.
var exclusionIndex = indexExclusions()

func indexExclusions() map[string]string {
	out := map[string]string{}
	for _, e := range notLeaves {
		for _, f := range strings.Fields(e.fields) {
			out[e.typ+"."+f] = e.why
		}
	}
	for typ, rows := range map[string][]row{
		"core/v1.PodSpec": podRows, "core/v1.Volume": volumeRows,
		"core/v1.Container": containerRows, "core/v1.EphemeralContainer": containerRows,
	} {
		for _, r := range rows {
			if r.not != "" && shapes[typ].fields[r.path] != nil {
				out[typ+"."+r.path] = r.not
			}
		}
	}
	return out
}
