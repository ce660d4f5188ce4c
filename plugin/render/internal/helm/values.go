package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// values merges what was given, in the order of Argo CD: files, inline values,
// then single settings.
func (s Settings) values(tree *repo.Tree, dir string) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range s.ValueFiles {
		file, err := inRepository(dir, name)
		if err != nil {
			return nil, fmt.Errorf("values file %q: %w", name, err)
		}
		data, err := tree.ReadFile(file)
		if s.IgnoreMissingValueFiles && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading values: %w", err)
		}
		if err := manifest.SingleDocument(data); err != nil {
			return nil, fmt.Errorf("values file %q: %w", name, err)
		}
		m, err := loader.LoadValues(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("values file %q: %w", name, err)
		}
		out = loader.MergeMaps(out, m)
	}
	if s.Values != nil {
		// By way of text, so that a number is the same as from a file.
		text, err := json.Marshal(s.Values)
		if err != nil {
			return nil, fmt.Errorf("encoding inline values: %w", err)
		}
		m, err := loader.LoadValues(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("reading inline values: %w", err)
		}
		out = loader.MergeMaps(out, m)
	}
	for _, group := range []struct {
		name  string
		list  []string
		parse func(string, map[string]any) error
	}{
		{"set", s.Set, strvals.ParseInto},
		{"set-string", s.SetString, strvals.ParseIntoString},
		{"set-file", s.SetFile, func(text string, dest map[string]any) error {
			return strvals.ParseIntoFile(text, dest, func(name []rune) (any, error) {
				file, err := inRepository(dir, string(name))
				if err != nil {
					return nil, err
				}
				data, err := tree.ReadFile(file)
				return string(data), err
			})
		}},
	} {
		for _, text := range group.list {
			if err := group.parse(text, out); err != nil {
				key, _, _ := strings.Cut(text, "=") // what follows may be secret
				return nil, fmt.Errorf("%s %q: %w", group.name, key, err)
			}
		}
	}
	return out, nil
}

// inRepository returns the path of a values file relative to the root. A name
// is relative to the chart, or with a leading "/" to the root, as in Argo CD.
func inRepository(dir, name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("empty name")
	case strings.Contains(name, "://"):
		return "", errors.New("is remote; the gate renders without network: commit the file")
	case strings.Contains(name, "$"):
		return "", errors.New("'$' refers to another source or to a variable; only files of this source can be used, by their names")
	case strings.ContainsAny(name, "*?["):
		return "", errors.New("patterns are not supported: name the files")
	case path.IsAbs(name):
		return path.Join(".", strings.TrimLeft(name, "/")), nil
	}
	return path.Join(dir, name), nil
}
