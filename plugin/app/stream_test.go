package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
)

// TestAStreamMayHaveALock: somebody else renders, the repository signs.
func TestAStreamMayHaveALock(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, ".syncgate", "images")
	must(t, os.MkdirAll(images, 0o755))
	digest := "sha256:" + strings.Repeat("ab", 32)
	must(t, os.WriteFile(filepath.Join(images, "ghcr.io+acme+web.lock"), []byte(`- {name: ghcr.io/acme/web, tag: "1.5", digest: `+digest+"}\n"), 0o600))
	s := app.Settings{
		Namespace: "shop", Effective: effective(t, ""), Lock: dir,
		Stream: &app.Stream{Data: []byte(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: "ghcr.io/acme/web:1.5"}]}}`), File: "stream"},
	}
	b, err := app.New(t.Context(), s)
	must(t, err)
	if o := b.Objects[0]; o.Problem != nil || len(o.Pinned) != 1 || !strings.HasSuffix(o.Pinned[0].New, "@"+digest) {
		t.Errorf("with the lock: got problem %v, pinned %+v", o.Problem, o.Pinned)
	}
	s.Lock = ""
	b, err = app.New(t.Context(), s)
	must(t, err)
	if o := b.Objects[0]; o.Problem == nil || len(o.Pinned) != 0 {
		t.Errorf("without the lock: got problem %v, pinned %+v", o.Problem, o.Pinned)
	}
}
