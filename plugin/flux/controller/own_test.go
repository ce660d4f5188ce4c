package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
)

// TestTheGatesOwnOutputIsNoSource: one that is built from itself, or two from each
// other, would be approved for ever, and nothing of a repository arrive.
func TestTheGatesOwnOutputIsNoSource(t *testing.T) {
	for name, source := range map[string]string{
		"its own":         "ExternalArtifact/syncgate-flux-shop",
		"its own in full": "ExternalArtifact/shop/syncgate-flux-shop",
		"another's":       "ExternalArtifact/syncgate-flux-api",
	} {
		t.Run(name, func(t *testing.T) {
			w := released(t, application.Artifact)
			before := w.handedOver()
			w.annotate(map[string]string{hook.SourceAnnotation: source, hook.PathAnnotation: "./"})
			if _, fetches := w.reconcile(); fetches != 0 {
				t.Errorf("%d fetches", fetches)
			}
			w.is(metav1.ConditionFalse, "RenderFailed", "is what the gate itself publishes: name the GitRepository, OCIRepository or Bucket that has the manifests", "; Fix: change the Kustomization")
			if got := w.handedOver(); got != before {
				t.Errorf("%q is handed over, want %q", got, before)
			}
		})
	}
}
