// Package repo reads files of one repository and nothing else: every path is
// resolved, symbolic links included, and refused when it leads out of the
// repository or into .git or .syncgate. Reads are bounded in size and number,
// because whoever writes the repository chooses what is read.
package repo

import (
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

// The bounds of one render. Argo CD's own limit for plain directories is
// 10 MiB together; real kustomize builds read well under a tenth of these.
const (
	MaxFile  = 10 << 20 // bytes in one file
	maxTotal = 64 << 20 // bytes in all files; a file read twice counts twice
	maxReads = 20_000   // attempts to read, so that bases that name each other twice cannot double for ever
)

// Errors that callers tell apart with errors.Is.
var (
	ErrOutside = errors.New("leads out of the repository")
	ErrHidden  = errors.New("lies in .git or .syncgate, which are never rendered")
)

// Tree is a repository opened for reading. It is for one goroutine and one
// render: the bounds are spent as it is used.
type Tree struct {
	ctx    context.Context
	dir    string // absolute, without symbolic links
	root   *os.Root
	total  int64
	reads  int
	sealed error

	packed bool
	left   func(rel string, dir bool) bool
}

// Packed makes the tree what an archive of it would hold: no symbolic links,
// and nothing that left says is left out (nil: nothing is). What is not in it
// does not exist.
func (t *Tree) Packed(left func(rel string, dir bool) bool) { t.packed, t.left = true, left }

// Open opens the repository at dir. Reads fail once ctx is done.
func Open(ctx context.Context, dir string) (*Tree, error) {
	abs, err := Real(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("opening the repository root: %w", plain(err))
	}
	return &Tree{ctx: ctx, dir: abs, root: root}, nil
}

// Close releases the directory handle.
func (t *Tree) Close() error { return t.root.Close() }

// Rel turns a directory of the file system into a slash-separated path
// relative to the root ("." for the root itself). It fails with ErrOutside.
func (t *Tree) Rel(dir string) (string, error) {
	abs, err := Real(dir)
	if err != nil {
		return "", err
	}
	return t.rel(abs)
}

func (t *Tree) rel(abs string) (string, error) {
	rel, err := filepath.Rel(t.dir, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", ErrOutside
	}
	return filepath.ToSlash(rel), nil
}

// Resolve returns the real path, relative to the root, of the slash-separated
// path p, itself relative to the root. It fails with ErrOutside, ErrHidden or
// fs.ErrNotExist; its errors name p as it was given and no absolute path.
func (t *Tree) Resolve(p string) (string, error) {
	clean := path.Clean(p)
	if !filepath.IsLocal(clean) {
		return "", fmt.Errorf("%q %w", p, ErrOutside)
	}
	if hidden(clean) {
		return "", fmt.Errorf("%q %w", p, ErrHidden)
	}
	abs, err := filepath.EvalSymlinks(filepath.Join(t.dir, filepath.FromSlash(clean)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%q does not exist: %w", p, fs.ErrNotExist)
	}
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", p, plain(err))
	}
	rel, err := t.rel(abs)
	if err != nil {
		return "", fmt.Errorf("%q is or follows a symbolic link that %w", p, ErrOutside)
	}
	if hidden(rel) {
		return "", fmt.Errorf("%q %w", p, ErrHidden)
	}
	if t.packed {
		return rel, t.inArchive(p, rel)
	}
	return rel, nil
}

// LeftOut reports whether a directory is left out of the archive of a packed
// tree. It may be one that is hidden here.
func (t *Tree) LeftOut(dir string) bool { return t.left != nil && t.left(path.Clean(dir), true) }

func (t *Tree) inArchive(p, rel string) error {
	if rel != path.Clean(p) {
		return fmt.Errorf("%q is or follows a symbolic link, which an artifact does not hold: %w", p, fs.ErrNotExist)
	}
	if t.left == nil {
		return nil
	}
	info, err := t.root.Lstat(filepath.FromSlash(rel))
	if err != nil {
		return fmt.Errorf("reading %q: %w", p, plain(err))
	}
	if t.left(rel, info.IsDir()) {
		return fmt.Errorf("%q is left out of the artifact (.sourceignore): %w", p, fs.ErrNotExist)
	}
	return nil
}

// IsDir reports whether p is a directory inside the root.
func (t *Tree) IsDir(p string) bool {
	info, err := t.Stat(p)
	return err == nil && info.IsDir()
}

// IsFile reports whether p is a regular file inside the root.
func (t *Tree) IsFile(p string) bool {
	info, err := t.Stat(p)
	return err == nil && info.Mode().IsRegular()
}

// Manifests lists what another reader of the repository could take for a
// manifest in the directory p, which may be one that is hidden here.
func (t *Tree) Manifests(p string) ([]string, error) {
	var out []string
	err := fs.WalkDir(t.root.FS(), path.Clean(p), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("listing %q: %w", name, plain(err))
		}
		if err := t.spend(); err != nil {
			return err
		}
		ext := path.Ext(name)
		if !d.IsDir() && (ext == ".yaml" || ext == ".yml" || d.Name() == "Kustomization") {
			out = append(out, name)
		}
		return nil
	})
	return out, err
}

// Stat describes p, or what p is a symbolic link to.
func (t *Tree) Stat(p string) (fs.FileInfo, error) {
	rel, err := t.Resolve(p)
	if err != nil {
		return nil, err
	}
	info, err := t.root.Stat(filepath.FromSlash(rel))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p, plain(err))
	}
	return info, nil
}

// ReadDir lists the names in directory p, sorted.
func (t *Tree) ReadDir(p string) ([]fs.DirEntry, error) {
	if err := t.spend(); err != nil {
		return nil, err
	}
	rel, err := t.Resolve(p)
	if err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(t.root.FS(), rel)
	if err != nil {
		return nil, fmt.Errorf("listing %q: %w", p, plain(err))
	}
	return list, nil
}

// ReadFile reads the regular file p. What is opened is the resolved path and
// again through the root, so that exchanging a link in between gains nothing.
func (t *Tree) ReadFile(p string) ([]byte, error) {
	if err := t.spend(); err != nil {
		return nil, err
	}
	rel, err := t.Resolve(p)
	if err != nil {
		return nil, err
	}
	// Looked at before opening: opening a named pipe waits for a writer.
	info, err := t.root.Stat(filepath.FromSlash(rel))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p, plain(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", p)
	}
	f, err := t.root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p, plain(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", p, plain(err))
	}
	if len(data) > MaxFile {
		return nil, t.seal(fmt.Errorf("%q is larger than %d bytes", p, MaxFile))
	}
	t.total += int64(len(data))
	if t.total > maxTotal {
		return nil, t.seal(fmt.Errorf("the files of this application are together larger than %d bytes", maxTotal))
	}
	return data, nil
}

// Sealed returns the first error after which nothing more can be read: a
// bound was passed or the context is done. A caller whose library swallows
// errors of ReadFile asks it at the end.
func (t *Tree) Sealed() error { return t.sealed }

func (t *Tree) seal(err error) error {
	if t.sealed == nil {
		t.sealed = err
	}
	return t.sealed
}

func (t *Tree) spend() error {
	if t.sealed != nil {
		return t.sealed
	}
	if err := t.ctx.Err(); err != nil {
		return t.seal(err)
	}
	t.reads++
	if t.reads > maxReads {
		return t.seal(fmt.Errorf("more than %d files are read for one application: do two bases name each other's bases?", maxReads))
	}
	return nil
}

func hidden(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if part == ".git" || part == ".syncgate" {
			return true
		}
	}
	return false
}

// Real returns dir absolute and without symbolic links. Errors name dir as
// it was given.
func Real(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", dir, plain(err))
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", dir, plain(err))
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("resolving %q: %w", dir, plain(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", dir)
	}
	return abs, nil
}

// TopLevel returns the nearest directory at or above dir that holds .git, and
// dir itself when there is none.
func TopLevel(dir string) (string, error) {
	abs, err := Real(dir)
	if err != nil {
		return "", err
	}
	for d := abs; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return abs, nil
		}
	}
}

// plain drops the absolute path that *fs.PathError prints: a refusal must
// read the same in every temporary directory.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Dir is the root's absolute path, without symbolic links.
func (t *Tree) Dir() string { return t.dir }
