package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

func newFields() *cobra.Command {
	var t target
	var output string
	c := &cobra.Command{
		Use:   "fields [DIR|-]",
		Short: "Every gated field with its category, and the projection digest of each object",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if err := checkOutput(c, output, "text", "json"); err != nil {
				return err
			}
			e, err := t.effective(c, false)
			if err != nil {
				return err
			}
			s, err := t.settings(c, e)
			if err != nil {
				return err
			}
			s.LeaveUnpinned = true
			b, err := app.New(c.Context(), s)
			if err != nil {
				return err
			}
			if err := b.Sound(e); err != nil {
				return err
			}
			var gated []*app.Object
			for _, o := range b.Objects {
				if o.Projection.Gated() {
					gated = append(gated, o)
				}
			}
			if output == "json" {
				return fieldsJSON(c.OutOrStdout(), gated)
			}
			return fieldsText(c.OutOrStdout(), gated, len(b.Objects))
		},
	}
	t.flags(c)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func fieldsText(w io.Writer, objects []*app.Object, total int) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, o := range objects {
		digest, err := o.Projection.Digest(o.Projection.Applies())
		if err != nil {
			return fmt.Errorf("digesting %s: %w", o.Subject, err)
		}
		fmt.Fprintf(tw, "%s\n  %s\n", gate.ASCII(o.Subject.String()), digest)
		for _, l := range o.Projection.Leaves() {
			fmt.Fprintf(tw, "  %s\t%s\t%s\n", l.Category, gate.ASCII(l.Path), gate.ASCII(leafValue(l)))
		}
	}
	fmt.Fprintf(tw, "%d objects, %d with gated fields\n", total, len(objects))
	return tw.Flush()
}

func leafValue(l projection.Leaf) string {
	_, value, _ := strings.Cut(l.String(), " = ")
	return value
}

type fieldReport struct {
	Subject string      `json:"subject"`
	Digest  string      `json:"digest"`
	Covers  []string    `json:"covers"`
	Fields  []fieldLeaf `json:"fields"`
}

type fieldLeaf struct {
	Category projection.Category `json:"category"`
	Path     string              `json:"path"`
	Value    any                 `json:"value"`
}

func fieldsJSON(w io.Writer, objects []*app.Object) error {
	reports := []fieldReport{}
	for _, o := range objects {
		digest, err := o.Projection.Digest(o.Projection.Applies())
		if err != nil {
			return fmt.Errorf("digesting %s: %w", o.Subject, err)
		}
		r := fieldReport{Subject: o.Subject.String(), Digest: digest}
		for _, c := range o.Projection.Applies() {
			r.Covers = append(r.Covers, string(c))
		}
		for _, l := range o.Projection.Leaves() {
			r.Fields = append(r.Fields, fieldLeaf{l.Category, l.Path, l.Value})
		}
		reports = append(reports, r)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(reports)
}
