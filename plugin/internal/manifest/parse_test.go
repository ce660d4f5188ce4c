package manifest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"

// tree decodes JSON for a want value.
func tree(t *testing.T, s string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// summary is "document:kind/name" of each object.
func summary(objs []Object) string {
	var out []string
	for _, o := range objs {
		name := o.Name()
		if name == "" {
			name = o.GenerateName() + "*"
		}
		out = append(out, strings.TrimPrefix(o.Where(), "f.yaml document ")+":"+o.Kind()+"/"+name)
	}
	return strings.Join(out, " ")
}

func TestParseFindsTheDocuments(t *testing.T) {
	utf16le := func(s string) string {
		out := "\xff\xfe"
		for _, r := range s {
			out += string([]byte{byte(r), byte(r >> 8)})
		}
		return out
	}
	utf16be := func(s string) string {
		out := "\xfe\xff"
		for _, r := range s {
			out += string([]byte{byte(r >> 8), byte(r)})
		}
		return out
	}
	b := strings.Replace(pod, "name: a", "name: b", 1)
	ja, jb := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`
	both := "1:Pod/a 2:Pod/b"
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"white space", " \n\t\r\n", ""},
		{"comments only", "# a\n---\n# b\n---\n", ""},
		{"null documents", "null\n---\n~\n", ""},
		{"one", pod, "1:Pod/a"},
		{"no final line break", strings.TrimSuffix(pod, "\n"), "1:Pod/a"},
		{"two", pod + "---\n" + b, both},
		{"leading marker does not count", "---\n" + pod + "---\n" + b, both},
		{"leading comment does not count", "# licence\n\n---\n" + pod + "---\n" + b, both},
		{"comment on the marker", "--- # Source: x\n" + pod + "---\t# y\n" + b, both},
		{"white space after the marker", "---  \n" + pod + "--- \t\n" + b, both},
		{"empty document counts", "---\n# nothing\n---\n" + pod, "2:Pod/a"},
		{"document end marker", pod + "...\n---\n" + b + "...\n", both},
		{"comment after the end marker", pod + "... # end\n# more\n---\n" + b, both},
		{"CRLF", strings.ReplaceAll(pod+"---\n"+b, "\n", "\r\n"), both},
		{"BOM", "\xef\xbb\xbf" + pod, "1:Pod/a"},
		{"BOM of a second file", "\ufeff" + pod + "---\n\ufeff" + b, both},
		{"BOM before JSON", "\xef\xbb\xbf" + ja, "1:Pod/a"},
		{"UTF-16 little endian", utf16le(pod + "---\n" + b), both},
		{"UTF-16 big endian", utf16be(pod + "---\n" + b), both},
		{"directive", "%YAML 1.1\n---\n" + pod + "---\n" + b, both},
		{"directive after the end marker", pod + "...\n%YAML 1.1\n---\n" + b, both},
		{"tag directive", "%TAG ! tag:yaml.org,2002:\n---\napiVersion: !str v1\nkind: Pod\nmetadata: {name: a}\n", "1:Pod/a"},
		{"marker in a block scalar", pod + "x: |\n  ---\n  y\n  ...\n---\n" + b, both},
		{"marker in a folded scalar after a blank line", pod + "x: >-\n\n   --- \n   y\n---\n" + b, both},
		{"marker inside a line", pod + "x: a --- b\n---\n" + b, both},
		{"JSON", ja, "1:Pod/a"},
		{"JSON one a line", ja + "\n" + jb + "\n", both},
		{"JSON one after the other", ja + jb, both},
		{"JSON between markers", "---\n" + ja + "\n---\n" + jb, both},
		{"JSON then YAML", ja + "\n" + jb + "\n---\n" + pod, both + " 3:Pod/a"},
		{"YAML then JSON", pod + "---\n" + jb, both},
		{"flow style", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", "1:Pod/a"},
		{"JSON with a trailing comma is flow style", strings.TrimSuffix(ja, "}") + ",}", "1:Pod/a"},
		{"JSON and a comment is flow style", ja + " # c\n", "1:Pod/a"},
		{"List", "apiVersion: v1\nkind: List\nitems:\n- " + ja + "\n- " + jb + "\n", "1:Pod/a 1:Pod/b"},
		{"any kind with items", `{"apiVersion":"x/v1","kind":"Foo","metadata":{"name":"f"},"items":[` + ja + `]}`, "1:Pod/a"},
		{"empty List", "apiVersion: v1\nkind: List\nitems: []\n", ""},
		{"null List", "apiVersion: v1\nkind: List\nitems: null\n", ""},
		{"null items of an object", pod + "items: null\nspec: {}\n", "1:Pod/a"},
		{"items that are a map", pod + "items: {}\n", "1:Pod/a"},
		{"generateName", "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-}\n", "1:Job/j-*"},
		{"null namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: }\n", "1:Pod/a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.in), "f.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if s := summary(got); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", 300) + strings.Repeat("]", 300)
	for _, tt := range []struct{ name, in, want string }{
		{"no kind", "apiVersion: v1\nmetadata: {name: a}", "f.yaml document 1 line 1: no kind"},
		{"no apiVersion", "kind: Pod\nmetadata: {name: a}", "f.yaml document 1 line 1: no apiVersion"},
		{"no name", "\n# c\napiVersion: v1\nkind: Pod\nmetadata: {}", `f.yaml document 1 line 3: "Pod": no metadata.name and no metadata.generateName`},
		{"no metadata", "apiVersion: v1\nkind: Pod", `f.yaml document 1 line 1: "Pod": no metadata.name and no metadata.generateName`},
		{"empty map", "{}", "f.yaml document 1 line 1: no apiVersion; f.yaml document 1 line 1: no kind; f.yaml document 1 line 1: no metadata.name and no metadata.generateName"},
		{"empty kind", "apiVersion: v1\nkind: ''\nmetadata: {name: a}", "f.yaml document 1 line 1: no kind"},
		{"number as name", "apiVersion: v1\nkind: Pod\nmetadata: {name: 1}", `f.yaml document 1 line 1: "Pod": metadata.name is a number, want a string`},
		{"boolean as namespace", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: on}", `f.yaml document 1 line 1: "Pod": metadata.namespace is a boolean, want a string`},
		{"boolean as kind", "apiVersion: v1\nkind: yes\nmetadata: {name: a}", "f.yaml document 1 line 1: kind is a boolean, want a string"},
		{"metadata is a list", "apiVersion: v1\nkind: Pod\nmetadata: []", "f.yaml document 1 line 1: metadata is a list, want a map"},
		{"slash in a name", "apiVersion: v1\nkind: Pod\nmetadata: {name: a/b}", `f.yaml document 1 line 1: "Pod": metadata.name "a/b" holds the character '/'`},
		{"slash in a kind", "apiVersion: v1\nkind: a/b\nmetadata: {name: a}", `f.yaml document 1 line 1: kind "a/b" holds the character '/'`},
		{"line break in a namespace", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b\n"}}`, `f.yaml document 1 line 1: "Pod": metadata.namespace "b\n" holds the character '\n'`},
		{"two slashes in apiVersion", "apiVersion: a/b/c\nkind: Pod\nmetadata: {name: a}", `f.yaml document 1 line 1: apiVersion "a/b/c" is not a group and a version`},
		{"empty group", "apiVersion: /v1\nkind: Pod\nmetadata: {name: a}", `f.yaml document 1 line 1: apiVersion "/v1" is not a group and a version`},
		{"group called core", "apiVersion: core/v1\nkind: Pod\nmetadata: {name: a}", `f.yaml document 1 line 1: apiVersion "core/v1" is not a group and a version`},
		{"long name", "apiVersion: v1\nkind: Pod\nmetadata: {name: " + strings.Repeat("a", 600) + "}", `f.yaml document 1 line 1: "Pod": metadata.name has 600 bytes, want at most 512`},
		{"scalar document", "hello", "f.yaml document 1 line 1: document is a string, want a Kubernetes object"},
		{"list document", "- a", "f.yaml document 1 line 1: document is a list, want a Kubernetes object"},
		{"number document", "1", "f.yaml document 1 line 1: document is a number, want a Kubernetes object"},
		{"list item without kind", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, metadata: {name: a}}]", "f.yaml document 1 line 1: items[0]: no kind"},
		{"list item that is no map", "apiVersion: v1\nkind: List\nitems: [a]", "f.yaml document 1 line 1: items[0] is a string, want a Kubernetes object"},
		{"list without kind", "items: []", "f.yaml document 1 line 1: no apiVersion; f.yaml document 1 line 1: no kind"},
		{"list in a list", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, metadata: {name: a}, items: []}]", "f.yaml document 1 line 1: items[0] is a List itself; only one level is flattened"},
		{"duplicate key", pod + "spec:\n  a: 1\n  a: 2\n", `f.yaml document 1 line 6: duplicate key "a"`},
		{"duplicate key in the second document", pod + "---\n" + pod + "kind: Pod\n", `f.yaml document 2 line 8: duplicate key "kind"`},
		{"duplicate after conversion", pod + "spec: {1: a, '1': b}", `f.yaml document 1 line 1: duplicate key "1"`},
		{"duplicate boolean keys", pod + "spec: {yes: a, true: b}", `f.yaml document 1 line 4: duplicate key "true"`},
		{"duplicate key in JSON", "{\"kind\":\"Pod\",\n\"a\":{\"b\":1,\n\"b\":2}}", `f.yaml document 1 line 3: duplicate key "b"`},
		{"duplicate key in JSON, spelt with an escape", `{"ab":1,"a\u0062":2}`, `f.yaml document 1 line 1: duplicate key "ab"`},
		{"duplicate key in the second JSON object", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n{\"a\":1,\"a\":2}", `f.yaml document 2 line 2: duplicate key "a"`},
		{"duplicate key beside a merge", pod + "x: &x {a: 1}\nspec:\n  <<: *x\n  a: 2\n  b: 1\n  b: 2\n", `f.yaml document 1 line 9: duplicate key "b"`},
		{"duplicate boolean key beside a merge", pod + "x: &x {a: 1}\nspec:\n  <<: *x\n  a: 2\n  yes: 1\n  true: 2\n", `f.yaml document 1 line 9: duplicate key "true"`},
		{"merge after the key it sets", pod + "x: &x {a: 1}\nspec:\n  a: 2\n  <<: *x\n", `f.yaml document 1 line 7: key "a" stands before the merge key << that sets it too; parsers disagree which wins`},
		{"two merges in a map", pod + "x: &x {a: 1}\ny: &y {a: 2}\nspec:\n  <<: *x\n  <<: *y\n", `f.yaml document 1 line 8: duplicate key "<<"`},
		{"tagged key beside a merge", pod + "x: &x {a: 1}\nspec:\n  <<: *x\n  a: 2\n  !!str yes: 1\n", `f.yaml document 1 line 8: a key with a tag in a document with merge keys`},
		{"null key", pod + "spec: {~: 1}", "f.yaml document 1 line 1: a key that is null, binary, a map or a list"},
		{"map as key", pod + "spec: {{a: b}: 1}", "f.yaml document 1 line 1: reading YAML: a map or list as a key"},
		{"infinity", pod + "spec: .inf", "f.yaml document 1 line 1: not a number or infinity, which JSON does not have"},
		{"not a number", pod + "spec: .NaN", "f.yaml document 1 line 1: not a number or infinity, which JSON does not have"},
		{"binary that is not text", pod + "spec: !!binary /w==", "f.yaml document 1 line 1: a binary value that is not UTF-8, which JSON does not have"},
		{"value with a wrong tag is not shown", pod + "spec: !!int hunter2", "f.yaml document 1 line 1: reading YAML: cannot decode !!str a value as a !!int"},
		{"unknown anchor", pod + "spec: *x", "f.yaml document 1 line 1: reading YAML: unknown anchor 'x' referenced"},
		{"anchor of another document", pod + "x: &x 1\n---\n" + pod + "spec: *x", "f.yaml document 2 line 6: reading YAML: unknown anchor 'x' referenced"},
		{"anchor that holds itself", pod + "spec: &x [*x]", "f.yaml document 1 line 1: reading YAML: anchor 'x' value contains itself"},
		{"tab as indentation", pod + "spec:\n\ta: 1\n", "f.yaml document 1 line 5: reading YAML: found character that cannot start any token"},
		{"text after the marker", pod + "--- {a: b}\n", "f.yaml document 1 line 4: text after the document marker ---"},
		{"text glued to the marker", pod + "---a: b\n", "f.yaml document 1 line 4: text after the document marker ---"},
		{"comment glued to the marker", pod + "---#c\n" + pod, "f.yaml document 1 line 4: text after the document marker ---"},
		{"text after the end marker", pod + "...\n" + pod, "f.yaml document 2 line 5: text after the document end marker ..., without ---"},
		{"text on the end marker", pod + "... a\n", "f.yaml document 1 line 4: text after the document end marker ..."},
		{"directive inside a document", pod + "%YAML 1.1\n---\n" + pod, "f.yaml document 1 line 4: reading YAML: did not find expected <document start>"},
		{"YAML 1.2 directive", "%YAML 1.2\n---\n" + pod, "f.yaml document 1 line 1: reading YAML: found incompatible YAML document"},
		{"second document after a lone carriage return", pod + "\r---\r" + strings.ReplaceAll(pod, "\n", "\r"), "f.yaml document 1 line 1: a second document begins after an unusual line break"},
		{"second document after a next-line character", pod + "a: b\u0085---\u0085" + "kind: Evil", "f.yaml document 1 line 1: a second document begins after an unusual line break"},
		{"UTF-16 in the middle", pod + "---\n\xff\xfea\x00", "f.yaml document 2 line 5: a byte order mark of UTF-16 inside the stream"},
		{"NUL", pod + "a: \x00", "f.yaml document 1 line 1: reading YAML: control characters are not allowed"},
		{"invalid UTF-8 in YAML", pod + "a: \xff", "f.yaml document 1 line 1: reading YAML: invalid leading UTF-8 octet"},
		{"invalid UTF-8 in JSON", "{\"a\":\"\xff\"}", "f.yaml document 1 line 1: invalid UTF-8 in a string"},
		{"half a surrogate pair in JSON", `{"a":"\ud800"}`, "f.yaml document 1 line 1: unpaired surrogate in a string"},
		{"two first halves in JSON", `{"a":"\ud800\ud800"}`, "f.yaml document 1 line 1: unpaired surrogate in a string"},
		{"odd UTF-16", "\xff\xfea", "f.yaml: UTF-16 of an odd number of bytes"},
		{"half a surrogate pair in UTF-16", "\xff\xfe\x00\xd8", "f.yaml: unpaired UTF-16 surrogate"},
		{"half a surrogate pair before another in UTF-16", "\xff\xfe\x00\xd8a\x00", "f.yaml: unpaired UTF-16 surrogate"},
		{"too deep in YAML", pod + "spec: " + deep, "f.yaml document 1 line 1: nested deeper than 256 levels"},
		{"too deep in JSON", `{"a":` + deep + `}`, "f.yaml document 1 line 1: nested deeper than 256 levels"},
		{"JSON cut short", `{"apiVersion":"v1"`, "f.yaml document 1 line 1: reading YAML: did not find expected ',' or '}'"},
		{"text after two JSON objects", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}} x`, "f.yaml document 3 line 1: reading JSON: want an object, got 'x'"},
		{"text after a JSON object", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}} x`, "f.yaml document 2 line 1: reading JSON: want an object, got 'x'"},
		{"all errors of a stream", "kind: Pod\nmetadata: {name: a}\n---\n" + pod + "---\nfoo: [\n---\napiVersion: v1\nmetadata: {name: a}\n",
			"f.yaml document 1 line 1: no apiVersion; f.yaml document 3 line 8: reading YAML: did not find expected node content; f.yaml document 4 line 10: no kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objs, err := Parse([]byte(tt.in), "f.yaml")
			if err == nil {
				t.Fatalf("got %s, want an error", summary(objs))
			}
			if objs != nil {
				t.Errorf("got objects %s beside an error", summary(objs))
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var one *Error
			if !errors.As(err, &one) || one.File != "f.yaml" {
				t.Errorf("error %v is no *Error of the file", err)
			}
		})
	}
}

func TestParseBoundsWhatAliasesMakeOfAStream(t *testing.T) {
	bomb := pod + "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "]\n"
	}
	big := pod + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 100) + "]\n"
	for _, tt := range []struct{ name, in, want string }{
		{"many aliases", bomb, "f.yaml document 1 line 1: reading YAML: document contains excessive aliasing"},
		{"few aliases of a big string", big, "f.yaml document 1 line 1: document too large once its aliases are expanded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.in), "f.yaml")
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestParseBoundsAStream(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []byte
		want string
	}{
		{"stream", make([]byte, MaxStream+1), "f.yaml: stream of 67108865 bytes, want at most 67108864"},
		{"YAML document", append([]byte(pod), []byte("#"+strings.Repeat("x", MaxDocument))...), "f.yaml document 1 line 1: YAML document of 16777262 bytes, want at most 16777216"},
		{"objects", []byte(strings.Repeat(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`+"\n---\n", MaxObjects+2)), "f.yaml document 50001 line 100001: more than 50000 objects in the stream"},
		{"errors", []byte(strings.Repeat("a\n---\n", 200)), "f.yaml document 1 line 1: document is a string, want a Kubernetes object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.in, "f.yaml")
			var errs Errors
			if !errors.As(err, &errs) || errs[0].Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if len(errs) > maxErrors {
				t.Errorf("got %d errors, want at most %d", len(errs), maxErrors)
			}
		})
	}
}

func TestFileNamesCannotForgeAMessage(t *testing.T) {
	_, err := Parse([]byte("a"), "x: SYNC\nALLOWED")
	want := `"x: SYNC\nALLOWED" document 1 line 1: document is a string, want a Kubernetes object`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestObjectAccessors(t *testing.T) {
	o := Object{Tree: tree(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"n","namespace":"ns","generateName":"g"}}`), File: "d.yaml", Document: 2}
	got := []string{o.Group(), o.Version(), o.Kind(), o.Namespace(), o.Name(), o.GenerateName(), o.Where()}
	want := []string{"apps", "v1", "Deployment", "ns", "n", "g", "d.yaml document 2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	core := Object{Tree: tree(t, `{"apiVersion":"v1"}`)}
	if core.Group() != "" || core.Version() != "v1" {
		t.Errorf("got group %q version %q, want the core group, v1", core.Group(), core.Version())
	}
	var zero Object
	for _, s := range []string{zero.Group(), zero.Version(), zero.Kind(), zero.Namespace(), zero.Name(), zero.GenerateName()} {
		if s != "" {
			t.Errorf("zero object says %q", s)
		}
	}
}
