package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestSourcesOfOtherNamespacesAreAskedFor: it is the operator who says that one
// namespace may see what another one has.
func TestSourcesOfOtherNamespacesAreAskedFor(t *testing.T) {
	for args, want := range map[string]bool{"": true, "--no-cross-namespace-refs": true, "--no-cross-namespace-refs=false": false} {
		var o Options
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.BindFlags(f)
		must(t, f.Parse(strings.Fields(args)))
		if o.NoCrossNamespaceRefs != want {
			t.Errorf("%q: got %t, want %t", args, o.NoCrossNamespaceRefs, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct{ args, want string }{
		{"", ""},
		{"--storage-path=" + dir, ""},
		{"--off=" + dir + "/none", ""}, // it may come later
		{"--storage-path=" + dir + "/none", "is not a directory"},
		{"--storage-path=" + file, "is not a directory"},
		{"--concurrent=0", "--concurrent 0: want at least 1"},
		{"--artifact-retention-records=0", "--artifact-retention-records, --artifact-retention-ttl: want at least 1, and 0s"},
		{"--artifact-retention-ttl=-1s", "--artifact-retention-records, --artifact-retention-ttl: want at least 1, and 0s"},
	} {
		var o Options
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.BindFlags(f)
		must(t, f.Parse(strings.Fields(c.args)))
		err := o.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.args, err, c.want)
		}
	}
}
