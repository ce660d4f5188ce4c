package policy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// object is a tree of YAML, as it comes from the API server.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func project(t *testing.T, text string) *projection.Projection {
	t.Helper()
	p, err := projection.Project(object(t, text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// passes reports whether some trusted writer may create an object.
func passes(t *testing.T, a Admission, user, text string) bool {
	t.Helper()
	o := object(t, text)
	meta := o["metadata"].(map[string]any)
	str := func(v any) string { s, _ := v.(string); return s }
	group, _, _ := strings.Cut(str(o["apiVersion"]), "/")
	if !strings.Contains(str(o["apiVersion"]), "/") {
		group = ""
	}
	p := project(t, text)
	if !p.Gated() {
		t.Fatalf("has no gated field, so that it shows nothing:\n%s", text)
	}
	return slices.ContainsFunc(a.Trusted(Write{User: user, Group: group, Kind: str(o["kind"]), Namespace: str(meta["namespace"]), Name: str(meta["name"]), Now: date("2026-12-01")}), func(w TrustedWriter) bool {
		return !slices.ContainsFunc(projection.Categories(), func(c projection.Category) bool {
			return p.Has(c) && !w.Allows(c, p, nil)
		})
	})
}

func admission(t *testing.T, text string) Admission {
	t.Helper()
	return mustParse(t, minimal+text).Admission()
}

const restricted = `securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}`

func pod(name, image, spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: shop}, spec: {" + spec + "containers: [{name: a, image: '" + image + "', args: [x], " + restricted + "}]}}"
}

// workload writes whatever a user asks for: every category of a pod spec.
func workload(apiVersion, kind, name string) string {
	return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: " + name + ", namespace: shop}, spec: {template: {spec: {serviceAccountName: robot, hostNetwork: true, " +
		"hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], volumes: [{name: s, secret: {secretName: s}}], containers: [{name: a, image: 'i:1', command: [x]}]}}}}"
}

const solver = "automountServiceAccountToken: false, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}, "

// Each preset lets pass what its project writes in a stock installation, and
// not what looks like it.
func TestPresetsAllowWhatAStockInstallationWrites(t *testing.T) {
	service := func(name, spec string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + ", namespace: shop}, spec: {ports: [{port: 80}], " + spec + "}}"
	}
	ingress := func(name string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: " + name + ", namespace: shop}, spec: {ingressClassName: x, rules: [{host: a.example}]}}"
	}
	route := func(name string) string {
		return "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: " + name + ", namespace: shop}, spec: {hostnames: [a.example]}}"
	}
	volume := func(name, source string) string {
		return "{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + name + "}, spec: {" + source + "}}"
	}
	claim := func(name string) string {
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: " + name + ", namespace: shop}, spec: {dataSource: {kind: PersistentVolumeClaim, name: a}}}"
	}
	fullPod := strings.Replace(workload("v1", "Pod", "NAME"), "spec: {template: {spec: {", "spec: {", 1)
	fullPod = strings.TrimSuffix(fullPod, "}}")
	free := func(name string) string { return strings.Replace(fullPod, "NAME", name, 1) }
	const acme = "quay.io/jetstack/cert-manager-acmesolver:v1.18.0"
	binding := "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: NAME, namespace: shop}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: u}]}"
	for _, tt := range []struct {
		entry, user string
		yes, no     []string
	}{
		{"preset: cert-manager", "cert-manager:cert-manager",
			[]string{strings.Replace(pod("cm-acme-http-solver-x", acme, solver), "namespace: shop", "namespace: shop, annotations: {sidecar.istio.io/inject: 'false'}", 1), pod("cm-acme-http-solver-x", acme+"@sha256:"+strings.Repeat("a", 64), solver), pod("cm-acme-http-solver-x", "quay.io/jetstack/cert-manager-acmesolver@sha256:"+strings.Repeat("a", 64), ""),
				service("cm-acme-http-solver-x", "type: NodePort"), ingress("cm-acme-http-solver-x"), route("cm-acme-http-solver-x")},
			[]string{pod("cm-acme-http-solver-x", "evil:1", solver), pod("cm-acme-http-solver-x", "quay.io/jetstack/cert-manager-acmesolver-x:1", solver), pod("cm-acme-http-solver-x", acme, "hostPID: true, "), pod("cm-acme-http-solver-x", acme, "serviceAccountName: admin, "),
				pod("web", acme, solver), ingress("web"), service("web", "type: LoadBalancer"), workload("apps/v1", "Deployment", "cm-acme-http-solver-x")}},
		{"preset: csi-provisioner, user: 'system:serviceaccount:drivers:csi'", "drivers:csi",
			[]string{volume("pvc-1", "csi: {driver: d, volumeHandle: h}, claimRef: {namespace: shop, name: c}")},
			[]string{volume("mine", "csi: {driver: d, volumeHandle: h}"), volume("pvc-1", "hostPath: {path: /}"), claim("pvc-1")}},
		{"preset: argo-rollouts", "argo-rollouts:argo-rollouts",
			[]string{workload("apps/v1", "ReplicaSet", "web-1"), ingress("web-web-canary"), service("web-1", "selector: {a: b}")},
			[]string{workload("apps/v1", "Deployment", "web"), workload("batch/v1", "Job", "web"), ingress("web"), service("web", "type: LoadBalancer"), free("web")}},
		{"preset: flagger", "flagger-system:flagger",
			[]string{workload("apps/v1", "Deployment", "web-primary"), workload("apps/v1", "DaemonSet", "web-primary"), service("web", "selector: {a: b}"), ingress("web-canary"), route("web")},
			[]string{workload("apps/v1", "Deployment", "web"), workload("apps/v1", "StatefulSet", "web-primary"), ingress("web"), service("web", "type: NodePort")}},
		{"preset: keda", "keda:keda-operator",
			[]string{workload("batch/v1", "Job", "web-x")}, []string{workload("apps/v1", "Deployment", "web"), free("web")}},
		{"preset: tekton", "tekton-pipelines:tekton-pipelines-controller",
			[]string{free("build-pod"), free("build-pod-retry1"), workload("apps/v1", "StatefulSet", "affinity-assistant-0"), claim("pvc-0")},
			[]string{free("web"), workload("apps/v1", "StatefulSet", "web"), claim("web"), workload("batch/v1", "Job", "build-pod")}},
		{"preset: argo-workflows", "argo:argo",
			[]string{free("step-1"), claim("work-1")}, []string{workload("batch/v1", "Job", "step"), workload("apps/v1", "Deployment", "step")}},
		{"preset: arc", "arc-systems:arc-gha-rs-controller",
			[]string{free("set-abc-runner-xyz"), strings.Replace(binding, "NAME", "set-0-listener", 1),
				pod("set-0-listener", "ghcr.io/actions/gha-runner-scale-set-controller:0.12.0", "serviceAccountName: set-0-listener, volumes: [{name: c, secret: {secretName: c}}], ")},
			[]string{free("web"), free("set-0-listener"), strings.Replace(binding, "NAME", "admin", 1), strings.Replace(strings.Replace(binding, "NAME", "set-0-listener", 1), "kind: RoleBinding", "kind: ClusterRoleBinding", 1)}},
		{"preset: knative", "knative-serving:controller",
			[]string{workload("apps/v1", "Deployment", "web-00001-deployment"), service("web", "type: ExternalName, externalName: gateway.example"), service("web-00001", "selector: {a: b}"),
				"{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: shop}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1}]}]}"},
			[]string{workload("apps/v1", "Deployment", "web"), free("web"), ingress("web")}},
		{"preset: velero, until: 2026-12-02", "velero:velero",
			[]string{free("web"), workload("apps/v1", "Deployment", "web"), strings.Replace(binding, "NAME", "b", 1), ingress("web")},
			[]string{volume("pvc-1", "csi: {driver: d, volumeHandle: h}")}},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(tt.entry, "preset: "), ",")
		t.Run(name, func(t *testing.T) {
			namespaces := "'*'"
			if name == "csi-provisioner" {
				namespaces = "'-'"
			}
			a := admission(t, "trustedWriters:\n- {"+tt.entry+", namespaces: ["+namespaces+"], acceptImpersonation: true}\n")
			for _, w := range a.TrustedWriters {
				if w.Preset != name || w.Exempt {
					t.Errorf("got preset %q, exempt %t", w.Preset, w.Exempt)
				}
				for _, k := range w.Kinds {
					if len(tableKinds(kindRef(k))) == 0 {
						t.Errorf("kind %s is not in the table", k)
					}
				}
			}
			for _, o := range tt.yes {
				if !passes(t, a, serviceAccountUser+tt.user, o) {
					t.Errorf("refused: %s", o)
				}
			}
			for _, o := range tt.no {
				if passes(t, a, serviceAccountUser+tt.user, o) {
					t.Errorf("passes: %s", o)
				}
			}
			if passes(t, a, serviceAccountUser+"shop:default", tt.yes[0]) {
				t.Error("passes by another user")
			}
		})
		if _, known := findPreset(name); !known {
			t.Errorf("%s is no preset", name)
		}
	}
	if got, want := len(presets), 10; got != want {
		t.Errorf("got %d presets, want the %d that are tested here", got, want)
	}
}

// Naming them for the webhook would be no use otherwise.
func TestSourcesOfPresetsAreGated(t *testing.T) {
	const container = "{name: a, image: i}"
	samples := map[string]string{
		"AutoscalingRunnerSet.actions.github.com": "spec: {template: {spec: {containers: [" + container + "]}}}",
		"Rollout.argoproj.io":                     "spec: {template: {spec: {containers: [" + container + "]}}}",
		"Experiment.argoproj.io":                  "spec: {templates: [{name: a, template: {spec: {containers: [" + container + "]}}}]}",
		"Workflow.argoproj.io":                    "spec: {templates: [{name: a, container: {image: i, command: [x]}}]}",
		"ScaledJob.keda.sh":                       "spec: {jobTargetRef: {template: {spec: {containers: [" + container + "]}}}}",
		"Service.serving.knative.dev":             "spec: {template: {spec: {containers: [{image: i}]}}}",
		"Configuration.serving.knative.dev":       "spec: {template: {spec: {containers: [{image: i}]}}}",
		"Revision.serving.knative.dev":            "spec: {containers: [{image: i}]}",
		"TaskRun.tekton.dev":                      "spec: {taskSpec: {steps: [" + container + "]}}",
		"PipelineRun.tekton.dev":                  "spec: {pipelineSpec: {tasks: [{name: a, taskSpec: {steps: [" + container + "]}}]}}",
	}
	tested := 0
	for _, p := range presets {
		for _, ref := range p.sources {
			kind, group, _ := kindRef(ref).split()
			got := project(t, "{apiVersion: "+group+"/v1, kind: "+kind+", metadata: {name: a}, "+samples[ref]+"}")
			if !got.Has(projection.Image) {
				t.Errorf("%s: no image is found in it", ref)
			}
			tested++
		}
	}
	if tested != len(samples) {
		t.Errorf("%d kinds are sources of presets, want %d", tested, len(samples))
	}
}

func TestFieldsBesideAPresetNarrowIt(t *testing.T) {
	const user = "system:serviceaccount:argo-rollouts:argo-rollouts"
	replicaSet := TrustedWriter{Preset: "argo-rollouts", User: user, Namespaces: []gate.Glob{"shop"}, Kinds: []string{"ReplicaSet"}, Categories: podCategories}
	for _, tt := range []struct {
		name, entry string
		want        []TrustedWriter
	}{
		{"kinds", "kinds: [ReplicaSet]", []TrustedWriter{replicaSet}},
		{"exempt, where it can be", "exempt: true, kinds: [ReplicaSet, Service]", []TrustedWriter{
			{Preset: "argo-rollouts", User: user, Namespaces: []gate.Glob{"shop"}, Kinds: []string{"ReplicaSet"}, Categories: podCategories, Exempt: true},
			{Preset: "argo-rollouts", User: user, Namespaces: []gate.Glob{"shop"}, Kinds: []string{"Service"}, Categories: []projection.Category{"service"}}}},
		{"categories, images where there are any, names, user and until", "categories: [image, network], images: ['a@*'], names: [w-*], user: bob, until: 2027-01-01", []TrustedWriter{
			{Preset: "argo-rollouts", User: "bob", Namespaces: []gate.Glob{"shop"}, Kinds: []string{"ReplicaSet"}, Names: []gate.Glob{"w-*"}, Categories: []projection.Category{"image", "network"}, Images: []gate.Glob{"a@*"}, Until: date("2027-01-01")},
			{Preset: "argo-rollouts", User: "bob", Namespaces: []gate.Glob{"shop"}, Kinds: []string{"Ingress"}, Names: []gate.Glob{"w-*"}, Categories: []projection.Category{"network"}, Until: date("2027-01-01")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := admission(t, "trustedWriters:\n- {preset: argo-rollouts, namespaces: [shop], acceptImpersonation: true, "+tt.entry+"}\n")
			if d := cmp.Diff(tt.want, a.TrustedWriters); d != "" {
				t.Error(d)
			}
		})
	}
	before, _ := findPreset("argo-rollouts")
	if d := cmp.Diff(podCategories, before.parts[0].categories); d != "" {
		t.Errorf("a policy changed the preset: %s", d)
	}
}

func TestTrustEndsWithItsPlaceAndDay(t *testing.T) {
	a := admission(t, `kinds: [{group: example.com, kind: Widget, path: spec.image, category: x-w}]
trustedWriters:
- {user: bob, namespaces: [shop-*], kinds: [Service, Widget, Route.example.com], names: [a*], categories: [network], until: 2027-01-15}
- {user: eve, namespaces: ['*'], categories: [network]}
- {user: eve, namespaces: ['-'], kinds: [Namespace], categories: [privilege]}
`)
	day := date("2027-01-15")
	w := Write{User: "bob", Kind: "Service", Namespace: "shop-a", Name: "a1", Now: day - 1}
	with := func(change func(*Write)) Write { x := w; change(&x); return x }
	for _, tt := range []struct {
		name string
		w    Write
		want int
	}{
		{"all of it", w, 1},
		{"another user", with(func(w *Write) { w.User = "bobby" }), 0},
		{"another namespace", with(func(w *Write) { w.Namespace = "shop" }), 0},
		{"another name", with(func(w *Write) { w.Name = "b" }), 0},
		{"another kind", with(func(w *Write) { w.Kind = "Pod" }), 0},
		{"a custom resource of that name", with(func(w *Write) { w.Group = "serving.knative.dev" }), 0},
		{"a kind outside the table", with(func(w *Write) { w.Group, w.Kind = "example.com", "Widget" }), 1},
		{"a kind with its group", with(func(w *Write) { w.Group, w.Kind = "example.com", "Route" }), 1},
		{"a kind with another group", with(func(w *Write) { w.Group, w.Kind = "example.org", "Route" }), 0},
		{"the last second", with(func(w *Write) { w.Now = day - 1 }), 1},
		{"the day it ends", with(func(w *Write) { w.Now = day }), 0},
		{"cluster-scoped, trusted everywhere", Write{User: "bob", Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "a"}, 0},
		{"cluster-scoped, by its own entry", Write{User: "eve", Kind: "Namespace", Name: "a"}, 1},
		{"any kind in any namespace", Write{User: "eve", Kind: "Pod", Namespace: "x", Name: "a"}, 1},
	} {
		if got := len(a.Trusted(tt.w)); got != tt.want {
			t.Errorf("%s: got %d writers, want %d", tt.name, got, tt.want)
		}
	}
}

func TestAWriterTakesNothingAwayInCategoriesOfOthers(t *testing.T) {
	w := TrustedWriter{Categories: []projection.Category{projection.Image}}
	hardened, bare := project(t, pod("a", "i:1", solver)), project(t, "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: i}]}}")
	if !w.Allows(projection.Privilege, hardened, nil) {
		t.Error("values that only tighten cannot be created")
	}
	if w.Allows(projection.Privilege, bare, hardened) {
		t.Error("values that tighten can be taken away")
	}
	if w.Allows(projection.Image, nil, nil) || w.Allows(projection.Image, &projection.Projection{}, nil) {
		t.Error("an object that was not projected passes")
	}
}

// The table of docs/policy.md is what the presets are.
func TestPresetsAreDocumentedAsTheyAre(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := func(globs []gate.Glob) string {
		var out []string
		for _, g := range globs {
			out = append(out, "`"+strings.TrimRight(string(g), ":@*")+"`")
		}
		return strings.Join(slices.Compact(out), ", ")
	}
	for _, p := range presets {
		user := "the driver's: give `user`"
		if p.user != "" {
			user = "`" + strings.TrimPrefix(p.user, serviceAccountUser) + "`"
		}
		var parts []string
		for _, x := range p.parts {
			part := strings.Join(x.kinds, ", ")
			for i, g := range x.names {
				part += strings.Repeat(",", min(i, 1)) + " `" + string(g) + "`"
			}
			if len(x.images) > 0 {
				part += ", of " + code(x.images)
			}
			what := "all of a pod spec"
			if !slices.Equal(x.categories, podCategories) {
				what = strings.ReplaceAll(strings.Trim(fmt.Sprint(x.categories), "[]"), " ", ", ")
			}
			parts = append(parts, part+": "+what)
		}
		row := "| `" + p.name + "` | " + user + " | " + strings.Join(parts, "<br>") + " |"
		if p.name == "velero" {
			row = "| `velero` | " + user + " | everything but `admission`, and only with `until` |"
			if d := cmp.Diff(len(projection.Categories())-1, len(p.parts[0].categories)); d != "" || p.parts[0].kinds != nil || !p.until {
				t.Errorf("velero is another than it is documented: %s", d)
			}
		}
		if !strings.Contains(string(text), row+"\n") {
			t.Errorf("docs/policy.md does not have the row\n%s", row)
		}
	}
	_, example, _ := strings.Cut(string(text), "```yaml\ntrustedWriters:")
	example, _, _ = strings.Cut(example, "```")
	if got, want := len(admission(t, "trustedWriters:"+example).TrustedWriters), 5; got != want {
		t.Errorf("got %d writers of the documented example, want %d", got, want)
	}
}
