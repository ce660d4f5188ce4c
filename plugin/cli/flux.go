package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/flux/scaffold"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/gitrev"
)

// maxScaffold bounds a file of manifests in bytes.
const maxScaffold = 16 << 20

func newFlux() *cobra.Command {
	c := &cobra.Command{
		Use:   "flux",
		Short: "Prepare manifests for Flux",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage(c, "give one of: scaffold")
		},
	}
	c.AddCommand(newScaffold())
	return c
}

func newScaffold() *cobra.Command {
	var t target
	var write, children bool
	c := &cobra.Command{
		Use:   "scaffold FILE|DIR...",
		Short: "Put placeholders for pins and receipts into manifests, and the gate's ConfigMap into a Kustomization",
		Long: `Scaffold edits what Flux's postBuild mode needs. An image without a digest gets a
placeholder for it, or the entry of a kustomization.yaml that sets its tag does; a
gated object gets one for its receipts; a Flux Kustomization requires the ConfigMap
from which they are filled in. With --chart, a HelmRelease gets a post-renderer with
the digests and receipts of the chart, as its lock has them. The rest of the files,
comments included, stays as it is. Give all manifests of an application at once.

The difference goes to stdout, or with --write the result into the files. What
needs a look is listed on stderr.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := t.effective(c, false)
			if err != nil {
				return err
			}
			o := scaffold.Options{Projector: e.Projector, Annotation: e.Annotation, Children: children}
			if t.dir != "" {
				s, err := t.settings(c, e)
				if err != nil {
					return err
				}
				b, err := app.New(c.Context(), s)
				if err != nil {
					return err
				}
				if err := b.Sound(e); err != nil {
					return err
				}
				if o.Helm, err = scaffold.OfChart(b, e.Annotation); err != nil {
					return app.Refuse(gate.RenderFailed, "%v", err)
				}
			}
			files, err := scaffoldFiles(c.Context(), args)
			if err != nil {
				return app.Refuse(gate.RenderFailed, "%v", err)
			}
			r, err := scaffold.Write(files, o)
			if err != nil {
				return app.Refuse(gate.RenderFailed, "%v", err)
			}
			return scaffolded(c, files, r, write)
		},
	}
	t.flags(c)
	f := c.Flags()
	f.BoolVar(&write, "write", false, "replace the files, each at once or not at all")
	f.BoolVar(&children, "children", false, "Flux Kustomizations that one of those given renders (spec.path) get a placeholder for receipts, too")
	f.StringVar(&t.dir, "chart", "", "directory of the chart of a HelmRelease, rendered as the other flags say")
	return c
}

// scaffolded hands over what was edited.
func scaffolded(c *cobra.Command, before []scaffold.File, r scaffold.Result, write bool) error {
	for _, n := range r.Notes {
		fmt.Fprintf(c.ErrOrStderr(), "note: %s\n", gate.ASCII(oneLine(n)))
	}
	n := 0
	for i, f := range r.Files {
		if bytes.Equal(f.Text, before[i].Text) {
			continue
		}
		n++
		if write {
			if err := app.WriteFile(f.Name, f.Text); err != nil {
				return err
			}
			continue
		}
		if _, err := c.OutOrStdout().Write(diff.Diff("a/"+f.Name, before[i].Text, "b/"+f.Name, f.Text)); err != nil {
			return err
		}
	}
	verb := "would change"
	if write {
		verb = "changed"
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d of %d files %s\n", n, len(r.Files), verb)
	return nil
}

// scaffoldFiles reads files, and those with a YAML name below folders, but for
// what no render sees.
func scaffoldFiles(ctx context.Context, args []string) ([]scaffold.File, error) {
	var names []string
	for _, arg := range args {
		err := filepath.WalkDir(arg, func(p string, d fs.DirEntry, err error) error {
			switch ext := filepath.Ext(p); {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == ".git" || d.Name() == ".syncgate"):
				return fs.SkipDir
			case p == arg && !d.IsDir(), d.Type().IsRegular() && (ext == ".yaml" || ext == ".yml" || d.Name() == "Kustomization"):
				names = append(names, p)
			}
			return nil
		})
		if err != nil {
			return nil, plainPath(err)
		}
	}
	slices.Sort(names)
	top, err := gitrev.TopLevel(ctx, ".")
	if err != nil {
		top = "." // as for --application
	}
	var out []scaffold.File
	for _, name := range slices.Compact(names) {
		data, err := readBounded(name, maxScaffold)
		if err != nil {
			return nil, err
		}
		out = append(out, scaffold.File{Name: name, Path: within(top, name), Text: data})
	}
	return out, nil
}

// within is the path of a file in a folder, with '/'; "" if it is not in it.
func within(top, file string) string {
	for _, p := range []*string{&top, &file} {
		full, err := filepath.Abs(*p)
		if err != nil {
			return ""
		}
		if *p, err = filepath.EvalSymlinks(full); err != nil {
			return ""
		}
	}
	rel, err := filepath.Rel(top, file)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// plainPath says of an error of a file which one, and no more.
func plainPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("reading %q: %w", pe.Path, pe.Err)
	}
	return err
}
