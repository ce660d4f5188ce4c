package artifact

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxHeader is what a header with its extensions may take, in bytes, on top of
// the files' content.
const maxHeader = 4 << 10

// unpack unpacks the gzip-compressed tar archive r into dir. It makes files and
// folders only, with rights of its own choosing.
func unpack(ctx context.Context, r io.Reader, dir string, l Limits) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	defer z.Close()
	u := unpacker{ctx: ctx, root: root, limits: l}
	u.in = tar.NewReader(&meter{r: z, ctx: ctx, left: l.Unpacked + int64(l.Files)*maxHeader})
	for {
		h, err := u.in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
}

// malformed tells an archive that is broken from one that is too large, from an
// end of time and from a full disk.
func malformed(err error) error {
	var disk *fs.PathError // of writing, which says nothing about the archive
	if errors.Is(err, ErrTooLarge) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &disk) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnsafe, err)
}

type unpacker struct {
	ctx    context.Context
	root   *os.Root
	in     *tar.Reader
	limits Limits
	files  int
	bytes  int64
}

func (u *unpacker) entry(h *tar.Header) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if u.files++; u.files > u.limits.Files {
		return fmt.Errorf("%w: more than %d files and folders", ErrTooLarge, u.limits.Files)
	}
	name := filepath.FromSlash(path.Clean(h.Name))
	if h.Name == "" || strings.Contains(h.Name, `\`) || !filepath.IsLocal(name) {
		return fmt.Errorf("%w: entry %.200q leads out of it", ErrUnsafe, h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(name, h)
	case tar.TypeDir:
		if err := u.root.MkdirAll(name, 0o750); err != nil {
			return fmt.Errorf("%w: entry %.200q: %w", ErrUnsafe, h.Name, err)
		}
		return nil
	case tar.TypeSymlink:
		if to := path.Join(path.Dir(path.Clean(h.Name)), h.Linkname); path.IsAbs(h.Linkname) || !filepath.IsLocal(filepath.FromSlash(to)) {
			return fmt.Errorf("%w: entry %.200q is a link that leads out of it", ErrUnsafe, h.Name)
		}
		return nil
	}
	return fmt.Errorf("%w: entry %.200q is no file, folder or symbolic link (type %q)", ErrUnsafe, h.Name, h.Typeflag)
}

func (u *unpacker) file(name string, h *tar.Header) error {
	if u.bytes += h.Size; u.bytes > u.limits.Unpacked || u.bytes < 0 {
		return fmt.Errorf("%w: more than %d bytes unpacked", ErrTooLarge, u.limits.Unpacked)
	}
	if err := u.root.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return fmt.Errorf("%w: entry %.200q: %w", ErrUnsafe, h.Name, err)
	}
	// One that is there already is replaced, as the later entry of an archive does.
	out, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return fmt.Errorf("%w: entry %.200q: %w", ErrUnsafe, h.Name, err)
	}
	_, err = io.Copy(out, u.in)
	if closing := out.Close(); err == nil && closing != nil {
		return closing
	}
	if err != nil {
		return malformed(err)
	}
	return nil
}

// meter ends a stream that gets too long, or for which there is no more time.
type meter struct {
	r    io.Reader
	ctx  context.Context
	left int64
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	if m.left <= 0 {
		return 0, fmt.Errorf("%w: the archive goes on and on", ErrTooLarge)
	}
	n, err := m.r.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}
