package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/gitrev"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

func newDiff() *cobra.Command {
	var t target
	var output, path string
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Which gated fields a change touches, and who must sign them",
		Long: `Diff renders the application twice and compares the gated fields. OLD and NEW are
directories, or Git revisions of the repository that the current directory is
in; --path is the application's directory in it (default: the current one, or
with --application what its manifest says; directories are then repositories).
With a policy it tells for each changed category who may sign it, and whether
NEW already carries the receipts.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := t.effective(c, false)
			if err != nil {
				return err
			}
			var sides [2]*app.Build
			for i, arg := range args {
				b, err := buildSide(c, t, e, arg, path)
				if err != nil {
					return err
				}
				sides[i] = b
			}
			changes := compareBuilds(sides[0], sides[1], e)
			switch output {
			case "text":
				return diffText(c.OutOrStdout(), changes, e)
			case "json":
				return diffJSON(c.OutOrStdout(), changes)
			case "markdown":
				return diffMarkdown(c.OutOrStdout(), changes, e)
			}
			return usage(c, "unknown output %q: want text, json or markdown", output)
		},
	}
	t.flags(c)
	c.Flags().StringVar(&path, "path", ".", "the application's directory, for revisions")
	c.Flags().StringVarP(&output, "output", "o", "text", "text, json or markdown (for a pull request)")
	return c
}

// buildSide renders a directory, or a revision of the repository around the
// current directory.
func buildSide(c *cobra.Command, t target, e policy.Effective, arg, path string) (*app.Build, error) {
	if st, err := os.Stat(arg); err == nil && st.IsDir() {
		t.in(arg)
		s, err := t.settings(c, e)
		if err != nil {
			return nil, err
		}
		s.LeaveUnpinned = true
		return app.New(c.Context(), s)
	}
	dir, remove, err := exportRevision(c.Context(), arg)
	if err != nil {
		return nil, err
	}
	defer remove()
	t.in(dir)
	if t.application == "" {
		rel, err := fromTop(c.Context(), path)
		if err != nil {
			return nil, err
		}
		t.dir = filepath.Join(dir, rel)
	}
	if _, err := os.Stat(t.dir); os.IsNotExist(err) {
		return &app.Build{}, nil // the application is new, or gone
	}
	s, err := t.settings(c, e)
	if err != nil {
		return nil, err
	}
	s.Render.Root, s.LeaveUnpinned = dir, true
	return app.New(c.Context(), s)
}

func exportRevision(ctx context.Context, revision string) (dir string, remove func(), err error) {
	top, err := gitrev.TopLevel(ctx, ".")
	if err != nil {
		return "", nil, fmt.Errorf("%q is no directory, and here is no Git repository: %w", revision, err)
	}
	commit, err := gitrev.Resolve(ctx, top, revision)
	if err != nil {
		return "", nil, err
	}
	if dir, err = gitrev.Export(ctx, top, commit); err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

func fromTop(ctx context.Context, path string) (string, error) {
	top, err := gitrev.TopLevel(ctx, ".")
	if err != nil {
		return "", err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(filepath.Dir(abs)); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(top, filepath.Join(abs, filepath.Base(path)))
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%q is not in the repository at %s", path, top)
	}
	return rel, nil
}

// objectChange is what a change does to one object.
type objectChange struct {
	Subject    string           `json:"subject"`
	Short      string           `json:"-"`
	What       string           `json:"what"` // new, changed, removed or malformed
	Text       string           `json:"text,omitempty"`
	Fields     []fieldChange    `json:"fields,omitempty"`
	Categories []categoryChange `json:"categories,omitempty"`
}

type fieldChange struct {
	Category projection.Category `json:"category"`
	Path     string              `json:"path"`
	Old      any                 `json:"old,omitempty"`
	New      any                 `json:"new,omitempty"`
}

// categoryChange is a category that needs a receipt now.
type categoryChange struct {
	Category  projection.Category `json:"category"`
	Signers   []string            `json:"signers,omitempty"`
	Threshold int                 `json:"threshold,omitempty"`
	Signed    bool                `json:"signed"`
}

func compareBuilds(from, to *app.Build, e policy.Effective) []objectChange {
	old := map[string]*app.Object{}
	for _, o := range from.Objects {
		old[o.Subject.String()] = o
	}
	var out []objectChange
	verdict := to.Evaluate(e, now())
	for i, o := range to.Objects {
		before := old[o.Subject.String()]
		delete(old, o.Subject.String())
		if c, changed := compareObject(before, o, verdict.Results[i], e); changed {
			out = append(out, c)
		}
	}
	for key, o := range old {
		if o.Projection != nil && e.Rules.Gates(o.Projection) {
			out = append(out, objectChange{Subject: key, Short: o.Subject.Short(), What: "removed",
				Fields: fieldChanges(projection.Diff(o.Projection, nil), e)})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Subject < out[j].Subject })
	return out
}

func compareObject(before, o *app.Object, r app.Result, e policy.Effective) (objectChange, bool) {
	c := objectChange{Subject: o.Subject.String(), Short: o.Subject.Short(), What: "changed"}
	if o.Problem != nil {
		c.What, c.Text = "malformed", o.Problem.Text
		return c, true
	}
	var was *projection.Projection
	if before != nil {
		was = before.Projection
	} else {
		c.What = "new"
	}
	c.Fields = fieldChanges(projection.Diff(was, o.Projection), e)
	if len(c.Fields) == 0 {
		return c, false
	}
	for _, cat := range o.Projection.Applies() {
		if !touches(c.Fields, cat) || !required(e, cat) {
			continue
		}
		harmless := o.Projection.Harmless(cat) && (was == nil || was.Harmless(cat))
		names, threshold := e.Rules.Signers(o.Subject, cat, harmless)
		c.Categories = append(c.Categories, categoryChange{cat, names, threshold, signed(r.Decision, cat)})
	}
	return c, len(c.Categories) > 0
}

func fieldChanges(changes []projection.Change, e policy.Effective) []fieldChange {
	var out []fieldChange
	for _, x := range changes {
		if required(e, x.Category) {
			out = append(out, fieldChange{x.Category, x.Path, x.Old, x.New})
		}
	}
	return out
}

func touches(fields []fieldChange, c projection.Category) bool {
	for _, f := range fields {
		if f.Category == c {
			return true
		}
	}
	return false
}

func required(e policy.Effective, c projection.Category) bool { return e.Rules.Requires(c) }

func signed(d gate.Decision, c projection.Category) bool {
	for _, u := range d.Used {
		for _, x := range u.Categories {
			if x == c {
				return true
			}
		}
	}
	return false
}

func who(c categoryChange) string {
	switch {
	case c.Signed:
		return "signed"
	case len(c.Signers) == 0:
		return "to be signed"
	case c.Threshold > 1:
		return fmt.Sprintf("%d of %s", c.Threshold, strings.Join(c.Signers, ", "))
	}
	return strings.Join(c.Signers, " or ")
}
