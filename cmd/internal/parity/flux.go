package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/render"
)

// all is a spec that uses what a Kustomization can add to a build. What it names
// by kind or image is there or not.
const all = `{targetNamespace: parity, namePrefix: p-, nameSuffix: -s, commonMetadata: {labels: {l: m}, annotations: {n-o: p}},
images: [{name: nginx, newTag: "9.9"}, {name: ghcr.io/stefanprodan/podinfo, newName: example.com/podinfo, digest: "sha256:5cba7bc9a0540f7cdc71f169f0d3dde5bd7cf903792a56d069f5382b7ff68286"}],
patches: [{patch: "- {op: add, path: /spec/replicas, value: 7}", target: {kind: Deployment}}],
components: [./no-such-component], ignoreMissingComponents: true, buildMetadata: [originAnnotations],
postBuild: {substitute: {VERSION: "1.5", NAMESPACE: parity, cluster_domain: "example.com\n"}}}`

// findFlux makes Kustomizations of the directories among the units, with nothing
// and with everything in their spec, and adds those of Flux that are in the
// folder.
func findFlux(dir string, units []unit) ([]unit, error) {
	var out []unit
	for _, u := range units {
		if u.kind != "kustomize" && u.kind != "directory" {
			continue
		}
		for kind, text := range map[string]string{u.kind: "{}", u.kind + " with spec": all} {
			v := u
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
				return nil, err
			}
			spec["path"], spec["prune"], spec["interval"] = "./"+u.dir, true, "10m"
			spec["sourceRef"] = map[string]any{"kind": "GitRepository", "name": "parity"}
			v.kind = kind
			v.flux = map[string]any{
				"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
				"metadata": map[string]any{"name": "parity", "namespace": "flux-system"}, "spec": spec,
			}
			out = append(out, v)
		}
	}
	err := eachYAML(dir, func(rel string, data []byte) { out = append(out, kustomizations(dir, rel, data)...) })
	slices.SortStableFunc(out, func(a, b unit) int {
		return strings.Compare(a.path+" "+a.kind, b.path+" "+b.kind)
	})
	return out, err
}

func eachYAML(dir string, see func(rel string, data []byte)) error {
	return filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if ext := filepath.Ext(p); err != nil || e.IsDir() || ext != ".yaml" && ext != ".yml" {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return nil // a link to nowhere
		}
		rel, err := filepath.Rel(dir, p)
		see(filepath.ToSlash(rel), data)
		return err
	})
}

var separator = regexp.MustCompile(`(?m)^---.*$`)

// kustomizations lists those of Flux in a file.
func kustomizations(dir, rel string, data []byte) []unit {
	if !bytes.Contains(data, []byte("kustomize.toolkit.fluxcd.io/")) {
		return nil
	}
	var out []unit
	for _, document := range separator.Split(string(data), -1) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil || o["kind"] != "Kustomization" {
			continue
		}
		version, _ := o["apiVersion"].(string)
		spec, ok := o["spec"].(map[string]any)
		if !ok || !strings.HasPrefix(version, "kustomize.toolkit.fluxcd.io/") {
			continue
		}
		meta, _ := o["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		at, _ := spec["path"].(string)
		u := unit{path: rel + "#" + name, kind: "Kustomization", name: name, namespace: "parity", source: map[string]any{}, flux: o}
		u.root, _ = repository(rel)
		u.dir = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(at)), "/")
		if st, err := os.Stat(filepath.Join(dir, u.root, filepath.FromSlash(u.dir))); err != nil || !st.IsDir() || !filepath.IsLocal(u.dir) {
			u.elsewhere = fmt.Sprintf("no folder %q in its own repository", at)
		}
		if len(u.elsewhere) == 0 {
			u.variables = values(filepath.Join(dir, u.root), spec)
		}
		out = append(out, u)
	}
	return out
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)`)

// values makes up data for the ConfigMaps and Secrets of a spec: whatever the
// repository has variables for.
func values(root string, spec map[string]any) map[string]map[string]string {
	post, _ := spec["postBuild"].(map[string]any)
	list, _ := post["substituteFrom"].([]any)
	if len(list) == 0 {
		return nil
	}
	data := map[string]string{}
	if err := eachYAML(root, func(_ string, text []byte) {
		for _, m := range variable.FindAllSubmatch(text, -1) {
			data[string(m[1])] = "value"
		}
	}); err != nil {
		return nil
	}
	out := map[string]map[string]string{}
	for _, x := range list {
		from, _ := x.(map[string]any)
		out[fmt.Sprintf("%v/%v", from["kind"], from["name"])] = data
	}
	return out
}

func fluxOptions(root string, u unit) (render.Options, error) {
	s, err := application.FromObject(u.flux)
	if err != nil {
		return render.Options{}, err
	}
	o, err := s.Options(root)
	if err != nil {
		return o, err
	}
	o.Flux.Look = func(_ context.Context, kind, name string) (map[string]string, bool, error) {
		data, ok := u.variables[kind+"/"+name]
		return data, ok, nil
	}
	return o, nil
}

// renderFlux returns the objects that kustomize-controller makes, or what it
// says is wrong. What it does to them before it applies them must leave what is
// gated as it is.
func (n *native) renderFlux(g *ours, root string, u unit) (objects []map[string]any, failed string, err error) {
	data, err := json.Marshal(map[string]any{"Root": root, "Kustomization": u.flux, "Variables": u.variables})
	if err != nil {
		return nil, "", err
	}
	var a struct {
		Objects, Applied []json.RawMessage
		Error            string
	}
	if err := n.ask(data, &a); err != nil {
		return nil, "", err
	}
	if a.Error != "" {
		return nil, strings.Join(strings.Fields(strings.ReplaceAll(a.Error, root, "ROOT")), " "), nil
	}
	for i, text := range a.Objects {
		o, err := decode(text)
		if err != nil {
			return nil, "", err
		}
		applied, err := decode(a.Applied[i])
		if err != nil {
			return nil, "", err
		}
		if before, after := g.digest(o), g.digest(applied); before != after {
			return nil, fmt.Sprintf("%s: what is gated is %s as it is built, and %s as it is applied", key(o), before, after), nil
		}
		objects = append(objects, o)
	}
	return objects, "", nil
}

// digest is that of all gated fields, or what is wrong with them.
func (g *ours) digest(tree map[string]any) string {
	p, err := g.effective.Projector.Project(tree)
	if err != nil {
		return "malformed"
	}
	d, err := p.Digest(p.Applies())
	if err != nil {
		return "malformed"
	}
	return d
}
