package main_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestReadmeSessionIsWhatTheProgramSays runs the shell session of README.md in
// testdata/readme, with the built program and a registry on loopback that
// stands in for ghcr.io, and compares every line.
func TestReadmeSessionIsWhatTheProgramSays(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := readmeSession(t, string(readme))
	dir := t.TempDir()
	err = os.CopyFS(dir, os.DirFS("testdata/readme"))
	if err != nil {
		t.Fatal(err)
	}
	buildInto(t, filepath.Join(dir, "bin"))
	// The policy that README shows, and where ghcr.io is asked here.
	policy, err := os.ReadFile(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```yaml\n"+string(policy)+"```\n") {
		t.Errorf("README.md does not show testdata/readme/policy.yaml, which is\n%s", policy)
	}
	policy = fmt.Appendf(policy, "images: {mirrors: {ghcr.io: %q}}\n", serveImages(t, "acme/web", "1.4", "1.5"))
	err = os.WriteFile(filepath.Join(dir, "policy.yaml"), policy, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	got := inShell(t, dir, readmeCommands(want))
	if diff := cmp.Diff(strings.Split(withoutChance(want), "\n"), strings.Split(withoutChance(got), "\n")); diff != "" {
		t.Errorf("the session in README.md is not what the program says (-README +program):\n%s\nwhole session:\n%s", diff, got)
	}
}

// TestSessionIsComparedBeyondWhatChanges keeps withoutChance from hiding a difference
// that matters.
func TestSessionIsComparedBeyondWhatChanges(t *testing.T) {
	for name, pair := range map[string][2]string{
		"another code":   {"[DigestMismatch] 1 of 1", "[ReceiptMissing] 1 of 1"},
		"another field":  {"containers[web].image is", "containers[web].command is"},
		"another tag":    {"ghcr.io/acme/web:1.5@sha256:c39cbe163fe6...", "ghcr.io/acme/web:1.4@sha256:c39cbe163fe6..."},
		"another digest": {"@sha256:c39cbe163fe6...", "@sha256:d39cbe163fe6..."},
		"no date":        {"until 2027-03-02", "until tomorrow"},
	} {
		if withoutChance(pair[0]) == withoutChance(pair[1]) {
			t.Errorf("%s: %q and %q are taken for the same", name, pair[0], pair[1])
		}
	}
	if got, want := withoutChance("receipt ucicsc2-FzEWUpW6I2_WHw until 2027-03-02"), withoutChance("receipt MlFkwVSdm1H235tumPIW3Q until 2028-01-31"); got != want {
		t.Errorf("got %q and %q, want no difference in nonces and dates", got, want)
	}
}

// readmeSession is the one block of README.md that is marked console.
func readmeSession(t *testing.T, readme string) string {
	t.Helper()
	parts := strings.Split(readme, "```console\n")
	if len(parts) != 2 {
		t.Fatalf("README.md has %d console blocks, want 1", len(parts)-1)
	}
	text, _, ok := strings.Cut(parts[1], "```\n")
	if !ok {
		t.Fatal("README.md: the console block does not end")
	}
	return text
}

const prompt = "$ "

func readmeCommands(session string) []string {
	var out []string
	for _, line := range strings.Split(session, "\n") {
		if c, ok := strings.CutPrefix(line, prompt); ok {
			out = append(out, c)
		}
	}
	return out
}

// inShell types the commands into one shell, as a person would, and returns what
// the terminal shows.
func inShell(t *testing.T, dir string, commands []string) string {
	t.Helper()
	var script strings.Builder
	for _, c := range commands {
		// The status of the command before is kept for $?.
		fmt.Fprintf(&script, "s=$?; cat <<'EOF'\n%s%s\nEOF\n(exit $s)\n%s\n", prompt, c, c)
	}
	sh := exec.Command("sh", "-s")
	sh.Dir = dir
	sh.Stdin = strings.NewReader(script.String())
	sh.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + t.TempDir()}
	var out bytes.Buffer
	sh.Stdout, sh.Stderr = &out, &out
	err := sh.Run()
	if err != nil {
		t.Fatalf("running the session: %v\n%s", err, out.String())
	}
	return out.String()
}

// withoutChance replaces what differs from run to run: days, key IDs and nonces.
// Digests do not: the registry's images are always the same.
func withoutChance(s string) string {
	for _, x := range []struct{ pattern, by string }{
		{`\b20\d\d-\d\d-\d\d\b`, "DAY"},
		{`(^|[\s])[A-Za-z0-9_-]{43}($|[\s,])`, "${1}KEY${2}"},
		{`\breceipt [A-Za-z0-9_-]{22}\s`, "receipt NONCE "},
	} {
		s = regexp.MustCompile(`(?m)`+x.pattern).ReplaceAllString(s, x.by)
	}
	return s
}

func buildInto(t *testing.T, bin string) {
	t.Helper()
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "syncgate")); err != nil {
		t.Fatal(err)
	}
}

// serveImages serves one image for each tag and returns the registry's host.
func serveImages(t *testing.T, repository string, tags ...string) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	for _, tag := range tags {
		img, err := mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"version": tag}})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(host + "/" + repository + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		err = remote.Write(ref, img)
		if err != nil {
			t.Fatal(err)
		}
	}
	return host
}
