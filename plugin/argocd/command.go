package argocd

import (
	"os"
	"time"

	"github.com/spf13/cobra"
)

// NewCommand returns "syncgate generate", the command of the plugin.
func NewCommand() *cobra.Command {
	r := Request{Getenv: os.Getenv}
	c := &cobra.Command{
		Use:   "generate [DIR]",
		Short: "Render, pin and check an application: manifests on stdout or one refusal line on stderr",
		Long: `Generate is the command of the Argo CD config management plugin. It renders the
application in DIR (default: the current directory), pins its images from the
lock, checks the receipts against the operator's policy, and writes the
manifests to stdout, one JSON document a line. If anything is not allowed it
writes nothing to stdout, one line to stderr, and ends with status 10 (policy),
20 (the application's manifests) or 30 (keys, configuration, registry).

It reads the environment that Argo CD gives to plugins (ARGOCD_APP_NAME,
ARGOCD_APP_NAMESPACE, ARGOCD_APP_SOURCE_PATH, ARGOCD_APP_PARAMETERS) and
SYNCGATE_POLICY, SYNCGATE_OFF, SYNCGATE_APPS, SYNCGATE_TIMEOUT,
SYNCGATE_PARALLEL, SYNCGATE_SLOTS, SYNCGATE_RENDER_COMMAND of the sidecar. No
more than SYNCGATE_PARALLEL (4) of them work at a time; others wait. A chart needs ARGOCD_APP_NAME, which is its release's name unless the
parameter helm.releaseName gives another.

While "syncgate off --app" is in force for ARGOCD_APP_NAME, what policy refuses
passes in silence, but for protected namespaces.

With SYNCGATE_APPS the annotations of the Application count, which
syncgate-controller publishes there. They can only tighten, and an application
that nothing is published for is refused.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r.Dir, r.Environ, r.Now = ".", os.Environ(), time.Now().Unix()
			if len(args) == 1 {
				r.Dir = args[0]
			}
			return Generate(c.Context(), r, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&r.Policy, "policy", "", "policy file (default $SYNCGATE_POLICY, else "+DefaultPolicy+")")
	c.Flags().StringVar(&r.Off, "off", "", "directory where the ConfigMap syncgate-off is mounted (default $SYNCGATE_OFF, else none)")
	c.Flags().StringVar(&r.Apps, "apps", "", "directory where the ConfigMap syncgate-apps is mounted (default $SYNCGATE_APPS, else none)")
	c.Flags().StringVar(&r.Environment, "environment", "", "environment of the policy to check for (default: the one that policy selects)")
	return c
}
