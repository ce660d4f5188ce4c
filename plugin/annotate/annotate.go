// Package annotate writes an annotation into manifest files and leaves the rest
// of them, comments included, as people wrote it.
package annotate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/syncgate/syncgate/plugin/app"
)

// Edit is one annotation of one object: the object as it is written in the
// file, and the value.
type Edit struct {
	File                              string // relative to the directory
	APIVersion, Kind, Namespace, Name string
	Value                             string
}

// Write sets the annotation key on every object that edits name, in files
// below dir. Nothing is written unless every object was found, exactly once, in
// a YAML file; then each file is replaced as a whole.
func Write(dir, key string, edits []Edit) error {
	byFile := map[string][]Edit{}
	for _, e := range edits {
		byFile[e.File] = append(byFile[e.File], e)
	}
	files := make([]string, 0, len(byFile))
	for f := range byFile {
		files = append(files, f)
	}
	sort.Strings(files)
	out := make([][]byte, len(files))
	for i, f := range files {
		text, err := edited(dir, f, key, byFile[f])
		if err != nil {
			return fmt.Errorf("annotating %s: %w", f, err)
		}
		out[i] = text
	}
	for i, f := range files {
		if err := app.WriteFile(filepath.Join(dir, f), out[i]); err != nil {
			return err
		}
	}
	return nil
}

func edited(dir, file, key string, edits []Edit) ([]byte, error) {
	if ext := filepath.Ext(file); ext != ".yaml" && ext != ".yml" {
		return nil, fmt.Errorf("want a YAML file: receipts for it belong in the lock (sign without --annotate)")
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	rw := &kio.ByteReadWriter{
		Reader: bytes.NewReader(data), Writer: &out,
		PreserveSeqIndent: true,
	}
	nodes, err := rw.Read()
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if err := set(nodes, key, e); err != nil {
			return nil, err
		}
	}
	if err := rw.Write(nodes); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func set(nodes []*yaml.RNode, key string, e Edit) error {
	var found []*yaml.RNode
	for _, n := range nodes {
		if n.GetApiVersion() == e.APIVersion && n.GetKind() == e.Kind && n.GetName() == e.Name && n.GetNamespace() == e.Namespace {
			found = append(found, n)
		}
	}
	what := strings.TrimSpace(e.Kind + " " + e.Name)
	switch len(found) {
	case 0:
		return fmt.Errorf("%s is not a document of its own there", what)
	case 1:
		return found[0].PipeE(yaml.SetAnnotation(key, e.Value))
	}
	return fmt.Errorf("%s stands there %d times", what, len(found))
}
