//go:build e2e

package e2e

// What people type (acceptance line 5 of the webhook): each with the right
// answer, and with a text that says what to do.

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

const kubectlPolicy = "kinds: [{group: argoproj.io, kind: Rollout, path: spec.workloadRef, category: x-rollouts}]\n"

func TestHandTypedKubectlIsAnsweredRightly(t *testing.T) {
	tests := []subtest{
		{name: "a placeholder tag", do: (*gated).typePlaceholder},
		{name: "forged ownerReferences", do: (*gated).forgeOwner},
		{name: "kubectl debug", do: (*gated).debug},
		{name: "create job --from", do: (*gated).jobFromCronJob},
		{name: "a List", do: (*gated).applyList},
		{name: "generateName", do: (*gated).generateNames},
		{name: "server-side apply", do: (*gated).applyServerSide},
		{name: "rollout undo to a receipt that is still good", do: (*gated).undo},
		{name: "a patch of one image", do: (*gated).patchImage},
		{name: "CronJob", do: (*gated).editCronJob},
		{name: "a Rollout, which policy names under kinds", do: (*gated).rollout},
		{name: "an injected sidecar and service-account volume on a bare Pod", do: (*gated).inject},
	}
	newGated(t, func(*gated) string { return kubectlPolicy }, tests).run(t, tests)
}

// one is a workload of one container.
func one(kind, name, image string) string {
	const format = `apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  %s
  selector: {matchLabels: {app: %[2]s}}
  template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: web, image: %[4]q}]}}
`
	more := "replicas: 1"
	switch kind {
	case "StatefulSet":
		more += "\n  serviceName: " + name
	case "DaemonSet":
		more = "minReadySeconds: 0"
	}
	return fmt.Sprintf(format, kind, name, more, image)
}

// barePod is a bare Pod.
func barePod(name, image, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%s containers: [{name: web, image: %q}]}}\n", name, more, image)
}

// written is how a refusal names the user.
func written(user string) string {
	return "; written by " + user + ", who is neither a built-in controller nor a trusted writer"
}

func (g *gated) typePlaceholder() {
	g.refused(g.as(developer, "create", "deployment", "web", "--image=web:REPLACE_ME"), "ImageNotPinned",
		"Deployment %s/web: containers[web].image is web:REPLACE_ME, which has no digest", "[ReceiptMissing] Deployment %s/web: no receipt for image (containers[web].image)")
	g.refused(g.as(developer, "run", "web", "--image=web"), "ImageNotPinned",
		"Pod %s/web: spec.containers[web].image is web, which has no digest"+written(developer))
	g.refused(g.as(developer, "create", "deployment", "web", "--image="+harness.Image("web:1")), "ReceiptMissing",
		"Deployment %s/web: no receipt for image (containers[web].image)")
	// A dry run gets the same answer, and nothing is left behind.
	g.refused(g.as(developer, "create", "deployment", "web", "--image="+harness.Image("web:1"), "--dry-run=server"), "ReceiptMissing")
	if u := g.Get(harness.Deployments, g.ns, "web"); u != nil {
		g.T.Error("the Deployment is there")
	}
}

func (g *gated) forgeOwner() {
	g.deploy(one("Deployment", "web", harness.Image("web:1")))
	var set unstructured.Unstructured
	g.Eventually("the ReplicaSet", func() (string, bool) {
		sets := g.List(harness.ReplicaSets, g.ns, "app=web")
		if len(sets) == 1 {
			set = sets[0]
		}
		return fmt.Sprintf("%d", len(sets)), len(sets) == 1
	})
	forged := func(name, image, annotations string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: web, pod-template-hash: %q}, annotations: {%s},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: %s, controller: true, blockOwnerDeletion: true}]},
  spec: {containers: [{name: web, image: %q}]}}`, name, set.GetLabels()["pod-template-hash"], annotations, set.GetName(), set.GetUID(), image)
	}
	receipt := fmt.Sprintf("syncgate.io/receipt: %q", set.GetAnnotations()["syncgate.io/receipt"])
	for _, c := range []struct{ name, image, annotations, code, text string }{
		{"another image", "evil:1", "", "ReceiptMissing", "no receipt for image (spec.containers[web].image)" + written(developer)},
		{"the owner's image", "web:1", "", "ReceiptMissing", written(developer)},
		{"the owner's receipt", "web:1", receipt, "SubjectMismatch", "is for apps/Deployment/%s/web" + written(developer)},
	} {
		name := strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), "'", "")
		g.refused(g.send(developer, forged(name, harness.Image(c.image), c.annotations), "create", "--filename", "-"), c.code, "Pod %s/"+name+": ", c.text)
	}
}

func (g *gated) debug() {
	g.deploy(barePod("plain", harness.Image("web:1"), ""))
	g.Kubectl(nil, "wait", "--for=condition=Ready", "pod", "--all", "--timeout=120s", "--namespace", g.ns)
	debug := func(pod, image string, more ...string) harness.Result {
		return g.as(deployer, append([]string{"debug", pod, "--image=" + image}, more...)...) // edit may not
	}
	tools := harness.Image("tools:1")
	g.refused(debug("plain", tools, "--container=debugger"), "DigestMismatch",
		"Pod %s/plain: spec.ephemeralContainers[debugger].image is registry.example.test/tools:1@sha256:",
		`spec.ephemeralContainers[debugger].securityContext.capabilities.add is ["SYS_PTRACE"]`, "was signed for something else"+written(deployer))
	g.refused(debug("plain", "busybox", "--container=debugger"), "ImageNotPinned", "Pod %s/plain: spec.ephemeralContainers[debugger].image is busybox, which has no digest"+written(deployer))
	g.refused(debug("plain", tools, "--copy-to=copy", "--container=debugger"), "ReceiptMissing", "Pod %s/copy: no receipt for image (spec.containers[debugger].image and 1 more)", written(deployer))
	g.refused(debug("node/shared", tools), "ReceiptMissing", "Pod %s/node-debugger-shared-", "network (spec.hostNetwork), privilege (", written(deployer))
}

func (g *gated) jobFromCronJob() {
	g.deploy(cronJob("tick", harness.Image("work:1")))
	g.passed(g.as(developer, "create", "job", "now", "--from=cronjob/tick"))
	g.Kubectl(nil, "wait", "--for=condition=Complete", "job/now", "--timeout=120s", "--namespace", g.ns)
	// The same Job with another image, as it is edited on the way.
	text := string(g.Kubectl(nil, "create", "job", "edited", "--from=cronjob/tick", "--dry-run=client", "--output=yaml", "--namespace", g.ns))
	edited := strings.ReplaceAll(text, harness.Image("work:1"), harness.Image("evil:1"))
	g.refused(g.send(developer, edited, "create", "--filename", "-"), "DigestMismatch",
		"Job %s/edited: containers[work].image is registry.example.test/evil:1@", "was signed for another image"+written(developer))
	// Nor does it fit a Job that is another CronJob's, or nobody's.
	for _, edit := range [][2]string{{"name: tick", "name: tock"}, {"controller: true", "controller: false"}} {
		stray := strings.Replace(strings.Replace(text, "name: edited", "name: stray", 1), edit[0], edit[1], 1)
		g.refused(g.send(developer, stray, "create", "--filename", "-"), "SubjectMismatch",
			"Job %s/stray: receipt ", "is for batch/CronJob/%s/tick, which its ownerReferences do not name as its controller"+written(developer))
	}
	g.refused(g.as(developer, "create", "job", "bare", "--image="+harness.Image("work:1")), "ReceiptMissing", "Job %s/bare: no receipt for image", written(developer))
}

func cronJob(name, image string) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s}, spec: {schedule: "0 0 1 1 *",
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: work, image: %q}]}}}}}}`+"\n", name, image)
}

func (g *gated) applyList() {
	signed := g.sign(one("Deployment", "signed", harness.Image("web:1")))
	list := "apiVersion: v1\nkind: List\nitems:\n" + item(one("Deployment", "unsigned", harness.Image("web:1"))) + item(signed)
	g.refused(g.send(developer, list, "apply", "--filename", "-"), "ReceiptMissing", "Deployment %s/unsigned: no receipt for image (containers[web].image)")
	if g.Get(harness.Deployments, g.ns, "unsigned") != nil || g.Get(harness.Deployments, g.ns, "signed") == nil {
		g.T.Error("got another, want the signed Deployment alone")
	}
}

// item indents a document as one of a list.
func item(document string) string {
	lines := strings.Split(strings.TrimSpace(document), "\n")
	return "- " + strings.Join(lines, "\n  ") + "\n"
}

func (g *gated) generateNames() {
	job := func(prefix, image string) string {
		return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {generateName: %s}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: work, image: %q}]}}}}`+"\n", prefix, image)
	}
	signed := g.sign(job("hook-", harness.Image("work:1")))
	for range 2 { // a hook comes again with each sync
		g.passed(g.send(developer, signed, "create", "--filename", "-"))
	}
	if n := len(g.List(harness.Jobs, g.ns, "")); n != 2 {
		g.T.Errorf("Jobs: got %d, want 2", n)
	}
	g.refused(g.send(developer, job("hook-", harness.Image("work:1")), "create", "--filename", "-"), "ReceiptMissing", "Job %s/hook-", written(developer))
	g.refused(g.send(developer, strings.Replace(signed, "generateName: hook-", "generateName: hook-2-", 1), "create", "--filename", "-"), "SubjectMismatch",
		"Job %s/hook-2-", "is for batch/Job/%s/hook-", written(developer))
	g.refused(g.send(developer, strings.Replace(signed, "generateName: hook-", "name: hook-3", 1), "create", "--filename", "-"), "SubjectMismatch", "Job %s/hook-3: ")
	g.refused(g.send(developer, strings.ReplaceAll(signed, harness.Image("work:1"), harness.Image("evil:1")), "create", "--filename", "-"), "DigestMismatch",
		"containers[work].image is registry.example.test/evil:1@", "was signed for another image"+written(developer))
}

func (g *gated) applyServerSide() {
	apply := func(manager, manifest string) harness.Result {
		return g.send(developer, manifest, "apply", "--server-side", "--field-manager="+manager, "--filename", "-")
	}
	unsigned := one("Deployment", "web", harness.Image("web:1"))
	g.refused(apply("ci", unsigned), "ReceiptMissing", "Deployment %s/web: no receipt for image (containers[web].image)")
	g.passed(apply("ci", g.sign(unsigned)))
	// Another manager adds what the first never wrote: the merged object is judged.
	with := func(name, more string) string {
		return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: %s, image: %q}] %s}}}}`, name, harness.Image("evil:1"), more)
	}
	g.refused(apply("other", with("sidecar", "")), "DigestMismatch", "Deployment %s/web: containers[sidecar].image is registry.example.test/evil:1@", "was signed without it")
	g.passed(apply("other", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {team: shop}}, spec: {revisionHistoryLimit: 2}}`))
}

// patchImage changes one of two images.
func (g *gated) patchImage() {
	two := strings.Replace(one("Deployment", "web", harness.Image("web:1")), "containers: [", fmt.Sprintf("containers: [{name: sidecar, image: %q}, ", harness.Image("sidecar:1")), 1)
	g.deploy(two)
	const text = "Deployment %s/web: containers[web].image is registry.example.test/web:2@sha256:"
	for _, args := range [][]string{
		{"set", "image", "deployment/web", "web=" + harness.Image("web:2")},
		{"patch", "deployment/web", "--type=json", "--patch", fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/1/image","value":%q}]`, harness.Image("web:2"))},
		{"patch", "deployment/web", "--patch", fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, harness.Image("web:2"))},
	} {
		refusal := g.refused(g.as(developer, args...), "DigestMismatch", text, "was signed for another image")
		if strings.Contains(refusal, "containers[sidecar]") {
			g.T.Errorf("got %q, which names an image that was not patched", refusal)
		}
	}
	g.refused(g.as(developer, "set", "image", "deployment/web", "sidecar=sidecar:latest"), "ImageNotPinned", "containers[sidecar].image is sidecar:latest, which has no digest")
	g.passed(g.as(developer, "set", "image", "deployment/web", "web="+harness.Image("web:1"))) // what it is
	g.passed(g.as(developer, "set", "resources", "deployment/web", "--limits=cpu=200m"))
}

func (g *gated) editCronJob() {
	tick := cronJob("tick", harness.Image("work:1"))
	g.refused(g.send(developer, tick, "create", "--filename", "-"), "ReceiptMissing", "CronJob %s/tick: no receipt for image (containers[work].image)")
	g.deploy(tick)
	g.passed(g.as(developer, "patch", "cronjob/tick", "--patch", `{"spec":{"schedule":"* * * * *","suspend":true}}`))
	g.refused(g.as(developer, "set", "image", "cronjob/tick", "work="+harness.Image("work:2")), "DigestMismatch",
		"CronJob %s/tick: containers[work].image is registry.example.test/work:2@", "was signed for another image")
	g.refused(g.as(developer, "patch", "cronjob/tick", "--type=json", "--patch", `[{"op":"add","path":"/spec/jobTemplate/spec/template/spec/containers/0/command","value":["sh"]}]`),
		"DigestMismatch", "CronJob %s/tick: containers[work].command is new", "was signed without it")
}
