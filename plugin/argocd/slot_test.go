package argocd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/argocd/internal/slots"
)

func TestOnlySoManyRenderAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slots")
	r := request(t, configMap, prod, "SYNCGATE_SLOTS="+dir, "SYNCGATE_PARALLEL=1", "SYNCGATE_TIMEOUT=50ms")
	other, err := slots.Take(t.Context(), dir, 1)
	must(t, err)
	var out writer
	refused(t, argocd.Generate(context.Background(), r, &out, &writer{}), "GateBusy",
		"GATE ERROR [GateBusy] too many applications are rendered at once, and this one's turn did not come in time; Fix: nothing, it is tried again")
	if out.writes != 0 {
		t.Errorf("wrote %q", out.String())
	}
	// What needs no render is answered without a turn.
	must(t, os.WriteFile(filepath.Join(r.Dir, ".argocd-source.yaml"), []byte("plugin: {}\n"), 0o600))
	refused(t, argocd.Generate(context.Background(), r, &out, &writer{}), "RenderFailed", "changes the plugin")
	must(t, os.Remove(filepath.Join(r.Dir, ".argocd-source.yaml")))

	other.Free()
	must(t, argocd.Generate(context.Background(), request(t, configMap, prod, "SYNCGATE_SLOTS="+dir, "SYNCGATE_PARALLEL=1"), &out, &writer{}))
	if left, err := os.ReadDir(filepath.Join(dir, "0")); err == nil {
		t.Errorf("the folder of the slot is left, with %v", left)
	}
	for _, n := range []string{"0", "-1", "many", "257", "1.5"} {
		err := argocd.Generate(context.Background(), request(t, configMap, prod, "SYNCGATE_PARALLEL="+n), &out, &writer{})
		refused(t, err, "PolicyInvalid", "SYNCGATE_PARALLEL is \""+n+"\": want a number from 1 to 256")
	}
	must(t, os.Chmod(dir, 0o755))
	refused(t, argocd.Generate(context.Background(), r, &out, &writer{}), "PolicyInvalid", "SYNCGATE_SLOTS: the folder of slots: want one that belongs to this user, with mode 0700")
}

// TestACommandFindsNothingOfOthers: HOME and TMPDIR are in the slot, which is
// this render's alone and gone afterwards.
func TestACommandFindsNothingOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "slots")
	const script = `test -n "$HOME" && test "$(stat -c %a "$HOME" "$TMPDIR" "${HOME%/*}" | tr -d '\n')" = 700700700 && touch "$TMPDIR/secret" && printf '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"home":"%s"}}' "$HOME"`
	r := request(t, configMap, prod, "SYNCGATE_SLOTS="+dir, `SYNCGATE_RENDER_COMMAND=["sh","-c","`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(script)+`"]`)
	var out writer
	must(t, argocd.Generate(context.Background(), r, &out, &writer{}))
	if !strings.Contains(out.String(), `"home":"`+filepath.Join(dir, "0")+"/") {
		t.Errorf("got %s, want a home in %s", out.String(), dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "0")); !os.IsNotExist(err) {
		t.Errorf("the folder of the slot afterwards: got %v, want %v", err, os.ErrNotExist)
	}
}

func TestARepositoryThatChangesThePluginIsRefused(t *testing.T) {
	const fix = "; Fix: write it to the Application, and remove it from the repository"
	for _, tc := range []struct{ name, file, text, want string }{
		{"another plugin", ".argocd-source.yaml", "plugin: {name: other}\n", ".argocd-source.yaml changes the plugin of the Application" + fix},
		{"its environment", ".argocd-source.yaml", "plugin: {env: [{name: SYNCGATE_ENVIRONMENT, value: stage}]}\n", "changes the plugin"},
		{"nothing of it", ".argocd-source.yaml", "plugin: null\n", "changes the plugin"},
		{"for this application", ".argocd-source-web.yaml", "plugin: {parameters: []}\n", ".argocd-source-web.yaml changes the plugin"},
		{"in another case", ".argocd-source.yaml", "pLugin: {}\n", "changes the plugin"},
		{"by a merge key", ".argocd-source.yaml", "helm: &h {plugin: {name: other}}\n<<: *h\n", "changes the plugin"},
		{"nothing that can be read", ".argocd-source.yaml", "plugin: [\n", "cannot be read (no YAML object)"},
		{"no object", ".argocd-source.yaml", "- plugin\n", "cannot be read (no YAML object)"},
		{"behind a link", ".argocd-source.yaml", "-> a.yaml", "cannot be read (not a regular file)"},
		{"too much", ".argocd-source.yaml", strings.Repeat("#\n", 1<<20), "cannot be read (too large)"},
		{"for another application", ".argocd-source-api.yaml", "plugin: {name: other}\n", ""},
		{"another block, which Argo CD refuses", ".argocd-source.yaml", "kustomize: {namePrefix: a-}\n", ""},
		{"nothing at all", ".argocd-source.yaml", "", ""},
		{"deeper down", ".argocd-source.yaml", "helm: {plugin: x}\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(t, configMap, prod, `ARGOCD_APP_PARAMETERS=[{"name":"exclude","string":".*"}]`)
			path := filepath.Join(r.Dir, tc.file)
			if target, link := strings.CutPrefix(tc.text, "-> "); link {
				must(t, os.Symlink(target, path))
			} else {
				must(t, os.WriteFile(path, []byte(tc.text), 0o600))
			}
			var out writer
			err := argocd.Generate(context.Background(), r, &out, &writer{})
			if tc.want == "" {
				must(t, err)
				return
			}
			refused(t, err, "RenderFailed", tc.want)
			if out.writes != 0 {
				t.Errorf("wrote %q", out.String())
			}
		})
	}
}
