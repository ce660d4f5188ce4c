package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/parallel"
	"github.com/syncgate/syncgate/plugin/live/fixedpoint"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

func newFixedpoint() *cobra.Command {
	var t target
	var cluster clusterFlags
	var all bool
	var output string
	c := &cobra.Command{
		Use:   "fixedpoint [DIR|-]",
		Short: "Does the cluster's admission change a gated field of what is rendered, and who does it?",
		Long: `Fixedpoint renders and pins the application, sends each object to the API server as
a dry run, of which nothing is stored, and compares what would be stored with
what was sent. It names each gated field that was filled in, dropped or changed,
the webhooks and policies that can have done it, and the line to add to the
manifest. It does the same with what controllers would make of the object: a
webhook that changes the ReplicaSets of a Deployment makes its controller create
ReplicaSets without end.

Changes of Pods that controllers make are notes: such Pods are not judged. With
--all fields that are not gated count too; what is filled in beside them is a
note. It ends with status 10 if the cluster would change something, and 30 if an
object cannot be tried.

It needs the right to create (or update) the objects, and better also those to
list mutating webhooks and to impersonate the built-in controllers.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if err := checkOutput(c, output, "text", "json"); err != nil {
				return err
			}
			e, err := t.effective(c, false)
			if err != nil {
				return err
			}
			b, err := t.toTry(c, e)
			if err != nil {
				return err
			}
			findings, err := fixedpoints(c, cluster, t, b, e, all)
			if err != nil {
				return err
			}
			if output == "json" {
				return fixedpointJSON(c.OutOrStdout(), findings, len(b.Objects))
			}
			return fixedpointText(c, findings, len(b.Objects))
		},
	}
	t.flags(c)
	cluster.flags(c)
	c.Flags().BoolVar(&all, "all", false, "count fields that are not gated too")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// toTry renders, pins and stamps; what has no pin is tried as it is.
func (t *target) toTry(c *cobra.Command, e policy.Effective) (*app.Build, error) {
	s, err := t.settings(c, e)
	if err != nil {
		return nil, err
	}
	s.LeaveUnpinned = true
	b, err := app.New(c.Context(), s)
	if err != nil {
		return nil, err
	}
	return b, b.Sound(e)
}

// fixedpoints tries every object, and returns what was found in their order.
func fixedpoints(c *cobra.Command, cluster clusterFlags, t target, b *app.Build, e policy.Effective, all bool) ([]fixedpoint.Finding, error) {
	l, err := cluster.connect()
	if err != nil {
		return nil, err
	}
	o := fixedpoint.Options{Projector: e.Projector, All: all}
	if t.policy != "" {
		p, err := t.loadPolicy()
		if err != nil {
			return nil, err
		}
		o.SharedControllerIdentity = p.Admission().SharedControllerIdentity
	}
	f, err := fixedpoint.New(c.Context(), l, o)
	if err != nil {
		return nil, unavailable(err)
	}
	bar := newProgress(c.ErrOrStderr(), "trying", len(b.Objects))
	defer bar.done()
	found := make([][]fixedpoint.Finding, len(b.Objects))
	faults := make([]error, len(b.Objects))
	parallel.Each(len(b.Objects), func(i int) {
		o := b.Objects[i]
		found[i], faults[i] = f.Find(c.Context(), placed(o), o.Subject.Short())
		bar.step()
	})
	for _, err := range faults {
		if err != nil {
			return nil, unavailable(err)
		}
	}
	return slices.Concat(found...), nil
}

// placed returns the object with the namespace that it goes to.
func placed(o *app.Object) map[string]any {
	if o.Subject.Namespace == "" || projection.ClusterScoped(o.Subject.Group, o.Subject.Kind) {
		return o.Tree
	}
	tree := maps.Clone(o.Tree)
	meta, _ := tree["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	meta["namespace"] = o.Subject.Namespace
	tree["metadata"] = meta
	return tree
}

// fixedpointError is the refusal for what is found, notes aside.
func fixedpointError(findings []fixedpoint.Finding) error {
	s := gate.Sentence{}
	for _, d := range findings {
		if !d.Note {
			s.Items = append(s.Items, gate.Item{Subject: d.Object, Reason: d.Reason, Text: d.Text, Fix: d.Fix})
		}
	}
	if len(s.Items) == 0 {
		return nil
	}
	return &app.Refusal{Sentence: s}
}

func fixedpointText(c *cobra.Command, findings []fixedpoint.Finding, objects int) error {
	refused := fixedpointError(findings)
	out := c.OutOrStdout()
	if refused != nil {
		out = c.ErrOrStderr()
	}
	for _, d := range findings {
		word, reason := "moved", "["+string(d.Reason)+"] "
		switch {
		case d.Note:
			word, reason = "note ", ""
		case d.Reason == gate.ClusterUnavailable:
			word = "unknown"
		}
		fmt.Fprintf(out, "%s  %s: %s%s\n", word, gate.ASCII(d.Object), reason, gate.ASCII(d.Text))
		if d.Fix != "" && !d.Note {
			fmt.Fprintf(out, "         %s\n", gate.ASCII(d.Fix))
		}
	}
	if refused != nil {
		return refused
	}
	_, err := fmt.Fprintf(out, "%d objects, all fixed points\n", objects)
	return err
}

func fixedpointJSON(w io.Writer, findings []fixedpoint.Finding, objects int) error {
	refused := fixedpointError(findings)
	report := struct {
		FixedPoint bool                 `json:"fixedPoint"`
		Objects    int                  `json:"objects"`
		Findings   []fixedpoint.Finding `json:"findings"`
	}{refused == nil, objects, findings}
	if findings == nil {
		report.Findings = []fixedpoint.Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return refused
}
