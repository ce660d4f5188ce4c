package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/app"
)

func newManifests() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "manifests argocd",
		Short: "Print what to install",
		Long: `Manifests prints the files that install syncgate: for argocd a kustomize component
that adds the sidecar to a stock argocd-repo-server. With --out it writes them
to a directory, which must not exist. What installs the webhook and the Flux
gate comes with them; they are not in this release.`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"argocd"},
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "argocd":
			case "webhook", "flux":
				return fmt.Errorf("manifests %s: not in this release", args[0])
			default:
				return usage(c, "unknown manifests %q: want argocd", args[0])
			}
			if out != "" {
				return writeManifests(out, manifests.ArgoCD, args[0])
			}
			return fs.WalkDir(manifests.ArgoCD, args[0], func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
					return err
				}
				data, err := fs.ReadFile(manifests.ArgoCD, path)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "---\n# %s\n%s", path, data)
				return err
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "directory to write the files to")
	return c
}

// writeManifests makes the directory last, by renaming: it is there whole, or
// not at all.
func writeManifests(out string, files fs.FS, from string) error {
	if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists: nothing is overwritten", out)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(out)), ".syncgate-manifests-")
	if err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	defer os.RemoveAll(tmp)
	err = fs.WalkDir(files, from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return app.WriteFile(filepath.Join(tmp, filepath.Base(path)), data)
	})
	if err == nil {
		err = errors.Join(os.Chmod(tmp, 0o755), os.Rename(tmp, out))
	}
	if err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}
