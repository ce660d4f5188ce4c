package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
)

func newRender() *cobra.Command {
	var t target
	var output string
	c := &cobra.Command{
		Use:   "render [DIR]",
		Short: "Rendered, pinned manifests with their receipts, without the check",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			t.arg(args)
			if err := checkOutput(c, output, "yaml", "json"); err != nil {
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
			b, err := app.New(c.Context(), s)
			if err != nil {
				return err
			}
			if err := b.Sound(e); err != nil {
				return err
			}
			for _, w := range b.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning: "+w)
			}
			var out bytes.Buffer
			if output == "json" {
				err = b.Encode(&out)
			} else {
				err = b.EncodeYAML(&out)
			}
			if err != nil {
				return app.Refuse(gate.RenderFailed, "encoding manifests: %v", err)
			}
			_, err = c.OutOrStdout().Write(out.Bytes())
			return err
		},
	}
	t.flags(c)
	c.Flags().StringVarP(&output, "output", "o", "yaml", "yaml, or json (one document a line)")
	return c
}
