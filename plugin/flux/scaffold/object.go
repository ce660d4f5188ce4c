package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/pin"
)

// other is a variable of Flux.
var other = regexp.MustCompile(`\$\{[^}]*\}`)

const (
	fluxGroup = "kustomize.toolkit.fluxcd.io/"
	helmGroup = "helm.toolkit.fluxcd.io/"
)

// object edits one document.
func (w *writer) object(f File, n *yaml.RNode) (bool, error) {
	file := f.Name
	switch {
	case isFlux(n):
		did, err := w.flux(file, n)
		if err != nil || !w.children[f.Path] {
			return did, err
		}
		stamped, err := w.receipts("Kustomization "+n.GetName(), n)
		return did || stamped, err
	case n.GetKind() == "HelmRelease" && strings.HasPrefix(n.GetApiVersion(), helmGroup):
		did, err := w.helm(file, n)
		if err != nil {
			return false, err
		}
		stamped, err := w.receipts("HelmRelease "+n.GetName(), n)
		return did || stamped, err
	case n.GetKind() == "" || n.GetApiVersion() == "" || n.GetName() == "":
		return false, nil // a patch, a values file
	}
	var tree map[string]any
	data, err := n.MarshalJSON()
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, &tree); err != nil {
		return false, err
	}
	what := n.GetKind() + " " + n.GetName()
	if ns := n.GetNamespace(); ns != "" {
		what = n.GetKind() + " " + ns + " " + n.GetName()
	}
	changed, err := w.pins(file, what, n, tree)
	if err != nil {
		return false, err
	}
	p, err := w.options.Projector.Project(tree)
	if err != nil {
		w.note(file, "%s %q: %v", n.GetKind(), n.GetName(), err)
		return changed, nil
	}
	if !p.Gated() {
		return changed, nil
	}
	did, err := w.receipts(what, n)
	return changed || did, err
}

// pins puts a placeholder behind each image without a digest.
func (w *writer) pins(file, what string, n *yaml.RNode, tree map[string]any) (bool, error) {
	edited := map[string]string{} // what stands in the document -> what shall
	err := w.options.Projector.EachImage(tree, func(at, ref string) (string, error) {
		if strings.Contains(ref, "@") {
			return ref, nil
		}
		// What other variables become is known to Flux alone.
		r, err := pin.Parse(other.ReplaceAllString(ref, "x"))
		if err != nil {
			w.note(file, "%s: %s gets no placeholder: %v", what, at, err)
			return ref, nil
		}
		if w.images[r.Name()] {
			return ref, nil
		}
		name := w.name(hook.PinPrefix, what+" "+container(at))
		edited[at] = ref + "@" + hook.Placeholder(name)
		return edited[at], nil
	})
	if err != nil || len(edited) == 0 {
		return false, err
	}
	return true, follow(n.YNode(), tree)
}

// container is what names an image in its path: spec.containers[web].image.
func container(at string) string {
	if i := strings.LastIndexByte(at, '['); i >= 0 {
		name, _, _ := strings.Cut(at[i+1:], "]")
		return name
	}
	return at
}

// follow changes the texts of a document to those of a tree of the same shape.
func follow(n *yaml.Node, tree any) error {
	switch v := tree.(type) {
	case map[string]any:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if x, ok := v[n.Content[i].Value]; ok {
				if err := follow(n.Content[i+1], x); err != nil {
					return err
				}
			}
		}
	case []any:
		if n.Kind != yaml.SequenceNode || len(n.Content) != len(v) {
			return nil
		}
		for i := range v {
			if err := follow(n.Content[i], v[i]); err != nil {
				return err
			}
		}
	case string:
		if n.Kind == yaml.AliasNode {
			if n.Alias.Value != v {
				return fmt.Errorf("line %d: an image is an alias of another text: write it out", n.Line)
			}
			return nil
		}
		if n.Kind == yaml.ScalarNode && strings.HasPrefix(v, n.Value+"@"+"${"+hook.PinPrefix) {
			n.Value = v
		}
	}
	return nil
}

// receipts puts the placeholder for receipts on an object, and on the Jobs of a
// CronJob.
func (w *writer) receipts(what string, n *yaml.RNode) (bool, error) {
	if _, there := n.GetAnnotations()[w.options.Annotation]; there {
		return false, nil
	}
	value := hook.Placeholder(w.name(hook.ReceiptPrefix, what))
	if err := n.PipeE(yaml.SetAnnotation(w.options.Annotation, value)); err != nil {
		return false, err
	}
	if n.GetKind() != "CronJob" || !strings.HasPrefix(n.GetApiVersion(), "batch/") {
		return true, nil
	}
	err := n.PipeE(yaml.LookupCreate(yaml.MappingNode, "spec", "jobTemplate", "metadata", "annotations"),
		yaml.SetField(w.options.Annotation, yaml.NewStringRNode(value)))
	return true, err
}

// flux adds the gate's ConfigMap to a Kustomization, as the last one.
func (w *writer) flux(file string, n *yaml.RNode) (bool, error) {
	own, err := hook.Name(n.GetName())
	if err != nil {
		return false, err
	}
	if inArtifactMode(n) {
		w.note(file, "Kustomization %q is in artifact mode, which needs nothing", n.GetName())
		return false, nil
	}
	if images, err := n.Pipe(yaml.Lookup("spec", "images")); err == nil && images != nil {
		w.note(file, "Kustomization %q: spec.images does not find an image that has a placeholder: move its entries to the kustomization.yaml, and run this for that", n.GetName())
	}
	list, err := n.Pipe(yaml.LookupCreate(yaml.SequenceNode, "spec", "postBuild", "substituteFrom"))
	if err != nil {
		return false, err
	}
	entries, err := list.Elements()
	if err != nil {
		return false, err
	}
	for i, e := range entries {
		name, kind := e.Field("name"), e.Field("kind")
		if name == nil || kind == nil || name.Value.YNode().Value != own || kind.Value.YNode().Value != "ConfigMap" {
			continue
		}
		if i != len(entries)-1 || e.Field("optional") != nil {
			w.note(file, "Kustomization %q: the ConfigMap %s must be the last one under substituteFrom, and not optional", n.GetName(), own)
		}
		return false, nil
	}
	entry, err := yaml.Parse("kind: ConfigMap\nname: " + own + "\n")
	if err != nil {
		return false, err
	}
	return true, list.PipeE(yaml.Append(entry.YNode()))
}
