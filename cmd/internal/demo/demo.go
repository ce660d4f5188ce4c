package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// demo is the stage: a directory with the application, and a registry.
type demo struct {
	dir, host, bin string
	saved          []edit
}

type edit struct {
	file string
	data []byte // nil: the file was not there
}

// build makes the binary from the module that the demo is part of.
func (d *demo) build() error {
	d.bin = filepath.Join(d.dir, "bin", "syncgate")
	c := exec.Command("go", "build", "-o", d.bin, "github.com/syncgate/syncgate/cmd/syncgate")
	c.Stderr = os.Stderr
	return c.Run()
}

// registry serves random images under the given names on loopback.
func (d *demo) registry(images ...string) (stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	go server.Serve(l)
	d.host = l.Addr().String()
	for _, image := range images {
		ref, err := name.ParseReference(d.host + "/" + image)
		if err != nil {
			return nil, err
		}
		img, err := random.Image(64, 1)
		if err != nil {
			return nil, err
		}
		if err := remote.Write(ref, img); err != nil {
			return nil, err
		}
	}
	return func() { server.Close() }, nil
}

// result is what a command did.
type result struct {
	exit           int
	stdout, stderr string
}

// syncgate runs the binary in the demo's directory, as Argo CD's sidecar or a
// person would, and prints the command and what it said.
func (d *demo) syncgate(args ...string) (result, error) {
	return d.call(nil, args...)
}

func (d *demo) call(env []string, args ...string) (result, error) {
	shown := append([]string{"syncgate"}, args...)
	fmt.Printf("\n$ %s\n", strings.Join(append(env, shown...), " "))
	var out, errs bytes.Buffer
	c := exec.Command(d.bin, args...)
	c.Dir, c.Stdout, c.Stderr = d.dir, &out, &errs
	c.Env = append(append(os.Environ(), "SYNCGATE_POLICY=policy.yaml"), env...)
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	r := result{c.ProcessState.ExitCode(), out.String(), errs.String()}
	show(r.stderr, 24)
	if len(args) > 0 && args[0] == "generate" {
		showImages(r.stdout)
	} else {
		show(r.stdout, 24)
	}
	fmt.Printf("[exit %d]\n", r.exit)
	return r, nil
}

func show(s string, most int) {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if s == "" {
		return
	}
	for i, line := range lines {
		if i == most {
			fmt.Printf("  ... %d more lines\n", len(lines)-most)
			return
		}
		fmt.Println("  " + line)
	}
}

// showImages prints what stands out in a stream of manifests: how many, and
// the images as they would be applied.
func showImages(s string) {
	if s == "" {
		fmt.Println("  (nothing on stdout)")
		return
	}
	fmt.Printf("  (%d manifests)\n", strings.Count(s, "\n"))
	for _, part := range strings.Split(s, `"image":"`)[1:] {
		image, _, _ := strings.Cut(part, `"`)
		fmt.Println("  image: " + image)
	}
}

// change edits a file of the application; restore takes all changes back.
func (d *demo) change(file, old, new string) error {
	path := filepath.Join(d.dir, file)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), old) {
		return fmt.Errorf("%s does not hold %q", file, old)
	}
	d.saved = append(d.saved, edit{path, data})
	return os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644)
}

func (d *demo) restore() error {
	for i := len(d.saved) - 1; i >= 0; i-- {
		e := d.saved[i]
		var err error
		if e.data == nil {
			err = os.Remove(e.file)
		} else {
			err = os.WriteFile(e.file, e.data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	d.saved = nil
	return nil
}

func (r result) want(exit int, texts ...string) error {
	if r.exit != exit {
		return fmt.Errorf("ended with status %d, want %d", r.exit, exit)
	}
	all := r.stdout + r.stderr
	for _, t := range texts {
		if !strings.Contains(all, t) {
			return fmt.Errorf("did not say %q", t)
		}
	}
	if exit != 0 && r.stdout != "" {
		return fmt.Errorf("a refusal wrote %d bytes to stdout", len(r.stdout))
	}
	return nil
}
