package projection

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// FuzzProject: no panic; the order of keys means nothing; a projection's
// paths are unique, say where they point, and are sorted; projecting leaves
// the object as it was; EachImage visits every reference that is a leaf.
func FuzzProject(f *testing.F) {
	for _, in := range everywhere {
		f.Add(mustJSON(f, parse(f, in)))
	}
	for _, in := range []string{injected, deployment("containers: [{name: 'A].x', env: [{name: 'A].valueFrom.secretKeyRef.name', valueFrom: {secretKeyRef: {name: s, key: k}}}]}]"),
		`{apiVersion: example.com/v1, kind: Thing, steps: [{image: a}], volumes: [{image: {reference: b}}]}`, // a volume without a name
		`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, ports: [{port: 80}]}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{kind: User, name: a}], roleRef: {name: r}}`,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {ingress: [{}]}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {labels: {a: b, "c.d/e": ""}}}`,
		`{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {sources: [{targetRevision: x}], "a.b": {"[c]": 1}}}`,
	} {
		f.Add(mustJSON(f, parse(f, in)))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var obj map[string]any
		if d.Decode(&obj) != nil || obj == nil {
			t.Skip()
		}
		before := mustJSON(t, obj)
		p, err := Project(obj)
		if after := mustJSON(t, obj); !bytes.Equal(before, after) {
			t.Fatalf("the object was changed: %s -> %s", before, after)
		}
		UnknownImages(obj)
		if err != nil {
			if _, again := Project(obj); again == nil || again.Error() != err.Error() {
				t.Fatalf("error %q, then %v", err, again)
			}
			return
		}
		seen, images := map[string]bool{}, []string{}
		for i, l := range p.Leaves() {
			k := string(l.Category) + " " + l.Path
			if seen[k] {
				t.Errorf("%s stands twice", k)
			}
			seen[k] = true
			if s, ok := l.Value.(string); ok && s != "" && l.Category == Image {
				images = append(images, l.Path+" "+s)
			}
			if i > 0 && p.leaves[i-1].Category == l.Category && comparePaths(p.leaves[i-1].Path, l.Path) >= 0 {
				t.Errorf("%s is out of order", k)
			}
		}
		q, err := Project(clone(obj).(map[string]any))
		if err != nil || len(Diff(p, q)) > 0 {
			t.Errorf("a copy differs: %v %v", err, Diff(p, q))
		}
		canonical, err := p.Canonical(p.Applies())
		if err != nil || !json.Valid(canonical) {
			t.Errorf("canonical form %s, %v", canonical, err)
		}
		var visited []string
		err = EachImage(obj, func(path, ref string) (string, error) {
			if ref != "" {
				visited = append(visited, path+" "+ref)
			}
			return ref, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range images {
			if !contains(visited, i) {
				t.Errorf("image leaf %q, visited %q", i, visited)
			}
		}
	})
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzPath: whatever names an object holds, a path says which they were; so
// two different places never have one path.
func FuzzPath(f *testing.F) {
	f.Add("containers", "web", "env", "A].valueFrom.secretKeyRef.name")
	f.Add("a.b", "#0", "", "\"")
	f.Add("é", "[", "]", "\u2028")
	f.Fuzz(func(t *testing.T, field, k, inner, last string) {
		for _, s := range []string{field, k, inner, last} {
			if !utf8.ValidString(s) {
				t.Skip()
			}
		}
		path := fieldName(field) + key(k) + "." + fieldName(inner) + index("", 3) + key(last)
		want := []segment{{name: field, position: -1}, {name: k, bracket: true, position: -1}, {name: inner, position: -1}, {bracket: true, position: 3}, {name: last, bracket: true, position: -1}}
		if diff := cmp.Diff(want, segments(path), cmp.AllowUnexported(segment{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	})
}
