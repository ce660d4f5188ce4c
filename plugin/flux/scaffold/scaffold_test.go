package scaffold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/flux/scaffold"
	"github.com/syncgate/syncgate/plugin/policy"
)

// deployment is one, with an image for each container.
func deployment(name string, images ...string) string {
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\nspec:\n  template:\n    spec:\n      containers:\n"
	for i, image := range images {
		text += fmt.Sprintf("      - name: c%d\n        image: %s\n", i, image)
	}
	return text
}

func run(t *testing.T, texts ...string) ([]string, []string) {
	t.Helper()
	e := policy.Defaults("prod")
	var files []scaffold.File
	for i, text := range texts {
		name := fmt.Sprintf("%d.yaml", i)
		if strings.HasPrefix(text, "resources:") {
			name = "kustomization.yaml"
		}
		files = append(files, scaffold.File{Name: name, Text: []byte(text)})
	}
	r, err := scaffold.Write(files, scaffold.Options{Projector: e.Projector, Annotation: e.Annotation})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range r.Files {
		out = append(out, string(f.Text))
	}
	return out, r.Notes
}

func TestPlaceholdersAreNamedOnce(t *testing.T) {
	pinned := "web@sha256:" + strings.Repeat("a", 64)
	out, notes := run(t,
		deployment("web", "web:1", "side:${tag}", pinned, "ko://x", "mine:1@${syncgate_pin_deployment_other_c0}"),
		deployment("WEB.x", "web:1")+"---\n"+deployment("web-x", "web:2"),
		deployment("other", "web:1"),
	)
	all := strings.Join(out, "")
	for _, want := range []string{
		"image: web:1@${syncgate_pin_deployment_web_c0}\n", "image: side:${tag}@${syncgate_pin_deployment_web_c1}\n", "image: " + pinned + "\n", "image: ko://x\n",
		"image: web:1@${syncgate_pin_deployment_web_x_c0}\n", "image: web:2@${syncgate_pin_deployment_web_x_c0_2}\n",
		"image: web:1@${syncgate_pin_deployment_other_c0_2}\n", // somebody has that name already
		"syncgate.io/receipt: '${syncgate_receipt_deployment_web}'\n", "'${syncgate_receipt_deployment_web_x}'\n", "'${syncgate_receipt_deployment_web_x_2}'\n",
	} {
		if strings.Count(all, want) != 1 {
			t.Errorf("got %s, want once %q", all, want)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "0.yaml: Deployment web: spec.template.spec.containers[c3].image gets no placeholder") {
		t.Errorf("got notes %q", notes)
	}
	again, _ := run(t, out...)
	if strings.Join(again, "") != all {
		t.Errorf("a second run changed %s", again)
	}
}

func TestWhatStaysAsItIs(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata:   {name: c}\ndata: {image: \"web:1\"}\n",
		"# values\nimage: web:1\n",
		"- op: add\n  path: /x\n",
		"",
		"resources: [a]\nimages:\n- name: web\n  newTag: '1'\n  digest:   sha256:x\n",
	} {
		if out, _ := run(t, text); out[0] != text {
			t.Errorf("got %q, want %q", out[0], text)
		}
	}
}

// kustomize does not find an image that has a placeholder, so that the entry of
// a kustomization gets it.
func TestImagesThatAKustomizationSets(t *testing.T) {
	out, notes := run(t, deployment("web", "web:1", "web/other:1"), "resources: [0.yaml]\nimages:\n- name: web\n  newTag: '2'\n- name: web/other\n  newName: x\n")
	if !strings.Contains(out[0], "image: web:1\n") || !strings.Contains(out[0], "image: web/other:1@${syncgate_pin_") || !strings.Contains(out[1], "digest: ${syncgate_pin_image_web}\n") {
		t.Errorf("got %s", out)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], `"web/other" sets no newTag`) {
		t.Errorf("got notes %q", notes)
	}
}

func TestAKustomizationThatWouldBeOverruled(t *testing.T) {
	head := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\nspec:\n"
	for spec, want := range map[string]string{
		"  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-shop}, {kind: Secret, name: s}]}\n": "must be the last one",
		"  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-shop, optional: true}]}\n":          "not optional",
		"  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-shop}\n":                                       "is in artifact mode",
	} {
		out, notes := run(t, head+spec)
		if out[0] != head+spec || len(notes) != 1 || !strings.Contains(notes[0], want) {
			t.Errorf("%s: got %s, notes %q", spec, out[0], notes)
		}
	}
	out, notes := run(t, head+"  images: [{name: web, newTag: '2'}]\n  postBuild: {substituteFrom: [{kind: Secret, name: s}]}\n")
	if !strings.Contains(out[0], "{kind: Secret, name: s}, {kind: ConfigMap, name: syncgate-flux-shop}") && !strings.Contains(out[0], "name: syncgate-flux-shop") || len(notes) != 1 || !strings.Contains(notes[0], "spec.images does not find") {
		t.Errorf("got %s, notes %q", out[0], notes)
	}
}
