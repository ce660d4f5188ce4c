package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"
)

// unit is one application to render.
type unit struct {
	path      string         // relative to the corpus, with a name if it is an Application
	kind      string         // kustomize, helm, directory or Application
	root, dir string         // its repository relative to the corpus, its directory relative to that
	name      string         // the Application's
	namespace string         // of the destination
	source    map[string]any // as Argo CD is given it
	manifest  []byte         // the Application's, with this source alone; nil for other kinds
	elsewhere string         // why it cannot be rendered from this folder

	flux      map[string]any               // the Flux Kustomization; nil of Argo CD's
	variables map[string]map[string]string // data of what it takes variables from, by "Kind/name"
}

// find lists the units below dir, sorted. What lies in a chart belongs to it.
func find(dir string) ([]unit, error) {
	var out []unit
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !e.IsDir() {
			if ext := filepath.Ext(p); ext == ".yaml" || ext == ".yml" {
				out = append(out, applications(dir, rel)...)
			}
			return nil
		}
		u := unit{path: rel, name: "parity", namespace: "parity", source: map[string]any{}}
		u.root, u.dir = repository(rel)
		u.source["path"] = u.dir
		switch {
		case e.Name() == ".git":
			return fs.SkipDir
		case exists(p, "Chart.yaml"):
			u.kind = "helm"
			out = append(out, u)
			return fs.SkipDir
		case exists(p, "kustomization.yaml") || exists(p, "kustomization.yml") || exists(p, "Kustomization"):
			u.kind = "kustomize"
			out = append(out, u)
		case holdsManifests(p):
			u.kind = "directory"
			out = append(out, u)
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

// repository splits a path: the first folder is a repository.
func repository(rel string) (root, dir string) {
	root, dir, _ = strings.Cut(rel, "/")
	if dir == "" {
		dir = "."
	}
	return root, dir
}

func exists(dir, name string) bool {
	st, err := os.Stat(filepath.Join(dir, name))
	return err == nil && !st.IsDir()
}

func holdsManifests(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && bytes.Contains(data, []byte("apiVersion")) && bytes.Contains(data, []byte("kind")) {
			return true
		}
	}
	return false
}

// applications lists the sources of the Applications in a file.
func applications(dir, rel string) []unit {
	data, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil || !bytes.Contains(data, []byte("argoproj.io/")) {
		return nil
	}
	var out []unit
	for _, document := range regexp.MustCompile(`(?m)^---.*$`).Split(string(data), -1) {
		var o struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
			Spec             map[string]any
		}
		// What does not parse is refused with the directory that it is in.
		if err := yaml.Unmarshal([]byte(document), &o); err != nil || o.Kind != "Application" || !strings.HasPrefix(o.APIVersion, "argoproj.io/") {
			continue
		}
		name, spec := o.Metadata.Name, o.Spec
		sources, _ := spec["sources"].([]any)
		if s, ok := spec["source"].(map[string]any); ok {
			sources = append([]any{s}, sources...)
		}
		for i, s := range sources {
			source, _ := s.(map[string]any)
			u := unit{path: fmt.Sprintf("%s#%s", rel, name), kind: "Application", name: name, source: source}
			if len(sources) > 1 {
				u.path += fmt.Sprintf("[%d]", i)
			}
			destination, _ := spec["destination"].(map[string]any)
			u.namespace, _ = destination["namespace"].(string)
			u.locate(dir, rel)
			u.manifest, err = yaml.Marshal(map[string]any{
				"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": name, "namespace": "argocd"},
				"spec": map[string]any{"project": "default", "destination": map[string]any{"namespace": u.namespace}, "source": source},
			})
			if err != nil {
				u.elsewhere = err.Error()
			}
			out = append(out, u)
		}
	}
	return out
}

// locate finds the repository of a source: a folder called OWNER+NAME, or where
// the Application is, or the corpus itself.
func (u *unit) locate(dir, rel string) {
	url, _ := u.source["repoURL"].(string)
	p, _ := u.source["path"].(string)
	if chart, _ := u.source["chart"].(string); chart != "" || u.source["plugin"] != nil {
		u.elsewhere = "a chart of a repository, or another plugin"
		return
	}
	u.dir = path.Clean(p)
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"), "/")
	first, _ := repository(rel)
	candidates := []string{first, "."}
	if n := len(parts); n >= 2 {
		candidates = append([]string{parts[n-2] + "+" + parts[n-1]}, candidates...)
	}
	for _, c := range candidates {
		st, err := os.Stat(filepath.Join(dir, c, filepath.FromSlash(p)))
		if err == nil && st.IsDir() && filepath.IsLocal(filepath.Join(c, filepath.FromSlash(p))) && p != "" {
			u.root = c
			return
		}
	}
	u.elsewhere = fmt.Sprintf("no folder %q of %q in this collection", p, url)
}
