package projection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodSpecsAreFoundInAnyKind(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"a template like a Deployment's", `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
spec:
 template:
  metadata: {annotations: {vault.hashicorp.com/agent-inject: "true", other: x}}
  spec: {serviceAccountName: s, containers: [{name: a, image: "i:1"}]}`, []string{
			`identity spec.template.spec.containers[a].image#repository = "i"`, `identity spec.template.spec.serviceAccountName = "s"`,
			`image spec.template.spec.containers[a].image = "i:1"`,
			`secret spec.template.metadata.annotations["vault.hashicorp.com/agent-inject"] = "true"`, `secret spec.template.spec.containers[a].image#repository = "i"`}},
		{"containers without names (Knative)", `
apiVersion: serving.knative.dev/v1
kind: Service
spec: {template: {spec: {containers: [{image: i, env: [{name: X, value: q}]}]}}}`, []string{`image spec.template.spec.containers[#0].image = "i"`}},
		{"containers without images (ECK)", `
apiVersion: elasticsearch.k8s.elastic.co/v1
kind: Elasticsearch
spec:
 nodeSets:
 - name: default
   podTemplate: {spec: {initContainers: [{name: sysctl, securityContext: {privileged: true}}]}}`, []string{
			`privilege spec.nodeSets[default].podTemplate.spec.initContainers[sysctl].image#repository = ""`,
			`privilege spec.nodeSets[default].podTemplate.spec.initContainers[sysctl].securityContext.privileged = true`}},
		{"single containers, and the fields of the maps around them (Argo Workflows)", `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
 serviceAccountName: deployer
 podSpecPatch: '{"hostPID": true}'
 volumes: [{name: s, secret: {secretName: s}}]
 templates:
 - {name: main, steps: [[{name: x, template: run}]]}
 - name: run
   securityContext: {runAsUser: 0}
   container: {image: "r/i:1", command: [x], volumeMounts: [{name: s, mountPath: /s}]}
 - name: code
   script: {image: python, source: "print()"}`, []string{
			`command spec.templates[code].script.source = "print()"`, `command spec.templates[run].container.command = ["x"]`,
			`identity spec.serviceAccountName = "deployer"`, `identity spec.templates[code].script.image#repository = "python"`, `identity spec.templates[run].container.image#repository = "r/i"`,
			`image spec.templates[code].script.image = "python"`, `image spec.templates[run].container.image = "r/i:1"`,
			`privilege spec.podSpecPatch = "{\"hostPID\": true}"`, `privilege spec.templates[code].script.image#repository = "python"`,
			`privilege spec.templates[run].container.image#repository = "r/i"`, `privilege spec.templates[run].securityContext.runAsUser = 0`,
			`secret spec.templates[run].container.image#repository = "r/i"`, `secret spec.templates[run].container.volumeMounts["/s"].name = "s"`, `secret spec.volumes[s].secret.secretName = "s"`}},
		{"steps with a script, and the pod template beside them (Tekton)", `
apiVersion: tekton.dev/v1
kind: TaskRun
spec:
 podTemplate: {hostNetwork: true}
 taskSpec:
  stepTemplate: {securityContext: {privileged: true}}
  steps: [{name: a, image: i, script: "echo"}, {name: b, image: j}]
  sidecars: [{image: k}]`, []string{
			`command spec.taskSpec.steps#order = ["a","b"]`, `command spec.taskSpec.steps[a].script = "echo"`,
			`image spec.taskSpec.sidecars[#0].image = "k"`, `image spec.taskSpec.steps[a].image = "i"`, `image spec.taskSpec.steps[b].image = "j"`,
			`network spec.podTemplate.hostNetwork = true`,
			`privilege spec.taskSpec.sidecars[#0].image#repository = "k"`,
			`privilege spec.taskSpec.stepTemplate.image#repository = ""`, `privilege spec.taskSpec.stepTemplate.securityContext.privileged = true`,
			`privilege spec.taskSpec.steps[a].image#repository = "i"`, `privilege spec.taskSpec.steps[b].image#repository = "j"`}},
		{"one list among several that are none", `
apiVersion: example.com/v1
kind: Thing
spec: {a: {containers: [x, y]}, b: {containers: [{name: a, port: 1}]}, c: {containers: [{name: a, image: i}]}}`, []string{`image spec.c.containers[a].image = "i"`}},
		{"a value of another form is a leaf as it stands", `
apiVersion: example.com/v1
kind: Thing
spec: {hostNetwork: "yes", volumes: {a: b}, containers: [{name: a, image: 7, command: run, volumeMounts: x}]}`, []string{
			`command spec.containers[a].command = "run"`, `image spec.containers[a].image = 7`, `network spec.hostNetwork = "yes"`,
			`privilege spec.containers[a].image#repository = ""`, `privilege spec.containers[a].volumeMounts = "x"`, `privilege spec.volumes = {"a":"b"}`}},
		{"an unusual field name is quoted", `{apiVersion: example.com/v1, kind: Thing, "a.b": {containers: [{image: i}]}}`, []string{`image "a.b".containers[#0].image = "i"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := project(t, c.in)
			if diff := cmp.Diff(c.want, leaves(p, true)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(podCategories, p.Applies()); diff != "" {
				t.Errorf("applies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatNeverRunsIsNotSearched(t *testing.T) {
	const spec = `spec: {containers: [{name: a, image: i}]}`
	for _, in := range []string{
		`{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {object: {` + spec + `}}}`,
		`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, ` + spec + `}`,
		`{apiVersion: policies.kyverno.io/v1alpha1, kind: ImageValidatingPolicy, ` + spec + `}`,
		`{apiVersion: templates.gatekeeper.sh/v1, kind: ConstraintTemplate, ` + spec + `}`,
		`{apiVersion: example.com/v1, kind: Thing, metadata: {annotations: {` + spec + `}}}`,
		`{apiVersion: example.com/v1, kind: Thing, status: {` + spec + `}}`,
		`{apiVersion: example.com/v1, kind: Thing, spec: {image: i, steps: [{setWeight: 5}], container: name}}`,
	} {
		p := project(t, in)
		if p.Gated() || len(p.Applies()) > 0 {
			t.Errorf("%s: leaves %q, applies %v", in, leaves(p, true), p.Applies())
		}
	}
}

func TestNotEveryGroupThatEndsInKyvernoIsKyverno(t *testing.T) {
	if !project(t, `{apiVersion: notkyverno.io/v1, kind: Thing, spec: {containers: [{image: i}]}}`).Gated() {
		t.Error("a group that ends in the letters kyverno.io is not searched")
	}
}

// everywhere holds images in all the places that EachImage must visit.
var everywhere = []string{
	deployment("containers: [{name: a, image: x}]\ninitContainers: [{name: a, image: q}]\nephemeralContainers: [{name: a, image: z}]\nvolumes: [{name: v, image: {reference: w}}]"),
	`{apiVersion: tekton.dev/v1, kind: Task, spec: {volumes: [{name: v, image: {reference: w}}], steps: [{image: i}], stepTemplate: {image: j}, sidecars: [{name: s, image: k}]}}`,
	`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {templateDefaults: {container: {image: d}}, templates: [{name: a, container: {image: c}, initContainers: [{name: i, image: b}]}, {name: b, containerSet: {containers: [{name: m, image: e}]}}]}}`,
	`{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: x}]}}}}}}`,
	`{apiVersion: v1, kind: ConfigMap, data: {image: x}}`,
}

func TestEachImageVisitsTheImageLeaves(t *testing.T) {
	for _, in := range everywhere {
		obj := parse(t, in)
		p, err := Project(obj)
		if err != nil {
			t.Fatal(err)
		}
		want, got := []string{}, []string{}
		for _, l := range p.In(Image) {
			want = append(want, l.Path+" "+fmt.Sprint(l.Value))
		}
		err = EachImage(obj, func(path, ref string) (string, error) {
			got = append(got, path+" "+ref)
			return ref + "@sha256:0", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("images (-leaves +visited):\n%s", diff)
		}
		after, err := Project(obj)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range after.In(Image) {
			if s, _ := l.Value.(string); !strings.HasSuffix(s, "@sha256:0") {
				t.Errorf("%s was not replaced", l)
			}
		}
	}
}

func TestEachImageLeavesTheObjectAloneOnAnError(t *testing.T) {
	obj := parse(t, everywhere[0])
	before := digestOf(t, obj)
	errOne, errTwo := errors.New("one"), errors.New("two")
	err := EachImage(obj, func(path, ref string) (string, error) {
		switch ref {
		case "x":
			return "", errOne
		case "z":
			return "", errTwo
		}
		return "changed", nil
	})
	if !errors.Is(err, errOne) || !errors.Is(err, errTwo) {
		t.Errorf("error = %v, want both", err)
	}
	if after := digestOf(t, obj); after != before {
		t.Error("the object was changed")
	}
}

func TestUnknownImagesAreWhatNoContainerHolds(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{`{apiVersion: ceph.rook.io/v1, kind: CephCluster, metadata: {image: m}, status: {image: s}, spec: {cephVersion: {image: i}, other: {initImage: j, imagePullPolicy: Always, image: ""}}}`, []string{"spec.cephVersion.image", "spec.other.initImage"}},
		{`{apiVersion: example.com/v1, kind: Thing, spec: {image: {repository: r, tag: t}, list: [{name: a, image: {repository: r}}, {name: b, baseImage: x}]}}`, []string{"spec.image", "spec.list[b].baseImage"}},
		{`{apiVersion: example.com/v1, kind: Thing, spec: {image: i, containers: [{name: a, image: x}]}}`, []string{"spec.image"}},
		{`{apiVersion: kyverno.io/v1, kind: Policy, spec: {image: i}}`, nil},
		{`{apiVersion: tekton.dev/v1, kind: TaskRun, spec: {taskRef: {name: t, bundle: "ghcr.io/a/b:1"}}}`, []string{"spec.taskRef.bundle"}},
		{`{apiVersion: tekton.dev/v1, kind: TaskRun, spec: {taskRef: {resolver: bundles, params: [{name: kind, value: task}, {name: bundle, value: "ghcr.io/a/b:1"}]}}}`, []string{"spec.taskRef.params[#1].value"}},
		{`{apiVersion: example.com/v1, kind: Thing, spec: {bundle: x}}`, nil},
		{deployment(`image: x`), nil},
	} {
		if diff := cmp.Diff(c.want, UnknownImages(parse(t, c.in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
}
