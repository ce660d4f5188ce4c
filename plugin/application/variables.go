package application

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// FromFiles finds what a Kustomization takes variables from in manifest files:
// the ConfigMaps and Secrets of its own namespace, and those that name none.
// Objects of other kinds are passed over; one that is encrypted, or stands
// twice, is an error.
func FromFiles(files []string, namespace string) (Lookup, error) {
	found := map[Reference]map[string]string{}
	for _, file := range files {
		data, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading variables: %w", err)
		}
		objects, err := manifest.Parse(data, file)
		if err != nil {
			return nil, fmt.Errorf("reading variables: %w", err)
		}
		for _, o := range objects {
			r := Reference{Kind: o.Kind(), Name: o.Name()}
			if o.Group() != "" || r.Kind != "ConfigMap" && r.Kind != "Secret" || o.Namespace() != "" && o.Namespace() != namespace {
				continue
			}
			if _, twice := found[r]; twice {
				return nil, fmt.Errorf("reading variables: %s %q stands twice, the second time in %s", r.Kind, r.Name, o.Where())
			}
			if found[r], err = dataOf(o); err != nil {
				return nil, fmt.Errorf("reading variables: %s %q in %s: %w", r.Kind, r.Name, o.Where(), err)
			}
		}
	}
	return func(_ context.Context, kind, name string) (map[string]string, bool, error) {
		data, ok := found[Reference{Kind: kind, Name: name}]
		return data, ok, nil
	}, nil
}

// dataOf is the data of a ConfigMap or Secret, as the API server would have it.
func dataOf(o manifest.Object) (map[string]string, error) {
	if o.Tree["sops"] != nil {
		return nil, fmt.Errorf("it is encrypted: give a plain one")
	}
	out := map[string]string{}
	for _, member := range []string{"data", "stringData"} {
		if member == "stringData" && o.Kind() != "Secret" {
			continue
		}
		values, ok := o.Tree[member].(map[string]any)
		if !ok && o.Tree[member] != nil {
			return nil, fmt.Errorf("%s is not an object", member)
		}
		for k, v := range values {
			text, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("%s.%.80q is not a string", member, k)
			}
			if member == "data" && o.Kind() == "Secret" {
				plain, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("%s.%.80q is not base64", member, k)
				}
				text = string(plain)
			}
			out[k] = text
		}
	}
	return out, nil
}
