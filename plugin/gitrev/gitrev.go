// Package gitrev writes the tree of a Git revision to a directory, so that it
// can be rendered like any checkout. It runs the git command, which knows every
// repository format, and touches neither the index nor the work tree.
package gitrev

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Limits on what is written, in files and bytes.
const (
	maxFiles = 200_000
	maxBytes = 1 << 30
)

// TopLevel returns the root of the repository that dir is in.
func TopLevel(ctx context.Context, dir string) (string, error) {
	out, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	return strings.TrimSpace(string(out)), err
}

// Resolve returns the commit that a revision names.
func Resolve(ctx context.Context, dir, revision string) (string, error) {
	if strings.HasPrefix(revision, "-") {
		return "", fmt.Errorf("%q is no revision", revision)
	}
	out, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("%q is neither a directory nor a Git revision", revision)
	}
	return strings.TrimSpace(string(out)), nil
}

// Export writes the tree of a commit of the repository at top to a new
// directory, which is the caller's to remove. Links that lead out of the tree
// are left out; submodules are empty, as git archive has them.
func Export(ctx context.Context, top, commit string) (dir string, err error) {
	data, err := git(ctx, top, "archive", "--format=tar", commit)
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "syncgate-rev-"); err != nil {
		return "", err
	}
	if err := extract(dir, data); err != nil {
		return "", errors.Join(fmt.Errorf("extracting %.12s: %w", commit, err), os.RemoveAll(dir))
	}
	return dir, nil
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = dir
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("running git %s: %w: %s", args[0], err, strings.Join(strings.Fields(errs.String()), " "))
	}
	return out.Bytes(), nil
}

// extract unpacks a tar archive below dir, through an os.Root that nothing in
// the archive can leave.
func extract(dir string, data []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := tar.NewReader(bytes.NewReader(data))
	var size int64
	for n := 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		size += h.Size
		if n > maxFiles || size > maxBytes {
			return fmt.Errorf("more than %d files or %d MiB", maxFiles, maxBytes>>20)
		}
		if err := extractOne(root, h, r); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func extractOne(root *os.Root, h *tar.Header, r io.Reader) error {
	name := filepath.Clean(h.Name)
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		if !filepath.IsLocal(filepath.Join(filepath.Dir(name), h.Linkname)) || filepath.IsAbs(h.Linkname) {
			return nil
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Close())
	}
	return nil // the commit's own comment
}
