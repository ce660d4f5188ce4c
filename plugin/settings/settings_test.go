package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/settings"
)

func TestAnnotationsAreReadStrictly(t *testing.T) {
	tests := []struct {
		name        string
		annotations map[string]string
		want        settings.Entry
		refused     string
	}{
		{"none", nil, settings.Entry{}, ""},
		{"those of others", map[string]string{"example.com/mode": "x", "argocd.argoproj.io/refresh": "hard"}, settings.Entry{}, ""},
		{"the controller's, and a receipt", map[string]string{"syncgate.io/status": "x", "syncgate.io/receipt": "y"}, settings.Entry{}, ""},
		{"all", map[string]string{"syncgate.io/mode": "Enforce", "syncgate.io/environment": "prod-eu", "syncgate.io/categories": "service, x-tools,-rbac",
			"syncgate.io/renderer": "helm", "syncgate.io/lock": "locks/web app"},
			settings.Entry{Mode: "Enforce", Environment: "prod-eu", Categories: []string{"service", "x-tools", "-rbac"}, Renderer: "helm", Lock: "locks/web app"}, ""},
		{"another case", map[string]string{"syncgate.io/Mode": "Enforce"}, settings.Entry{}, `annotation "syncgate.io/Mode" is none of syncgate.io/categories, `},
		{"a slip", map[string]string{"syncgate.io/moed": "Enforce", "syncgate.io/mode": "Enforce"}, settings.Entry{}, `annotation "syncgate.io/moed" is none of syncgate.io/categories, syncgate.io/environment, syncgate.io/lock, syncgate.io/mode, syncgate.io/receipt, syncgate.io/renderer`},
		{"a mode in lower case", map[string]string{"syncgate.io/mode": "enforce"}, settings.Entry{}, `annotation syncgate.io/mode: got "enforce", want Enforce, Warn`},
		{"no mode", map[string]string{"syncgate.io/mode": ""}, settings.Entry{}, `annotation syncgate.io/mode: got ""`},
		{"no category", map[string]string{"syncgate.io/categories": ""}, settings.Entry{}, `annotation syncgate.io/categories: got ""`},
		{"a comma too many", map[string]string{"syncgate.io/categories": "image,"}, settings.Entry{}, `annotation syncgate.io/categories: got ""`},
		{"an environment of two words", map[string]string{"syncgate.io/environment": "prod eu"}, settings.Entry{}, `annotation syncgate.io/environment: got "prod eu"`},
		{"a lock outside", map[string]string{"syncgate.io/lock": "../other"}, settings.Entry{}, `annotation syncgate.io/lock: got "../other"`},
		{"a lock from the root", map[string]string{"syncgate.io/lock": "/etc"}, settings.Entry{}, `annotation syncgate.io/lock: got "/etc"`},
		{"a renderer that there is not", map[string]string{"syncgate.io/renderer": "sh"}, settings.Entry{}, `annotation syncgate.io/renderer: got "sh"`},
		{"two mistakes", map[string]string{"syncgate.io/renderer": "sh", "syncgate.io/x": ""}, settings.Entry{}, `want kustomize, helm, directory, command; annotation "syncgate.io/x" is none of`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := settings.Parse(tt.annotations, "syncgate.io/receipt", "example.com/other")
			if tt.refused != "" {
				if !strings.Contains(got.Refused, tt.refused) {
					t.Errorf("got %q, want %q in it", got.Refused, tt.refused)
				}
				got.Refused = ""
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEntryComesBackAsItWas(t *testing.T) {
	for _, want := range []settings.Entry{
		{},
		{Mode: "Enforce", Environment: "prod", Categories: []string{"service"}, Renderer: "helm", Lock: "locks/web"},
		settings.Refuse("not <this> \xff, \u2028 \" way"),
		settings.Refuse(strings.Repeat("long ", 1000)),
	} {
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, dir, "team-a_web.1", text)
		got, err := settings.Load(dir, "team-a_web.1")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("entry (-want +got):\n%s", diff)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoEntryIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "unknown": `{"mood":"Enforce"}`, "case": `{"Mode":"Enforce"}`, "twice": `{"mode":"Enforce","mode":"Warn"}`,
		"null": `null`, "type": `{"mode":1}`, "more": `{}{}`, "large": `{"refused":"` + strings.Repeat("x", 4<<10) + `"}`,
	} {
		write(t, dir, name, text)
		if e, err := settings.Load(dir, name); err == nil || errors.Is(err, settings.ErrMissing) {
			t.Errorf("%s: got %v, %v, want an error that is not about absence", name, e, err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"folder", "", "..", "../x", "a/b", "A"} {
		if _, err := settings.Load(dir, name); err == nil || errors.Is(err, settings.ErrMissing) {
			t.Errorf("%q: got %v, want an error that is not about absence", name, err)
		}
	}
	if _, err := settings.Load(dir, "absent"); !errors.Is(err, settings.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
	if _, err := (settings.Entry{Lock: strings.Repeat("x", 3000)}).Encode(); err == nil {
		t.Error("an entry that Load would not read was encoded")
	}
}

func TestKeysAreWhatArgoCDCallsApplications(t *testing.T) {
	if got := settings.Key("argocd", "argocd", "web"); got != "web" {
		t.Errorf("got %q", got)
	}
	if got := settings.Key("argocd", "team-a", "web"); got != "team-a_web" || !settings.ValidKey(got) {
		t.Errorf("got %q", got)
	}
	if settings.ValidKey(settings.Key("argocd", strings.Repeat("n", 63), strings.Repeat("a", 253))) {
		t.Error("a key that no ConfigMap takes is valid")
	}
}
