// Package kustomize builds a kustomization with kustomize's own library, kept
// inside one repository and off the network: no remote bases, no plugins, no
// Helm. What it refuses it refuses by name, before kustomize acts on it.
package kustomize

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
)

// Version is that of the kustomize library (sigs.k8s.io/kustomize/api) that
// go.mod names. The version of the command line is another series.
const Version = "v0.21.2"

// running admits one build at a time: kustomize keeps its OpenAPI schema in
// package variables (Flux's controller holds a lock for the same reason), and
// quietly borrows os.Stderr.
var running = make(chan struct{}, 1)

// FileError says which file of the repository an error is about. File is
// relative to the repository's root.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return e.File + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// FileNames are the names by which a directory is a kustomization.
func FileNames() []string { return konfig.RecognizedKustomizationFileNames() }

// Options change a build. The zero value is that of the command line.
type Options struct {
	// File, if it is named, is read instead of what the repository has under
	// that name, relative to its root: the application's kustomization, as
	// somebody edited it.
	File string
	Data []byte

	// Then edits the resources once they are built.
	Then func(resmap.ResMap) error

	// Decrypted refuses encrypted files whose content gets into the build: it is
	// another one once somebody has decrypted them.
	Decrypted bool
}

// Build builds the kustomization in dir, relative to the root of tree. The
// objects stand in the order of `kustomize build`. Warnings are sorted. Paths
// in errors start with "/", the repository's root.
func Build(ctx context.Context, tree *repo.Tree, dir string, o Options) ([]manifest.Object, []string, error) {
	select {
	case running <- struct{}{}:
		defer func() { <-running }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if !guarded() {
		return nil, nil, fmt.Errorf("keeping kustomize off the network: http.DefaultTransport has been replaced")
	}
	files := newFiles(tree)
	files.edited, files.data, files.decrypted = o.File, o.Data, o.Decrypted
	var built resmap.ResMap
	said, err := quietly(func() (err error) {
		if built, err = run(files, dir); err != nil || o.Then == nil || files.failed != nil {
			return err
		}
		return then(o.Then, built)
	})
	// kustomize swallows errors of files it could do without, and buries the
	// others: ours come first, and count even if the build went through.
	if files.failed != nil {
		return nil, nil, files.failed
	}
	if sealed := tree.Sealed(); sealed != nil {
		return nil, nil, sealed
	}
	if err != nil {
		return nil, nil, err
	}
	objects, err := files.objects(built, path.Join(dir, files.name(dir)))
	if err != nil {
		return nil, nil, err
	}
	warnings := append(said, files.imageWarnings(objects)...)
	slices.Sort(warnings)
	return objects, slices.Compact(warnings), nil
}

// run turns a panic inside kustomize into an error: the input is somebody
// else's, and a crash of the gate's process is not a refusal.
func run(files *files, dir string) (m resmap.ResMap, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("kustomize crashed on this kustomization (%v): a resource that it edits probably has metadata, labels or annotations of the wrong type", p)
		}
	}()
	k := krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionUnspecified, // what the command line does
		// Bases beside the application are normal in a GitOps repository and
		// allowed by Argo CD and Flux; files is what holds the border.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	})
	m, err = k.Run(files, path.Join("/", dir))
	if err != nil {
		return nil, redacted(err)
	}
	return m, nil
}

// then is run for what edits the result.
func then(edit func(resmap.ResMap) error, m resmap.ResMap) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("crashed on a resource (%v)", p)
		}
	}()
	return edit(m)
}

// objects are those of a build, by the kustomization in file.
func (f *files) objects(m resmap.ResMap, file string) ([]manifest.Object, error) {
	var out []manifest.Object
	for _, r := range m.Resources() {
		tree, err := object(r)
		if err != nil {
			return nil, &FileError{File: file, Err: fmt.Errorf("reading rendered %s %q: %w", r.GetKind(), r.GetName(), err)}
		}
		// Which document of a render it is says nothing to a person.
		list, err := manifest.FromTree(tree, file, 0)
		if err != nil {
			return nil, fmt.Errorf("rendered %s %q: %w", r.GetKind(), r.GetName(), err)
		}
		for i := range list {
			list[i].Source = f.origins.of(r)
		}
		out = append(out, list...)
	}
	return out, nil
}

// isRemote is a superset of what kustomize takes for a repository to clone or
// a file to fetch (git.NewRepoSpecFromURL, loader.IsRemoteFile), so that no
// spelling slips through: it looks at the beginning of s only, because s may
// be an inline document that mentions addresses.
func isRemote(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	for strings.HasPrefix(s, "git::") {
		s = strings.TrimPrefix(s, "git::")
	}
	for _, prefix := range []string{"http:", "https:", "ssh:", "file:", "git:", "oci:", "s3:", "github.com/", "github.com:"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	user, _, at := strings.Cut(s, "@")
	return at && user != "" && !strings.ContainsAny(user, "/.: \n")
}
