package pin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/pin"
)

// lock is a resolver of fixed answers that notes what it is asked.
type lock struct {
	digests map[string]string
	asked   []string
}

func (l *lock) Resolve(_ context.Context, r pin.Reference) (string, error) {
	l.asked = append(l.asked, r.Name()+":"+r.LookupTag())
	if d, ok := l.digests[r.Name()+":"+r.LookupTag()]; ok {
		return d, nil
	}
	return "", fmt.Errorf("%s: %w", r, pin.ErrNotLocked)
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func encode(t *testing.T, tree map[string]any) string {
	t.Helper()
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"spec":{
	"initContainers":[{"name":"init","image":"busybox"},{"name":"proxy","image":"auto"}],
	"containers":[{"name":"web","image":"ghcr.io/acme/web:1.5"},{"name":"side","image":"ghcr.io/acme/web:1.5"},{"name":"done","image":"a/b@sha256:%s"}],
	"volumes":[{"name":"model","image":{"reference":"quay.example/model:v1"}}]}}}}`

func auto(ref string) bool { return ref == "auto" }

func TestEveryImageOfAnObjectIsPinned(t *testing.T) {
	l := &lock{digests: map[string]string{
		"busybox:latest":        "sha256:" + hexA,
		"ghcr.io/acme/web:1.5":  "sha256:" + hexB,
		"quay.example/model:v1": "sha256:" + hexA,
	}}
	tree := object(t, fmt.Sprintf(deployment, hexA))
	got, err := pin.Object(t.Context(), tree, l, auto)
	if err != nil {
		t.Fatal(err)
	}
	want := []pin.Change{
		{"spec.template.spec.containers[side].image", "ghcr.io/acme/web:1.5", "ghcr.io/acme/web:1.5@sha256:" + hexB},
		{"spec.template.spec.containers[web].image", "ghcr.io/acme/web:1.5", "ghcr.io/acme/web:1.5@sha256:" + hexB},
		{"spec.template.spec.initContainers[init].image", "busybox", "busybox@sha256:" + hexA},
		{"spec.template.spec.volumes[model].image.reference", "quay.example/model:v1", "quay.example/model:v1@sha256:" + hexA},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	text := encode(t, tree)
	for _, c := range want {
		if !strings.Contains(text, `"`+c.New+`"`) || strings.Contains(text, `"`+c.Old+`"`) {
			t.Errorf("%s: got object %s, want %q in it", c.Path, text, c.New)
		}
	}
	if !strings.Contains(text, `"image":"auto"`) {
		t.Errorf("the allowed placeholder was changed: %s", text)
	}
	if want := []string{"ghcr.io/acme/web:1.5", "busybox:latest", "quay.example/model:v1"}; cmp.Diff(want, l.asked) != "" {
		t.Errorf("look-ups (-want +got):\n%s", cmp.Diff(want, l.asked))
	}
}

func TestOneFailureChangesNothingAndAllAreReported(t *testing.T) {
	l := &lock{digests: map[string]string{"ghcr.io/acme/web:1.5": "sha256:" + hexB, "busybox:latest": "sha256:short"}}
	tree := object(t, fmt.Sprintf(deployment, hexA))
	before := encode(t, tree)
	changes, err := pin.Object(t.Context(), tree, l, nil)
	if changes != nil {
		t.Errorf("got changes %v beside the error", changes)
	}
	if after := encode(t, tree); after != before {
		t.Errorf("object changed:\n%s", cmp.Diff(before, after))
	}
	var failures pin.Failures
	if !errors.As(err, &failures) {
		t.Fatalf("got error %v, want Failures", err)
	}
	var got []string
	for _, f := range failures {
		got = append(got, f.Path+" "+f.Image)
	}
	want := []string{
		"spec.template.spec.initContainers[init].image busybox",
		"spec.template.spec.initContainers[proxy].image auto",
		"spec.template.spec.volumes[model].image.reference quay.example/model:v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	for i, class := range []error{pin.ErrBadAnswer, pin.ErrNotReference, pin.ErrNotLocked} {
		if i < len(failures) && !errors.Is(failures[i], class) {
			t.Errorf("%s: got %v, want %v", failures[i].Path, failures[i], class)
		}
		if !errors.Is(err, class) {
			t.Errorf("the whole error is not %v", class)
		}
	}
}

func TestWithoutAResolverATagIsNotLocked(t *testing.T) {
	tree := object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}`)
	if _, err := pin.Object(t.Context(), tree, nil, nil); !errors.Is(err, pin.ErrNotLocked) {
		t.Errorf("got error %v, want %v", err, pin.ErrNotLocked)
	}
}

// pin(pin(x)) == pin(x), with no look-up the second time.
func TestPinningIsIdempotent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for range 500 {
		l := &lock{digests: map[string]string{}}
		var containers []any
		for i := range 1 + rng.IntN(4) {
			name := pick("", "docker.io/", "localhost:5000/", "ghcr.io/acme/") + pick("nginx", "web", "a-b/c_d")
			tag := pick("", ":latest", ":1.5", ":v1_2-x")
			digest := pick("", "", "@sha256:"+hexA)
			r, err := pin.Parse(name + tag + digest)
			if err != nil {
				t.Fatal(err)
			}
			l.digests[r.Name()+":"+r.LookupTag()] = "sha256:" + hexB
			containers = append(containers, map[string]any{"name": fmt.Sprint("c", i), "image": name + tag + digest})
		}
		tree := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"containers": containers}}
		if _, err := pin.Object(t.Context(), tree, l, nil); err != nil {
			t.Fatal(err)
		}
		once := encode(t, tree)
		l.asked = nil
		changes, err := pin.Object(t.Context(), tree, l, nil)
		if err != nil || len(changes) != 0 || len(l.asked) != 0 {
			t.Fatalf("second time: changes %v, look-ups %v, error %v; want none", changes, l.asked, err)
		}
		if twice := encode(t, tree); twice != once {
			t.Fatalf("second time (-once +twice):\n%s", cmp.Diff(once, twice))
		}
		for _, c := range containers {
			image, _ := c.(map[string]any)["image"].(string)
			if r, err := pin.Parse(image); err != nil || r.Digest() == "" {
				t.Fatalf("got image %q, %v; want it pinned", image, err)
			}
		}
	}
}
