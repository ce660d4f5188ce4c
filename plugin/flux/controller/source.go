package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/gate"
)

// foreign refuses a source of another namespace, which is somebody else's to
// show: nothing of it may get into an artifact or a message here.
func foreign(s subject) *app.Refusal {
	r := app.Refuse(gate.PolicyInvalid, "the source %s is in another namespace than the Kustomization, and the gate has --no-cross-namespace-refs=true", indexed(s.source()))
	r.Sentence.Fix = "name a source of the namespace " + s.GetNamespace() + "; or, if kustomize-controller is without --no-cross-namespace-refs, set it to false for the gate"
	return r
}

// errNotReady is why there is nothing to judge: the source is not there, or has
// no artifact yet.
var errNotReady = errors.New("the source has no artifact")

// newSource is an empty source of a kind.
func newSource(kind string) sourceObject {
	switch kind {
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	case sourcev1.BucketKind:
		return &sourcev1.Bucket{}
	case sourcev1.ExternalArtifactKind:
		return &sourcev1.ExternalArtifact{}
	}
	return nil
}

// sourceObject is a source with an artifact.
type sourceObject interface {
	client.Object
	sourcev1.Source
}

// artifactOf reads a source. Like kustomize-controller it does not look at its
// conditions: what is in the status is what would be built.
func (r *Reconciler) artifactOf(ctx context.Context, s application.Reference) (*meta.Artifact, error) {
	object := newSource(s.Kind)
	if object == nil {
		return nil, fmt.Errorf("%w: %.80q is no kind of source", errNotReady, s.Kind)
	}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: there is no %s", errNotReady, indexed(s))
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", indexed(s), err)
	}
	a := object.GetArtifact()
	if a == nil || a.Digest == "" {
		return nil, fmt.Errorf("%w: %s", errNotReady, indexed(s))
	}
	return a, nil
}

// originKey is the name under which an artifact says of what revision it was
// made; kustomize-controller shows it as lastAppliedOriginRevision.
const originKey = "org.opencontainers.image.revision"

// origin is the revision of a source that means something to a person.
func origin(a *meta.Artifact) string {
	if o := a.Metadata[originKey]; o != "" {
		return o
	}
	return a.Revision
}
