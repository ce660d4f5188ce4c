package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"

	yaml "go.yaml.in/yaml/v2"
)

// Encode writes one JSON object per line, with sorted keys, numbers as they
// were and no HTML escaping. Parsing the output and encoding it again gives the
// same bytes. It writes nothing if an object cannot be encoded.
func Encode(w io.Writer, objs []Object) error {
	var out bytes.Buffer
	for _, o := range objs {
		err := encodeJSON(&out, o)
		if err != nil {
			return err
		}
	}
	_, err := w.Write(out.Bytes())
	if err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}

func encodeJSON(out *bytes.Buffer, o Object) error {
	if o.Tree == nil {
		return fmt.Errorf("encoding %s: no tree", o.Where())
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	err := e.Encode(o.Tree)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", o.Where(), err)
	}
	return nil
}

// EncodeYAML writes documents in block style, separated by ---, for people.
// [Parse] gives back the same trees: an object that YAML cannot say exactly
// (such as the number 1.0, which YAML readers shorten) is written as JSON,
// which is YAML too. It writes nothing if an object cannot be encoded.
func EncodeYAML(w io.Writer, objs []Object) error {
	var out bytes.Buffer
	for i, o := range objs {
		if i > 0 {
			out.WriteString("---\n")
		}
		text, err := blockYAML(o)
		if err != nil {
			return err
		}
		out.Write(text)
	}
	_, err := w.Write(out.Bytes())
	if err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}

func blockYAML(o Object) ([]byte, error) {
	text, err := yaml.Marshal(yamlValues(o.Tree))
	if err == nil {
		back, problem := parseYAML(text, newBudget())
		if problem == nil && len(split(text)) == 1 && reflect.DeepEqual(back, any(o.Tree)) {
			return text, nil
		}
	}
	var out bytes.Buffer
	err = encodeJSON(&out, o)
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// yamlValues copies a tree for the YAML encoder, which would quote a
// json.Number like the string it is.
func yamlValues(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = yamlValues(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = yamlValues(x)
		}
		return out
	case json.Number:
		if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
		return string(v)
	}
	return v
}
