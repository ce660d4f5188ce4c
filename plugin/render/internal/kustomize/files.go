package kustomize

import (
	"bytes"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var errReadOnly = errors.New("the repository is read-only")

// files is the file system that kustomize sees: the repository, mounted at
// "/", read-only. With no other directory in sight there is nothing to leave
// to, and no temporary path can get into a message. Each kustomization is
// checked when it is read, before kustomize acts on it.
type files struct {
	tree *repo.Tree

	// failed is the first refusal. Everything fails after it.
	failed error

	// names maps the directories of this build to their kustomization file.
	names map[string]string

	// strict holds the files that kustomize parses as YAML, by name in a
	// kustomization; duplicate keys in them are refused. Others (the files of
	// a ConfigMap) are only bytes.
	strict map[string]bool

	images  imageEntries
	origins origins

	// edited is a file that is data, whatever the repository has there.
	edited    string
	data      []byte
	decrypted bool
}

var _ filesys.FileSystem = (*files)(nil)

func newFiles(tree *repo.Tree) *files {
	return &files{tree: tree, names: map[string]string{}, strict: map[string]bool{}}
}

func (f *files) fail(file string, err error) error {
	if f.failed == nil {
		f.failed = &FileError{File: file, Err: err}
	}
	return f.failed
}

func (f *files) name(dir string) string { return f.names[path.Clean(dir)] }

func inRepo(p string) string {
	return path.Join(".", strings.TrimPrefix(path.Join("/", filepath.ToSlash(p)), "/"))
}

// ReadFile reads and checks one file.
func (f *files) ReadFile(p string) ([]byte, error) {
	if f.failed != nil {
		return nil, f.failed
	}
	rel := inRepo(p)
	var data []byte
	var err error
	if data = f.data; rel != f.edited {
		data, err = f.tree.ReadFile(rel)
	}
	if errors.Is(err, repo.ErrOutside) || errors.Is(err, repo.ErrHidden) {
		return nil, f.fail(rel, err)
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(FileNames(), path.Base(rel)) {
		f.names[path.Dir(rel)] = path.Base(rel)
		err = f.checkKustomization(rel, data)
	} else {
		f.images.scan(data)
		f.origins.scan(rel, data)
		err = f.checkFile(rel, data)
	}
	if err != nil {
		return nil, f.fail(rel, err)
	}
	return data, nil
}

func (f *files) checkFile(rel string, data []byte) error {
	if f.strict[rel] {
		return checkYAML(data, true)
	}
	// Not known to be YAML, but kustomize may parse it all the same (the
	// patch of a transformer's configuration): an anchor that contains itself
	// would overflow its stack, which nobody can recover from.
	if bytes.ContainsRune(data, '&') && bytes.ContainsRune(data, '*') {
		return checkYAML(data, false)
	}
	return nil
}

// CleanedAbs splits a path into its real directory and file name.
func (f *files) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if f.failed != nil {
		return "", "", f.failed
	}
	if f.edited != "" && inRepo(p) == f.edited {
		return filesys.ConfirmedDir(path.Join("/", path.Dir(f.edited))), path.Base(f.edited), nil
	}
	rel, err := f.tree.Resolve(inRepo(p))
	if errors.Is(err, repo.ErrOutside) || errors.Is(err, repo.ErrHidden) {
		return "", "", f.fail(inRepo(p), err)
	}
	if err != nil {
		return "", "", err
	}
	if f.tree.IsDir(rel) {
		return filesys.ConfirmedDir(path.Join("/", rel)), "", nil
	}
	return filesys.ConfirmedDir(path.Join("/", path.Dir(rel))), path.Base(rel), nil
}

// IsDir reports whether p is a directory of the repository.
func (f *files) IsDir(p string) bool { return f.tree.IsDir(inRepo(p)) }

// Exists reports whether p exists in the repository.
func (f *files) Exists(p string) bool {
	_, err := f.tree.Resolve(inRepo(p))
	return err == nil || f.edited != "" && inRepo(p) == f.edited
}

// ReadDir lists a directory of the repository.
func (f *files) ReadDir(p string) ([]string, error) {
	list, err := f.tree.ReadDir(inRepo(p))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// The rest of the interface is not used by a build, and refused so that it
// stays so.

func (f *files) Create(string) (filesys.File, error)  { return nil, errReadOnly }
func (f *files) Open(string) (filesys.File, error)    { return nil, errors.ErrUnsupported }
func (f *files) Mkdir(string) error                   { return errReadOnly }
func (f *files) MkdirAll(string) error                { return errReadOnly }
func (f *files) RemoveAll(string) error               { return errReadOnly }
func (f *files) WriteFile(string, []byte) error       { return errReadOnly }
func (f *files) Glob(string) ([]string, error)        { return nil, errors.ErrUnsupported }
func (f *files) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }
