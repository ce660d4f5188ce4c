package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func encode(t *testing.T, objs []Object) string {
	t.Helper()
	var out bytes.Buffer
	if err := Encode(&out, objs); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestEncodeWritesOneSortedObjectALine(t *testing.T) {
	in := "kind: ConfigMap\nmetadata: {name: a}\napiVersion: v1\ndata: {html: '<a href=\"x\">&amp;</a>', u: \"\\u2028é\"}\nx: [1.50, 010, 1e3, 100000000000000000000, yes, ~]\n---\n" +
		`{"kind":"A","apiVersion":"v1","metadata":{"name":"b"},"n":[1.50,1E+3,-0,123456789012345678901234567890]}`
	objs, err := Parse([]byte(in), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","data":{"html":"<a href=\"x\">&amp;</a>","u":"\u2028é"},"kind":"ConfigMap","metadata":{"name":"a"},"x":[1.5,8,1000,100000000000000000000,true,null]}
{"apiVersion":"v1","kind":"A","metadata":{"name":"b"},"n":[1.50,1E+3,-0,123456789012345678901234567890]}
`
	if d := cmp.Diff(want, encode(t, objs)); d != "" {
		t.Error(d)
	}
}

func TestEncodeWritesNothingWhenAnObjectCannotBeEncoded(t *testing.T) {
	good := Object{Tree: tree(t, `{"kind":"A"}`)}
	for _, bad := range []Object{{}, {Tree: map[string]any{"x": math.NaN()}}, {Tree: map[string]any{"x": json.Number("1x")}}} {
		for name, f := range map[string]func(io.Writer, []Object) error{"Encode": Encode, "EncodeYAML": EncodeYAML} {
			var out bytes.Buffer
			if err := f(&out, []Object{good, bad}); err == nil {
				t.Errorf("%s of %v: got no error", name, bad.Tree)
			}
			if out.Len() > 0 {
				t.Errorf("%s of %v: wrote %q beside an error", name, bad.Tree, out.String())
			}
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestEncodeReportsAWriterThatFails(t *testing.T) {
	objs := []Object{{Tree: tree(t, `{"kind":"A"}`)}}
	for name, f := range map[string]func(io.Writer, []Object) error{"Encode": Encode, "EncodeYAML": EncodeYAML} {
		if err := f(brokenWriter{}, objs); err == nil || err.Error() != "writing manifests: disk full" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEncodeYAMLIsBlockStyleAndMeansTheSame(t *testing.T) {
	in := `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"s":["yes","010","1.5","null","~","","a: b","- a","# c","|","1:30","2001-01-01","<<","=","a\nb\n"," a","a\n---\nb\n"],"n":[1,1.5,true,null,1e+21],"e":[{},[]]}
{"apiVersion":"v1","kind":"A","metadata":{"name":"b"},"n":1.50}`
	objs, err := Parse([]byte(in), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
e:
- {}
- []
kind: A
metadata:
  name: a
"n":
- 1
- 1.5
- true
- null
- 1e+21
s:
- "yes"
- "010"
- "1.5"
- "null"
- "~"
- ""
- 'a: b'
- '- a'
- '# c'
- '|'
- "1:30"
- "2001-01-01"
- <<
- =
- |
  a
  b
- ' a'
- |
  a
  ---
  b
---
{"apiVersion":"v1","kind":"A","metadata":{"name":"b"},"n":1.50}
`
	var out bytes.Buffer
	if err := EncodeYAML(&out, objs); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
	back, err := Parse(out.Bytes(), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(objs, back); d != "" {
		t.Error(d)
	}
}

// roundTrip fails unless writing and reading, in both forms, is the identity.
func roundTrip(t *testing.T, objs []Object) {
	t.Helper()
	first := encode(t, objs)
	again, err := Parse([]byte(first), "f.yaml")
	if err != nil {
		t.Fatalf("parsing our own output: %v\n%s", err, first)
	}
	if second := encode(t, again); first != second {
		t.Fatalf("encoding again differs:\n%s\n%s", first, second)
	}
	var text bytes.Buffer
	if err := EncodeYAML(&text, objs); err != nil {
		t.Fatal(err)
	}
	read, err := Parse(text.Bytes(), "f.yaml")
	if err != nil {
		t.Fatalf("parsing our own YAML: %v\n%s", err, text.String())
	}
	if second := encode(t, read); first != second {
		t.Fatalf("through YAML:\n%s\n%s\n%s", first, second, text.String())
	}
}

func TestCorpusSurvivesARoundTrip(t *testing.T) {
	n := 0
	corpusFiles(t, func(name string, data []byte) {
		objs, err := Parse(data, "f.yaml")
		if err != nil {
			return
		}
		n += len(objs)
		roundTrip(t, objs)
	})
	t.Logf("%d objects", n)
	if n < 4000 {
		t.Errorf("%d objects, want at least 4000", n)
	}
}

// FuzzStream: what Parse accepts is what the reference reads, and writing it is
// a fixed point.
func FuzzStream(f *testing.F) {
	for _, s := range []string{"", pod, pod + "---\n" + pod, "--- # c\n" + pod + "...\n", strings.ReplaceAll(pod, "\n", "\r\n"),
		"%YAML 1.1\n---\n" + pod, pod + "x: |\n  ---\n  y\n", pod + "x: &a {b: 1}\ny: {<<: *a, b: 2}\n", pod + "x: [yes, 010, 1.50, ~, 0x1f, 1e3]\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"x":["\u00e9\ud83d\ude00\u2028",-0,1.50,1E9]}` + pod,
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {generateName: a}}]\n", pod + "\r---\r" + pod} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objs, err := Parse(data, "f.yaml")
		if err != nil {
			if objs != nil || err.Error() == "" {
				t.Fatalf("objects %v beside error %q", objs, err)
			}
			return
		}
		for _, o := range objs {
			if o.Kind() == "" || o.Version() == "" || o.Name() == "" && o.GenerateName() == "" {
				t.Fatalf("object without identity: %v", o.Tree)
			}
		}
		roundTrip(t, objs)
	})
}

// FuzzJSON: the JSON reader agrees with encoding/json, but for what it refuses
// on purpose.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,-0.5e+3,"\u00e9\n\ud83d\ude00",true,false,null,{}]}`, `{"a":1,"a":2}`, `{"a":01}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":[}`, `{"a":1,}`, "{\"a\":\"\x01\"}", `{"a":nul}`, `{"":1E+}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := jsonParser{data: data}
		got, err := p.value(0)
		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		wantErr := d.Decode(&want)
		switch {
		case err == nil && wantErr != nil:
			t.Fatalf("accepted %q, encoding/json says %v", data, wantErr)
		case err == nil:
			if diff := cmp.Diff(any(want), got); diff != "" {
				t.Fatal(diff)
			}
		case err.syntax && wantErr == nil && want != nil:
			t.Fatalf("%q is JSON, got %s", data, err.msg)
		}
	})
}
