package main

// input is one object and the one thing that it shows.
type input struct{ name, why, object string }

const podHead = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"

var inputs = []input{
	{"configmap", "a kind without gated fields has no categories", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}"},
	{"image", "an image is a leaf as written; every category that applies is present", podHead + "  containers: [{name: web, image: 'nginx:1'}]"},
	{"free-fields", "replicas, resources, labels, ordinary env and probe timings change nothing: the digest is that of one image",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: {a: b}}, spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'nginx:1', resources: {limits: {cpu: 1}}, env: [{name: A, value: b}], livenessProbe: {periodSeconds: 5, httpGet: {path: /, port: 80}}}]}}}}"},
	{"defaults", "what the API server fills in equals absence",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {dnsPolicy: ClusterFirst, schedulerName: default-scheduler, serviceAccountName: default, serviceAccount: default, securityContext: {}, hostNetwork: false, containers: [{name: web, image: 'nginx:1', ports: [{containerPort: 80, protocol: TCP}]}]}}}}"},
	{"binding", "what a container may do is bound to its program: image#repository has neither tag nor digest",
		podHead + "  containers: [{name: web, image: 'localhost:5000/acme/web:1@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', securityContext: {privileged: true}}]"},
	{"pointer-booleans", "pointer booleans are kept as written, false too", podHead + "  containers: [{name: web, image: 'a:1', securityContext: {runAsNonRoot: false, privileged: false}}]"},
	{"sets", "sets are sorted and without duplicates", podHead + "  containers: [{name: web, image: 'a:1', securityContext: {capabilities: {add: [SYS_TIME, NET_ADMIN, SYS_TIME]}}}]"},
	{"order", "arguments keep their order", podHead + "  containers: [{name: web, image: 'a:1', args: [b, a]}]"},
	{"escaped-key", "a key that is not [A-Za-z0-9_-]+ is a JSON string, so that no name imitates a path",
		podHead + "  containers: [{name: web, image: 'a:1', env: [{name: 'A].valueFrom.secretKeyRef.name', valueFrom: {secretKeyRef: {name: s, key: k}}}]}]"},
	{"unicode", "strings are written as RFC 8785 says: only what must be is escaped", podHead + "  containers: [{name: web, image: 'a:1', args: ['caf\u00e9 \u20ac \U0001F600', '<&>', \"tab\\t and \\u0007\"]}]"},
	{"secret-volume", "a Secret's mount belongs to its category, and the items keep their order",
		podHead + "  volumes: [{name: s, secret: {secretName: db, defaultMode: 420, items: [{key: b, path: x}, {key: a, path: y}]}}]\n  containers: [{name: web, image: 'a:1', volumeMounts: [{name: s, mountPath: /etc/db, readOnly: true}]}]"},
	{"config-map-on-program-path", "a ConfigMap counts where it can replace a program", podHead + "  volumes: [{name: c, configMap: {name: bin}}]\n  containers: [{name: web, image: 'a:1', volumeMounts: [{name: c, mountPath: /usr/local/bin}]}]"},
	{"config-map-elsewhere", "and nowhere else", podHead + "  volumes: [{name: c, configMap: {name: bin}}]\n  containers: [{name: web, image: 'a:1', volumeMounts: [{name: c, mountPath: /etc/web}]}]"},
	{"empty-dir-on-program-path", "any volume that hides the image's programs counts, there alone", podHead + "  volumes: [{name: e, emptyDir: {}}]\n  containers: [{name: web, image: 'a:1', volumeMounts: [{name: e, mountPath: /usr/bin, subPath: x}, {name: e, mountPath: /tmp}]}]"},
	{"init-containers", "init containers run in their order, and one that is Always restarted is not waited for", podHead + "  initContainers: [{name: b, image: 'a:1'}, {name: a, image: 'a:1', restartPolicy: Always}]\n  containers: [{name: web, image: 'a:1', restartPolicy: Never}]"},
	{"host-path", "a host path with its mount", podHead + "  volumes: [{name: h, hostPath: {path: /var/log, type: ''}}]\n  containers: [{name: web, image: 'a:1', volumeMounts: [{name: h, mountPath: /logs, subPath: web}]}]"},
	{"host-network-ports", "under hostNetwork the copied host ports are no leaves", podHead + "  hostNetwork: true\n  containers: [{name: web, image: 'a:1', ports: [{containerPort: 80, hostPort: 80}]}]"},
	{"env-from", "positions count among the items of one kind", podHead + "  containers: [{name: web, image: 'a:1', envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}, prefix: P_}]}]"},
	{"program-variables", "variables that decide what runs", podHead + "  containers: [{name: web, image: 'a:1', env: [{name: LD_PRELOAD, value: /x.so}, {name: JAVA_TOOL_OPTIONS}, {name: OTHER, value: x}]}]"},
	{"role", "rules are one leaf, in order", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"},
	{"role-binding", "subjects are a set, apiGroup defaults by kind", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r}, roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: s, namespace: shop}, {kind: User, name: u, apiGroup: rbac.authorization.k8s.io}]}"},
	{"service-exposed", "a Service that exposes something is network", "{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {example.com/x: y, helm.sh/chart: c}}, spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 443, nodePort: 30000}]}}"},
	{"service-internal", "one that does not is service", "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {app: web}, ports: [{port: 443, targetPort: https}]}}"},
	{"network-policy-open", "[{}] allows everything", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {}, ingress: [{}]}}"},
	{"network-policy-closed", "[] allows nothing, and is absence; policyTypes are as defaulted", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {ingress: []}}"},
	{"structural", "a pod spec in a kind that nobody listed", "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: r}, spec: {template: {spec: {containers: [{name: web, image: 'a:1'}]}}}}"},
	{"wrong-type", "a gated path with a value of the wrong type is malformed, never a lost leaf", podHead + "  containers: [{name: web, image: 5}]"},
	{"twice", "so is a leaf that stands twice", podHead + "  containers: [{name: web, image: 'a:1'}, {name: web, image: 'b:1'}]"},
	{"wrong-case", "and a member of the object that is a known one in another case, which some readers take for it", podHead + "  containers: [{name: web, image: 'a:1'}]\nSpec:\n  containers: [{name: web, image: 'b:1'}]"},
	{"rollback", "and the annotation that makes a controller restore an older image", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {deprecated.deployment.rollback.to: '1'}}, spec: {template: {spec: {containers: [{name: web, image: 'a:1'}]}}}}"},
	{"aggregated-rules", "and rules beside an aggregationRule", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {agg: 'true'}}]}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}"},
	{"null-label", "and a null in a map of strings, of which tools make different things", "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {app: null}, ports: [{port: 80}]}}"},
	{"empty-protocol", "an empty merge key is the default", "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, protocol: ''}]}}"},
	{"quantities", "quantities are compared by value", "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: d, count: 1, capacity: {requests: {memory: 1024Mi, share: 500m}}}}]}}}"},
}
