package projection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func operators() *Projector {
	return NewProjector([]CustomField{
		{Group: "monitoring.coreos.com", Kind: "Prometheus", Path: "spec.image", Category: "x-operators", Pin: true},
		{Group: "monitoring.coreos.com", Kind: "Prometheus", Path: "spec.remoteWrite", Category: "x-egress"},
		{Group: "apps", Kind: "Deployment", Path: "spec.paused", Category: "x-paused"},
	})
}

const prometheus = `{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: p},
spec: {image: "quay.io/prometheus/prometheus:v3", replicas: 2, remoteWrite: [{url: "https://a"}]}}`

func TestCustomFieldsAreLeavesOfTheirOwnCategories(t *testing.T) {
	p, err := operators().Project(parse(t, prometheus))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range p.Leaves() {
		got = append(got, l.String())
	}
	want := []string{`x-egress spec.remoteWrite = [{"url":"https://a"}]`, `x-operators spec.image = "quay.io/prometheus/prometheus:v3"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaves (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Category{"x-egress", "x-operators"}, p.Applies()); diff != "" {
		t.Errorf("applies (-want +got):\n%s", diff)
	}
	if got := p.Images(); len(got) != 1 || got[0].Path != "spec.image" {
		t.Errorf("images: %v", got)
	}
}

// Whoever names no custom field shares every digest with whoever does.
func TestCustomFieldsChangeNoDigestOfOtherCategories(t *testing.T) {
	in := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {paused: true, template: {spec: {hostPID: true, containers: [{name: c, image: "a:1"}]}}}}`
	plain, err := Project(parse(t, in))
	if err != nil {
		t.Fatal(err)
	}
	custom, err := operators().Project(parse(t, in))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := plain.Digest(plain.Applies())
	b, err := custom.Digest(plain.Applies())
	if err != nil || a != b {
		t.Errorf("digests differ: %s and %s (%v)", a, b, err)
	}
	if !custom.Has("x-paused") {
		t.Error("the custom field is no leaf")
	}
}

func TestCustomImagesArePinnedAndNoLongerUnknown(t *testing.T) {
	obj := parse(t, prometheus)
	if got := UnknownImages(obj); len(got) != 1 {
		t.Fatalf("unknown without policy: %v", got)
	}
	if got := operators().UnknownImages(obj); len(got) != 0 {
		t.Errorf("unknown with policy: %v", got)
	}
	err := operators().EachImage(obj, func(path, ref string) (string, error) { return ref + "@pinned", nil })
	if got := obj["spec"].(map[string]any)["image"].(string); err != nil || !strings.HasSuffix(got, "v3@pinned") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCustomImageOfTheWrongTypeIsMalformed(t *testing.T) {
	obj := parse(t, strings.Replace(prometheus, `"quay.io/prometheus/prometheus:v3"`, "{repository: a}", 1))
	if p, err := operators().Project(obj); err == nil {
		t.Errorf("got %v", p.Leaves())
	}
}
