package controller

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/settings"
)

// subject is a Kustomization, as the gate reads it.
type subject struct {
	*unstructured.Unstructured
	mode  application.Mode
	own   string // name of the ConfigMap or ExternalArtifact; "" if there can be none
	says  application.Source
	wrong *app.Refusal // why it cannot be gated as it asks; nil if it can
}

// read tells how a Kustomization is gated. One that asks for it and has what
// cannot be honoured is not ungated: it is wrong.
func read(u *unstructured.Unstructured, fluxNamespace string) subject {
	s := subject{Unstructured: u}
	s.own, _ = hook.Name(u.GetName()) // an error is in that of FromObject
	var err error
	if s.says, err = application.FromObject(u.Object); err == nil {
		s.mode = s.says.Flux().Mode
		s.says.App.Name = settings.Key(fluxNamespace, u.GetNamespace(), u.GetName())
	} else if s.mode = s.asks(); s.mode != application.Plain {
		s.refuse(gate.RenderFailed, "%v", err)
	}
	_, annotated := u.GetAnnotations()[hook.SourceAnnotation]
	if force, _, _ := unstructured.NestedBool(u.Object, "spec", "force"); force && s.mode != application.Plain {
		s.refuse(gate.ForceNotAllowed, "spec.force would delete objects before a change of them is refused: remove it")
	}
	switch {
	case annotated && s.mode == application.Plain:
		s.mode = application.Artifact
		s.refuse(gate.PolicyInvalid, "the annotation %s is there, and spec.sourceRef is not the ExternalArtifact %s of this namespace: the gate is not in the path", hook.SourceAnnotation, s.own)
	case annotated && s.mode == application.PostBuild:
		s.refuse(gate.PolicyInvalid, "the annotation %s is for artifact mode; in postBuild mode spec.sourceRef says it", hook.SourceAnnotation)
	}
	return s
}

func (s *subject) refuse(reason gate.Reason, format string, args ...any) {
	s.wrong = app.Refuse(reason, format, args...)
	s.wrong.Sentence.Fix = "change the Kustomization (docs/flux.md)"
}

// asks finds the gate's name in a Kustomization that cannot be read otherwise.
func (s *subject) asks() application.Mode {
	kind, _, _ := unstructured.NestedString(s.Object, "spec", "sourceRef", "kind")
	name, _, _ := unstructured.NestedString(s.Object, "spec", "sourceRef", "name")
	if s.own == "" {
		return application.Plain
	}
	if kind == sourcev1.ExternalArtifactKind && name == s.own {
		return application.Artifact
	}
	list, _, _ := unstructured.NestedSlice(s.Object, "spec", "postBuild", "substituteFrom")
	for _, x := range list {
		if m, _ := x.(map[string]any); m["kind"] == "ConfigMap" && m["name"] == s.own {
			return application.PostBuild
		}
	}
	return application.Plain
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
