package flux

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// spec is what of a Kustomization's spec the code here needs. Flux's generator
// reads the rest. Which fields may be there at all is decided by who reads the
// manifest.
type spec struct {
	postBuild, always   bool
	substitute          map[string]string
	from                []reference
	decrypts            bool
	labels, annotations map[string]string
}

// reference is an entry of postBuild.substituteFrom.
type reference struct {
	kind, name string
	optional   bool
}

// read reads the spec of an object.
func read(object map[string]any) (spec, error) {
	s := spec{}
	m, err := member(object, "spec")
	if err != nil {
		return s, err
	}
	decryption, err := member(m, "decryption")
	if err != nil {
		return s, err
	}
	s.decrypts = decryption != nil
	common, err := member(m, "commonMetadata")
	if err != nil {
		return s, err
	}
	if s.labels, err = texts(common, "labels"); err != nil {
		return s, err
	}
	if s.annotations, err = texts(common, "annotations"); err != nil {
		return s, err
	}
	post, err := member(m, "postBuild")
	if err != nil || post == nil {
		return s, err
	}
	s.postBuild, s.always = true, post["substituteStrategy"] == "Always"
	if s.substitute, err = texts(post, "substitute"); err != nil {
		return s, err
	}
	list, ok := post["substituteFrom"].([]any)
	if !ok && post["substituteFrom"] != nil {
		return s, errors.New("substituteFrom is not a list")
	}
	for i, x := range list {
		o, _ := x.(map[string]any)
		kind, _ := o["kind"].(string)
		name, _ := o["name"].(string)
		if kind != "ConfigMap" && kind != "Secret" || name == "" {
			return s, fmt.Errorf("substituteFrom[%d] names no ConfigMap and no Secret", i)
		}
		s.from = append(s.from, reference{kind, name, o["optional"] == true})
	}
	return s, nil
}

func member(m map[string]any, name string) (map[string]any, error) {
	v, ok := m[name].(map[string]any)
	if !ok && m[name] != nil {
		return nil, fmt.Errorf("%s is not an object", name)
	}
	return v, nil
}

func texts(m map[string]any, name string) (map[string]string, error) {
	v, err := member(m, name)
	if err != nil || v == nil {
		return nil, err
	}
	out := map[string]string{}
	for k, x := range v {
		s, ok := x.(string)
		if !ok {
			return nil, fmt.Errorf("%s.%.80q is not a string", name, k)
		}
		out[k] = s
	}
	return out, nil
}

// variables are all of them but those of the gate's own ConfigMap, in Flux's
// order: what stands later, and then what stands in the spec itself, counts.
// They are read once, so that all objects get the same.
func (s spec) variables(ctx context.Context, o Settings) (map[string]string, error) {
	out := map[string]string{}
	put := func(where string, data map[string]string) error {
		for k, v := range data {
			if o.Prefix != "" && strings.HasPrefix(k, o.Prefix) {
				return fmt.Errorf("%s sets %.80q: variables that begin with %s are the gate's", where, k, o.Prefix)
			}
			out[k] = strings.ReplaceAll(v, "\n", "")
		}
		return nil
	}
	for _, r := range s.from {
		if r.kind == "ConfigMap" && r.name == o.Own {
			continue
		}
		where := fmt.Sprintf("%s %q", r.kind, r.name)
		if o.Look == nil {
			return nil, fmt.Errorf("postBuild.substituteFrom: %s is not known here: give the manifest that holds it", where)
		}
		data, found, err := o.Look(ctx, r.kind, r.name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("postBuild.substituteFrom: reading %s: %w", where, err)
		case !found && r.optional:
		case !found:
			return nil, fmt.Errorf("postBuild.substituteFrom: there is no %s", where)
		}
		if err := put(where, data); err != nil {
			return nil, err
		}
	}
	return out, put("postBuild.substitute", s.substitute)
}
