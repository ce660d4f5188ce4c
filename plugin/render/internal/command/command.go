// Package command renders with a command that the operator configured, such
// as a script that decrypts with SOPS or evaluates Jsonnet first. The
// repository never names it. Its failure is never lost: a status other than 0,
// an output that is cut off, or none at all, is an error.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

const (
	maxOutput    = manifest.MaxStream // bytes of manifests
	maxComplaint = 300                // bytes of standard error that get into an error
	// grace is how long a child that outlives the command may keep the pipes.
	grace = 2 * time.Second
)

// Run runs argv in dir and returns the objects that it prints. It has the
// environment of this process, but a HOME and a TMPDIR of its own, and nothing
// on standard input; both are made in temp, the system's directory if that is
// empty. When ctx ends its whole process group is killed. Errors
// hold one line, and of the command line only the program's name.
func Run(ctx context.Context, argv []string, dir, temporary string) (objects []manifest.Object, err error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("no command is configured")
	}
	program := filepath.Base(argv[0])
	home, err := os.MkdirTemp(temporary, "syncgate-render-")
	if err != nil {
		return nil, fmt.Errorf("making a home directory for %q: %w", program, plain(err))
	}
	defer func() {
		if e := os.RemoveAll(home); err == nil && e != nil {
			objects, err = nil, fmt.Errorf("removing the home directory of %q: %w", program, plain(e))
		}
	}()
	temp := filepath.Join(home, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return nil, fmt.Errorf("making a home directory for %q: %w", program, plain(err))
	}
	out, complaint := bounded{limit: maxOutput}, head{limit: maxComplaint}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, environment(home, temp)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.WaitDelay = grace
	group(cmd)
	err = cmd.Run()
	endGroup(cmd)
	said := func() string {
		text := strings.Join(strings.Fields(strings.ToValidUTF8(complaint.buffer.String(), "")), " ")
		for _, p := range []string{temp, home, dir} {
			text = strings.ReplaceAll(text, p, filepath.Base(p))
		}
		if text == "" {
			return ""
		}
		return ": " + text
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, fmt.Errorf("%q prints more than %d bytes", program, maxOutput)
	case errors.As(err, &exit):
		return nil, fmt.Errorf("%q ended with %s%s", program, exit.ProcessState, said())
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%q left a process behind that holds its output open", program)
	case err != nil:
		return nil, fmt.Errorf("running %q: %w", program, plain(err))
	case len(bytes.TrimSpace(out.buffer.Bytes())) == 0:
		return nil, fmt.Errorf("%q printed nothing%s", program, said())
	}
	return manifest.Parse(out.buffer.Bytes(), "output")
}

// environment is ours, with what belongs to a user replaced: all applications
// of all tenants share the gate's own.
func environment(home, temp string) []string {
	var out []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_") {
			continue
		}
		out = append(out, kv)
	}
	return append(out, "HOME="+home, "TMPDIR="+temp)
}

// plain drops the path of this machine that an error prints.
func plain(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var search *exec.Error
	if errors.As(err, &search) {
		return search.Err
	}
	return err
}

var errTooMuch = errors.New("too much output")

// bounded fails when more is written to it than its limit, which ends the
// command: a part of an output must not pass for the whole.
type bounded struct {
	buffer bytes.Buffer
	limit  int
	over   bool
}

var _ io.Writer = (*bounded)(nil)

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.limit-b.buffer.Len() {
		b.over = true
		return 0, errTooMuch
	}
	return b.buffer.Write(p)
}

// head keeps the first bytes and drops the rest.
type head struct {
	buffer bytes.Buffer
	limit  int
}

var _ io.Writer = (*head)(nil)

func (h *head) Write(p []byte) (int, error) {
	h.buffer.Write(p[:min(len(p), h.limit-h.buffer.Len())])
	return len(p), nil
}
