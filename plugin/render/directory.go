package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/kustomize"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
)

// The bounds of a plain directory: Argo CD's default for all manifests of one
// application together, and a depth that no real layout reaches.
const (
	maxDirectory = 10 << 20 // bytes
	maxDepth     = 64       // folders
)

// skipMarker keeps a file out of a directory source since Argo CD 3.
const skipMarker = "+argocd:skip-file-rendering"

// directory reads the manifests of dir as Argo CD's directory source does,
// with two differences: a file that does not parse is an error (Argo CD skips
// one that lacks apiVersion, kind or metadata, and then prunes what stood in
// it), and Jsonnet is refused by name.
func directory(tree *repo.Tree, dir string, o Options) ([]manifest.Object, []string, error) {
	w := walker{tree: tree, app: dir, recurse: o.Recurse}
	for _, p := range []struct {
		text string
		re   **regexp.Regexp
		what string
	}{{o.Include, &w.include, "include"}, {o.Exclude, &w.exclude, "exclude"}} {
		if p.text == "" {
			continue
		}
		re, err := compileGlob(p.text)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.what, err)
		}
		*p.re = re
	}
	if err := w.walk(".", 0); err != nil {
		return nil, nil, err
	}
	slices.Sort(w.files)
	var out []manifest.Object
	total := 0
	for _, file := range w.files {
		data, err := tree.ReadFile(path.Join(dir, file))
		if err != nil {
			return nil, nil, err
		}
		if total += len(data); total > maxDirectory {
			return nil, nil, fmt.Errorf("the manifests are together larger than %d bytes", maxDirectory)
		}
		if bytes.Contains(data, []byte(skipMarker)) {
			w.warnings = append(w.warnings, fmt.Sprintf("%q is skipped: it holds %q", file, skipMarker))
			continue
		}
		if n := len(data); n > 0 && data[n-1] != '\n' {
			// Argo CD reads lines, and ends the last one: a block scalar at the end of
			// the file gets its line break.
			data = append(data, '\n')
		}
		list, err := manifest.Parse(data, file)
		if err != nil {
			return nil, nil, misnamed(file, err)
		}
		out = append(out, list...)
	}
	slices.Sort(w.warnings)
	return out, w.warnings, nil
}

// misnamed tells of a kustomization whose name kustomize does not know, which
// is why it was read as a manifest. One that is a manifest, such as Flux's
// Kustomization, is never an error and never comes here.
func misnamed(file string, err error) error {
	base := path.Base(file)
	names := kustomize.FileNames()
	if slices.Contains(names, base) || !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, base) }) {
		return err
	}
	return fmt.Errorf("%q is not read as a kustomization: kustomize reads kustomization.yaml, kustomization.yml or Kustomization; as a manifest: %w", file, err)
}

type walker struct {
	tree             *repo.Tree
	app              string
	recurse          bool
	include, exclude *regexp.Regexp
	files            []string // relative to app
	warnings         []string
}

// walk collects the manifest files below rel, a folder relative to app.
func (w *walker) walk(rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%q is more than %d folders deep", rel, maxDepth)
	}
	list, err := w.tree.ReadDir(path.Join(w.app, rel))
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := w.entry(path.Join(rel, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(rel string, e fs.DirEntry, depth int) error {
	if e.Name() == ".git" || e.Name() == ".syncgate" {
		return nil
	}
	if e.IsDir() {
		if !w.recurse {
			return nil
		}
		return w.walk(rel, depth+1)
	}
	full := path.Join(w.app, rel)
	if e.Type()&fs.ModeSymlink != 0 && w.recurse && w.tree.IsDir(full) {
		w.warnings = append(w.warnings, fmt.Sprintf("%q is a symbolic link to a folder: not followed, as in Argo CD", rel))
		return nil
	}
	if !w.wanted(rel) {
		return nil
	}
	// A link is followed inside the repository; one that leads out, or to
	// nothing, is an error here.
	if _, err := w.tree.Resolve(full); err != nil {
		return err
	}
	if !w.tree.IsFile(full) {
		return nil // a socket, a pipe: Argo CD passes over it too
	}
	if path.Ext(rel) == ".jsonnet" {
		return fmt.Errorf("%q: Jsonnet is not supported; exclude it, or commit what it renders to", rel)
	}
	w.files = append(w.files, rel)
	return nil
}

func (w *walker) wanted(rel string) bool {
	switch path.Ext(rel) {
	case ".yaml", ".yml", ".json", ".jsonnet":
	default:
		return false
	}
	if w.exclude != nil && w.exclude.MatchString(rel) {
		return false
	}
	return w.include == nil || w.include.MatchString(rel)
}
