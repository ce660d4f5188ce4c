package projection

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// parse decodes one YAML document the way the gate does.
func parse(t testing.TB, doc string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(doc, "\t", "  ")))
	if err != nil {
		t.Fatalf("parsing %s: %v", doc, err)
	}
	return decode(t, raw)
}

func decode(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var obj map[string]any
	if err := d.Decode(&obj); err != nil {
		t.Fatalf("decoding %s: %v", raw, err)
	}
	return obj
}

func project(t testing.TB, doc string) *Projection {
	t.Helper()
	p, err := Project(parse(t, doc))
	if err != nil {
		t.Fatalf("projecting %s: %v", doc, err)
	}
	return p
}

// leaves lists a projection as "category path = value", without the leaves
// that bind repositories unless asked for.
func leaves(p *Projection, bindings bool) []string {
	out := []string{}
	for _, l := range p.Leaves() {
		if !l.binding || bindings {
			out = append(out, l.String())
		}
	}
	return out
}

func tryDigest(obj map[string]any) (string, error) {
	p, err := Project(obj)
	if err != nil {
		return "", err
	}
	return p.Digest(p.Applies())
}

func digestOf(t testing.TB, obj map[string]any) string {
	t.Helper()
	d, err := tryDigest(obj)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// change copies the way to a place in a tree and replaces the value there.
// What to returns nil for is removed.
func change(v any, path []any, to func(any) any) any {
	if len(path) == 0 {
		return to(v)
	}
	switch at := path[0].(type) {
	case string:
		out := map[string]any{}
		for k, x := range v.(map[string]any) {
			out[k] = x
		}
		if n := change(out[at], path[1:], to); n != nil {
			out[at] = n
		} else {
			delete(out, at)
		}
		return out
	case int:
		list := v.([]any)
		out := append([]any{}, list...)
		if n := change(list[at], path[1:], to); n != nil {
			out[at] = n
			return out
		}
		return append(out[:at], out[at+1:]...)
	}
	return v
}
