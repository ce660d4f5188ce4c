package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// TestPoliciesAreNotReadFromAPipe would never end if a pipe were opened as a
// file is: nobody writes to it.
func TestPoliciesAreNotReadFromAPipe(t *testing.T) {
	dir := t.TempDir()
	set, err := jwks("a1")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.json": set, "keys.yaml": strings.Replace(minimal, "a.json", "pipe", 1),
		"list.yaml": minimal + "revocations: {file: pipe, issuers: [a]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		reason     gate.Reason
	}{
		{"policy", "pipe", gate.PolicyInvalid},
		{"key set", "keys.yaml", gate.KeysUnavailable},
		{"revocation list", "list.yaml", gate.KeysUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(filepath.Join(dir, tt.file))
			var one *Error
			if !errors.As(err, &one) || one.Reason != tt.reason || !strings.HasSuffix(one.Msg, "not a regular file") {
				t.Errorf("got %v, want %s: not a regular file", err, tt.reason)
			}
		})
	}
}

func TestLoadReadsKeysBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	set, err := jwks("a1")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"policy.yaml": minimal, "a.json": set} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(filepath.Join(dir, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.json"), make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Load(filepath.Join(dir, "policy.yaml"))
	wantLoadError(t, err, gate.KeysUnavailable, `issuers[0].keys.file: reading "a.json": more than 1048576 bytes`)
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	_, err = Load(filepath.Join(dir, "policy.yaml"))
	wantLoadError(t, err, gate.KeysUnavailable, `issuers[0].keys.file: reading "a.json": no such file or directory`)
	_, err = Load(filepath.Join(dir, "none.yaml"))
	wantLoadError(t, err, gate.PolicyInvalid, "no such file or directory")
}

func wantLoadError(t *testing.T, err error, reason gate.Reason, suffix string) {
	t.Helper()
	var one *Error
	if !errors.As(err, &one) || one.Reason != reason || !strings.HasSuffix(one.Error(), ": "+suffix) {
		t.Errorf("got %v, want %s ending in %q", err, reason, suffix)
	}
}

// The examples are what people copy, so each must load as it stands.
func TestShippedExamplesLoad(t *testing.T) {
	for _, name := range []string{"minimal", "split-authority", "hardened"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("..", "..", "docs", "examples", name)
			p, err := Load(filepath.Join(dir, "policy.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Warnings()) > 0 {
				t.Errorf("warnings: %q", p.Warnings())
			}
			if _, err := p.ForEnvironment(App{Name: "shop-web"}, p.Environments()[0]); err != nil {
				t.Error(err)
			}
			err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				if strings.Contains(string(text), "PRIVATE KEY") || strings.Contains(string(text), `"d":`) {
					t.Errorf("%s holds a private key", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
