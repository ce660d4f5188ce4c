package main_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"math/rand"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// parties have a key each, made from their name: the key IDs are the same in
// every run. Nobody trusts the intruder.
var parties = []string{"release", "release-old", "security", "intruder"}

const basePolicy = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- name: release
  keys: {file: keys/release.jwks.json}
`

// stage is a directory with keys and a policy, and a registry.
type stage struct {
	dir, host string
}

// newStage writes the keys and the policy into dir and serves some images.
// $REGISTRY in the files that are there becomes the registry's address.
func newStage(dir string) (s *stage, stop func(), err error) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s = &stage{dir: dir, host: strings.TrimPrefix(server.URL, "http://")}
	defer func() {
		if err != nil {
			server.Close()
		}
	}()
	for _, image := range []string{"acme/web:1.4", "acme/web:1.5", "acme/metrics:2.0"} {
		if err := s.push(image, image); err != nil {
			return nil, nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o755); err != nil {
		return nil, nil, err
	}
	for _, party := range parties {
		if err := s.writeKey(party); err != nil {
			return nil, nil, err
		}
	}
	if err := s.expand(); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "policy.yaml")); errors.Is(err, os.ErrNotExist) {
		err = s.write("policy.yaml", basePolicy)
		if err != nil {
			return nil, nil, err
		}
	}
	return s, server.Close, nil
}

func testStage(t *testing.T) *stage {
	t.Helper()
	s, stop, err := newStage(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// push stores an image whose bytes follow from seed, so that its digest is the
// same in every run.
func (s *stage) push(image, seed string) error {
	ref, err := name.ParseReference(s.host + "/" + image)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(seed))
	source := rand.NewSource(int64(binary.BigEndian.Uint64(sum[:]) >> 1))
	img, err := random.Image(64, 1, random.WithSource(source))
	if err != nil {
		return err
	}
	return remote.Write(ref, img)
}

func privateKey(party string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("syncgate test key " + party))
	return ed25519.NewKeyFromSeed(seed[:])
}

func (s *stage) writeKey(party string) error {
	pem, err := keys.MarshalPrivatePEM(privateKey(party))
	if err != nil {
		return err
	}
	key, err := receipt.NewKey("", privateKey(party).Public())
	if err != nil {
		return err
	}
	set, err := keys.PublicJWKS([]receipt.Key{key})
	if err != nil {
		return err
	}
	return errors.Join(s.write("keys/"+party+".pem", string(pem)), s.write("keys/"+party+".jwks.json", string(set)))
}

func (s *stage) path(file string) string { return filepath.Join(s.dir, filepath.FromSlash(file)) }

func (s *stage) write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(s.path(file)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.path(file), []byte(strings.ReplaceAll(text, "$REGISTRY", s.host)), 0o600)
}

// expand replaces $REGISTRY in every file.
func (s *stage) expand() error {
	return filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte("$REGISTRY")) {
			return err
		}
		return os.WriteFile(path, bytes.ReplaceAll(data, []byte("$REGISTRY"), []byte(s.host)), 0o600)
	})
}

// replace edits a file; old must be in it.
func (s *stage) replace(file, old, new string) error {
	data, err := os.ReadFile(s.path(file))
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(old)) {
		return errors.New(file + " does not hold " + old)
	}
	return s.write(file, strings.Replace(string(data), old, new, 1))
}

// result is what a process left behind.
type result struct {
	exit           int
	stdout, stderr string
}

// run runs the program in the stage's directory with the stage's policy, as
// Argo CD's sidecar or a person would. env are additions, NAME=value.
func (s *stage) run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(program, args...)
	c.Dir, c.Stdout, c.Stderr = s.dir, &out, &errs
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SYNCGATE_POLICY=policy.yaml"}, env...)
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("syncgate %q: %v", args, err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must is run for a step that only prepares.
func (s *stage) must(t *testing.T, args ...string) string {
	t.Helper()
	r := s.run(t, nil, args...)
	if r.exit != 0 {
		t.Fatalf("syncgate %q ended with %d\n%s", args, r.exit, r.stderr)
	}
	return r.stdout
}

// refusal checks the form of a refusal (docs/spec/refusal.md): the status of
// its class, one line of ASCII, nothing on stdout. It returns what is wrong.
func (r result) refusal(code string) error {
	exit, words := class(code)
	line := strings.TrimSuffix(r.stderr, "\n")
	switch {
	case r.exit != exit:
		return errorf("ended with status %d, want %d\n%s", r.exit, exit, r.stderr)
	case r.stdout != "":
		return errorf("wrote %d bytes to stdout", len(r.stdout))
	case !strings.HasPrefix(line, words+" ["+code+"] "):
		return errorf("got %q, want it to start with %q", line, words+" ["+code+"] ")
	case line == r.stderr || strings.Contains(line, "\n"):
		return errorf("want one line on stderr, got %q", r.stderr)
	case len(line) > 2000:
		return errorf("the line has %d bytes, want at most 2000", len(line))
	}
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '~' {
			return errorf("byte %#x in %q, want printable ASCII", line[i], line)
		}
	}
	return nil
}

// class is the exit status and the first words of a code, as docs/spec/refusal.md
// has them and not as the program does.
func class(code string) (exit int, words string) {
	switch code {
	case "RenderFailed", "EmptyRender", "DuplicateObject", "ObjectMalformed":
		return 20, "RENDER FAILED"
	case "PolicyInvalid", "KeysUnavailable", "ClusterUnavailable", "GateBusy", "ImageUnresolvable":
		return 30, "GATE ERROR"
	}
	return 10, "SYNC REFUSED"
}
