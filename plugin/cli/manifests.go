package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/app"
)

func newManifests() *cobra.Command {
	c := &cobra.Command{
		Use:   "manifests",
		Short: "Print what to install",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage(c, "give one of: argocd, flux, webhook, policies")
		},
	}
	c.AddCommand(newManifestsArgoCD(), newManifestsFlux(), newManifestsWebhook(), newManifestsPolicies())
	return c
}

func newManifestsArgoCD() *cobra.Command {
	var out string
	var controller, helm bool
	c := &cobra.Command{
		Use:   "argocd",
		Short: "Print the kustomize component that adds the gate to Argo CD",
		Long: `Argocd prints a kustomize component that adds the gate as a sidecar to a stock
argocd-repo-server, or with --controller the kustomize base of the controller
beside it and the component that makes the sidecar go by what it publishes, or
with --helm values for Argo CD's Helm chart that add the sidecar. The controller
is installed beside the chart, too: then print both. With --out the files are
written to a directory, which must not exist.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			from := manifests.ArgoCD
			switch {
			case controller && helm:
				return usage(c, "give either --controller or --helm: the values have no controller, so run it once with each")
			case controller:
				from = manifests.ArgoCDController
			case helm:
				from = manifests.ArgoCDHelm
			}
			files, err := embedded(from, "argocd")
			if err != nil {
				return err
			}
			return files.put(c.OutOrStdout(), out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write the files to")
	c.Flags().BoolVar(&controller, "controller", false, "print those of the controller instead")
	c.Flags().BoolVar(&helm, "helm", false, "print values for the Helm chart argo-cd instead")
	return c
}

func newManifestsFlux() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "flux",
		Short: "Print the kustomize base of the gate for Flux",
		Long: `Flux prints the kustomize base of the gate for Flux, which runs beside the
webhook (docs/flux.md). With --out the files are written to a directory, which
must not exist.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := embedded(manifests.Flux, "flux")
			if err != nil {
				return err
			}
			return files.put(c.OutOrStdout(), out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write the files to")
	return c
}

// manifestFile is one file to install. Its path has slashes; the first part is
// the folder in the repository, which a directory to write to stands for.
type manifestFile struct {
	path string
	data []byte
}

type manifestFiles []manifestFile

// embedded returns the files of an embedded folder.
func embedded(from fs.FS, dir string) (manifestFiles, error) {
	var out manifestFiles
	err := fs.WalkDir(from, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, path)
		out = append(out, manifestFile{path, data})
		return err
	})
	return out, err
}

// put writes the files to a directory, or if there is none prints the YAML
// among them as one stream.
func (f manifestFiles) put(w io.Writer, out string) error {
	if out != "" {
		return f.write(out)
	}
	var b bytes.Buffer
	for _, file := range f {
		switch {
		case len(f) == 1:
			b.Write(file.data)
		case path.Ext(file.path) == ".yaml":
			fmt.Fprintf(&b, "---\n# %s\n%s", file.path, file.data)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// write makes the directory last, by renaming: it is there whole, or not at
// all.
func (f manifestFiles) write(out string) error {
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists: nothing is overwritten", out)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(out)), ".syncgate-manifests-")
	if err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	defer os.RemoveAll(tmp)
	for _, file := range f {
		if err := writeBelow(tmp, file); err != nil {
			return fmt.Errorf("writing manifests: %w", err)
		}
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Rename(tmp, out)); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}

func writeBelow(dir string, file manifestFile) error {
	_, rest, _ := strings.Cut(file.path, "/")
	to := filepath.Join(dir, filepath.FromSlash(rest))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return app.WriteFile(to, file.data)
}
