package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/projection"
)

func newVersion(version string) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Version of syncgate and of the gated-fields profile",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "syncgate %s (gated fields %s, %s)\n", version, projection.Profile, runtime.Version())
			return err
		},
	}
}
