package command_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/render/internal/command"
)

const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestTheObjectsThatACommandPrintsAreTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "d.yaml"), []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\n"+object), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := command.Run(t.Context(), sh("echo warning >&2; cat d.yaml"), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range got {
		names = append(names, o.Where()+": "+o.Kind()+" "+o.Name())
	}
	if diff := cmp.Diff([]string{"output document 1: Secret s", "output document 2: ConfigMap c"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestAFailureIsNeverLost(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name string
		argv []string
		want string
	}{
		{"a status", sh("echo '" + object + "'; echo 'no key' >&2; exit 3"), `"sh" ended with exit status 3: no key`},
		{"a status without words", sh("exit 1"), `"sh" ended with exit status 1`},
		{"a signal", sh("kill -9 $$"), `"sh" ended with signal: killed`},
		{"a pipe whose first command fails", []string{"bash", "-o", "pipefail", "-c", "(echo '" + object + "'; exit 4) | cat"}, `"bash" ended with exit status 4`},
		{"nothing", sh("true"), `"sh" printed nothing`},
		{"only white space", sh("echo; echo skipped >&2"), `"sh" printed nothing: skipped`},
		{"no objects", sh("echo hello"), "output document 1"},
		{"half an object", sh(`printf '{"apiVersion":"v1","kind":"Conf'`), "output document 1"},
		{"a program that is not there", []string{"/nowhere/renderer"}, `running "renderer": no such file or directory`},
		{"a name that is not in PATH", []string{"no-such-renderer"}, `running "no-such-renderer": executable file not found in $PATH`},
		{"no program", nil, "no command is configured"},
		{"complaints of several lines, cut off", sh("i=0; while [ $i -lt 100 ]; do echo line $i >&2; i=$((i+1)); done; exit 1"), "exit status 1: line 0 line 1 "},
		{"a path of this machine", sh("echo cannot read $PWD/key in $HOME >&2; exit 1"), "cannot read " + filepath.Base(dir) + "/key in syncgate-render-"},
		{"too much", sh("yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), `"sh" prints more than 67108864 bytes`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := command.Run(t.Context(), tc.argv, dir, "")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, error %v; want one with %q", got, err, tc.want)
			}
			if got != nil {
				t.Errorf("got objects with an error: %v", got)
			}
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, os.TempDir()) || len(text) > 500 {
				t.Errorf("got error %q, want one short line without temporary paths", text)
			}
		})
	}
}

func TestACommandHasNobodysHome(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/home/somebody/.config")
	t.Setenv("VAULT_ADDR", "https://vault.example.com")
	got, err := command.Run(t.Context(), sh(`
		[ "$HOME" != "`+os.Getenv("HOME")+`" ] && [ -z "$XDG_CONFIG_HOME" ] && [ "$TMPDIR" = "$HOME/tmp" ] && touch "$TMPDIR/x" "$HOME/y" || exit 1
		read line && exit 2
		echo "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {home: $HOME, vault: $VAULT_ADDR}}"`), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	data, _ := got[0].Tree["data"].(map[string]any)
	if data["vault"] != "https://vault.example.com" {
		t.Errorf("got VAULT_ADDR %q, want the operator's", data["vault"])
	}
	home, _ := data["home"].(string)
	if _, err := os.Stat(home); home == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for the home %q afterwards, want %v", err, home, os.ErrNotExist)
	}
}

// What a command starts ends with it: a child that goes on would hold the
// output open, or run in a container that all tenants share.
func TestTheWholeProcessGroupEnds(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		cancel       bool
		want         error
	}{
		{"when time is up", "sleep 600 & echo $! > pid; wait", true, context.Canceled},
		{"when the command ends first", "sleep 600 >/dev/null 2>&1 & echo $! > pid; echo '" + object + "'", false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pid := func() string {
				data, _ := os.ReadFile(filepath.Join(dir, "pid"))
				return strings.TrimSpace(string(data))
			}
			if tc.cancel {
				go func() {
					for pid() == "" {
						time.Sleep(5 * time.Millisecond)
					}
					cancel()
				}()
			}
			_, err := command.Run(ctx, sh(tc.script), dir, "")
			if !errors.Is(err, tc.want) {
				t.Fatalf("got error %v, want %v", err, tc.want)
			}
			gone := false
			for i := 0; i < 2000 && !gone; i++ {
				state, err := os.ReadFile("/proc/" + pid() + "/stat")
				// A zombie waits for its new parent only.
				gone = err != nil || strings.Contains(string(state), ") Z ")
				time.Sleep(5 * time.Millisecond)
			}
			if !gone {
				t.Errorf("process %s is still there", pid())
			}
		})
	}
}

func TestAChildThatHoldsTheOutputIsAFailure(t *testing.T) {
	_, err := command.Run(t.Context(), sh("setsid sleep 5 & echo '"+object+"'"), t.TempDir(), "")
	if err == nil || !strings.Contains(err.Error(), "left a process behind") {
		t.Errorf("got error %v, want one about a process that is left", err)
	}
}
