package policy

import (
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// preset is what a known controller writes in its stock installation
// (docs/policy.md, Trusted writers). Where a policy wants more of it, the entry
// is an ordinary one.
type preset struct {
	name  string
	user  string // empty: it runs as the service account of something else
	parts []part
	until bool // only for a time
	// sources are the custom kinds that say what it writes: whoever may write
	// one of them is trusted with it.
	sources []string
}

// part is what a preset writes with the same names, categories and images.
// Empty kinds, names and images do not limit.
type part struct {
	kinds      []string
	names      []gate.Glob
	categories []projection.Category
	images     []gate.Glob
}

// podCategories are what a pod spec may hold.
var podCategories = []projection.Category{projection.Image, projection.Command, projection.Identity, projection.Secret, projection.Network, projection.Privilege}

// presets, by name. What is not in a stock installation, or on an object of
// somebody else (http01-edit-in-place, an ALB's actions), is not in them.
var presets = []preset{
	{name: "arc", user: "system:serviceaccount:arc-systems:arc-gha-rs-controller", parts: []part{
		{kinds: []string{"Pod"}, names: []gate.Glob{"*-runner-*"}, categories: podCategories},
		// The Pod that listens holds its configuration in a Secret.
		{kinds: []string{"Pod"}, names: []gate.Glob{"*-listener"}, categories: []projection.Category{projection.Image, projection.Command, projection.Identity, projection.Secret},
			images: []gate.Glob{"ghcr.io/actions/gha-runner-scale-set-controller:*", "ghcr.io/actions/gha-runner-scale-set-controller@*"}},
		{kinds: []string{"Role", "RoleBinding"}, names: []gate.Glob{"*-listener"}, categories: []projection.Category{projection.RBAC}},
	}, sources: []string{"AutoscalingRunnerSet.actions.github.com"}},

	{name: "argo-rollouts", user: "system:serviceaccount:argo-rollouts:argo-rollouts", parts: []part{
		{kinds: []string{"ReplicaSet"}, categories: podCategories},
		{kinds: []string{"Service"}, categories: []projection.Category{projection.Service}},
		{kinds: []string{"Ingress"}, names: []gate.Glob{"*-canary"}, categories: []projection.Category{projection.Network}},
	}, sources: []string{"Rollout.argoproj.io", "Experiment.argoproj.io"}},

	{name: "argo-workflows", user: "system:serviceaccount:argo:argo", parts: []part{
		{kinds: []string{"Pod"}, categories: podCategories},
		{kinds: []string{"PersistentVolumeClaim"}, categories: []projection.Category{projection.Secret}},
	}, sources: []string{"Workflow.argoproj.io"}},

	{name: "cert-manager", user: "system:serviceaccount:cert-manager:cert-manager", parts: []part{
		// network: the annotation that keeps a mesh out.
		{kinds: []string{"Pod"}, names: solvers, categories: []projection.Category{projection.Image, projection.Command, projection.Network},
			images: []gate.Glob{"quay.io/jetstack/cert-manager-acmesolver:*", "quay.io/jetstack/cert-manager-acmesolver@*"}},
		{kinds: []string{"Service", "Ingress", "HTTPRoute"}, names: solvers, categories: []projection.Category{projection.Network, projection.Service}},
	}},

	{name: "csi-provisioner", parts: []part{
		{kinds: []string{"PersistentVolume"}, names: []gate.Glob{"pvc-*"}, categories: []projection.Category{projection.Secret}},
	}},

	{name: "flagger", user: "system:serviceaccount:flagger-system:flagger", parts: []part{
		{kinds: []string{"Deployment", "DaemonSet"}, names: []gate.Glob{"*-primary"}, categories: podCategories},
		{kinds: []string{"Service"}, categories: []projection.Category{projection.Service}},
		{kinds: []string{"Ingress"}, names: []gate.Glob{"*-canary"}, categories: []projection.Category{projection.Network}},
		{kinds: []string{"HTTPRoute"}, categories: []projection.Category{projection.Network}},
	}},

	{name: "keda", user: "system:serviceaccount:keda:keda-operator", parts: []part{
		{kinds: []string{"Job"}, categories: podCategories},
	}, sources: []string{"ScaledJob.keda.sh"}},

	{name: "knative", user: "system:serviceaccount:knative-serving:controller", parts: []part{
		{kinds: []string{"Deployment"}, names: []gate.Glob{"*-deployment"}, categories: podCategories},
		{kinds: []string{"Service", "Endpoints"}, categories: []projection.Category{projection.Network, projection.Service}},
	}, sources: []string{"Service.serving.knative.dev", "Configuration.serving.knative.dev", "Revision.serving.knative.dev"}},

	{name: "tekton", user: "system:serviceaccount:tekton-pipelines:tekton-pipelines-controller", parts: []part{
		{kinds: []string{"Pod"}, names: []gate.Glob{"*-pod", "*-pod-retry*"}, categories: podCategories},
		{kinds: []string{"StatefulSet"}, names: []gate.Glob{"affinity-assistant-*"}, categories: podCategories},
		{kinds: []string{"PersistentVolumeClaim"}, names: []gate.Glob{"pvc-*"}, categories: []projection.Category{projection.Secret}},
	}, sources: []string{"TaskRun.tekton.dev", "PipelineRun.tekton.dev"}},

	// A restore writes whatever was backed up.
	{name: "velero", user: "system:serviceaccount:velero:velero", until: true, parts: []part{
		{categories: slices.DeleteFunc(projection.Categories(), func(c projection.Category) bool { return c == projection.Admission })},
	}},
}

var solvers = []gate.Glob{"cm-acme-http-solver-*"}

func findPreset(name string) (preset, bool) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return preset{}, false
	}
	return presets[i], true
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// kinds and categories of all parts; no kinds: any.
func (p preset) kinds() (out []string) {
	for _, x := range p.parts {
		out = append(out, x.kinds...)
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

func (p preset) categories() (out []projection.Category) {
	for _, x := range p.parts {
		out = append(out, x.categories...)
	}
	return slices.Compact(slices.Sorted(slices.Values(out)))
}

// writerWarnings says which trusted writers carry out what others tell them,
// unjudged: an object that the webhook is not shown, or everything in Git.
func writerWarnings(a Admission) []string {
	var out []string
	said := map[string]bool{}
	for _, t := range a.TrustedWriters {
		if applies(t.User) && !said[t.User] {
			said[t.User] = true
			out = append(out, "trusted writer "+t.User+" applies applications: what it writes within its limits is not judged at admission")
		}
		p, _ := findPreset(t.Preset)
		free := slices.DeleteFunc(slices.Clone(p.sources), func(k string) bool { return slices.Contains(a.Kinds, k) })
		if len(free) > 0 && !said[t.Preset] {
			said[t.Preset] = true
			out = append(out, "preset "+t.Preset+" is trusted with what "+strings.Join(free, ", ")+" says: name it in scope.admission.kinds, or whoever may write one runs any image")
		}
	}
	return out
}
