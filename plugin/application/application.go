package application

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/render"
)

// maxFile bounds a manifest in bytes; etcd takes 1.5 MiB.
const maxFile = 2 << 20

// EnvironmentVariable is the member of plugin.env that asks for one of the
// environments of policy.
const EnvironmentVariable = "SYNCGATE_ENVIRONMENT"

// Source is what a manifest says. The zero value says nothing.
type Source struct {
	// App is what policy may match on. Its Path is relative to the
	// repository's root, with slashes, and leads nowhere else.
	App policy.App

	// Annotations are the gate's own of an Application, which asks by them for
	// a stricter gate; for package settings to read.
	Annotations map[string]string

	render render.Options
	flux   *Kustomization
}

// Read reads the manifest in a file, which must hold exactly one Argo CD
// Application or Flux Kustomization; objects of other kinds are passed over.
// The error lists every setting that cannot be honoured, sorted.
func Read(file string) (Source, error) {
	data, err := readFile(file)
	if err != nil {
		return Source{}, fmt.Errorf("reading application: %w", err)
	}
	return Parse(data, file)
}

func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%q is larger than %d bytes", file, maxFile)
	}
	return data, nil
}

// Parse is Read for the content of a file, of which it gets the name for
// messages.
func Parse(data []byte, file string) (Source, error) {
	objects, err := manifest.Parse(data, file)
	if err != nil {
		return Source{}, fmt.Errorf("parsing application: %w", err)
	}
	var found []manifest.Object
	for _, o := range objects {
		if isApplication(o) || isKustomization(o) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return Source{}, fmt.Errorf("parsing application: %q holds %d Argo CD Applications or Flux Kustomizations, want 1", file, len(found))
	}
	return read(found[0])
}

// read reads an Application or a Kustomization.
func read(o manifest.Object) (Source, error) {
	var bad problems
	top := &fields{"", maps.Clone(o.Tree), &bad}
	s := Source{}
	switch spec := top.object("spec"); {
	case spec == nil:
		bad.add("spec is missing")
	case isApplication(o):
		s.argocd(o, spec)
	default:
		s.kustomization(o, spec)
	}
	if o.Name() == "" {
		bad.add("metadata.name is missing: what is rendered may depend on it")
	}
	if s.App.Path != "" && !filepath.IsLocal(filepath.FromSlash(s.App.Path)) {
		bad.add("the path %.80q leads out of the repository", s.App.Path)
	}
	if err := bad.err(); err != nil {
		at := ""
		if o.Document > 0 { // it is out of a file
			at = " in " + o.Where()
		}
		return Source{}, fmt.Errorf("%s %q%s: %w", o.Kind(), o.Name(), at, err)
	}
	return s, nil
}

// ReleaseName is the name that Argo CD gives to a Helm release of the
// application: its name, without the namespace that stands before "_" in the
// name of an Application outside Argo CD's own namespace.
func ReleaseName(app string) string {
	if _, name, found := strings.Cut(app, "_"); found {
		return name
	}
	return app
}

// Options say how to render the application in a checkout of its repository,
// whose root is given. The files there can still change the source that the
// cluster uses, which is an error.
func (s Source) Options(root string) (render.Options, error) {
	o := s.render
	o.Root, o.Dir = root, filepath.Join(root, filepath.FromSlash(s.App.Path))
	if s.flux != nil {
		o.Renderer, o.Flux = render.Flux, s.flux.options()
		return o, nil
	}
	for _, name := range []string{".argocd-source.yaml", ".argocd-source-" + s.App.Name + ".yaml"} {
		_, err := os.Lstat(filepath.Join(o.Dir, name))
		if err == nil {
			return o, fmt.Errorf("%s changes the source in the cluster: put what it says into the Application", name)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return o, fmt.Errorf("looking for %s: %w", name, err)
		}
	}
	return o, nil
}
