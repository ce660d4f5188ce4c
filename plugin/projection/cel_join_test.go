package projection

import (
	"encoding/json"
	"strings"
	"testing"
)

// What hangs together in a pod is told apart by code of its own in the walk and
// by text of its own in CEL. Each edit here changes the projection by way of one
// such join, in a pod where nothing else would show it.
func TestTheConditionsSeeWhatHangsTogether(t *testing.T) {
	type edit = func(o, template, c map[string]any)
	env := func(c map[string]any, i int) map[string]any { return c["env"].([]any)[i].(map[string]any) }
	volume := func(p map[string]any, i int) map[string]any {
		return sub(p, "spec")["volumes"].([]any)[i].(map[string]any)
	}
	none := func(_, _, _ map[string]any) {}
	twoInits := func(_, p, _ map[string]any) {
		sub(p, "spec")["initContainers"] = []any{map[string]any{"name": "i", "image": "x:1"}, map[string]any{"name": "h", "image": "x:1"}}
	}
	for _, x := range []struct {
		name          string
		before, after edit
	}{
		{"a plain variable that a mount's subPathExpr uses", func(_, _, c map[string]any) {
			c["volumeMounts"].([]any)[1].(map[string]any)["subPathExpr"] = "$(LOG_LEVEL)"
		}, func(_, _, c map[string]any) { env(c, 0)["value"] = "debug" }},
		{"a subPathExpr", none, func(_, _, c map[string]any) {
			c["volumeMounts"].([]any)[1].(map[string]any)["subPathExpr"] = "$(LOG_LEVEL)"
		}},
		{"an unknown member of a plain variable", none, func(_, _, c map[string]any) { env(c, 0)["newer"] = "x" }},
		{"nothing but an unknown member in a variable", none, func(_, _, c map[string]any) {
			c["env"] = append(c["env"].([]any), map[string]any{"name": "A", "newer": "x"})
		}},
		{"an unknown source of a variable", none, func(_, _, c map[string]any) {
			env(c, 1)["valueFrom"] = map[string]any{"newerRef": map[string]any{"name": "x"}}
		}},
		{"an unknown source beside a known one", none, func(_, _, c map[string]any) { sub(env(c, 1), "valueFrom")["newerRef"] = "x" }},
		{"a variable that comes from a Secret now", none, func(_, _, c map[string]any) {
			env(c, 0)["valueFrom"] = map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}
			delete(env(c, 0), "value")
		}},
		{"a variable that is called PATH now", none, func(_, _, c map[string]any) { env(c, 0)["name"] = "PATH" }},
		{"the value of a program's variable", none, func(_, _, c map[string]any) { env(c, 4)["value"] = "/x" }},
		{"a prefix of program variables", none, func(_, _, c map[string]any) { env(c, 0)["name"] = "LD_PRELOAD" }},
		{"a suffix of program variables", none, func(_, _, c map[string]any) { env(c, 0)["name"] = "JAVA_TOOL_OPTIONS" }},
		{"which of two ConfigMaps comes first", func(_, _, c map[string]any) {
			c["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "a"}}, map[string]any{"configMapRef": map[string]any{"name": "b"}}}
		}, func(_, _, c map[string]any) {
			c["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": "b"}}, map[string]any{"configMapRef": map[string]any{"name": "a"}}}
		}},
		{"a ConfigMap of another name", none, func(_, _, c map[string]any) {
			sub(c["envFrom"].([]any)[0].(map[string]any), "configMapRef")["name"] = "other-2456789bcd"
		}},
		{"a program's ConfigMap of another name", none, func(_, p, _ map[string]any) { sub(volume(p, 0), "configMap")["name"] = "other" }},
		{"a mount where programs are", none, func(_, _, c map[string]any) { c["volumeMounts"].([]any)[0].(map[string]any)["mountPath"] = "/opt" }},
		{"an executable mode", none, func(_, p, _ map[string]any) { sub(volume(p, 1), "projected")["defaultMode"] = json.Number("511") }},
		{"an executable item", func(_, p, _ map[string]any) {
			sub(volume(p, 0), "configMap")["items"] = []any{map[string]any{"key": "k", "path": "p"}}
		}, func(_, p, _ map[string]any) {
			sub(volume(p, 0), "configMap")["items"] = []any{map[string]any{"key": "k", "path": "p", "mode": json.Number("511")}}
		}},
		{"an empty volume that becomes a host's", none, func(_, p, _ map[string]any) {
			delete(volume(p, 3), "emptyDir")
			volume(p, 3)["hostPath"] = map[string]any{"path": "/"}
		}},
		{"two volumes that change their sources", none, func(_, p, _ map[string]any) {
			volume(p, 2)["name"], volume(p, 3)["name"] = "e", "s"
		}},
		{"the host port of a port", none, func(_, _, c map[string]any) {
			c["ports"].([]any)[0].(map[string]any)["hostPort"] = json.Number("80")
		}},
		{"host ports, behind hostNetwork", func(_, p, _ map[string]any) { sub(p, "spec")["hostNetwork"] = true }, func(_, p, _ map[string]any) { sub(p, "spec")["hostNetwork"] = false }},
		{"an unknown member of a port", none, func(_, _, c map[string]any) { c["ports"].([]any)[0].(map[string]any)["newer"] = "x" }},
		{"a toleration of control-plane nodes", none, func(_, p, _ map[string]any) {
			sub(p, "spec")["tolerations"] = []any{map[string]any{"key": controlPlaneTaints[1]}}
		}},
		{"a toleration of everything", none, func(_, p, _ map[string]any) {
			sub(p, "spec")["tolerations"] = []any{map[string]any{"operator": "Exists"}}
		}},
		{"a class of the system", none, func(_, p, _ map[string]any) { sub(p, "spec")["priorityClassName"] = "system-node-critical" }},
		{"the host of a probe", none, func(_, _, c map[string]any) { sub(c, "livenessProbe", "httpGet")["host"] = "example.com" }},
		{"the command of a probe", none, func(_, _, c map[string]any) { sub(c, "readinessProbe", "exec")["command"] = []any{"sh"} }},
		{"the command of a hook", none, func(_, _, c map[string]any) { sub(c, "lifecycle", "postStart", "exec")["command"] = []any{"sh"} }},
		{"claims among resources", none, func(_, _, c map[string]any) { sub(c, "resources")["claims"] = []any{map[string]any{"name": "gpu"}} }},
		{"two containers that change their images", none, func(_, p, _ map[string]any) {
			list := sub(p, "spec")["containers"].([]any)
			list[0].(map[string]any)["image"], list[1].(map[string]any)["image"] = "y:1", "x:1"
		}},
		{"another order of init containers", twoInits, func(_, p, _ map[string]any) {
			list := sub(p, "spec")["initContainers"].([]any)
			list[0], list[1] = list[1], list[0]
		}},
		{"an init container that becomes a sidecar", twoInits, func(_, p, _ map[string]any) {
			sub(p, "spec")["initContainers"].([]any)[1].(map[string]any)["restartPolicy"] = "Always"
		}},
		{"an empty volume where programs are", none, func(_, _, c map[string]any) {
			c["volumeMounts"] = append(c["volumeMounts"].([]any), map[string]any{"name": "e", "mountPath": "/usr/bin"})
		}},
		{"an empty volume that moves to where programs are", func(_, _, c map[string]any) {
			c["volumeMounts"] = append(c["volumeMounts"].([]any), map[string]any{"name": "e", "mountPath": "/tmp"})
		}, func(_, _, c map[string]any) {
			c["volumeMounts"].([]any)[2].(map[string]any)["mountPath"] = "/lib"
		}},
		{"a container less", none, func(_, p, _ map[string]any) { sub(p, "spec")["containers"] = sub(p, "spec")["containers"].([]any)[:1] }},
		{"an ephemeral container", none, func(_, p, _ map[string]any) {
			sub(p, "spec")["ephemeralContainers"] = []any{map[string]any{"name": "debug", "image": "busybox"}}
		}},
		{"an annotation that a runtime reads", none, func(_, p, _ map[string]any) {
			sub(p, "metadata", "annotations")["io.kubernetes.cri-o.userns-mode"] = "auto"
		}},
		{"a label that asks for an identity", none, func(_, p, _ map[string]any) {
			sub(p, "metadata", "labels")["azure.workload.identity/use"] = "true"
		}},
		{"a profile of AppArmor", none, func(_, p, _ map[string]any) {
			sub(p, "metadata", "annotations")["container.apparmor.security.beta.kubernetes.io/c"] = "unconfined"
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, kind := range []string{"Deployment", "Pod", "CronJob"} {
				k := kindIndex[kindKey{map[string]string{"Deployment": "apps", "CronJob": "batch"}[kind], kind}]
				state := func(edits ...edit) map[string]any {
					o := inKind(t, k, celPod)
					for _, e := range edits {
						e(o, sub(o, strings.Split(strings.TrimSuffix("x."+k.pod.spec, ".spec"), ".")[1:]...), containerOf(o, 0))
					}
					return o
				}
				mustBeAskedAbout(t, state(x.before), state(x.before, x.after))
			}
		})
	}
}

// mustBeAskedAbout fails unless two states differ and the conditions say so, in
// both directions.
func mustBeAskedAbout(t *testing.T, old, obj map[string]any) {
	t.Helper()
	if all := policies["all"]; gatedIn(nil, old, all) == gatedIn(nil, obj, all) {
		t.Errorf("%s: does not change the projection", str(obj["kind"]))
	}
	conditions := joined.of(obj)
	for _, pair := range [][2]map[string]any{{old, obj}, {obj, old}} {
		if o := conditions.update(t, raw(pair[0]), raw(pair[1])); o.err != nil || !o.asked() {
			t.Errorf("%s: asked %v (%v), %v", str(obj["kind"]), o.asked(), o.values, o.err)
		}
	}
}

var joined = newConditions(nil, policies["default"])

func TestTheConditionsSeeWhatHangsTogetherInOtherKinds(t *testing.T) {
	for _, x := range []struct{ name, old, obj string }{
		{"a rollback", `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}, metadata: {annotations: {deprecated.deployment.rollback.to: "1"}}}`},
		{"one of two containers of one name", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: x}, {name: a, image: x}]}}}}`, `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: x}, {name: a, image: y}]}}}}`},
		{"an opened Service", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}}}`, `{apiVersion: v1, kind: Service, spec: {selector: {a: b}, type: NodePort}}`},
		{"an external address", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}}}`, `{apiVersion: v1, kind: Service, spec: {selector: {a: b}, externalIPs: [1.2.3.4]}}`},
		{"what an open Service selects", `{apiVersion: v1, kind: Service, spec: {type: NodePort, selector: {a: b}}}`, `{apiVersion: v1, kind: Service, spec: {type: NodePort, selector: {a: c}}}`},
		{"where an open port leads", `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80, targetPort: 80}]}}`, `{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80, targetPort: 22}]}}`},
		{"an annotation that opens", `{apiVersion: v1, kind: Service, spec: {selector: {a: b}}}`, `{apiVersion: v1, kind: Service, spec: {selector: {a: b}}, metadata: {annotations: {tailscale.com/expose: "true"}}}`},
		{"an annotation of an open Service", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`, `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, metadata: {annotations: {service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing}}}`},
		{"configuration in a tuning annotation", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m}}}`, `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {nginx.ingress.kubernetes.io/proxy-body-size: "8m; lua"}}}`},
		{"automatic synchronisation, and none of it said", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {automated: {}}}}`, `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {syncPolicy: {}}}`},
		{"an operation", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {}}`, `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {}, operation: {sync: {}}}`},
		{"a repository among several", `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: [{repoURL: a, targetRevision: x}, {repoURL: b}]}}`, `{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: [{repoURL: b, targetRevision: x}, {repoURL: a}]}}`},
		{"the backend of a route", `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {rules: [{backendRefs: [{name: a, weight: 1}]}]}}`, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {rules: [{backendRefs: [{name: b, weight: 1}]}]}}`},
		{"a Secret that becomes a cluster of Argo CD", `{apiVersion: v1, kind: Secret, type: Opaque}`, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {labels: {argocd.argoproj.io/secret-type: cluster}}}`},
		{"rules beside an aggregation", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}}`, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {}, rules: [{verbs: ["*"]}]}`},
		{"a label that a role may be selected by", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: ["*"]}]}`, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: ["*"]}], metadata: {labels: {example.com/aggregate: "true"}}}`},
		{"a label of a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {labels: {pod-security.kubernetes.io/enforce: restricted}}}`, `{apiVersion: v1, kind: Namespace, metadata: {}}`},
		{"a claim to a volume", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: s}}`, `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {storageClassName: s, volumeName: v}}`},
		{"whom a volume is kept for", `{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /}, claimRef: {name: a}}}`, `{apiVersion: v1, kind: PersistentVolume, spec: {hostPath: {path: /}, claimRef: {name: b}}}`},
		{"a claim of a StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: a}, spec: {}}]}}`, `{apiVersion: apps/v1, kind: StatefulSet, spec: {template: {spec: {}}, volumeClaimTemplates: [{metadata: {name: a}, spec: {volumeName: v}}]}}`},
		{"data of a revision", `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: {spec: {containers: [{name: a, image: x}]}}}}}`, `{apiVersion: apps/v1, kind: ControllerRevision, data: {spec: {template: {spec: {containers: [{name: a, image: y}]}}}}}`},
		{"a container somewhere in a custom resource", `{apiVersion: example.com/v1, kind: Thing, parts: [{a: {containers: [{image: x}]}}]}`, `{apiVersion: example.com/v1, kind: Thing, parts: [{a: {containers: [{image: y}]}}]}`},
	} {
		t.Run(x.name, func(t *testing.T) { mustBeAskedAbout(t, parse(t, x.old), parse(t, x.obj)) })
	}
}

func TestNamesOfConfigMapsAreComparedAsTheyAreProjected(t *testing.T) {
	names := []string{
		"cm", "cm-2456789bcd", "cm-9bcdfghkmt", "cm-2456789bca", "cm-2456789bc", "cm-2456789bcd-9bcdfghkmt", "cm-9bcdfghkmt-9bcdfghkmt",
		"-2456789bcd", "-9bcdfghkmt", "2456789bcd", "c-2456789bcd", "c", "cm-2456789bcd\n", "cm-2456789bcd-", "", "é-2456789bcd", "é",
	}
	k := kindIndex[kindKey{"apps", "Deployment"}]
	for _, a := range names {
		for _, b := range names {
			state := func(name string) map[string]any {
				o := inKind(t, k, celPod)
				sub(containerOf(o, 0)["envFrom"].([]any)[0].(map[string]any), "configMapRef")["name"] = name
				return o
			}
			want := withoutContentHash(a) != withoutContentHash(b)
			if o := joined.of(state(a)).update(t, raw(state(a)), raw(state(b))); o.err != nil || o.asked() != want {
				t.Errorf("%q and %q: asked %v, want %v; %v", a, b, o.asked(), want, o.err)
			}
		}
	}
}

// The sets of names are asked in Go by the walk, and in CEL by the conditions.
func TestSetsOfNamesMeanTheSameInCEL(t *testing.T) {
	for what, n := range map[string]*names{"bookkeeping": bookkeeping, "roles": clusterRoleLabels, "tuning": tuning, "variables": programVariables, "settings": nil} {
		inCEL := func(m string) string { return "true" }
		if n != nil {
			inCEL = func(m string) string { return n.cel(m) }
		}
		var keys []string
		if n == nil {
			inCEL = func(m string) string { return m + ".matches(" + quote(mereSettingPattern) + ")" }
			keys = []string{"", "8m", "8m; x", "a b/c:d_e-f.g", "a\n", "é", "a'b", `a\b`, "{", "8m\x00"}
		} else {
			for _, p := range n.list {
				bare := strings.Trim(p, "*")
				keys = append(keys, bare, bare+"x", "x"+bare, "x"+bare+"x", strings.ToLower(bare), strings.ToUpper(bare))
			}
		}
		set := compileConditions(t, newestServer, "["+"object.k].exists(k, "+inCEL("k")+")")
		for _, k := range keys {
			want := n == nil && mereSetting(k) || n != nil && n.has(k)
			if o := set.evaluate(t, nil, raw(map[string]any{"apiVersion": "v1", "kind": "X", "k": k})); o.err != nil || o.asked() != want {
				t.Errorf("%s: %q is %v in CEL, %v in the walk; %v", what, k, o.asked(), want, o.err)
			}
		}
	}
}
