package scaffold_test

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/flux/scaffold"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var digest = "sha256:" + strings.Repeat("a", 64)

// built is what a folder of manifests is built to, pinned (name:tag) and, if
// signed, with receipts, as a chart is.
func built(t *testing.T, signed bool, manifests string, pins ...string) *app.Build {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, ".syncgate", "images"), 0o755))
	locks := map[string]string{}
	for _, p := range pins {
		name, tag, _ := strings.Cut(p, ":")
		locks[name] += fmt.Sprintf("- {name: %s, tag: %q, digest: %s}\n", name, tag, digest)
	}
	for name, text := range locks {
		must(t, os.WriteFile(filepath.Join(dir, ".syncgate", "images", strings.ReplaceAll(name, "/", "+")+".lock"), []byte(text), 0o600))
	}
	e := policy.Defaults("prod")
	settings := app.Settings{Render: render.Options{Dir: dir, Root: dir, Renderer: render.Directory}, Namespace: "shop", Effective: e, Keep: app.KeepTrees}
	b, err := app.New(t.Context(), settings)
	must(t, err)
	if !signed {
		return b
	}
	key, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)), "k1", "EdDSA")
	must(t, err)
	s := app.Signing{Issuer: "release", Environment: "prod", Now: 1_800_000_000, Lifetime: 86400, Signer: key}
	drafts, err := b.Drafts(s, e)
	must(t, err)
	must(t, b.Write(drafts, s))
	b, err = app.New(t.Context(), settings)
	must(t, err)
	return b
}

const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: db # ours\nspec:\n  chart: {}\n"

// TestAHelmReleaseGetsWhatItsChartWasSignedWith, in the place of what it was
// signed with before.
func TestAHelmReleaseGetsWhatItsChartWasSignedWith(t *testing.T) {
	annotation := policy.Defaults("prod").Annotation
	b := built(t, true, deployment("db", "ghcr.io/acme/db:1", "ghcr.io/acme/side:2", "ghcr.io/acme/db:1")+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: free}\n",
		"ghcr.io/acme/db:1", "ghcr.io/acme/side:2")
	p, err := scaffold.OfChart(b, annotation)
	must(t, err)
	want := []scaffold.Image{{Name: "ghcr.io/acme/db", NewTag: "1", Digest: digest}, {Name: "ghcr.io/acme/side", NewTag: "2", Digest: digest}}
	if diff := cmp.Diff(want, p.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if len(p.Patches) != 1 || !strings.Contains(p.Patches[0].Patch, "kind: Deployment\nmetadata:\n    annotations:\n        "+annotation+": eyJ") || !strings.Contains(p.Patches[0].Patch, "name: db\n") {
		t.Fatalf("patches: got %+v", p.Patches)
	}

	write := func(text string, p *scaffold.PostRenderer) (string, []string) {
		t.Helper()
		e := policy.Defaults("prod")
		r, err := scaffold.Write([]scaffold.File{{Name: "helm.yaml", Text: []byte(text)}}, scaffold.Options{Projector: e.Projector, Annotation: annotation, Helm: p})
		must(t, err)
		return string(r.Files[0].Text), r.Notes
	}
	if _, notes := write(release, nil); len(notes) != 1 || !strings.Contains(notes[0], `HelmRelease "db": its chart is rendered by helm-controller; give --chart`) {
		t.Errorf("without a chart: notes %q", notes)
	}
	first, notes := write(release, p)
	if len(notes) > 0 || !strings.Contains(first, "name: db # ours\n") || strings.Count(first, "- kustomize:") != 1 || strings.Count(first, digest) != 2 || strings.Count(first, annotation+": eyJ") != 1 || !strings.Contains(first, "${syncgate_receipt_helmrelease_db}") {
		t.Errorf("got %s, notes %q", first, notes)
	}
	if again, _ := write(first, p); again != first {
		t.Errorf("a second run made\n%s\nof\n%s", again, first)
	}

	// Another version takes its place; what people wrote stays before it.
	theirs := strings.Replace(release, "spec:\n", "spec:\n  postRenderers:\n  - kustomize:\n      patches: []\n", 1)
	old, _ := write(theirs, p)
	other := *p
	other.Images = []scaffold.Image{{Name: "ghcr.io/acme/db", NewTag: "9", Digest: "sha256:" + strings.Repeat("b", 64)}}
	next, _ := write(old, &other)
	if strings.Count(next, "- kustomize:") != 2 || strings.Contains(next, digest) || !strings.Contains(next, "newTag: \"9\"") || strings.Index(next, "patches: []") > strings.Index(next, "newTag") {
		t.Errorf("with another version: got %s", next)
	}
}

// TestWhatNoPostRendererCanSay is an error that names the object.
func TestWhatNoPostRendererCanSay(t *testing.T) {
	for name, c := range map[string]struct {
		b    *app.Build
		want string
	}{
		"two tags of one image": {built(t, false, deployment("db", "ghcr.io/acme/db:1", "ghcr.io/acme/db:2"), "ghcr.io/acme/db:1", "ghcr.io/acme/db:2"),
			"the chart uses ghcr.io/acme/db as 1 and as 2, and a post-renderer gives a name one tag"},
		"an image without a pin": {built(t, false, deployment("db", "ghcr.io/acme/db:1")), "ghcr.io/acme/db:1"},
	} {
		p, err := scaffold.OfChart(c.b, "syncgate.io/receipt")
		if err == nil || p != nil || !strings.Contains(err.Error(), "Deployment shop/db: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v, want %q", name, p, err, c.want)
		}
	}
}

// TestAChartWithoutReceiptsIsPinnedAllTheSame: what is not signed is for the
// webhook.
func TestAChartWithoutReceiptsIsPinnedAllTheSame(t *testing.T) {
	p, err := scaffold.OfChart(built(t, false, deployment("db", "ghcr.io/acme/db:1"), "ghcr.io/acme/db:1"), "syncgate.io/receipt")
	must(t, err)
	if len(p.Images) != 1 || len(p.Patches) != 0 {
		t.Errorf("got %+v", p)
	}
}
