package manifest

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromTreeMakesOneOfOurTrees(t *testing.T) {
	in := map[string]any{
		"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"},
		"n": []any{1, int32(2), int64(3), uint32(4), uint64(5), float32(0.5), 1.5, 2.0, json.Number("1.50")},
		"z": []any{nil, true, map[string]any(nil), []any(nil), []any{}, map[string]any{}},
	}
	objs, err := FromTree(in, "f.yaml", 3)
	if err != nil {
		t.Fatal(err)
	}
	want := []Object{{File: "f.yaml", Document: 3, Tree: tree(t, `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"n":[1,2,3,4,5,0.5,1.5,2,1.50],"z":[null,true,null,null,[],{}]}`)}}
	if d := cmp.Diff(want, objs); d != "" {
		t.Fatal(d)
	}
	objs[0].Tree["metadata"].(map[string]any)["name"] = "changed"
	if got := in["metadata"].(map[string]any)["name"]; got != "a" {
		t.Errorf("changing the object changed its source: name %q", got)
	}
}

func TestFromTreeFlattensAndSharesNothing(t *testing.T) {
	meta := map[string]any{"name": "a"}
	item := map[string]any{"apiVersion": "v1", "kind": "A", "metadata": meta}
	objs, err := FromTree(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{item, item}}, "f.yaml", 1)
	if err != nil {
		t.Fatal(err)
	}
	objs[0].Tree["metadata"].(map[string]any)["name"] = "b"
	if got := objs[1].Name(); got != "a" || len(objs) != 2 {
		t.Errorf("got %d objects, the second called %q; want 2 and \"a\"", len(objs), got)
	}
}

func TestFromTreeRefuses(t *testing.T) {
	loop := map[string]any{"apiVersion": "v1"}
	loop["self"] = loop
	with := func(v any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "x": v}
	}
	for _, tt := range []struct {
		name string
		in   map[string]any
		want string
	}{
		{"no tree", nil, "f.yaml document 1: document is null, want a Kubernetes object"},
		{"no identity", map[string]any{}, "f.yaml document 1: no apiVersion; f.yaml document 1: no kind; f.yaml document 1: no metadata.name and no metadata.generateName"},
		{"a tree that holds itself", loop, "f.yaml document 1: nested deeper than 256 levels"},
		{"a type that JSON does not have", with(struct{}{}), "f.yaml document 1: a value of type struct {}, which JSON does not have"},
		{"a list of another type", with([]string{"a"}), "f.yaml document 1: a value of type []string, which JSON does not have"},
		{"infinity", with(math.Inf(1)), "f.yaml document 1: not a number or infinity, which JSON does not have"},
		{"a number that is none", with(json.Number("1 2")), `f.yaml document 1: malformed number "1 2"`},
		{"an empty number", with(json.Number("")), `f.yaml document 1: malformed number ""`},
		{"invalid UTF-8", with("\xff"), "f.yaml document 1: invalid UTF-8 in a string"},
		{"invalid UTF-8 in a key", with(map[string]any{"\xff": 1}), "f.yaml document 1: invalid UTF-8 in a string"},
		{"a bad item", map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{map[string]any{"kind": "A"}}}, `f.yaml document 1: items[0]: no apiVersion; f.yaml document 1: items[0]: "A": no metadata.name and no metadata.generateName`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objs, err := FromTree(tt.in, "f.yaml", 1)
			if err == nil || objs != nil {
				t.Fatalf("got %v, %v; want an error", objs, err)
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDuplicates(t *testing.T) {
	o := func(doc int, s string) Object { return Object{Tree: tree(t, s), File: "f.yaml", Document: doc} }
	dep := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`
	for _, tt := range []struct {
		name string
		objs []Object
		want []string
	}{
		{"none", nil, nil},
		{"another name", []Object{o(1, dep), o(2, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b","namespace":"n"}}`)}, nil},
		{"another namespace", []Object{o(1, dep), o(2, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"m"}}`)}, nil},
		{"another kind", []Object{o(1, dep), o(2, `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a","namespace":"n"}}`)}, nil},
		{"another group", []Object{o(1, dep), o(2, `{"apiVersion":"x.io/v1","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`)}, nil},
		{"generated names", []Object{o(1, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"generateName":"a"}}`), o(2, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"generateName":"a"}}`)}, nil},
		{"the same", []Object{o(1, dep), o(2, dep)}, []string{"Deployment.apps n/a: f.yaml document 1, f.yaml document 2"}},
		{"the same in another version", []Object{o(1, dep), o(4, `{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"a","namespace":"n"}}`)}, []string{"Deployment.apps n/a: f.yaml document 1, f.yaml document 4"}},
		{"all of them, sorted", []Object{o(1, dep), o(2, `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`), o(3, dep), o(4, `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`), o(5, dep)},
			[]string{"A a: f.yaml document 2, f.yaml document 4", "Deployment.apps n/a: f.yaml document 1, f.yaml document 3, f.yaml document 5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Duplicates(tt.objs)
			if tt.want == nil {
				if err != nil {
					t.Fatalf("got %v, want none", err)
				}
				return
			}
			var dup *DuplicateError
			if !errors.As(err, &dup) {
				t.Fatalf("got %v, want a *DuplicateError", err)
			}
			if d := cmp.Diff(tt.want, dup.Places); d != "" {
				t.Error(d)
			}
		})
	}
}
