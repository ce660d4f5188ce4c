package policy

import (
	"errors"
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
