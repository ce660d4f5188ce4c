package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// checkKustomization refuses what kustomize would silently drop (duplicate
// keys, a second document) or fetch. It decodes with kustomize's own decoder:
// two readings of one file are how checks are walked round.
func (f *files) checkKustomization(file string, data []byte) error {
	if err := CheckText(data); err != nil {
		return err
	}
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return fmt.Errorf("parsing kustomization: %w", err)
	}
	k.FixKustomization()
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return errors.New("helmCharts is not supported: a chart is rendered as an application of its own, or vendored as plain manifests")
	}
	if err := f.checkPaths(path.Dir(file), &k); err != nil {
		return err
	}
	f.images.add(file, &k)
	return nil
}

// CheckText refuses what two readers of a kustomization could read differently:
// a key that stands twice, a second document, and aliases without end.
func CheckText(data []byte) error {
	docs, err := documents(data)
	if err != nil {
		return fmt.Errorf("parsing kustomization: %w", err)
	}
	if len(docs) > 1 {
		return fmt.Errorf("line %d: a second document, which kustomize ignores", docs[1].Line)
	}
	for _, d := range docs {
		if err := checkNode(d, true); err != nil {
			return err
		}
		if err := foldedKeys(d); err != nil {
			return err
		}
	}
	return nil
}

// foldedKeys refuses top-level keys that differ in case only: encoding/json,
// which kustomize decodes with, takes them for one and keeps the last.
func foldedKeys(doc *yaml.Node) error {
	if doc.Kind != yaml.MappingNode {
		return nil
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(doc.Content); i += 2 {
		key := doc.Content[i]
		folded := strings.ToLower(key.Value)
		if first := seen[folded]; first != nil {
			return fmt.Errorf("line %d: key %q is already on line %d", key.Line, key.Value, first.Line)
		}
		seen[folded] = key
	}
	return nil
}

func (f *files) checkPaths(dir string, k *types.Kustomization) error {
	// What kustomize reads as a file or, failing that, builds as a directory.
	// A name that does not exist locally is where it starts to think of git.
	for _, list := range []struct {
		field  string
		paths  []string
		inline bool
	}{
		{"resources", k.Resources, false},
		{"components", k.Components, false},
		{"generators", k.Generators, true},
		{"transformers", k.Transformers, true},
		{"validators", k.Validators, true},
	} {
		for _, p := range list.paths {
			if err := f.checkPath(dir, list.field, p, list.inline, true); err != nil {
				return err
			}
			if list.field == "resources" {
				f.origins.list(path.Join(dir, p))
			}
			if base := path.Join(dir, p); f.tree.IsDir(base) && !slices.ContainsFunc(FileNames(), func(n string) bool { return f.tree.IsFile(path.Join(base, n)) }) {
				return fmt.Errorf("%s: %q is a directory without a kustomization", list.field, p)
			}
		}
	}
	for _, p := range k.Configurations {
		if err := f.checkPath(dir, "configurations", p, false, true); err != nil {
			return err
		}
	}
	//lint:ignore SA1019 deprecated, and still built by kustomize
	for _, p := range k.PatchesStrategicMerge {
		if err := f.checkPath(dir, "patchesStrategicMerge", string(p), true, true); err != nil {
			return err
		}
	}
	//lint:ignore SA1019 deprecated, and still built by kustomize
	for _, p := range append(k.Patches, k.PatchesJson6902...) {
		if p.Patch != "" {
			if err := f.checkInline("patches", p.Patch); err != nil {
				return err
			}
		}
		if err := f.checkPath(dir, "patches", p.Path, false, true); err != nil {
			return err
		}
		if err := f.checkPlain(dir, "patches", p.Path); err != nil {
			return err
		}
	}
	for _, r := range k.Replacements {
		if err := f.checkPath(dir, "replacements", r.Path, false, true); err != nil {
			return err
		}
	}
	if err := f.checkDataPaths(dir, k); err != nil {
		return err
	}
	for _, g := range k.SecretGenerator {
		for _, p := range append(g.FileSources[:len(g.FileSources):len(g.FileSources)], g.EnvSources...) {
			if _, after, ok := strings.Cut(p, "="); ok {
				p = after
			}
			if err := f.checkPlain(dir, "secretGenerator", p); err != nil {
				return err
			}
		}
	}
	return nil
}

// encrypted is what SOPS leaves in a file, one mark for each of its formats.
var encrypted = [][]byte{[]byte(`"mac": "ENC[`), []byte("sops_mac=ENC["), []byte("[sops]"), []byte("mac: ENC[")}

// Encrypted reports whether a text looks encrypted by SOPS, by the marks that
// Flux looks for.
func Encrypted(data []byte) bool {
	return slices.ContainsFunc(encrypted, func(mark []byte) bool { return bytes.Contains(data, mark) })
}

// checkPlain refuses an encrypted file where its content gets into what is
// built before anybody sees it.
func (f *files) checkPlain(dir, field, p string) error {
	if !f.decrypted || p == "" {
		return nil
	}
	data, err := f.tree.ReadFile(path.Join(dir, p))
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if Encrypted(data) {
		return fmt.Errorf("%s: %q is encrypted: Flux decrypts it before it builds, and the gate, which has no key, would judge something else; commit an encrypted Secret as a manifest of its own, which is decrypted after the build", field, p)
	}
	return nil
}

// checkDataPaths is checkPaths for files that are not parsed strictly.
func (f *files) checkDataPaths(dir string, k *types.Kustomization) error {
	for _, p := range append(k.Crds[:len(k.Crds):len(k.Crds)], k.OpenAPI["path"]) {
		if err := f.checkPath(dir, "crds or openapi", p, false, false); err != nil {
			return err
		}
	}
	var sources []types.KvPairSources
	for _, g := range k.ConfigMapGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		sources = append(sources, g.KvPairSources)
	}
	for _, s := range sources {
		for _, p := range s.FileSources {
			if _, after, ok := strings.Cut(p, "="); ok {
				p = after
			}
			if err := f.checkPath(dir, "files", p, false, false); err != nil {
				return err
			}
		}
		for _, p := range s.EnvSources {
			if err := f.checkPath(dir, "envs", p, false, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPath refuses an entry of a kustomization that is remote, absolute,
// outside the repository or missing. With inline, a mapping over several
// lines is a document and not a path.
func (f *files) checkPath(dir, field, p string, inline, strict bool) error {
	if p == "" {
		return nil
	}
	if isRemote(p) {
		return fmt.Errorf("%s: %q is remote: the gate renders without network, so that a commit always renders the same; vendor it into the repository", field, shorten(p))
	}
	if inline && strings.Contains(p, "\n") {
		return f.checkInline(field, p)
	}
	if strings.Contains(p, "://") {
		return fmt.Errorf("%s: %q is remote; vendor it into the repository", field, p)
	}
	if path.IsAbs(p) {
		return fmt.Errorf("%s: %q is an absolute path", field, p)
	}
	full := path.Join(dir, p)
	if !filepath.IsLocal(full) {
		return fmt.Errorf("%s: %q leads out of the repository", field, p)
	}
	rel, err := f.tree.Resolve(full)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %q does not exist", field, p)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if strict {
		f.strict[full], f.strict[rel] = true, true
	}
	return nil
}

func (f *files) checkInline(field, text string) error {
	f.images.scan([]byte(text))
	if err := checkYAML([]byte(text), true); err != nil {
		return fmt.Errorf("%s: inline document: %w", field, err)
	}
	return nil
}

func shorten(s string) string {
	if line, _, more := strings.Cut(s, "\n"); more {
		s = line
	}
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}
