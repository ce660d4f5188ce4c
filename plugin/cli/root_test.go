package cli

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
)

// answer runs a command line in this process. "x" is a command that ends as it
// is told to.
func answer(t *testing.T, end func(c *cobra.Command) error, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := New("v0", &cobra.Command{Use: "x", RunE: func(c *cobra.Command, _ []string) error { return end(c) }})
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	status = Execute(root, &errs)
	return status, out.String(), errs.String()
}

func TestEveryEndHasItsStatus(t *testing.T) {
	tests := []struct {
		name   string
		end    func(c *cobra.Command) error
		status int
		stderr string
	}{
		{"success", func(*cobra.Command) error { return nil }, 0, ""},
		{"an error", func(*cobra.Command) error { return errors.New("no\n\tluck\x1b[2J") }, 1, "syncgate: no luck\\x1b[2J\n"},
		{"a usage error", func(c *cobra.Command) error { return usage(c, "want %q", "y") }, 2, "syncgate: want \"y\"\nsee 'syncgate x --help'\n"},
		{"a refusal", func(*cobra.Command) error { return app.Refuse(gate.ReceiptMissing, "no receipt") }, 10, "SYNC REFUSED [ReceiptMissing] no receipt\n"},
		{"a render that failed", func(*cobra.Command) error { return app.Refuse(gate.EmptyRender, "nothing") }, 20, "RENDER FAILED [EmptyRender] nothing\n"},
		{"a gate that cannot judge", func(*cobra.Command) error { return app.Refuse(gate.KeysUnavailable, "none") }, 30, "GATE ERROR [KeysUnavailable] none\n"},
		{"a refusal without reasons", func(*cobra.Command) error { return &app.Refusal{} }, 30, "GATE ERROR [PolicyInvalid] nothing was evaluated\n"},
		{"a refusal within an error", func(*cobra.Command) error { return errors.Join(errors.New("a"), app.Refuse(gate.ReceiptMissing, "b")) }, 10, "SYNC REFUSED [ReceiptMissing] b\n"},
		{"a panic", func(*cobra.Command) error { panic("one\ntwo") }, 1, "syncgate: met a case that it does not know (one two): please report it\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := answer(t, tt.end, "x")
			if status != tt.status || stderr != tt.stderr || stdout != "" {
				t.Errorf("got %d, %q and %q on stdout, want %d, %q", status, stderr, stdout, tt.status, tt.stderr)
			}
		})
	}
}

func TestEveryReasonIsExplained(t *testing.T) {
	for _, r := range gate.Reasons() {
		status, stdout, stderr := answer(t, nil, "explain", string(r))
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if status != 0 || stderr != "" || len(lines) != 3 || !strings.HasPrefix(lines[2], "Fix: ") || lines[1] == "" {
			t.Errorf("%s: got %d, %q, %q", r, status, stdout, stderr)
		}
		for _, c := range []byte(stdout) {
			if c != '\n' && (c < ' ' || c > '~') {
				t.Errorf("%s: %q is not ASCII", r, stdout)
				break
			}
		}
	}
	for r := range codes {
		if !slices.Contains(gate.Reasons(), r) {
			t.Errorf("%s is explained and is no reason", r)
		}
	}
}

// TestEveryCommandSaysWhatItIsFor keeps a command without words, or with any
// arguments at all, from being added.
func TestEveryCommandSaysWhatItIsFor(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is %q, want a line without a full stop", c.CommandPath(), c.Short)
		}
		if c.Args == nil && c.HasParent() && !c.HasSubCommands() {
			t.Errorf("%s takes any arguments: a misspelt flag would be one", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(New("v0"))
}

func TestFilesAreReadUpToABound(t *testing.T) {
	file := t.TempDir() + "/a"
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readBounded(file, 5); err != nil || string(data) != "12345" {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := readBounded(file, 4); err == nil {
		t.Errorf("read %q, want an error for more than 4 bytes", data)
	}
	if _, err := readBounded(file+"x", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(file, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := readBounded(file, 5); !errors.Is(err, os.ErrPermission) {
			t.Errorf("got %v, want that it must not be read", err)
		}
	}
}
