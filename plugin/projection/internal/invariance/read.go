package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/projection"
)

// row is one document: an object, or a file that cannot be read as objects.
type row struct {
	path     string
	document int // from 1; 0: the file
	object   manifest.Object
	verdict

	sent, stored map[string]any // of the comparison that the verdict is about
}

// read finds the documents of a folder. The rules of what a document is are
// the gate's own: a file that render would refuse is one row, Unreadable.
func read(dir string) ([]*row, error) {
	var rows []*row
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		objects, err := manifest.Parse(data, rel)
		if err != nil {
			reason := err.Error()
			if all := (manifest.Errors)(nil); errors.As(err, &all) && len(all) > 0 {
				reason = all[0].Msg
			}
			rows = append(rows, &row{path: rel, verdict: verdict{outcome: unreadable, field: short(reason)}})
			return nil
		}
		for _, o := range objects {
			rows = append(rows, &row{path: rel, document: o.Document, object: o})
		}
		return nil
	})
	return rows, err
}

func (r *row) group() string {
	return projection.CanonicalGroup(r.object.Group(), r.object.Kind())
}

func (r *row) is(group, kind string) bool {
	return r.document > 0 && r.object.Kind() == kind && r.object.Group() == group
}
