// Package scaffold writes into manifests what the gate's postBuild mode needs
// (package hook): placeholders for digests and receipts, and the ConfigMap that
// fills them in among those of a Flux Kustomization. The rest of the files,
// comments included, stays as people wrote it; what is there already stays too,
// so that a second run changes nothing.
package scaffold

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Options say what is gated, and where receipts are.
type Options struct {
	Projector  *projection.Projector
	Annotation string // the key under which objects carry receipts

	// Children says that Flux Kustomizations get a placeholder for receipts, too,
	// where one of those in the call renders them. The file's Path tells.
	Children bool

	// Helm is what a HelmRelease gets as its post-renderer; nil leaves it as it is.
	Helm *PostRenderer
}

// File is a file of manifests, or a kustomization.
type File struct {
	Name string // for people
	Path string // in the repository, with '/' and cleaned; "" if it is in none
	Text []byte
}

// Result is what became of files.
type Result struct {
	Files []File   // those of the input, in its order
	Notes []string // what a person has to look at, a line each
}

// Write returns the files with placeholders. Files of one application belong into
// one call: a variable's name is used for one thing only. The error names a file
// that cannot be read.
func Write(files []File, o Options) (Result, error) {
	w := writer{options: o, taken: map[string]string{}, images: map[string]bool{}}
	parsed := make([][]*yaml.RNode, len(files))
	for i, f := range files {
		nodes, err := read(f.Text)
		if err != nil {
			return Result{}, fmt.Errorf("reading %s: %w", f.Name, err)
		}
		parsed[i] = nodes
		for _, m := range variable.FindAllSubmatch(f.Text, -1) {
			w.taken[string(m[1])] = "?" // somebody's; a new one gets another name
		}
	}
	if o.Children {
		if w.children = children(files, parsed); len(w.children) == 0 {
			w.notes = append(w.notes, "none of these Kustomizations renders any of these files: give the gated one and what it renders in one call, in their checkout")
		}
	}
	// First what names images for a whole kustomization: kustomize does not find
	// an image any more that has a placeholder.
	out := Result{Files: slices.Clone(files)}
	changed := make([]bool, len(files))
	for i, f := range files {
		if !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(f.Name)) {
			continue
		}
		for _, n := range parsed[i] {
			did, err := w.kustomization(f.Name, n)
			if err != nil {
				return Result{}, fmt.Errorf("editing %s: %w", f.Name, err)
			}
			changed[i] = changed[i] || did
		}
	}
	for i, f := range files {
		if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(f.Name)) {
			continue
		}
		for _, n := range parsed[i] {
			did, err := w.object(f, n)
			if err != nil {
				return Result{}, fmt.Errorf("editing %s: %w", f.Name, err)
			}
			changed[i] = changed[i] || did
		}
	}
	for i := range files {
		if !changed[i] {
			continue
		}
		text, err := write(parsed[i], files[i].Text)
		if err != nil {
			return Result{}, fmt.Errorf("writing %s: %w", files[i].Name, err)
		}
		out.Files[i].Text = text
	}
	out.Notes = w.notes
	return out, nil
}

func read(text []byte) ([]*yaml.RNode, error) {
	rw := kio.ByteReader{Reader: bytes.NewReader(text), PreserveSeqIndent: true, WrapBareSeqNode: true}
	return rw.Read()
}

func write(nodes []*yaml.RNode, old []byte) ([]byte, error) {
	var out bytes.Buffer
	w := kio.ByteWriter{Writer: &out}
	if err := w.Write(nodes); err != nil {
		return nil, err
	}
	if bytes.HasPrefix(old, []byte("---\n")) && !bytes.HasPrefix(out.Bytes(), []byte("---\n")) {
		return append([]byte("---\n"), out.Bytes()...), nil
	}
	return out.Bytes(), nil
}

// variable finds the gate's variables in a text.
var variable = regexp.MustCompile(`\$\{(` + hook.Prefix + `[a-z0-9_]+)`)

type writer struct {
	options Options
	taken   map[string]string // variable -> what it stands for
	images  map[string]bool   // names that a kustomization gives a digest to
	notes   []string

	children map[string]bool // paths of files that a Kustomization renders
}

func (w *writer) note(file, format string, args ...any) {
	w.notes = append(w.notes, file+": "+fmt.Sprintf(format, args...))
}

var odd = regexp.MustCompile(`[^a-z0-9]+`)

// name returns a variable that is used for nothing but what.
func (w *writer) name(prefix, what string) string {
	base := prefix + strings.Trim(odd.ReplaceAllString(strings.ToLower(what), "_"), "_")
	const most = 180
	if len(base) > most {
		base = base[:most]
	}
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s_%d", base, i)
		}
		if for_, there := w.taken[name]; !there || for_ == what {
			w.taken[name] = what
			return name
		}
	}
}

// kustomization gives the images that a kustomization sets a placeholder.
func (w *writer) kustomization(file string, n *yaml.RNode) (bool, error) {
	list, err := n.Pipe(yaml.Lookup("images"))
	if err != nil || list == nil {
		return false, err
	}
	entries, err := list.Elements()
	if err != nil {
		return false, err
	}
	changed := false
	for _, e := range entries {
		text := func(key string) string {
			f := e.Field(key)
			if f == nil {
				return ""
			}
			return f.Value.YNode().Value
		}
		name := text("name")
		switch {
		case name == "":
		case text("digest") != "":
			w.images[name] = true
		case text("newTag") == "":
			w.note(file, "images entry %q sets no newTag: with a digest alone the tag would be lost; set both, or leave the entry out", name)
		default:
			digest := hook.Placeholder(w.name(hook.PinPrefix, "image "+name))
			if err := e.PipeE(yaml.SetField("digest", yaml.NewStringRNode(digest))); err != nil {
				return false, err
			}
			w.images[name], changed = true, true
		}
	}
	return changed, nil
}
