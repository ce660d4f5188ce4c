package lock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"
)

// RenderInputs is what the manifests depended on, beside the repository, when
// receipts were signed for them. When a digest does not match, a difference
// here explains it; nothing is decided by it.
type RenderInputs struct {
	KubeVersion string            `yaml:"kubeVersion,omitempty"`
	APIVersions []string          `yaml:"apiVersions,omitempty"` // written sorted
	Renderers   map[string]string `yaml:"renderers,omitempty"`   // renderer -> version
}

// ReadRenderInputs reads .syncgate/render.lock of the application in dir. The
// zero value is returned when there is none. It returns an error that names
// the file for unknown or duplicate members and for more than one document.
func ReadRenderInputs(dir string) (RenderInputs, error) {
	var in RenderInputs
	root, err := openFolder(dir)
	if errors.Is(err, fs.ErrNotExist) && exists(dir) {
		return in, nil
	}
	if err != nil {
		return in, fmt.Errorf("reading %s: %w", Folder, err)
	}
	defer root.Close()
	f, err := readFile(root, renderFile)
	if errors.Is(err, fs.ErrNotExist) {
		return in, nil
	}
	if err != nil {
		return in, fmt.Errorf("reading %s: %w", Folder, err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(f.data))
	decoder.KnownFields(true)
	err = decoder.Decode(&in)
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		err = errors.New("more than one document")
	}
	if err != nil {
		return RenderInputs{}, fmt.Errorf("reading %s/%s: %w", Folder, renderFile, err)
	}
	return in, nil
}

// WriteRenderInputs writes .syncgate/render.lock, one value a line. Writing
// what is there already touches nothing.
func WriteRenderInputs(dir string, in RenderInputs) error {
	in.APIVersions = slices.Compact(slices.Sorted(slices.Values(in.APIVersions)))
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(in), encoder.Close())
	if err != nil {
		return fmt.Errorf("encoding %s: %w", renderFile, err)
	}
	there, err := readRender(dir)
	if err == nil && bytes.Equal(there, text.Bytes()) {
		return nil
	}
	err = writeFolder(dir, []string{renderFile}, map[string]string{renderFile: text.String()}, nil)
	if err != nil {
		return fmt.Errorf("writing %s: %w", Folder, err)
	}
	return nil
}

func readRender(dir string) ([]byte, error) {
	root, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := readFile(root, renderFile)
	return f.data, err
}
