package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/migrate"
)

// maxMigrated bounds a file of Applications in bytes.
const maxMigrated = 16 << 20

func newMigrate() *cobra.Command {
	var output, environment string
	var write bool
	c := &cobra.Command{
		Use:   "migrate APP.yaml",
		Short: "Rewrite Argo CD Applications from native sources to the plugin",
		Long: `Migrate rewrites the Argo CD Applications and ApplicationSets in a file: a source
that Argo CD renders itself, with kustomize, Helm or from a directory, then names
the plugin, with parameters that say the same. The rest of the file, comments
included, stays as it is. The result goes to stdout, or with --write into the
file.

What cannot move is listed on stderr with the reason and what to do. Then
nothing is written, and the status is 10. docs/argocd.md has a table of all
settings.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkOutput(c, output, "yaml", "diff"); err != nil {
				return err
			}
			if write && c.Flags().Changed("output") {
				return usage(c, "--write writes the file, --output to stdout: give one of them")
			}
			data, err := readMigrated(args[0])
			if err != nil {
				return app.Refuse(gate.RenderFailed, "%v", err)
			}
			r, err := migrate.Rewrite(data, filepath.Base(args[0]), environment)
			if err != nil {
				return app.Refuse(gate.RenderFailed, "%v", err)
			}
			for _, n := range r.Notes {
				fmt.Fprintf(c.ErrOrStderr(), "note: %s\n", gate.ASCII(n))
			}
			if len(r.Cannot) > 0 {
				return cannotMove(c.ErrOrStderr(), args[0], r.Cannot)
			}
			fmt.Fprintf(c.ErrOrStderr(), "%d sources name the plugin now, %d did before\n", r.Moved, r.Already)
			switch {
			case write && bytes.Equal(data, r.Text):
				return nil
			case write:
				return app.WriteFile(args[0], r.Text)
			case output == "diff":
				r.Text = diff.Diff("a/"+args[0], data, "b/"+args[0], r.Text)
			}
			_, err = c.OutOrStdout().Write(r.Text)
			return err
		},
	}
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "yaml", "yaml or diff")
	f.BoolVar(&write, "write", false, "replace the file, at once or not at all")
	f.StringVar(&environment, "environment", "", "environment of policy to ask for, in plugin.env of each source that moves")
	return c
}

func cannotMove(w io.Writer, file string, findings []migrate.Finding) error {
	for _, f := range findings {
		fmt.Fprintf(w, "%s cannot move: %s; %s\n", gate.ASCII(f.At), gate.ASCII(f.Why), gate.ASCII(f.Do))
	}
	first := findings[0]
	return &gap{fmt.Sprintf("%s is not rewritten: %d settings cannot move, the first is %s (%s); Fix: %s", file, len(findings), first.At, first.Why, first.Do)}
}

func readMigrated(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading application: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMigrated+1))
	if err != nil {
		return nil, fmt.Errorf("reading application: %w", err)
	}
	if len(data) > maxMigrated {
		return nil, fmt.Errorf("reading application: %q is larger than %d bytes", file, maxMigrated)
	}
	return data, nil
}
