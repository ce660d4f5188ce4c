package controller

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/request"
)

// subject is a Kustomization, as the gate reads it.
type subject struct {
	*unstructured.Unstructured
	mode  application.Mode
	own   string // name of the ConfigMap or ExternalArtifact; "" if there can be none
	says  application.Source
	wrong *app.Refusal // why it cannot be gated as it asks; nil if it can
}

// read tells how a Kustomization is gated.
func read(u *unstructured.Unstructured, fluxNamespace string) subject {
	r := request.Read(u.Object, fluxNamespace)
	return subject{Unstructured: u, mode: r.Mode, own: r.Own, says: r.Says, wrong: r.Wrong}
}

// source is what the Kustomization is built from; empty if it is wrong.
func (s subject) source() application.Reference {
	if s.says.Flux() == nil {
		return application.Reference{}
	}
	return s.says.Flux().Source
}

// variables are what its variables come from, but for the gate's own ConfigMap.
func (s subject) variables() []application.Reference {
	if s.says.Flux() == nil {
		return nil
	}
	return s.says.Flux().Variables
}

// sourceKinds are what the gate can build from.
var sourceKinds = []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind, sourcev1.ExternalArtifactKind}

// indexed is a source in an index.
func indexed(r application.Reference) string {
	return fmt.Sprintf("%s/%s/%s", r.Kind, r.Namespace, r.Name)
}
