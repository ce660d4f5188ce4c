package gate

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// The annotations, the second one also as a label, by which a tool is told to
// delete and create an object where it would otherwise update it.
const (
	ArgoSyncOptions = "argocd.argoproj.io/sync-options"
	FluxForce       = "kustomize.toolkit.fluxcd.io/force"
)

// Receipts returns the receipts that an object carries in the annotation key,
// in their order; none if the annotation is not there.
func Receipts(obj map[string]any, key string) ([]string, error) {
	annotations, err := annotations(obj)
	if err != nil {
		return nil, err
	}
	v, ok := annotations[key].(string)
	if !ok && annotations[key] != nil {
		return nil, fmt.Errorf("annotation %s is not a string", key)
	}
	return fields(v), nil
}

// fields is strings.Fields, sooner done with the one long word that most objects
// carry.
func fields(s string) []string {
	if s == "" {
		return nil
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= utf8.RuneSelf {
			return strings.Fields(s)
		}
	}
	return []string{s}
}

func annotations(obj map[string]any) (map[string]any, error) {
	meta, _ := obj["metadata"].(map[string]any)
	m, ok := meta["annotations"].(map[string]any)
	if !ok && meta["annotations"] != nil {
		return nil, errors.New("metadata.annotations is not an object")
	}
	return m, nil
}

// Forced returns what makes Argo CD or Flux delete and create an object instead
// of updating it: an annotation, or a label of Flux, of a gated object other than a Job, or
// spec.force of a Flux Kustomization, which is for every object that it
// applies. Empty: nothing does. (docs/spec/policy.md, ForceNotAllowed: on an
// immutable field the tools delete first, and only then are refused.)
func Forced(s receipt.Subject, obj map[string]any, p *projection.Projection) string {
	if !p.Gated() || s.Group == "batch" && s.Kind == "Job" {
		return ""
	}
	all, _ := annotations(obj)
	options, _ := all[ArgoSyncOptions].(string)
	for _, opt := range strings.Split(options, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(opt), "=")
		if (name == "Force" || name == "Replace") && !strings.EqualFold(strings.TrimSpace(value), "false") {
			return "annotation " + ArgoSyncOptions + ": " + options
		}
	}
	meta, _ := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	for i, m := range []map[string]any{all, labels} { // Flux takes either
		if v, _ := m[FluxForce].(string); v != "" && !strings.EqualFold(v, "disabled") {
			return []string{"annotation ", "label "}[i] + FluxForce + ": " + v
		}
	}
	if s.Group == "kustomize.toolkit.fluxcd.io" && s.Kind == "Kustomization" {
		spec, _ := obj["spec"].(map[string]any)
		if force, there := spec["force"]; there && force != nil && force != false {
			return "spec.force"
		}
	}
	return ""
}
