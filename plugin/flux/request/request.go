// Package request reads what a Flux Kustomization of a cluster asks of the gate
// (package hook): in which mode, and what is wrong with how it asks. The
// controller goes by it, and the doctor tells by it what the controller sees.
package request

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/settings"
)

// Request is what a Kustomization asks. The zero value asks nothing.
type Request struct {
	Mode  application.Mode
	Own   string             // name of the ConfigMap or ExternalArtifact; "" if there can be none
	Says  application.Source // empty if it could not be read
	Wrong *app.Refusal       // why it cannot be gated as it asks; nil if it can
}

// Read tells how a Kustomization (decoded JSON, numbers of any Go type) is gated;
// fluxNamespace is the one whose Kustomizations policy calls by their bare names.
// One that asks for it and has what cannot be honoured is not ungated: it is
// wrong.
func Read(object map[string]any, fluxNamespace string) Request {
	u := unstructured.Unstructured{Object: object}
	r := Request{}
	r.Own, _ = hook.Name(u.GetName()) // an error is in that of FromObject
	says, err := application.FromObject(object)
	if err == nil {
		r.Says, r.Mode = says, says.Flux().Mode
		r.Says.App.Name = settings.Key(fluxNamespace, u.GetNamespace(), u.GetName())
	} else if r.Mode = r.asks(object); r.Mode != application.Plain {
		r.refuse(gate.RenderFailed, "%v", err)
	}
	_, annotated := u.GetAnnotations()[hook.SourceAnnotation]
	if force, _, _ := unstructured.NestedBool(object, "spec", "force"); force && r.Mode != application.Plain {
		r.refuse(gate.ForceNotAllowed, "spec.force would delete objects before a change of them is refused: remove it")
	}
	switch {
	case annotated && r.Mode == application.Plain:
		r.Mode = application.Artifact
		r.refuse(gate.PolicyInvalid, "the annotation %s is there, and spec.sourceRef is not the ExternalArtifact %s of this namespace: the gate is not in the path", hook.SourceAnnotation, r.Own)
	case annotated && r.Mode == application.PostBuild:
		r.refuse(gate.PolicyInvalid, "the annotation %s is for artifact mode; in postBuild mode spec.sourceRef says it", hook.SourceAnnotation)
	}
	return r
}

func (r *Request) refuse(reason gate.Reason, format string, args ...any) {
	r.Wrong = app.Refuse(reason, format, args...)
	r.Wrong.Sentence.Fix = "change the Kustomization (docs/flux.md)"
}

// asks finds the gate's name in a Kustomization that cannot be read otherwise.
func (r *Request) asks(object map[string]any) application.Mode {
	kind, _, _ := unstructured.NestedString(object, "spec", "sourceRef", "kind")
	name, _, _ := unstructured.NestedString(object, "spec", "sourceRef", "name")
	if r.Own == "" {
		return application.Plain
	}
	if kind == sourcev1.ExternalArtifactKind && name == r.Own {
		return application.Artifact
	}
	list, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "postBuild", "substituteFrom")
	items, _ := list.([]any)
	for _, x := range items {
		if m, _ := x.(map[string]any); m["kind"] == "ConfigMap" && m["name"] == r.Own {
			return application.PostBuild
		}
	}
	return application.Plain
}
