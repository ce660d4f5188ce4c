package manifest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// reference decodes one document as kubectl and Argo CD do.
func reference(doc []byte) (any, error) {
	var v any
	err := sigsyaml.Unmarshal(doc, &v, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
	return v, err
}

// Every value must mean what it means to the parser in front of the API
// server, above all where YAML 1.1 and 1.2 differ.
func TestScalarsMeanWhatTheyMeanToTheAPIServer(t *testing.T) {
	scalars := strings.Fields(`yes Yes YES no n y N on On off OFF true True TRUE tRUE false null ~ Null nuLL
		0 -0 +1 1 010 0o10 0777 -017 08 0x1F 0X1f 0b11 -0b11 1_000 1__0 _1 0_7 1.0 1. .5 +.5 -.5 1e3 1E3 1e+3 1.5e-7 1e21 1e999 6e-7 12e03 .e1
		9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 -9223372036854775808 -9223372036854775809 0.1 123456789.123456789
		1:30 190:20:30 12:30:45 1.5:3 2001-12-14 2001-12-14T21:59:43Z 1.2.3 1.10 "010" '1' "yes" !!str
		!!str! "!!int" "a\tb" "\x41\u00e9\U0001F600" "\/" 'it''s' a#b a:b http://x:80/ <<x = - -- ... . .. ! "" '' @ 5m 1Gi 0.5 1/2 é 💥`)
	scalars = append(scalars, "!!str 8", "!!str yes", "!!int 8", `!!int "8"`, "!!float 3", "!!float 1", "!!bool yes", "!!null x", "!!null ''", "!foo bar", "!<tag:yaml.org,2002:str> 1",
		"!!binary aGVsbG8=", "!!timestamp 2001-12-14", "# c", "a # c", "|\n  a\n  b\n", "|-\n  a\n\n  b\n\n", "|+\n  a\n\n", ">\n  a\n  b\n\n  c\n", ">-\n  a\n    b\n  c\n", "|2\n    a\n   b\n", "|\n  a\r\n  b\r\n",
		"a\n  b\n\n  c", "\"a\n  b\"", "'a\n\n  b'", "[a, yes, 010, ~]", "{a: yes, 010: no, 1.5: x, on: y, ~x: 1}", "{a: , b}", "[]", "{}", "\n- a\n-\n  - b\n- c: d\n  e: f", "? a\n  : b", "&x a", "{a: &x [1], b: *x}",
		"{a: &x {k: 1}, b: {<<: *x, l: 2}}", "{a: &x {k: 1}, b: {<<: *x, k: 2}}", "{a: &x {k: 1}, y: &y {k: 3, m: 4}, b: {<<: [*x, *y], l: 2}}", `{"<<": 1}`, "{<<: {a: 1}}", "{'a': 1, \"b\": 2, ? c : 3}")
	same, refused := 0, 0
	for _, s := range scalars {
		for _, form := range []string{"k: %s\n", "k:\n- %s\n", "k: {a: [%s]}\n", "%s: v\n", "%s\n"} {
			doc := fmt.Sprintf(form, s)
			want, wantErr := reference([]byte(doc))
			got, err := parseYAML([]byte(doc), newBudget())
			switch {
			case err != nil && err.msg == "":
				t.Errorf("%q: refused without a reason", doc)
			case err != nil:
				refused++
			case wantErr != nil:
				t.Errorf("%q: got %v, but sigs.k8s.io/yaml refuses: %v", doc, got, wantErr)
			default:
				same++
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%q: (-sigs.k8s.io/yaml +got)\n%s", doc, d)
				}
			}
			if err != nil && wantErr == nil && !refusedOnPurpose.MatchString(err.msg) {
				t.Errorf("%q: refused, %s; sigs.k8s.io/yaml takes it", doc, err.msg)
			}
		}
	}
	t.Logf("%d documents mean the same, %d are refused", same, refused)
	if same < 500 {
		t.Errorf("only %d documents were compared, want at least 500", same)
	}
}

// What sigs.k8s.io/yaml takes and Parse refuses.
var refusedOnPurpose = regexp.MustCompile(`^(duplicate key|key .* stands before the merge|a second document begins|text after the document|nested deeper|not a number or infinity|a binary value|reading YAML: did not find expected <document start>)`)

// corpus returns the folder of public manifests, or skips.
func corpus(tb testing.TB) string {
	tb.Helper()
	root := os.Getenv("SYNCGATE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "corpus", "open")
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("no corpus: set SYNCGATE_SHARED to the folder that holds corpus/open")
	}
	return dir
}

// corpusFiles calls f with every YAML and JSON file.
func corpusFiles(tb testing.TB, f func(name string, data []byte)) {
	tb.Helper()
	dir := corpus(tb)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f(name, data)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// kubectlDocuments cuts a stream where the API machinery's YAMLReader does: at
// lines that begin with ---, after which it takes only a comment.
func kubectlDocuments(data []byte) ([]string, error) {
	docs := []string{""}
	for _, line := range strings.SplitAfter(string(data), "\n") {
		rest, marker := strings.CutPrefix(line, "---")
		if rest = strings.TrimSpace(rest); marker && rest != "" && rest[0] != '#' {
			return nil, fmt.Errorf("invalid document separator: %s", rest)
		}
		if marker {
			docs = append(docs, "")
			continue
		}
		docs[len(docs)-1] += line
	}
	return docs, nil
}

func TestCorpusMeansTheSameOrIsRefusedWithAReason(t *testing.T) {
	same, refusedBoth := 0, 0
	refused := map[string]int{}
	corpusFiles(t, func(name string, data []byte) {
		objs, err := Parse(data, "f.yaml")
		want, wantErr := referenceObjects(data)
		switch {
		case err == nil && wantErr != nil:
			t.Errorf("%s: accepted, but refused by the reference: %v", name, wantErr)
		case err == nil:
			var got []any
			for _, o := range objs {
				got = append(got, o.Tree)
			}
			same += len(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: (-reference +got)\n%s", name, d)
			}
		case wantErr != nil:
			refusedBoth++
		default:
			refused[reasonClass(err)]++
			if len(want) > 0 && !expectedRefusal.MatchString(err.Error()) {
				t.Errorf("%s: refused, but the reference has %d objects: %v", name, len(want), err)
			}
		}
	})
	t.Logf("%d objects the same; files refused by both: %d, by Parse alone: %v", same, refusedBoth, refused)
	if same < 4000 {
		t.Errorf("%d objects compared, want at least 4000", same)
	}
}

var (
	expectedRefusal = regexp.MustCompile(`: (duplicate key|no kind|no apiVersion|"[^"]*": no metadata\.name|document is|reading YAML: did not find expected <document start>|items\[\d+\]: (no |"[^"]*": no))`)
	classNoise      = regexp.MustCompile(`"[^"]*"(: )?|\d+`)
)

func reasonClass(err error) string {
	first, _, _ := strings.Cut(err.Error(), "; ")
	_, msg, _ := strings.Cut(first, ": ")
	return classNoise.ReplaceAllString(msg, "")
}

// referenceObjects is what kubectl and Argo CD make of a stream. (Of UTF-16
// they see the first document only; see TestParseFindsTheDocuments.)
func referenceObjects(data []byte) ([]any, error) {
	data, err := utf8Text(data)
	if err != nil {
		return nil, err
	}
	docs, err := kubectlDocuments(data)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, doc := range docs {
		v, err := reference([]byte(doc))
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if m, ok := v.(map[string]any); ok {
			if items, ok := m["items"].([]any); ok {
				out = append(out, items...)
				continue
			}
			if nullList(m) {
				continue
			}
		}
		out = append(out, v)
	}
	return out, nil
}
