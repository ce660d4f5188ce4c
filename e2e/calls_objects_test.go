//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// specimen is an object with most of what its kind may hold, gated and not, of
// which nothing ever runs.
type specimen struct {
	resource schema.GroupVersionResource
	manifest string
	scales   bool // has the subresource scale
	custom   bool // of a CustomResourceDefinition
}

func of(group, version, resource, manifest string) specimen {
	return specimen{resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, manifest: manifest}
}

// richPod is a pod spec in flow style. Its label, its annotation and the
// variable GREETING are free.
var richPod = strings.ReplaceAll(`
  serviceAccountName: robot, automountServiceAccountToken: true, nodeSelector: {nowhere: "true"}, priorityClassName: calls, terminationGracePeriodSeconds: 5,
  hostPID: false, shareProcessNamespace: false, enableServiceLinks: false, schedulerName: default-scheduler, hostname: calls,
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000, supplementalGroups: [2000], seccompProfile: {type: RuntimeDefault}},
  hostAliases: [{ip: 127.0.0.1, hostnames: [db.example.test]}], dnsPolicy: ClusterFirst, dnsConfig: {nameservers: [192.0.2.1]},
  imagePullSecrets: [{name: pull}],
  tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}, {key: spot, operator: Exists, effect: NoSchedule}],
  affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: calls}}}}]}},
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: calls}}}],
  initContainers: [{name: init, image: "INIT", command: [init]}],
  containers: [{name: web, image: "WEB", imagePullPolicy: IfNotPresent, command: [serve], args: ["--port", "80"], workingDir: /srv,
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 128Mi}},
    ports: [{name: http, containerPort: 8080, protocol: TCP}, {name: host, containerPort: 9090, hostPort: 9090, protocol: TCP}],
    env: [{name: GREETING, value: hello}, {name: PYTHONPATH, value: /lib}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: web, key: password}}},
      {name: LEVEL, valueFrom: {configMapKeyRef: {name: config, key: level}}}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
    envFrom: [{secretRef: {name: all}, prefix: A_}, {configMapRef: {name: settings}, prefix: B_}],
    volumeMounts: [{name: secret, mountPath: /secret, readOnly: true}, {name: config, mountPath: /config}, {name: host, mountPath: /host, subPath: log, readOnly: true},
      {name: data, mountPath: /data}, {name: projected, mountPath: /projected}, {name: scratch, mountPath: /tmp}],
    livenessProbe: {httpGet: {path: /live, port: 8080, scheme: HTTP, host: probe.example.test}, periodSeconds: 5, timeoutSeconds: 2},
    readinessProbe: {exec: {command: [ready]}, periodSeconds: 5}, startupProbe: {tcpSocket: {port: 8080}, failureThreshold: 4},
    lifecycle: {preStop: {exec: {command: [drain]}}},
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}}}],
  volumes: [{name: secret, secret: {secretName: web, items: [{key: password, path: password}]}}, {name: config, configMap: {name: config, items: [{key: level, path: level}]}},
    {name: host, hostPath: {path: /var/log, type: Directory}}, {name: data, persistentVolumeClaim: {claimName: data}}, {name: scratch, emptyDir: {sizeLimit: 1Gi}},
    {name: inline, csi: {driver: example.test, volumeAttributes: {share: one}}}, {name: nfs, nfs: {server: nfs.example.test, path: /export}},
    {name: projected, projected: {sources: [{serviceAccountToken: {audience: vault, path: token, expirationSeconds: 3600}}, {secret: {name: more}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}]`,
	"\n", " ")

// podSpec is richPod with the images and a restart policy.
func podSpec(restart string) string {
	spec := strings.NewReplacer("INIT", harness.Image("init:1"), "WEB", harness.Image("web:1")).Replace(richPod)
	return "{restartPolicy: " + restart + ", " + spec + "}"
}

const podMeta = `{labels: {app: calls, team: shop}, annotations: {note: one, linkerd.io/inject: enabled}}`

// workloadOf has a pod template and, in flow style, what else its spec holds.
func workloadOf(api, kind, restart, more string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  spec: {%s, template: {metadata: %s, spec: %s}}}`, api, kind, more, podMeta, podSpec(restart))
}

const selects = `selector: {matchLabels: {app: calls}}`

// customKinds of the table, which have definitions of their own.
var customKinds = []string{"Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "BackendTLSPolicy", "ReferenceGrant"}

const gatewayAPI = "gateway.networking.k8s.io"

func plural(kind string) string {
	if rest, ok := strings.CutSuffix(kind, "Policy"); ok {
		return strings.ToLower(rest) + "policies"
	}
	return strings.ToLower(kind) + "s"
}

// definition takes every object.
func definition(kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural(kind), gatewayAPI, kind)
}

// specimens are one or more of every namespaced kind that the webhook judges.
func specimens() []specimen {
	all := []specimen{
		of("apps", "v1", "deployments", workloadOf("apps/v1", "Deployment", "Always", "replicas: 0, minReadySeconds: 1, revisionHistoryLimit: 3, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}, "+selects)),
		of("apps", "v1", "statefulsets", workloadOf("apps/v1", "StatefulSet", "Always", "replicas: 0, serviceName: calls, "+selects+
			", volumeClaimTemplates: [{metadata: {name: claim}, spec: {accessModes: [ReadWriteOnce], volumeName: x, resources: {requests: {storage: 1Gi}}}}]")),
		of("apps", "v1", "daemonsets", workloadOf("apps/v1", "DaemonSet", "Always", "minReadySeconds: 1, "+selects)),
		of("apps", "v1", "replicasets", workloadOf("apps/v1", "ReplicaSet", "Always", "replicas: 0, "+selects)),
		of("", "v1", "replicationcontrollers", workloadOf("v1", "ReplicationController", "Always", "replicas: 0, selector: {app: calls}")),
		of("batch", "v1", "jobs", workloadOf("batch/v1", "Job", "Never", "suspend: true, backoffLimit: 1, parallelism: 1")),
		of("batch", "v1", "cronjobs", fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  spec: {schedule: "0 0 1 1 *", suspend: true, successfulJobsHistoryLimit: 1, jobTemplate: {metadata: {annotations: {note: one}}, spec: {backoffLimit: 1, template: {metadata: %s, spec: %s}}}}}`, podMeta, podSpec("Never"))),
		of("", "v1", "podtemplates", fmt.Sprintf(`{apiVersion: v1, kind: PodTemplate, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}}, template: {metadata: %s, spec: %s}}`, podMeta, podSpec("Always"))),
		of("", "v1", "pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: calls, labels: {team: shop}, annotations: {note: one, linkerd.io/inject: enabled}}, spec: %s}`, podSpec("Always"))),
		of("apps", "v1", "controllerrevisions", fmt.Sprintf(`{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}}, revision: 1, data: {spec: {template: {spec: %s}}}}`, podSpec("Always"))),
		of("rbac.authorization.k8s.io", "v1", "roles", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  rules: [{apiGroups: [""], resources: [pods, configmaps], resourceNames: [a], verbs: [get]}, {apiGroups: [apps], resources: [deployments], verbs: [get, list]}]}`),
		of("rbac.authorization.k8s.io", "v1", "rolebindings", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: calls}, subjects: [{kind: ServiceAccount, name: default, namespace: default}, {kind: User, name: ann, apiGroup: rbac.authorization.k8s.io}]}`),
		of("", "v1", "serviceaccounts", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: calls, labels: {team: shop}, annotations: {note: one, eks.amazonaws.com/role-arn: "arn:1"}}, automountServiceAccountToken: false, imagePullSecrets: [{name: pull}], secrets: [{name: old}]}`),
		of("", "v1", "secrets", `{apiVersion: v1, kind: Secret, metadata: {name: calls, labels: {team: shop, argocd.argoproj.io/secret-type: repository}, annotations: {note: one}}, type: Opaque, stringData: {url: one, password: two}}`),
		of("", "v1", "secrets", `{apiVersion: v1, kind: Secret, metadata: {name: opaque, labels: {team: shop}, annotations: {note: one}}, type: Opaque, stringData: {password: two}}`),
		of("", "v1", "services", `{apiVersion: v1, kind: Service, metadata: {name: calls, labels: {team: shop}, annotations: {example.test/scheme: internal, kubectl.kubernetes.io/last-applied-configuration: "{}"}},
  spec: {type: LoadBalancer, loadBalancerClass: example.test/lb, loadBalancerSourceRanges: [192.0.2.0/24], externalIPs: [192.0.2.7], selector: {app: calls, tier: web}, ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}, {name: metrics, port: 81, targetPort: metrics}]}}`),
		of("", "v1", "services", `{apiVersion: v1, kind: Service, metadata: {name: plain, labels: {team: shop}, annotations: {note: one}}, spec: {selector: {app: calls}, ports: [{name: http, port: 80, targetPort: 8080}]}}`),
		of("networking.k8s.io", "v1", "ingresses", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: calls, labels: {team: shop}, annotations: {example.test/auth: "on", nginx.ingress.kubernetes.io/proxy-body-size: 8m}},
  spec: {ingressClassName: nginx, tls: [{hosts: [shop.example.test], secretName: tls}], rules: [{host: shop.example.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: plain, port: {number: 80}}}}]}}]}}`),
		of("networking.k8s.io", "v1", "networkpolicies", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  spec: {podSelector: {matchLabels: {app: nothing}}, policyTypes: [Ingress, Egress], ingress: [{from: [{podSelector: {matchLabels: {app: web}}}, {ipBlock: {cidr: 192.0.2.0/24, except: [192.0.2.8/29]}}], ports: [{port: 80, protocol: TCP}]}], egress: [{}]}}`),
		of("", "v1", "persistentvolumeclaims", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}},
  spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, selector: {matchLabels: {disk: fast}}, dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: last}}}`),
		of("resource.k8s.io", "v1", "resourceclaims", `{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}}, spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.test, count: 1}}]}}}`),
		of("resource.k8s.io", "v1", "resourceclaimtemplates", `{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: calls, labels: {team: shop}, annotations: {note: one}}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.test, count: 1}}]}}}}`),
		of("", "v1", "endpoints", `{apiVersion: v1, kind: Endpoints, metadata: {name: calls-endpoints, labels: {team: shop}, annotations: {note: one}}, subsets: [{addresses: [{ip: 192.0.2.1, hostname: a}], ports: [{name: http, port: 80, protocol: TCP}]}]}`),
		of("discovery.k8s.io", "v1", "endpointslices", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: calls, labels: {team: shop, kubernetes.io/service-name: other}, annotations: {note: one}}, addressType: IPv4,
  endpoints: [{addresses: [192.0.2.1], conditions: {ready: true}, zone: a}], ports: [{name: http, port: 80, protocol: TCP}]}`),
	}
	for i, s := range all {
		switch s.resource.Resource {
		case "deployments", "statefulsets", "replicasets", "replicationcontrollers":
			all[i].scales = true
		}
	}
	for _, kind := range customKinds {
		s := of(gatewayAPI, "v1", plural(kind), fmt.Sprintf(`{apiVersion: %s/v1, kind: %s, metadata: {name: calls, labels: {team: shop}, annotations: {example.test/x: "on", kubectl.kubernetes.io/last-applied-configuration: "{}"}},
  spec: {hostnames: [shop.example.test], parentRefs: [{name: public}], rules: [{backendRefs: [{name: plain, port: 80, weight: 1}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: other, port: 80}}}]}]}}`, gatewayAPI, kind))
		s.custom = true
		all = append(all, s)
	}
	return all
}
