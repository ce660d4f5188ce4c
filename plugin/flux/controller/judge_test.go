package controller

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
)

// TestWhatKustomizeWouldChangeIsNotPublished: Flux builds once more what the gate
// publishes.
func TestWhatKustomizeWouldChangeIsNotPublished(t *testing.T) {
	const (
		plain = `{"apiVersion":"v1","data":{"a":"\u2028 é \"x\" 1.0","b":"yes"},"kind":"ConfigMap","metadata":{"annotations":{"a":"${x}"},"name":"b","namespace":"shop"}}` + "\n"
		local = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"config.kubernetes.io/local-config":"true"},"name":"a","namespace":"shop"}}` + "\n"
		hash  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"kustomize.config.k8s.io/needs-hash":"true"},"name":"a","namespace":"shop"}}` + "\n"
	)
	for lines, want := range map[string]bool{plain: true, plain + local: false, plain + hash: false} {
		o := outcome{manifests: documents([]byte(lines))}
		err := o.rebuilds(t.Context(), []byte(lines))
		var refusal *app.Refusal
		if (err == nil) != want || err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: got %v, want it to be the same: %v", lines, err, want)
		}
	}
}

// TestWhatCannotBeBuiltComesWithTheNextStep: kustomize's own words name none.
func TestWhatCannotBeBuiltComesWithTheNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       []string
	}{
		"a variable of a shell": {"app/job.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: job}, spec: {containers: [{name: job, command: [sh, -c, 'echo ${HOME}']}]}}\n", []string{`Pod "job": `, `"HOME"; Fix: write $${HOME} if it is for a shell`}},
		"a stray file":          {"app/values.yaml", "a: b\n", []string{"'./values.yaml': missing Resource metadata; Fix: app has no kustomization.yaml"}},
		"no name":               {"app/job.yaml", "{apiVersion: batch/v1, kind: Job, metadata: {generateName: x-}}\n", []string{"'./job.yaml': missing metadata.name in a Job of batch/v1; Fix: give the object a metadata.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := released(t, application.PostBuild)
			w.write("1", map[string]string{c.file: c.text})
			w.push("main@sha1:2")
			w.reconcile()
			w.is(metav1.ConditionFalse, "RenderFailed", append(c.want, "RENDER FAILED [RenderFailed] flux: ")...)
		})
	}
}

// TestAMissingPlaceholderIsPlaced by the object and the file that it is written
// in: which document of a render it is tells nobody anything.
func TestAMissingPlaceholderIsPlaced(t *testing.T) {
	w := released(t, application.PostBuild)
	w.write("1", map[string]string{
		"app/web.yaml":           "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: web\n    image: ghcr.io/acme/web:1\n",
		"app/kustomization.yaml": "resources: [web.yaml]\n",
	})
	w.push("main@sha1:2")
	w.reconcile()
	w.is(metav1.ConditionFalse, "ImageNotPinned", "Pod shop/web: an image has no placeholder for its digest (spec.containers[web].image of app/web.yaml); Fix: run: syncgate flux scaffold")
}
