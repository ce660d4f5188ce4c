package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
)

func TestCase021PortIsNeverTakenForATag(t *testing.T) {
	for _, tc := range []struct{ name, image, lookup, want string }{
		{"port and digest, no tag", "host.example:5000/app@" + sha("a"), "", "host.example:5000/app@" + sha("a")},
		{"port and nothing else", "localhost:5000/app", "localhost:5000/app:latest", "localhost:5000/app@" + sha("b")},
		{"port and tag", "localhost:5000/app:1.2", "localhost:5000/app:1.2", "localhost:5000/app:1.2@" + sha("b")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "images: {pins: Registry}\n")
			a := answers{t, map[string]string{}}
			if tc.lookup != "" {
				a.digests[tc.lookup] = sha("b")
			}
			s.registry = a
			s.write("all.yaml", webOf(tc.image, "", ""))
			if got := s.output(); !strings.Contains(got, `"`+tc.want+`"`) {
				t.Errorf("got %s, want image %q", got, tc.want)
			}
		})
	}
}

func TestCase023ADigestInPlaceOfATagIsRefusedWithAHint(t *testing.T) {
	s := newSite(t, "images: {pins: Registry}\n")
	s.registry = answers{t: t} // and never resolved as tag "sha256"
	s.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n")
	s.write("values.yaml", "image: {repository: ghcr.io/acme/web, tag: '"+sha("a")+"'}\n")
	s.write("templates/web.yaml", strings.TrimSuffix(workload(`containers: [{name: web, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"}]`), "---\n"))
	s.refused(gate.ImageNotPinned, "ghcr.io/acme/web:sha256:aaaa", "@")
	s.write("values.yaml", "image: {repository: ghcr.io/acme/web, tag: '1.5@"+sha("a")+"'}\n")
	s.signed("release")
	s.allowed()
}

func TestCase025TheTextOfTheTagIsSignedToo(t *testing.T) {
	s := newSite(t, "")
	s.write("../base/web.yaml", webOf("ghcr.io/acme/web", "", ""))
	s.write("../base/kustomization.yaml", "resources: [web.yaml]\n")
	overlay := func(tag string) string {
		return "resources: [../base]\nimages: [{name: ghcr.io/acme/web, newTag: '" + tag + "', digest: '" + sha("a") + "'}]\n"
	}
	s.write("kustomization.yaml", overlay("1.5"))
	if got, want := s.output(), webImage("1.5", "a"); !strings.Contains(got, want) {
		t.Fatalf("got %s, want kustomize to write both, %q", got, want)
	}
	s.signed("release")
	s.allowed()
	s.write("kustomization.yaml", overlay("1.6"))
	s.refused(gate.DigestMismatch, "containers[web].image is ghcr.io/acme/web:1.6@sha256:aaaa", "was signed for another image")
}

// kustomize matches an entry whose name holds a tag with the very same text
// and nothing else, so that the next bump of the tag drops the pin silently.
func TestCase027AnImagesEntryNamedWithATagIsSaidToMatchNextToNothing(t *testing.T) {
	for _, tc := range []struct{ name, image, want string }{
		{"the same text", "ghcr.io/acme/web:1.0", "ghcr.io/acme/web@" + sha("f")},
		{"the next tag", "ghcr.io/acme/web:1.1", "ghcr.io/acme/web:1.1@" + sha("a")}, // from its own reference
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("web.yaml", webOf(tc.image, "", ""))
			s.write("kustomization.yaml", "resources: [web.yaml]\nimages: [{name: 'ghcr.io/acme/web:1.0', digest: '"+sha("f")+"'}]\n")
			s.pin("ghcr.io/acme/web", "1.1", sha("a"))
			want := []string{`app/kustomization.yaml: images entry "ghcr.io/acme/web:1.0": a name with a tag or digest matches, if anything, only images written exactly so; give the name alone`}
			if diff := cmp.Diff(want, s.build().Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if got := s.output(); !strings.Contains(got, `"`+tc.want+`"`) {
				t.Errorf("got %s, want image %q", got, tc.want)
			}
		})
	}
}

func TestCase031AnImageVolumeIsPinnedAndGatedLikeAContainer(t *testing.T) {
	s := newSite(t, "")
	volume := func(ref string) string {
		return web("volumes: [{name: m, image: {reference: '"+ref+"'}}]", "volumeMounts: [{name: m, mountPath: /m}]")
	}
	s.write("all.yaml", volume("quay.example/model:v1"))
	s.refused(gate.ImageNotPinned, "volumes[m].image.reference is quay.example/model:v1")
	s.pin("quay.example/model", "v1", sha("1"))
	s.pin("quay.example/model", "v2", sha("2"))
	s.refused(gate.ReceiptMissing, "image")
	s.signed("release")
	s.allowed()
	if got, want := s.output(), "quay.example/model:v1@"+sha("1"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %q in it", got, want)
	}
	s.write("all.yaml", volume("quay.example/model:v2"))
	s.refused(gate.DigestMismatch, "volumes[m].image.reference is quay.example/model:v2@sha256:22222")
}

func TestCase033AnInitContainerIsJudgedLikeAnyOther(t *testing.T) {
	for name, more := range map[string]string{"init container": "", "native sidecar": ", restartPolicy: Always"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", web("", ""))
			s.signed("release")
			s.write("all.yaml", web(`initContainers: [{name: setup, image: "evil.example/x:1@`+sha("e")+`"`+more+`}]`, ""))
			s.refused(gate.DigestMismatch, "initContainers[setup].image is evil.example/x:1@sha256:eeeee")
		})
	}
}

func TestCase035TheWordThatAnInjectorReplacesIsNeverLookedUp(t *testing.T) {
	gateway := workload("containers: [{name: istio-proxy, image: auto}]")
	t.Run("declared", func(t *testing.T) {
		s := newSite(t, "images: {pins: Registry, allowUnpinned: [auto]}\n")
		s.registry = answers{t: t}
		s.write("all.yaml", gateway)
		s.signed("release")
		s.allowed()
		if got := s.output(); !strings.Contains(got, `"image":"auto"`) {
			t.Errorf("got %s, want the placeholder as it is", got)
		}
	})
	t.Run("not declared", func(t *testing.T) {
		s := newSite(t, "images: {pins: Registry}\n")
		s.registry = answers{t: t}
		s.write("all.yaml", gateway)
		s.refused(gate.ImageNotPinned, "containers[istio-proxy].image is auto", "images.allowUnpinned")
	})
	t.Run("as injected, in a Pod that a person creates", func(t *testing.T) {
		s := newSite(t, "images: {allowUnpinned: [auto]}\n")
		s.write("all.yaml", object("v1", "Pod", "name: gw, namespace: shop", `spec: {containers: [{name: istio-proxy, image: "docker.io/istio/proxyv2:1.2@`+sha("c")+`"}]}`))
		s.refused(gate.ReceiptMissing, "Pod shop/gw", "image (spec.containers[istio-proxy].image)")
	})
}

func TestCase037PodTemplatesOfCustomKindsAreFoundWhereverTheyStand(t *testing.T) {
	const template = `template: {spec: {containers: [{name: web, image: "ghcr.io/acme/web:1.5"}]}}`
	for _, tc := range []struct{ name, manifest, path string }{
		{"a Rollout with its own template", object("argoproj.io/v1alpha1", "Rollout", "name: web, namespace: shop", "spec: {"+template+"}"), "containers[web].image"},
		{"an unknown kind, three levels down", object("acme.example/v1", "Fleet", "name: web, namespace: shop", "spec: {regions: {eu: {"+template+"}}}"), "spec.regions.eu.template.spec.containers[web].image"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", tc.manifest)
			s.refused(gate.ImageNotPinned, tc.path+" is ghcr.io/acme/web:1.5")
			s.pin("ghcr.io/acme/web", "1.5", sha("a"))
			s.refused(gate.ReceiptMissing, "image")
			s.signed("release")
			s.allowed()
			s.pin("ghcr.io/acme/web", "1.5", sha("b"))
			s.refused(gate.DigestMismatch, tc.path)
		})
	}
	t.Run("a Rollout that refers to a Deployment leaves the image to it", func(t *testing.T) {
		s := newSite(t, "")
		s.write("all.yaml", object("argoproj.io/v1alpha1", "Rollout", "name: web, namespace: shop", "spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}")+
			object("apps/v1", "Deployment", "name: web, namespace: shop", `spec: {replicas: 0, `+template+`}`))
		s.pin("ghcr.io/acme/web", "1.5", sha("a"))
		s.refused(gate.ReceiptMissing, "1 of 1 gated objects: Deployment shop/web")
	})
	t.Run("an image that is in no container is refused where policy says so", func(t *testing.T) {
		operator := object("acme.example/v1", "Broker", "name: b, namespace: shop", `spec: {brokerImage: "ghcr.io/acme/broker:1"}`)
		s := newSite(t, "unknownImages: Refuse\n")
		s.write("all.yaml", operator)
		s.refused(gate.UnknownImage, "spec.brokerImage")
		s = newSite(t, "")
		s.write("all.yaml", operator)
		if diff := cmp.Diff(1, len(s.build().Warnings)); diff != "" {
			t.Errorf("warnings (-want +got):\n%s\n%q", diff, s.build().Warnings)
		}
	})
}

func TestCase039AnImageInAnArgumentIsACommandThatMustBeSigned(t *testing.T) {
	s := newSite(t, "")
	args := func(shell string) string { return web("", `args: ["-shell-image", "`+shell+`"]`) }
	s.write("all.yaml", args("busybox:1.36"))
	s.signed("release")
	s.allowed()
	s.write("all.yaml", args("busybox:latest"))
	s.refused(gate.DigestMismatch, "containers[web].args is changed")
}

func TestCase041ABundleIsGatedWherePolicyNamesIt(t *testing.T) {
	s := newSite(t, "kinds:\n- {group: tekton.dev, kind: TaskRun, path: spec.taskRef.bundle, category: x-bundles, pin: true}\n")
	run := func(tag string) string {
		return object("tekton.dev/v1beta1", "TaskRun", "name: build, namespace: shop", "spec: {taskRef: {name: build, bundle: 'registry.example/tasks:"+tag+"'}}")
	}
	s.write("all.yaml", run("1"))
	s.refused(gate.ImageNotPinned, "spec.taskRef.bundle is registry.example/tasks:1")
	s.pin("registry.example/tasks", "1", sha("1"))
	s.pin("registry.example/tasks", "2", sha("2"))
	s.refused(gate.ReceiptMissing, "x-bundles")
	s.signed("release")
	s.allowed()
	s.write("all.yaml", run("2"))
	s.refused(gate.DigestMismatch, "spec.taskRef.bundle")
}
