package kustomize

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjectsAreFoundAsTheyAreWritten(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []declaration
	}{
		{"nothing", "", nil},
		{"one", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n", []declaration{{"Pod", "web"}}},
		{"quotes, comments and the ends of lines of Windows", "# a Pod\r\nkind: \"Pod\" # x\r\nmetadata:\r\n\r\n  # y\r\n  name: 'web'  # z\r\n", []declaration{{"Pod", "web"}}},
		{"two, in another order", "metadata:\n    labels:\n        name: other\n    name: a\nkind: Pod\n---\nkind: Job\nmetadata:\n  name: b\nspec:\n  name: c\n", []declaration{{"Pod", "a"}, {"Job", "b"}}},
		{"names of others", "kind: Pod\nspec:\n  metadata:\n    name: web\n", nil},
		{"a name in a label", "kind: Pod\nmetadata:\n  labels:\n    name: web\n", nil},
		{"metadata on one line", "kind: Pod\nmetadata: {labels: {name: other}, finalizers: [name, x], name: \"web\"} # x\n", []declaration{{"Pod", "web"}}},
		{"metadata on several lines in braces", "kind: Pod\nmetadata: {labels: {name: other},\n  name: web}\n", nil},
		{"values", "kind: x\nname: y\n", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, declared([]byte(tc.text)), cmp.AllowUnexported(declaration{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatStandsInSeveralFilesIsInNone(t *testing.T) {
	var o origins
	pod := []byte("kind: Pod\nmetadata:\n  name: web\n")
	o.scan("patch.yaml", pod) // it is no resource
	o.list("a.yaml")
	o.scan("a.yaml", pod)
	o.scan("a.yaml", pod)
	if got := o.files[declaration{"Pod", "web"}]; got != "a.yaml" {
		t.Errorf("got %q", got)
	}
	o.list("b.yaml")
	o.scan("b.yaml", pod)
	o.scan("a.yaml", pod)
	if got := o.files[declaration{"Pod", "web"}]; got != "" {
		t.Errorf("in two files: got %q", got)
	}
}
