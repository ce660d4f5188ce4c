package migrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	read "github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render"
)

// alone is a source as the one of an Application that says nothing else.
func alone(source any) ([]byte, error) {
	return json.Marshal(map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "application"},
		"spec": map[string]any{"source": source},
	})
}

// options are what a source renders with, to compare.
func options(source any) (render.Options, error) {
	source = opaque(source)
	data, err := alone(source)
	if err != nil {
		return render.Options{}, err
	}
	s, err := read.Parse(data, "source")
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return render.Options{}, err
	}
	return s.Options("/nowhere")
}

// opaque puts an object in the place of inline values that an ApplicationSet makes
// valid YAML only when it fills in its template: "replicas: {{replicas}}".
func opaque(source any) any {
	tree, _ := source.(map[string]any)
	hide := func(holder map[string]any, member string) {
		text, _ := holder[member].(string)
		var v map[string]any
		if strings.Contains(text, "{{") && yaml.Unmarshal([]byte(text), &v) != nil {
			data, err := json.Marshal(map[string]any{"template": text})
			if err == nil {
				holder[member] = string(data)
			}
		}
	}
	helm, _ := tree["helm"].(map[string]any)
	hide(helm, "values")
	plugin, _ := tree["plugin"].(map[string]any)
	list, _ := plugin["parameters"].([]any)
	for _, p := range list {
		if p, _ := p.(map[string]any); p["name"] == "helm.values" {
			hide(p, "string")
		}
	}
	return source
}

// unreadable says why a source cannot be read, "" if it can.
func unreadable(n *yaml.Node) string {
	var tree any
	if err := n.Decode(&tree); err != nil {
		return err.Error()
	}
	if _, err := options(tree); err != nil {
		return strings.ReplaceAll(err.Error(), "spec.source.", "")
	}
	return ""
}

// verify reads both texts again: nothing but sources differs, and each renders
// with the options that it had.
func verify(before, after []byte, name string) error {
	a, err := manifest.Parse(before, name)
	if err != nil {
		return err
	}
	b, err := manifest.Parse(after, name)
	if err != nil {
		return fmt.Errorf("what would be written cannot be read: %w", err)
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d objects would become %d", len(a), len(b))
	}
	for i := range a {
		before, after := take(a[i].Tree), take(b[i].Tree)
		if !reflect.DeepEqual(a[i].Tree, b[i].Tree) || len(before) != len(after) {
			return fmt.Errorf("more than the source of %s %q would change", a[i].Kind(), a[i].Name())
		}
		for j := range before {
			if err := same(before[j], after[j]); err != nil {
				return fmt.Errorf("%s %q: %w", a[i].Kind(), a[i].Name(), err)
			}
		}
	}
	return nil
}

// take removes the sources of an Application or ApplicationSet from its tree.
func take(tree map[string]any) (out []any) {
	kind, _ := tree["kind"].(string)
	version, _ := tree["apiVersion"].(string)
	spec, _ := tree["spec"].(map[string]any)
	if kind == "ApplicationSet" {
		template, _ := spec["template"].(map[string]any)
		spec, _ = template["spec"].(map[string]any)
	}
	if !strings.HasPrefix(version, "argoproj.io/") || kind != "Application" && kind != "ApplicationSet" || spec == nil {
		return nil
	}
	if s, ok := spec["source"].(map[string]any); ok && len(s) > 0 {
		out = append(out, s)
		delete(spec, "source")
	}
	if list, ok := spec["sources"].([]any); ok {
		out = append(out, list...)
		delete(spec, "sources")
	}
	return out
}

func same(before, after any) error {
	a, err := options(before)
	if err != nil {
		return err
	}
	b, err := options(after)
	if err != nil {
		return err
	}
	x, y := normal(a), normal(b)
	if x == nil || !bytes.Equal(x, y) {
		return errors.New("the plugin would render with other settings: write what differs into the repository")
	}
	return nil
}

// normal brings options into one form: Argo CD, too, takes settings in no
// order, and of two with one name the last.
func normal(o render.Options) []byte {
	for _, list := range []*[]string{&o.Helm.Set, &o.Helm.SetString, &o.Helm.SetFile} {
		last := map[string]string{}
		for _, s := range *list {
			name, _, _ := strings.Cut(s, "=")
			last[name] = s
		}
		*list = nil
		for _, s := range last {
			*list = append(*list, s)
		}
		slices.Sort(*list)
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return data
}
