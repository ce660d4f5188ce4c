package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// unit is one thing that a person would sync: a kustomization, a chart, or a
// file of manifests.
type unit struct {
	kind string // kustomize, helm or manifest
	path string // relative to the corpus
}

// find lists the units below dir, sorted. What lies in a chart belongs to it;
// manifests that a kustomization uses are units of their own too.
func find(dir string) ([]unit, error) {
	var out []unit
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			switch {
			case e.Name() == ".git":
				return fs.SkipDir
			case exists(path, "Chart.yaml"):
				out = append(out, unit{"helm", rel})
				return fs.SkipDir
			case exists(path, "kustomization.yaml") || exists(path, "kustomization.yml") || exists(path, "Kustomization"):
				out = append(out, unit{"kustomize", rel})
			}
			return nil
		}
		switch ext := filepath.Ext(path); {
		case strings.HasPrefix(e.Name(), "kustomization.") || e.Name() == "Kustomization":
		case ext == ".yaml" || ext == ".yml" || ext == ".json":
			out = append(out, unit{"manifest", rel})
		}
		return nil
	})
	sort.Slice(out, func(i, j int) bool {
		if out[i].path != out[j].path {
			return out[i].path < out[j].path
		}
		return out[i].kind < out[j].kind
	})
	return out, err
}

func exists(dir, name string) bool {
	st, err := os.Stat(filepath.Join(dir, name))
	return err == nil && !st.IsDir()
}
