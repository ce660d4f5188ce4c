package projection

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const celPod = `
metadata: {labels: {app: x}, annotations: {checksum/config: "1"}}
spec:
  serviceAccountName: s
  nodeSelector: {a: b}
  tolerations: [{key: dedicated, operator: Exists}]
  securityContext: {runAsNonRoot: true}
  initContainers:
  - {name: i, image: "x:1", env: [{name: A, value: "1"}]}
  containers:
  - name: c
    image: x:1
    imagePullPolicy: Always
    args: [a]
    env:
    - {name: LOG_LEVEL, value: info}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: CM, valueFrom: {configMapKeyRef: {name: cm, key: k}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: k}}}
    - {name: PATH, value: /bin}
    envFrom: [{configMapRef: {name: settings-2456789bcd}}, {secretRef: {name: s}}]
    ports: [{containerPort: 80, name: http}, {containerPort: 81, hostPort: 81}]
    resources: {limits: {cpu: "1"}}
    livenessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 5}
    lifecycle: {preStop: {httpGet: {path: /, port: 80}}}
    volumeMounts: [{name: cm, mountPath: /usr/share/x}, {name: s, mountPath: /s}]
  - {name: d, image: "y:1"}
  volumes:
  - {name: cm, configMap: {name: settings-2456789bcd}}
  - {name: p, projected: {sources: [{configMap: {name: settings-2456789bcd}}, {secret: {name: s}}]}}
  - {name: s, secret: {secretName: s}}
  - {name: e, emptyDir: {}}
`

// inKind puts the pod template of a document where a kind has it.
func inKind(t testing.TB, k *kindSpec, template string) map[string]any {
	t.Helper()
	out := map[string]any{"apiVersion": strings.TrimPrefix(k.group+"/v1", "/"), "kind": k.kind, "metadata": map[string]any{"name": "x"}}
	pod := parse(t, template)
	if k.pod.isPod {
		maps.Copy(sub(out, "metadata"), pod["metadata"].(map[string]any))
		out["spec"] = pod["spec"]
		return out
	}
	maps.Copy(sub(out, strings.Split(strings.TrimSuffix(k.pod.spec, ".spec"), ".")...), pod)
	return out
}

// container returns a container of the pod of an object.
func containerOf(o map[string]any, i int) map[string]any {
	_, all := podPlaces(o)
	return all[i].tree
}

// freeInWorkloads are edits of what stands around a pod template.
var freeInWorkloads = map[string]func(map[string]any){
	"replicas":     func(o map[string]any) { sub(o, "spec")["replicas"] = json.Number("7") },
	"parallelism":  func(o map[string]any) { sub(o, "spec")["parallelism"] = json.Number("7") },
	"the strategy": func(o map[string]any) { sub(o, "spec", "strategy")["type"] = "Recreate" },
	"a schedule":   func(o map[string]any) { sub(o, "spec")["schedule"] = "* * * * *" },
}

// freeInPods are edits of a pod template, or Pod, that ask for no call.
var freeInPods = map[string]func(o, template, c map[string]any){
	"a label of the template":        func(_, p, _ map[string]any) { sub(p, "metadata", "labels")["version"] = "2" },
	"an annotation of the template":  func(_, p, _ map[string]any) { sub(p, "metadata", "annotations")["checksum/config"] = "2" },
	"no annotations in the template": func(_, p, _ map[string]any) { delete(sub(p, "metadata"), "annotations") },
	"a restart": func(_, p, _ map[string]any) {
		sub(p, "metadata", "annotations")["kubectl.kubernetes.io/restartedAt"] = "now"
	},
	"resources":        func(_, _, c map[string]any) { sub(c, "resources", "limits")["cpu"] = "2" },
	"no resources":     func(_, _, c map[string]any) { delete(c, "resources") },
	"a plain variable": func(_, _, c map[string]any) { c["env"].([]any)[0].(map[string]any)["value"] = "debug" },
	"one from a field": func(_, _, c map[string]any) {
		sub(c["env"].([]any)[1].(map[string]any), "valueFrom", "fieldRef")["fieldPath"] = "metadata.name"
	},
	"one from a map": func(_, _, c map[string]any) {
		sub(c["env"].([]any)[2].(map[string]any), "valueFrom", "configMapKeyRef")["key"] = "l"
	},
	"one more variable": func(_, _, c map[string]any) {
		c["env"] = append([]any{map[string]any{"name": "NEW", "value": "x"}}, c["env"].([]any)...)
	},
	"one variable less": func(_, _, c map[string]any) { c["env"] = c["env"].([]any)[2:] },
	"the pull policy":   func(_, _, c map[string]any) { c["imagePullPolicy"] = "IfNotPresent" },
	"a probe's timing":  func(_, _, c map[string]any) { sub(c, "livenessProbe")["periodSeconds"] = json.Number("9") },
	"a probe's path":    func(_, _, c map[string]any) { sub(c, "livenessProbe", "httpGet")["path"] = "/healthz" },
	"another probe": func(_, _, c map[string]any) {
		sub(c, "readinessProbe", "tcpSocket")["port"] = json.Number("80")
	},
	"a hook's path": func(_, _, c map[string]any) { sub(c, "lifecycle", "preStop", "httpGet")["path"] = "/bye" },
	"a port": func(_, _, c map[string]any) {
		c["ports"].([]any)[0].(map[string]any)["containerPort"] = json.Number("82")
	},
	"one more port": func(_, _, c map[string]any) {
		c["ports"] = append(c["ports"].([]any), map[string]any{"containerPort": json.Number("82")})
	},
	"a node selector":  func(_, p, _ map[string]any) { sub(p, "spec", "nodeSelector")["a"] = "c" },
	"a toleration":     func(_, p, _ map[string]any) { sub(p, "spec")["tolerations"] = nil },
	"a priority class": func(_, p, _ map[string]any) { sub(p, "spec")["priorityClassName"] = "high" },
	"a grace period":   func(_, p, _ map[string]any) { sub(p, "spec")["terminationGracePeriodSeconds"] = json.Number("9") },
	"the order of containers": func(_, p, _ map[string]any) {
		slices.Reverse(sub(p, "spec")["containers"].([]any))
	},
	"the order of volumes": func(_, p, _ map[string]any) { slices.Reverse(sub(p, "spec")["volumes"].([]any)) },
	"kustomize's hashes": func(_, p, c map[string]any) {
		const other = "settings-9bcdfghkmt"
		sub(c["envFrom"].([]any)[0].(map[string]any), "configMapRef")["name"] = other
		volumes := sub(p, "spec")["volumes"].([]any)
		sub(volumes[0].(map[string]any), "configMap")["name"] = other
		sub(sub(volumes[1].(map[string]any), "projected")["sources"].([]any)[0].(map[string]any), "configMap")["name"] = other
	},
	"whether a Secret may be missing": func(_, p, c map[string]any) {
		sub(c["envFrom"].([]any)[1].(map[string]any), "secretRef")["optional"] = true
		sub(sub(p, "spec")["volumes"].([]any)[2].(map[string]any), "secret")["optional"] = true
	},
	"whether a container runs again": func(_, _, c map[string]any) { c["restartPolicy"] = "OnFailure" },
	"another empty volume": func(_, p, _ map[string]any) {
		volumes := sub(p, "spec")["volumes"].([]any)
		sub(volumes[3].(map[string]any), "emptyDir")["medium"] = "Memory"
	},
}

// freeAnywhere are edits of any object that ask for no call.
var freeAnywhere = map[string]func(map[string]any){
	"nothing":       func(map[string]any) {},
	"the status":    func(o map[string]any) { o["status"] = map[string]any{} },
	"a finalizer":   func(o map[string]any) { sub(o, "metadata")["finalizers"] = []any{"x/y"} },
	"an owner":      func(o map[string]any) { sub(o, "metadata")["ownerReferences"] = []any{map[string]any{"name": "x"}} },
	"its deletion":  func(o map[string]any) { sub(o, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z" },
	"a generation":  func(o map[string]any) { sub(o, "metadata")["generation"] = json.Number("7") },
	"bookkeeping":   func(o map[string]any) { sub(o, "metadata", "annotations")["argocd.argoproj.io/tracking-id"] = "x" },
	"a receipt":     func(o map[string]any) { sub(o, "metadata", "annotations")["syncgate.io/receipt"] = "x" },
	"managed by":    func(o map[string]any) { sub(o, "metadata")["managedFields"] = []any{map[string]any{"manager": "x"}} },
	"Flux's labels": func(o map[string]any) { sub(o, "metadata", "labels")["kustomize.toolkit.fluxcd.io/name"] = "x" },
}

// freeInKinds are edits of other kinds that ask for no call.
var freeInKinds = []struct {
	name, doc string
	edit      func(map[string]any)
}{
	{"what a cluster allocates to a Service", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, selector: {a: b}, ports: [{port: 80, protocol: TCP}]}}`, func(o map[string]any) {
		s := sub(o, "spec")
		s["clusterIP"], s["clusterIPs"], s["healthCheckNodePort"], s["externalTrafficPolicy"] = "10.0.0.1", []any{"10.0.0.1"}, json.Number("31000"), "Local"
		s["ports"].([]any)[0].(map[string]any)["nodePort"] = json.Number("30000")
		sub(s, "selector")["rollouts-pod-template-hash"] = "abc"
	}},
	{"a tuning annotation", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, selector: {a: b}}}`, func(o map[string]any) {
		sub(o, "metadata", "annotations")["service.beta.kubernetes.io/aws-load-balancer-healthcheck-path"] = "/healthz"
	}},
	{"a label of a Service", `{apiVersion: v1, kind: Service, spec: {type: NodePort, selector: {a: b}}}`, func(o map[string]any) { sub(o, "metadata", "labels")["a"] = "b" }},
	{"a tuning annotation of an Ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 1m}}, spec: {rules: [{host: a}]}}`, func(o map[string]any) {
		sub(o, "metadata", "annotations")["nginx.ingress.kubernetes.io/proxy-body-size"] = "8m"
	}},
	{"secrets of a ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}`, func(o map[string]any) {
		o["secrets"] = []any{map[string]any{"name": "t"}}
		o["automountServiceAccountToken"] = true
	}},
	{"contents of a Secret", `{apiVersion: v1, kind: Secret, type: Opaque, data: {a: eA==}}`, func(o map[string]any) {
		o["data"] = map[string]any{"b": "eQ=="}
		sub(o, "metadata", "annotations")["x"] = "y"
	}},
	{"contents of a token", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {a: eA==}}`, func(o map[string]any) { o["data"] = map[string]any{"b": "eQ=="} }},
	{"the size of a claim", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: v, resources: {requests: {storage: 1Gi}}}}`, func(o map[string]any) { sub(o, "spec", "resources", "requests")["storage"] = "2Gi" }},
	{"the reclaim policy of a volume", `{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /x}}}`, func(o map[string]any) { sub(o, "spec")["persistentVolumeReclaimPolicy"] = "Retain" }},
	{"descriptive labels of a role", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}]}`, func(o map[string]any) {
		l := sub(o, "metadata", "labels")
		l["app.kubernetes.io/version"], l["helm.sh/chart"], l["chart"] = "2", "x", "y"
	}},
	{"any label of a Role", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{verbs: [get]}]}`, func(o map[string]any) { sub(o, "metadata", "labels")["x"] = "y" }},
	{"weights", `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {rules: [{backendRefs: [{name: a, weight: 1}, {name: b, weight: 9}]}]}}`, func(o map[string]any) {
		sub(o, "spec")["rules"].([]any)[0].(map[string]any)["backendRefs"].([]any)[0].(map[string]any)["weight"] = json.Number("5")
	}},
	{"tracking labels of a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {labels: {kubernetes.io/metadata.name: x}}}`, func(o map[string]any) {
		sub(o, "metadata", "labels")["app.kubernetes.io/instance"] = "x"
		sub(o, "metadata", "annotations")["a"] = "b"
		sub(o, "spec")["finalizers"] = []any{"kubernetes"}
	}},
	{"a certificate in a definition", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: eA==, url: u}}}}}`, func(o map[string]any) {
		sub(o, "spec", "conversion", "webhook", "clientConfig")["caBundle"] = "eQ=="
		sub(o, "spec")["versions"] = []any{map[string]any{"name": "v2"}}
	}},
	{"a certificate of an API service", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {caBundle: eA==, group: g}}`, func(o map[string]any) { sub(o, "spec")["caBundle"] = "eQ==" }},
	{"a revision of an Application", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: [{repoURL: r, targetRevision: a}], source: {repoURL: r, targetRevision: a}, syncPolicy: {automated: {}, syncOptions: [a]}}}`, func(o map[string]any) {
		sub(o, "spec")["sources"].([]any)[0].(map[string]any)["targetRevision"] = "b"
		sub(o, "spec", "source")["targetRevision"] = "b"
		sub(o, "spec", "syncPolicy", "automated")["prune"] = true
	}},
	{"a revision of a source", `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {url: u, ref: {branch: a}, interval: 1m}}`, func(o map[string]any) {
		sub(o, "spec")["ref"] = map[string]any{"branch": "b"}
		sub(o, "spec")["interval"] = "2m"
	}},
	{"how an endpoint is doing", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [{addresses: [a], conditions: {ready: true}}]}`, func(o map[string]any) {
		o["endpoints"].([]any)[0].(map[string]any)["conditions"] = map[string]any{"ready": false}
		sub(o, "metadata", "labels")["x"] = "y"
	}},
	{"a label of a custom resource", `{apiVersion: example.com/v1, kind: Thing, spec: {template: {spec: {containers: [{image: a}]}}}}`, func(o map[string]any) { sub(o, "metadata", "labels")["x"] = "y" }},
}

// asObjects are the forms in which an API server hands a pair to CEL: as
// decoded JSON (custom resources, and before 1.37 everything), or as API types.
func asObjects(old, obj map[string]any) map[string][2]runtime.Object {
	out := map[string][2]runtime.Object{"raw": {raw(old), raw(obj)}}
	x, y := typed(old), typed(obj)
	if x == nil || y == nil {
		return out
	}
	out["typed"] = [2]runtime.Object{x, y}
	var before [2]runtime.Object
	for i, o := range []runtime.Object{x, y} {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return out
		}
		before[i] = &unstructured.Unstructured{Object: u}
	}
	out["before 1.37"] = before
	return out
}

func TestWhatIsFreeAsksForNoCall(t *testing.T) {
	c, n := newConditions(nil, policies["default"]), 0
	check := func(t *testing.T, old, obj map[string]any) {
		t.Helper()
		conditions := c.of(obj)
		for mode, pair := range asObjects(old, obj) {
			for _, p := range [][2]runtime.Object{pair, {pair[1], pair[0]}} {
				n++
				if o := conditions.update(t, p[0], p[1]); o.err != nil || o.asked() {
					t.Errorf("%s: asked (%v), %v", mode, o.values, o.err)
				}
			}
		}
	}
	for i := range kindTable {
		k := &kindTable[i]
		if k.group == admissionGroup {
			continue
		}
		for name, edit := range freeAnywhere {
			t.Run(k.name()+"/"+name, func(t *testing.T) {
				old := map[string]any{"apiVersion": strings.TrimPrefix(k.group+"/v1", "/"), "kind": k.kind, "metadata": map[string]any{"name": "x"}}
				obj := clone(old).(map[string]any)
				edit(obj)
				check(t, old, obj)
			})
		}
		if k.pod == nil || k.pod.anyData {
			continue
		}
		for name, edit := range freeInWorkloads {
			if !k.pod.isPod {
				t.Run(k.name()+"/"+name, func(t *testing.T) {
					old, obj := inKind(t, k, celPod), inKind(t, k, celPod)
					edit(obj)
					check(t, old, obj)
				})
			}
		}
		for name, edit := range freeInPods {
			t.Run(k.name()+"/"+name, func(t *testing.T) {
				old, obj := inKind(t, k, celPod), inKind(t, k, celPod)
				edit(obj, sub(obj, strings.Split(strings.TrimSuffix("x."+k.pod.spec, ".spec"), ".")[1:]...), containerOf(obj, 0))
				check(t, old, obj)
			})
		}
	}
	for _, f := range freeInKinds {
		t.Run(f.name, func(t *testing.T) {
			old, obj := parse(t, f.doc), parse(t, f.doc)
			f.edit(obj)
			check(t, old, obj)
		})
	}
	t.Logf("%d pairs", n)
}
