package scaffold

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/syncgate/syncgate/plugin/flux/hook"
)

// tree is what the files of a call are to Flux: which of them its Kustomizations
// render.
type tree struct {
	files    []File
	parsed   [][]*yaml.RNode
	rendered map[string]bool // paths of files
	entered  map[string]bool // paths of folders
}

// children finds the files of which the Kustomizations among them make objects.
// Whoever applies any other, such as the Kustomizations' own, fills in nothing.
func children(files []File, parsed [][]*yaml.RNode) map[string]bool {
	t := tree{files: files, parsed: parsed, rendered: map[string]bool{}, entered: map[string]bool{}}
	for _, nodes := range parsed {
		for _, n := range nodes {
			if isFlux(n) && !inArtifactMode(n) {
				t.enter(path.Join(".", strings.TrimLeft(text(n, "spec", "path"), "/")))
			}
		}
	}
	return t.rendered
}

// enter notes what is rendered of a folder: what its kustomization names, or all
// of it, as Flux's generator makes one.
func (t *tree) enter(dir string) {
	if t.entered[dir] {
		return
	}
	t.entered[dir] = true
	if i := t.kustomization(dir); i >= 0 {
		for _, n := range t.parsed[i] {
			for _, field := range []string{"resources", "bases", "components"} {
				t.follow(dir, n, field)
			}
		}
		return
	}
	for _, f := range t.files {
		if f.Path == "" || dir != "." && !strings.HasPrefix(f.Path, dir+"/") {
			continue
		}
		below := path.Dir(f.Path)
		for below != dir && below != "." && t.kustomization(below) < 0 {
			below = path.Dir(below)
		}
		if below != dir && t.kustomization(below) >= 0 {
			t.enter(below)
			continue
		}
		t.rendered[f.Path] = true
	}
}

// follow enters what a kustomization names in a list.
func (t *tree) follow(dir string, n *yaml.RNode, field string) {
	list, err := n.Pipe(yaml.Lookup(field))
	if err != nil || list == nil {
		return
	}
	entries, err := list.Elements()
	if err != nil {
		return // whoever builds it says so
	}
	for _, e := range entries {
		p := path.Join(dir, e.YNode().Value)
		if slices.ContainsFunc(t.files, func(f File) bool { return f.Path == p }) {
			t.rendered[p] = true
			continue
		}
		t.enter(p)
	}
}

// kustomization is the index of the one in a folder, -1 if there is none.
func (t *tree) kustomization(dir string) int {
	return slices.IndexFunc(t.files, func(f File) bool {
		return f.Path != "" && path.Dir(f.Path) == dir && slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(f.Path))
	})
}

func isFlux(n *yaml.RNode) bool {
	return n.GetKind() == "Kustomization" && strings.HasPrefix(n.GetApiVersion(), fluxGroup)
}

// inArtifactMode reports whether the source of a Kustomization is what the gate
// publishes: what it renders gets its receipts from the lock, without
// placeholders.
func inArtifactMode(n *yaml.RNode) bool {
	own, err := hook.Name(n.GetName())
	return err == nil && text(n, "spec", "sourceRef", "name") == own
}

// text is a scalar of a document, "" if there is none.
func text(n *yaml.RNode, fields ...string) string {
	f, err := n.Pipe(yaml.Lookup(fields...))
	if err != nil || f == nil {
		return ""
	}
	return f.YNode().Value
}
