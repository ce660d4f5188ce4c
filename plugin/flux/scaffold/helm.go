package scaffold

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/pin"
)

// PostRenderer is what helm-controller adds to the objects of a chart: digests
// and receipts that are known when it is written. A HelmRelease is rendered
// after Flux has substituted, in a controller that knows no placeholders.
type PostRenderer struct {
	Images  []Image
	Patches []Patch
}

// Image is one of kustomize's images entries.
type Image struct {
	Name   string `yaml:"name"`
	NewTag string `yaml:"newTag,omitempty"`
	Digest string `yaml:"digest"`
}

// Patch is a strategic merge patch of one object.
type Patch struct {
	Patch string `yaml:"patch"`
}

// OfChart makes a post-renderer of a chart as it was built, pinned and signed.
// annotation is the key of receipts. An image that has two digests is an error.
func OfChart(b *app.Build, annotation string) (*PostRenderer, error) {
	out := &PostRenderer{}
	for _, o := range b.Objects {
		if o.Problem != nil {
			return nil, fmt.Errorf("%s: %s", o.Subject.Short(), o.Problem.Text)
		}
		for _, c := range o.Pinned {
			r, err := pin.Parse(c.New)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.Subject.Short(), err)
			}
			image := Image{Name: r.Name(), NewTag: r.Tag(), Digest: r.Digest()}
			i := slices.IndexFunc(out.Images, func(x Image) bool { return x.Name == image.Name })
			switch {
			case i < 0:
				out.Images = append(out.Images, image)
			case out.Images[i] != image:
				return nil, fmt.Errorf("%s: the chart uses %s as %s and as %s, and a post-renderer gives a name one tag; write the digest into the values", o.Subject.Short(), image.Name, out.Images[i].NewTag, image.NewTag)
			}
		}
		if len(o.Receipts) > 0 {
			p, err := patchOf(o, annotation)
			if err != nil {
				return nil, err
			}
			out.Patches = append(out.Patches, p)
		}
	}
	return out, nil
}

func patchOf(o *app.Object, annotation string) (Patch, error) {
	meta := map[string]any{"name": o.Name()}
	if ns := o.Namespace(); ns != "" {
		meta["namespace"] = ns
	}
	from, _ := o.Tree["metadata"].(map[string]any)
	annotations, _ := from["annotations"].(map[string]any)
	meta["annotations"] = map[string]any{annotation: annotations[annotation]}
	data, err := goyaml.Marshal(map[string]any{"apiVersion": o.Tree["apiVersion"], "kind": o.Kind(), "metadata": meta})
	return Patch{string(data)}, err
}

// helm sets the post-renderer of a HelmRelease: in the place of one that holds
// receipts, else as a new one behind the others.
func (w *writer) helm(file string, n *yaml.RNode) (bool, error) {
	if w.options.Helm == nil {
		w.note(file, "HelmRelease %q: its chart is rendered by helm-controller; give --chart with the chart, pinned and signed", n.GetName())
		return false, nil
	}
	var buf bytes.Buffer
	e := goyaml.NewEncoder(&buf)
	e.SetIndent(2)
	if err := e.Encode(map[string]any{"kustomize": map[string]any{"images": w.options.Helm.Images, "patches": w.options.Helm.Patches}}); err != nil {
		return false, err
	}
	entry, err := yaml.Parse(buf.String())
	if err != nil {
		return false, err
	}
	list, err := n.Pipe(yaml.LookupCreate(yaml.SequenceNode, "spec", "postRenderers"))
	if err != nil {
		return false, err
	}
	before, err := list.String()
	if err != nil {
		return false, err
	}
	for i, have := range list.Content() {
		text, err := yaml.NewRNode(have).String()
		if err != nil {
			return false, err
		}
		if text == buf.String() || strings.Contains(text, w.options.Annotation+": ") {
			list.Content()[i] = entry.YNode()
			entry = nil
			break
		}
	}
	if entry != nil {
		list.YNode().Content = append(list.YNode().Content, entry.YNode())
	}
	after, err := list.String()
	return after != before, err
}
