package projection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const podPrefix = "spec.template.spec."

// deployment wraps a pod spec; indent it by nothing.
func deployment(podSpec string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec:\n template:\n  spec:\n" + indent(podSpec, "   ")
}

func indent(doc, by string) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.Trim(doc, "\n"), "\n") {
		b.WriteString(by + line + "\n")
	}
	return b.String()
}

// podLeaves lists what a pod spec in a Deployment contributes besides its
// images and bindings, with paths relative to the pod spec.
func podLeaves(t *testing.T, podSpec string) []string {
	t.Helper()
	out := []string{}
	for _, s := range leaves(project(t, deployment(podSpec)), false) {
		if !strings.HasPrefix(s, "image ") {
			out = append(out, strings.Replace(s, podPrefix, "", 1))
		}
	}
	return out
}

type leafCase struct {
	name string
	in   string
	want []string
}

func checkPod(t *testing.T, cases []leafCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = []string{}
			}
			if diff := cmp.Diff(c.want, podLeaves(t, c.in)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodLevelFields(t *testing.T) {
	checkPod(t, []leafCase{
		{"service account", `serviceAccountName: app`, []string{`identity serviceAccountName = "app"`}},
		{"the deprecated alias counts like the field", `serviceAccount: app`, []string{`identity serviceAccountName = "app"`}},
		{"the field wins over its alias", "serviceAccountName: app\nserviceAccount: other", []string{`identity serviceAccountName = "app"`}},
		{"an empty field leaves it to the alias", "serviceAccountName: \"\"\nserviceAccount: app", []string{`identity serviceAccountName = "app"`}},
		{"the default account is none", `serviceAccountName: default`, nil},
		{"the default account wins over an alias", "serviceAccountName: default\nserviceAccount: app", nil},
		{"automount true is kept, it overrides the account's false", `automountServiceAccountToken: true`, []string{`identity automountServiceAccountToken = true`}},
		{"automount false", `automountServiceAccountToken: false`, []string{`identity automountServiceAccountToken = false`}},
		{"pull secrets are a set", `imagePullSecrets: [{name: b}, {name: a}, {name: b}]`, []string{`secret imagePullSecrets = [{"name":"a"},{"name":"b"}]`}},
		{"no pull secrets", `imagePullSecrets: []`, nil},
		{"host namespaces", "hostNetwork: true\nhostPID: true\nhostIPC: true", []string{`network hostNetwork = true`, `privilege hostIPC = true`, `privilege hostPID = true`}},
		{"false host namespaces are none", "hostNetwork: false\nhostPID: false\nhostIPC: false", nil},
		{"pointers keep false", "hostUsers: false\nshareProcessNamespace: false", []string{`privilege hostUsers = false`, `privilege shareProcessNamespace = false`}},
		{"host aliases by address", `hostAliases: [{ip: 10.0.0.1, hostnames: [b, a]}]`, []string{`network hostAliases["10.0.0.1"].hostnames = ["b","a"]`}},
		{"DNS", "dnsPolicy: None\ndnsConfig: {nameservers: [1.1.1.1], options: [{name: ndots, value: '1'}]}", []string{
			`network dnsConfig.nameservers = ["1.1.1.1"]`, `network dnsConfig.options = [{"name":"ndots","value":"1"}]`, `network dnsPolicy = "None"`}},
		{"default DNS policy and scheduler are none", "dnsPolicy: ClusterFirst\nschedulerName: default-scheduler", nil},
		{"another scheduler", `schedulerName: mine`, []string{`privilege schedulerName = "mine"`}},
		{"runtime class", `runtimeClassName: kata`, []string{`privilege runtimeClassName = "kata"`}},
		{"node name in a template", `nodeName: cp-1`, []string{`privilege nodeName = "cp-1"`}},
		{"system priority classes only", `priorityClassName: system-node-critical`, []string{`privilege priorityClassName = "system-node-critical"`}},
		{"another priority class", `priorityClassName: high`, nil},
		{"tolerations of control-plane nodes, as a set", `tolerations: [{operator: Exists}, {key: other, operator: Exists}, {key: node-role.kubernetes.io/master, operator: Exists}, {operator: Exists}]`, []string{
			`privilege tolerations = [{"key":"node-role.kubernetes.io/master","operator":"Exists"},{"operator":"Exists"}]`}},
		{"a toleration of everything", `tolerations: [{operator: Exists, effect: NoSchedule}]`, []string{`privilege tolerations = [{"effect":"NoSchedule","operator":"Exists"}]`}},
		{"other tolerations", `tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]`, nil},
		{"resource claims", `resourceClaims: [{name: gpu, resourceClaimName: mine}]`, []string{`privilege resourceClaims[gpu].resourceClaimName = "mine"`}},
		{"a pod's security context", `securityContext: {runAsUser: 0, supplementalGroups: [3, 1, 3], sysctls: [{name: a, value: b}]}`, []string{
			`privilege securityContext.runAsUser = 0`, `privilege securityContext.supplementalGroups = [1,3]`, `privilege securityContext.sysctls = [{"name":"a","value":"b"}]`}},
		{"an empty security context is none", `securityContext: {}`, nil},
		{"empty maps inside a security context are kept", `securityContext: {seLinuxOptions: {}}`, []string{`privilege securityContext.seLinuxOptions = {}`}},
		{"a field newer than the table", `newField: {a: 1}`, []string{`privilege newField = {"a":1}`}},
		{"null is absence", "serviceAccountName: null\nsecurityContext: null\nvolumes: null\ncontainers: null\nnewField: null\ntolerations: null", nil},
		{"what is not gated", "replicas: null\naffinity: {}\nhostname: x\nrestartPolicy: Always\nterminationGracePeriodSeconds: 5\nnodeSelector: {a: b}\nreadinessGates: [{conditionType: x}]", nil},
	})
}

func TestContainerFields(t *testing.T) {
	checkPod(t, []leafCase{
		{"command, args and directory", `containers: [{name: a, command: [sh, -c, x], args: ["", q], workingDir: /w}]`, []string{
			`command containers[a].args = ["","q"]`, `command containers[a].command = ["sh","-c","x"]`, `command containers[a].workingDir = "/w"`}},
		{"an empty command is none", `containers: [{name: a, command: [], args: [], workingDir: ""}]`, nil},
		{"probes and hooks that run programs or call other hosts", `
containers:
- name: a
  livenessProbe: {exec: {command: [x]}, periodSeconds: 3}
  readinessProbe: {httpGet: {host: evil, port: 80, path: /, scheme: HTTP}}
  startupProbe: {tcpSocket: {host: db, port: 1}}
  lifecycle: {postStart: {exec: {command: [q]}}, preStop: {httpGet: {port: 80, host: z}}}`, []string{
			`command containers[a].lifecycle.postStart.exec.command = ["q"]`,
			`command containers[a].livenessProbe.exec.command = ["x"]`,
			`network containers[a].lifecycle.preStop.httpGet.host = "z"`,
			`network containers[a].readinessProbe.httpGet.host = "evil"`,
			`network containers[a].startupProbe.tcpSocket.host = "db"`}},
		{"a probe of the pod itself", `containers: [{name: a, readinessProbe: {httpGet: {port: 80, path: /x}, timeoutSeconds: 3}, livenessProbe: {grpc: {port: 1}}}]`, nil},
		{"host ports by port and protocol", `containers: [{name: a, ports: [{containerPort: 80, hostPort: 80, hostIP: 1.2.3.4}, {containerPort: 53, protocol: UDP, hostPort: 53}, {containerPort: 1}]}]`, []string{
			`network containers[a].ports["53/UDP"].hostPort = 53`, `network containers[a].ports["80/TCP"].hostIP = "1.2.3.4"`, `network containers[a].ports["80/TCP"].hostPort = 80`}},
		{"under hostNetwork the API server copies the port", "hostNetwork: true\ncontainers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]", []string{`network hostNetwork = true`}},
		{"the security context of a container", `containers: [{name: a, securityContext: {privileged: false, capabilities: {add: [B, A, B], drop: []}, runAsNonRoot: false}}]`, []string{
			`privilege containers[a].securityContext.capabilities.add = ["A","B"]`,
			`privilege containers[a].securityContext.privileged = false`,
			`privilege containers[a].securityContext.runAsNonRoot = false`}},
		{"empty capabilities are kept, an empty context is not", `containers: [{name: a, securityContext: {capabilities: {}}}, {name: b, securityContext: {}}]`, []string{`privilege containers[a].securityContext.capabilities = {}`}},
		{"devices and claims", `containers: [{name: a, volumeDevices: [{name: d, devicePath: /dev/x}], resources: {limits: {cpu: 1}, claims: [{name: gpu, request: r}]}}]`, []string{
			`privilege containers[a].resources.claims[gpu].request = "r"`, `privilege containers[a].volumeDevices["/dev/x"].name = "d"`}},
		{"a claim without a request", `containers: [{name: a, resources: {claims: [{name: gpu}]}}]`, []string{`privilege containers[a].resources.claims[gpu] = {}`}},
		{"an ephemeral container's target", `ephemeralContainers: [{name: d, targetContainerName: a}]`, []string{`privilege ephemeralContainers[d].targetContainerName = "a"`}},
		{"the order of init containers", `{initContainers: [{name: b}, {name: a}], containers: [{name: b}, {name: a}]}`, []string{`command initContainers#order = ["b","a"]`}},
		{"an init container that goes on", `{initContainers: [{name: i, restartPolicy: Always}], containers: [{name: a, restartPolicy: Always}]}`, []string{`command initContainers[i].restartPolicy = "Always"`}},
		{"a file of the kubelet's over a program", `{containers: [{name: a, terminationMessagePath: /usr/bin/env}, {name: b, terminationMessagePath: /etc/ld.so.preload}]}`,
			[]string{`command containers[a].terminationMessagePath = "/usr/bin/env"`, `command containers[b].terminationMessagePath = "/etc/ld.so.preload"`}},
		{"an init container that runs again", `{initContainers: [{name: i, restartPolicy: OnFailure, restartPolicyRules: [{action: Restart}]}]}`, nil},
		{"init containers count alike", `initContainers: [{name: i, command: [x]}]`, []string{`command initContainers[i].command = ["x"]`}},
		{"what is not gated", `containers: [{name: a, imagePullPolicy: Always, tty: true, stdin: true, terminationMessagePath: /x, resources: {requests: {cpu: 1}}, ports: [{containerPort: 80, name: http}]}]`, nil},
		{"a name with other characters is a JSON string", `containers: [{name: 'a].command', command: [x]}]`, []string{`command containers["a].command"].command = ["x"]`}},
		{"a container without a name is a position", `containers: [{command: [x]}]`, []string{`command containers[#0].command = ["x"]`}},
		{"a name cannot imitate a position", `containers: [{name: '#0', command: [x]}]`, []string{`command containers["#0"].command = ["x"]`}},
	})
}

func TestEnvironment(t *testing.T) {
	checkPod(t, []leafCase{
		{"secret keys", `containers: [{name: a, env: [{name: X, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}]}]`, []string{
			`secret containers[a].env[X].valueFrom.secretKeyRef.key = "k"`, `secret containers[a].env[X].valueFrom.secretKeyRef.name = "s"`}},
		{"ordinary values and ConfigMap keys are free", `containers: [{name: a, env: [{name: X, value: q}, {name: W, valueFrom: {configMapKeyRef: {name: s, key: k}}}]}]`, nil},
		{"variables that decide what runs", `containers: [{name: a, env: [{name: LD_PRELOAD, value: x}, {name: PATH}, {name: JAVA_OPTIONS, value: ""}, {name: ENV, value: e}, {name: ENVIRONMENT, value: e}, {name: PYTHONPATH, value: p}]}]`, []string{
			`command containers[a].env[ENV].value = "e"`, `command containers[a].env[JAVA_OPTIONS].value = ""`, `command containers[a].env[LD_PRELOAD].value = "x"`,
			`command containers[a].env[PATH].value = ""`, `command containers[a].env[PYTHONPATH].value = "p"`}},
		{"such a variable from a source, with its default version", `containers: [{name: a, env: [{name: PATH, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v1}}}]}]`, []string{
			`command containers[a].env[PATH].valueFrom.fieldRef.fieldPath = "metadata.name"`}},
		{"a variable that a subPathExpr uses", "containers: [{name: a, env: [{name: X, value: q}, {name: Z, value: q}], volumeMounts: [{name: v, mountPath: /m, subPathExpr: a/$(X)}]}]\nvolumes: [{name: v, emptyDir: {}}]", []string{
			`command containers[a].env[X].value = "q"`}},
		{"whole Secrets and ConfigMaps by position among their like", `containers: [{name: a, envFrom: [{configMapRef: {name: c}}, {secretRef: {name: s}, prefix: P}, {secretRef: {name: t}}]}]`, []string{
			`command containers[a].envFrom[#0].configMapRef.name = "c"`, `secret containers[a].envFrom[#0].prefix = "P"`,
			`secret containers[a].envFrom[#0].secretRef.name = "s"`, `secret containers[a].envFrom[#1].secretRef.name = "t"`}},
		{"a name that imitates a path", `containers: [{name: a, env: [{name: 'A].valueFrom.secretKeyRef.name', valueFrom: {secretKeyRef: {name: s, key: k}}}]}]`, []string{
			`secret containers[a].env["A].valueFrom.secretKeyRef.name"].valueFrom.secretKeyRef.key = "k"`,
			`secret containers[a].env["A].valueFrom.secretKeyRef.name"].valueFrom.secretKeyRef.name = "s"`}},
		{"a duplicate that is no leaf", `containers: [{name: a, env: [{name: X, value: "1"}, {name: X, value: "2"}]}]`, nil},
		{"a source newer than the table", `containers: [{name: a, env: [{name: X, valueFrom: {vaultRef: {path: p}}}]}]`, []string{`secret containers[a].env[X].valueFrom.vaultRef = {"path":"p"}`}},
	})
}

func TestTemplateMetadata(t *testing.T) {
	in := `
apiVersion: apps/v1
kind: Deployment
metadata: {annotations: {vault.hashicorp.com/x: "on the object itself, which nothing reads"}}
spec:
 template:
  metadata:
   labels: {azure.workload.identity/use: "true", app: x}
   annotations:
    iam.amazonaws.com/role: r
    vault.hashicorp.com/agent-inject: "true"
    k8s.v1.cni.cncf.io/networks: net
    sidecar.istio.io/inject: "false"
    traffic.sidecar.istio.io/x: ""
    linkerd.io/inject: enabled
    config.linkerd.io/x: q
    io.kubernetes.cri-o.userns-mode: auto
    container.apparmor.security.beta.kubernetes.io/a: unconfined
    container.apparmor.security.beta.kubernetes.io/b: odd
    container.apparmor.security.beta.kubernetes.io/b-status: odd
    vault.hashicorp.com/agent-inject-secret-db-status: any name may end like this
    vault.hashicorp.com/agent-inject-status: injected
    sidecar.istio.io/status: injected
    prometheus.io/scrape: "true"
    checksum/config: abc
  spec:
   containers: [{name: a, image: i}]
`
	want := []string{
		`identity spec.template.metadata.annotations["iam.amazonaws.com/role"] = "r"`,
		`identity spec.template.metadata.labels["azure.workload.identity/use"] = "true"`,
		`image spec.template.spec.containers[a].image = "i"`,
		`network spec.template.metadata.annotations["config.linkerd.io/x"] = "q"`,
		`network spec.template.metadata.annotations["k8s.v1.cni.cncf.io/networks"] = "net"`,
		`network spec.template.metadata.annotations["linkerd.io/inject"] = "enabled"`,
		`network spec.template.metadata.annotations["sidecar.istio.io/inject"] = "false"`,
		`network spec.template.metadata.annotations["traffic.sidecar.istio.io/x"] = ""`,
		`privilege spec.template.metadata.annotations["container.apparmor.security.beta.kubernetes.io/b"] = "odd"`,
		`privilege spec.template.metadata.annotations["container.apparmor.security.beta.kubernetes.io/b-status"] = "odd"`,
		`privilege spec.template.metadata.annotations["io.kubernetes.cri-o.userns-mode"] = "auto"`,
		`privilege spec.template.spec.containers[a].securityContext.appArmorProfile.type = "Unconfined"`,
		`secret spec.template.metadata.annotations["vault.hashicorp.com/agent-inject"] = "true"`,
		`secret spec.template.metadata.annotations["vault.hashicorp.com/agent-inject-secret-db-status"] = "any name may end like this"`,
	}
	if diff := cmp.Diff(want, leaves(project(t, in), false)); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
}

func TestAnAppArmorAnnotationIsTheFieldThatTheAPIServerMakesOfIt(t *testing.T) {
	pod := func(annotation, securityContext string) string {
		return `
apiVersion: v1
kind: Pod
metadata: {annotations: {` + annotation + `}}
spec: {containers: [{name: a, image: i, securityContext: {` + securityContext + `}}]}`
	}
	const prefix = "container.apparmor.security.beta.kubernetes.io/a: "
	for _, c := range []struct{ name, annotation, field string }{
		{"localhost", prefix + "localhost/p", "appArmorProfile: {type: Localhost, localhostProfile: p}"},
		{"runtime default", prefix + "runtime/default", "appArmorProfile: {type: RuntimeDefault}"},
		{"unconfined", prefix + "unconfined", "appArmorProfile: {type: Unconfined}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			written := digestOf(t, parse(t, pod(c.annotation, "")))
			stored := digestOf(t, parse(t, pod(c.annotation, c.field)))
			field := digestOf(t, parse(t, pod("", c.field)))
			if written != stored || written != field {
				t.Errorf("digests differ: annotation %s, stored %s, field %s", written, stored, field)
			}
			if none := digestOf(t, parse(t, pod("", ""))); written == none {
				t.Error("the annotation is no leaf")
			}
		})
	}
}

func TestABareContainerPodHasImageLeavesInAllThreeLists(t *testing.T) {
	p := project(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: x}], initContainers: [{name: a, image: q}], ephemeralContainers: [{name: a, image: z}]}}`)
	want := []string{`image spec.containers[a].image = "x"`, `image spec.ephemeralContainers[a].image = "z"`, `image spec.initContainers[a].image = "q"`}
	if diff := cmp.Diff(want, leaves(p, true)); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
}

func TestOnAPodAdmissionWritesWhatATemplateMustSay(t *testing.T) {
	p := project(t, `{apiVersion: v1, kind: Pod, spec: {nodeName: node, imagePullSecrets: [{name: a}], containers: [{name: a, image: x}]}}`)
	if diff := cmp.Diff([]string{`image spec.containers[a].image = "x"`}, leaves(p, true)); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
}

func TestEveryWorkloadHasItsPodSpecWhereTheTableSays(t *testing.T) {
	for _, c := range []struct{ kind, in, path string }{
		{"Pod", `{apiVersion: v1, kind: Pod, spec: POD}`, "spec"},
		{"ReplicationController", `{apiVersion: v1, kind: ReplicationController, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"PodTemplate", `{apiVersion: v1, kind: PodTemplate, template: {spec: POD}}`, "template.spec"},
		{"Deployment", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"Deployment of extensions", `{apiVersion: extensions/v1beta1, kind: Deployment, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"ReplicaSet", `{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"DaemonSet", `{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"Job", `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: POD}}}`, "spec.template.spec"},
		{"CronJob", `{apiVersion: batch/v1beta1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: POD}}}}}`, "spec.jobTemplate.spec.template.spec"},
		{"ControllerRevision", `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: {spec: POD}}}}`, "data.spec.template.spec"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			p := project(t, strings.Replace(c.in, "POD", "{containers: [{name: a, image: x}]}", 1))
			want := []string{"image " + c.path + `.containers[a].image = "x"`}
			if diff := cmp.Diff(want, leaves(p, true)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(podCategories, p.Applies()); diff != "" {
				t.Errorf("applies (-want +got):\n%s", diff)
			}
		})
	}
}
