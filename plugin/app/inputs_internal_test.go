package app

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/render"
)

func chartInputs(kube string, apis ...string) lock.RenderInputs {
	return lock.RenderInputs{KubeVersion: kube, APIVersions: apis, Renderers: map[string]string{"helm": "v4.3.2"}}
}

func TestOtherRenderInputsAreTold(t *testing.T) {
	kustomize := func(version string) lock.RenderInputs {
		return lock.RenderInputs{Renderers: map[string]string{"kustomize": version}}
	}
	for _, tc := range []struct {
		name        string
		now, signed lock.RenderInputs
		want        string
	}{
		{"nothing is known", chartInputs("1.35.0"), lock.RenderInputs{}, ""},
		{"the same", chartInputs("1.35.0", "example.com/v1"), chartInputs("v1.35.0", "example.com/v1"), ""},
		{"another Kubernetes", chartInputs("1.31"), chartInputs("1.35"), "rendered for Kubernetes 1.31.0, signed for 1.35.0"},
		{"another patch level", chartInputs("1.35.4"), chartInputs("1.35"), "rendered for Kubernetes 1.35.4, signed for 1.35.0"},
		{"the same Kubernetes in other words", chartInputs("1.35"), chartInputs("v1.35.0"), ""},
		{"another version of the renderer", kustomize("v0.21.2"), kustomize("v0.20.0"), "rendered by kustomize v0.21.2, signed with kustomize v0.20.0"},
		{"another renderer", kustomize("v0.21.2"), chartInputs("1.35"), "rendered by kustomize v0.21.2, signed with helm v4.3.2"},
		{"API versions that a cluster lists beside those that matter", chartInputs("1.35", "apps/v1", "apps/v1/Deployment", "networking.k8s.io/v1", "example.com/v1", "example.com/v1/X"), chartInputs("1.35", "example.com/v1"), ""},
		{"API versions on both sides", chartInputs("1.35", "a.example.com/v1", "b.example.com/v1", "c.example.com/v1", "d.example.com/v1", "e.example.com/v1"), chartInputs("1.35", "x.example.com/v1"),
			"rendered without the API versions x.example.com/v1, which signing had, rendered with the API versions a.example.com/v1, b.example.com/v1, c.example.com/v1 and 2 more, which signing had not"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := difference(tc.now, tc.signed); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnlyADigestThatDoesNotMatchIsExplained(t *testing.T) {
	b := &Build{Inputs: chartInputs("1.31"), signedFor: chartInputs("1.35")}
	results := []Result{
		{Items: []gate.Item{{Reason: gate.ReceiptMissing, Text: "a"}}},
		{Items: []gate.Item{{Reason: gate.DigestMismatch, Text: "b"}}},
		{Items: []gate.Item{{Reason: gate.DigestMismatch, Text: "c"}}},
	}
	b.explain(results)
	var got []string
	for _, r := range results {
		got = append(got, r.Items[0].Text)
	}
	if diff := cmp.Diff([]string{"a", "b; rendered for Kubernetes 1.31.0, signed for 1.35.0", "c"}, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestInputsAreRecordedWhereTheyMatter(t *testing.T) {
	dir := t.TempDir()
	record := func(r render.Result) lock.RenderInputs {
		t.Helper()
		b := &Build{Inputs: inputs(r)}
		if err := b.writeInputs(dir); err != nil {
			t.Fatal(err)
		}
		in, err := lock.ReadRenderInputs(dir)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	for _, step := range []struct {
		name string
		r    render.Result
		want lock.RenderInputs
	}{
		{"plain files leave no file", render.Result{Renderer: "directory"}, lock.RenderInputs{}},
		{"kustomize leaves its version", render.Result{Renderer: "kustomize v0.21.2"}, lock.RenderInputs{Renderers: map[string]string{"kustomize": "v0.21.2"}}},
		{"a chart leaves what it was rendered for", render.Result{Renderer: "helm v4.3.2", KubeVersion: "1.35", APIVersions: []string{"b/v1", "a/v1"}}, chartInputs("1.35", "a/v1", "b/v1")},
		{"plain files put it right", render.Result{Renderer: "directory"}, lock.RenderInputs{Renderers: map[string]string{"directory": ""}}},
	} {
		if diff := cmp.Diff(step.want, record(step.r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, strings.TrimSpace(diff))
		}
	}
}
