package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
)

// Finding is one thing that keeps a file from being rewritten.
type Finding struct {
	At      string // Application "web" spec.source.chart
	Why, Do string
}

// Result is what became of a file. The zero value holds no text.
type Result struct {
	Text    []byte    // the whole file; nil if something cannot move
	Moved   int       // sources that name the plugin now and did not
	Already int       // sources that did before
	Cannot  []Finding // in the order of the file
	Notes   []string  // what else to look at, a line each
}

// errNothing is a file that there is nothing to do in.
var errNothing = errors.New("holds no Argo CD Application or ApplicationSet")

// Rewrite rewrites the Applications and ApplicationSets in the content of a
// file, of which it gets the name for messages. The environment, if any, is
// written to plugin.env of each source that moves. An error is a file that is
// no YAML, or holds neither kind.
func Rewrite(data []byte, name, environment string) (Result, error) {
	if _, err := manifest.Parse(data, name); err != nil {
		return Result{}, fmt.Errorf("parsing application: %w", err)
	}
	f := &file{lines: strings.Split(string(data), "\n")}
	var r Result
	var edits []edit
	found := false
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Result{}, fmt.Errorf("parsing application: %s: %w", name, err)
		}
		if len(doc.Content) == 0 {
			continue
		}
		o := doc.Content[0]
		spec, at, ok := specOf(o)
		if !ok {
			continue
		}
		found = true
		a := &application{node: o, spec: spec, at: at, environment: environment, file: f}
		more, err := a.rewrite(&r)
		if err != nil {
			return Result{}, fmt.Errorf("rewriting %s: %w", name, err)
		}
		edits = append(edits, more...)
	}
	switch {
	case !found:
		return Result{}, fmt.Errorf("parsing application: %q %w", name, errNothing)
	case len(r.Cannot) > 0:
		return r, nil
	}
	r.Text = []byte(f.apply(edits))
	if err := verify(data, r.Text, name); err != nil {
		return Result{}, fmt.Errorf("rewriting %s: %w", name, err)
	}
	return r, nil
}

// specOf returns the spec that holds sources, and where it is; ok is false for
// other kinds.
func specOf(o *yaml.Node) (spec *yaml.Node, at string, ok bool) {
	version := get(o, "apiVersion")
	kind := get(o, "kind")
	if version == nil || kind == nil || !strings.HasPrefix(version.Value, "argoproj.io/") {
		return nil, "", false
	}
	switch kind.Value {
	case "Application":
		return get(o, "spec"), "spec", true
	case "ApplicationSet":
		return get(o, "spec", "template", "spec"), "spec.template.spec", true
	}
	return nil, "", false
}
