package scaffold_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/flux/scaffold"
	"github.com/syncgate/syncgate/plugin/policy"
)

// applies is a Flux Kustomization that renders a path.
func applies(name, path string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: " + name + "\nspec:\n  path: " + path + "\n  sourceRef: {kind: GitRepository, name: all}\n"
}

// TestOnlyWhatAGatedKustomizationRendersIsAChild: whoever applies the gated one
// itself would apply a placeholder as it is.
func TestOnlyWhatAGatedKustomizationRendersIsAChild(t *testing.T) {
	published := strings.Replace(applies("shop", "./"), "GitRepository, name: all", "ExternalArtifact, name: syncgate-flux-shop", 1)
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"the parent is none": {map[string]string{"clusters/shop.yaml": applies("shop", "./apps/shop"), "apps/shop/a.yaml": applies("a", "./x")}, []string{"apps/shop/a.yaml"}},
		"below":              {map[string]string{"shop.yaml": applies("shop", "apps"), "apps/shop/deep/a.yaml": applies("a", "./x"), "apps2/b.yaml": applies("b", "./x")}, []string{"apps/shop/deep/a.yaml"}},
		"what a kustomization names": {map[string]string{"shop.yaml": applies("shop", "/apps"), "apps/kustomization.yaml": "resources: [a.yaml, ../base]\n",
			"apps/a.yaml": applies("a", "./x"), "apps/b.yaml": applies("b", "./x"), "base/Kustomization": "resources: [c.yaml]\n", "base/c.yaml": applies("c", "./x"), "base/d.yaml": applies("d", "./x")},
			[]string{"apps/a.yaml", "base/c.yaml"}},
		"a kustomization further down": {map[string]string{"shop.yaml": applies("shop", "apps"), "apps/sub/kustomization.yml": "components: [../../c]\n", "apps/sub/a.yaml": applies("a", "./x"), "apps/sub/deep/d.yaml": applies("d", "./x"), "apps/b.yaml": applies("b", "./x"), "c/c.yaml": applies("c", "./x")},
			[]string{"apps/b.yaml", "c/c.yaml"}},
		"of a child":                    {map[string]string{"shop.yaml": applies("shop", "apps"), "apps/a.yaml": applies("a", "./more"), "more/b.yaml": applies("b", "./x")}, []string{"apps/a.yaml", "more/b.yaml"}},
		"one that renders itself":       {map[string]string{"clusters/shop.yaml": applies("shop", "./clusters")}, []string{"clusters/shop.yaml"}},
		"the whole repository":          {map[string]string{"shop.yaml": applies("shop", "./"), "a/a.yaml": applies("a", "./x")}, []string{"a/a.yaml", "shop.yaml"}},
		"no parent is given":            {map[string]string{"apps/shop/a.yaml": applies("a", "./x")}, nil},
		"the parent in artifact mode":   {map[string]string{"shop.yaml": published, "apps/a.yaml": applies("a", "./x")}, nil},
		"bases that name one another":   {map[string]string{"shop.yaml": applies("shop", "a"), "a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a, x.yaml]\n", "b/x.yaml": applies("x", "./y")}, []string{"b/x.yaml"}},
		"a file that is in no checkout": {map[string]string{"": applies("shop", "./")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := policy.Defaults("prod")
			var files []scaffold.File
			for at, text := range c.files {
				files = append(files, scaffold.File{Name: "/elsewhere/" + at, Path: at, Text: []byte(text)})
			}
			for _, asked := range []bool{true, false} {
				r, err := scaffold.Write(files, scaffold.Options{Projector: e.Projector, Annotation: e.Annotation, Children: asked})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range r.Files {
					if strings.Contains(string(f.Text), "${syncgate_receipt_kustomization_") {
						got = append(got, f.Path)
					}
				}
				slices.Sort(got)
				want := c.want
				if !asked {
					want = nil
				}
				if noted := strings.Contains(strings.Join(r.Notes, "\n"), "renders any of these files"); noted != (asked && want == nil) {
					t.Errorf("children asked for: %v: got notes %q", asked, r.Notes)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("children asked for: %v: with a placeholder (-want +got):\n%s", asked, diff)
				}
			}
		})
	}
}
