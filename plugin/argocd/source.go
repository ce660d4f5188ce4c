package argocd

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
)

// maxSourceFile bounds a .argocd-source.yaml, in bytes. Real ones have some
// lines.
const maxSourceFile = 1 << 20

// overridden refuses a repository that says something about the plugin itself:
// Argo CD merges these files over the Application, unseen by whoever looks at
// it, before it runs a plugin. One that speaks of kustomize or Helm is an error
// of Argo CD's, with a plugin.
func (r Request) overridden(name string) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return nil // whoever renders says what is wrong with the directory
	}
	defer root.Close()
	for _, file := range []string{".argocd-source.yaml", ".argocd-source-" + name + ".yaml"} {
		says, err := ofPlugin(root, file)
		if err != nil {
			says = "cannot be read (" + err.Error() + "), and may change the plugin of the Application"
		}
		if says != "" {
			refusal := app.Refuse(gate.RenderFailed, "%.120s %s", file, says)
			refusal.Sentence.Fix = "write it to the Application, and remove it from the repository"
			return refusal
		}
	}
	return nil
}

// ofPlugin says what a file of the directory does to the plugin; nothing if
// there is no such file.
func ofPlugin(root *os.Root, file string) (string, error) {
	info, err := root.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	f, err := root.Open(file)
	if err != nil {
		return "", errors.New("not opened")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSourceFile+1))
	if err != nil || len(data) > maxSourceFile {
		return "", errors.New("too large")
	}
	var patch map[string]json.RawMessage
	if err := yaml.Unmarshal(data, &patch); err != nil {
		return "", errors.New("no YAML object")
	}
	for key := range patch {
		// Argo CD decodes the result without regard to case.
		if strings.EqualFold(key, "plugin") {
			return "changes the plugin of the Application", nil
		}
	}
	return "", nil
}
