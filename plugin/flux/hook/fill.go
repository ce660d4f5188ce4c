package hook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// safe is what a value may be made of. kustomize-controller pastes it into the
// text of a manifest: nothing here ends a scalar of YAML or begins another node.
var safe = regexp.MustCompile(`^` + word + `( ` + word + `)*$`)

const word = `[A-Za-z0-9]([A-Za-z0-9._:@/-]*[A-Za-z0-9_-])?`

// NoReceipts is the value of a receipt variable of an object that needs none: an
// empty one would make the annotation null.
const NoReceipts = "none"

// Strip takes the gate's placeholders out of an object, which becomes what a
// person wrote: an image without digest, no annotation of receipts. annotation is
// the key of that. It returns the variables of pins and receipts, sorted. The
// error names the place of a placeholder where none belongs.
func Strip(tree map[string]any, annotation string) (variables []string, err error) {
	s := stripper{annotation: annotation, found: map[string]bool{}}
	if err := s.object(tree, ""); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(s.found)), nil
}

type stripper struct {
	annotation string
	found      map[string]bool
}

func (s stripper) object(m map[string]any, path string) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if strings.Contains(key, "${"+Prefix) {
			return fmt.Errorf("a placeholder of the gate is a name at %.200q", at)
		}
		text, isText := m[key].(string)
		if variable, ok := ParsePlaceholder(text); isText && ok && key == s.annotation && strings.HasSuffix(path, "metadata.annotations") && strings.HasPrefix(variable, ReceiptPrefix) {
			s.found[variable] = true
			delete(m, key)
			continue
		}
		v, err := s.value(m[key], at)
		if err != nil {
			return err
		}
		m[key] = v
	}
	return nil
}

// value returns v without placeholders.
func (s stripper) value(v any, path string) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return v, s.object(v, path)
	case []any:
		for i := range v {
			x, err := s.value(v[i], fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			v[i] = x
		}
	case string:
		if reference, variable, ok := Pin(v); ok {
			s.found[variable] = true
			return reference, nil
		}
		if variable, ok := ParsePlaceholder(v); ok && variable == Latch {
			return v, nil
		}
		if strings.Contains(v, "${"+Prefix) {
			return nil, fmt.Errorf("%s is %.200q: a placeholder of the gate is bare, behind the @ of an image or the whole annotation %s", path, v, s.annotation)
		}
	}
	return v, nil
}

// Fill adds to values what the variables of one object stand for: raw is the
// object with placeholders, done the same object when it is pinned and carries
// its receipts under the key annotation. The error says which variable cannot
// have one value.
func Fill(values map[string]string, raw, done map[string]any, annotation string) error {
	f := filler{values, annotation}
	return f.object(raw, done, "")
}

type filler struct {
	values     map[string]string
	annotation string
}

func (f filler) object(raw, done map[string]any, path string) error {
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if text, ok := raw[key].(string); ok && key == f.annotation {
			if variable, ok := ParsePlaceholder(text); ok {
				receipts, _ := done[key].(string)
				if receipts == "" {
					receipts = NoReceipts
				}
				if err := f.set(variable, receipts, at); err != nil {
					return err
				}
				continue
			}
		}
		if err := f.value(raw[key], done[key], at); err != nil {
			return err
		}
	}
	return nil
}

func (f filler) value(raw, done any, path string) error {
	switch raw := raw.(type) {
	case map[string]any:
		d, _ := done.(map[string]any)
		return f.object(raw, d, path)
	case []any:
		d, _ := done.([]any)
		for i := range raw {
			var x any
			if i < len(d) {
				x = d[i]
			}
			if err := f.value(raw[i], x, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case string:
		if _, variable, ok := Pin(raw); ok {
			pinned, _ := done.(string)
			_, digest, _ := strings.Cut(pinned, "@")
			if digest == "" {
				return fmt.Errorf("%s at %s: no digest is known", variable, path)
			}
			return f.set(variable, digest, path)
		}
	}
	return nil
}

func (f filler) set(variable, value, path string) error {
	if !safe.MatchString(value) {
		return fmt.Errorf("%s at %s: its value has characters that a manifest could be broken with", variable, path)
	}
	if old, there := f.values[variable]; there && old != value {
		return fmt.Errorf("%s at %s: it stands for something else at another place; give each its own name", variable, path)
	}
	f.values[variable] = value
	return nil
}
