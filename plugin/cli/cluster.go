package cli

import (
	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
)

// clusterFlags say which cluster a command asks.
type clusterFlags struct{ live.Options }

func (o *clusterFlags) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file (default: that of the environment, or of the Pod)")
	c.Flags().StringVar(&o.Context, "context", "", "context of the kubeconfig (default: its current one)")
}

func (o *clusterFlags) connect() (*live.Cluster, error) {
	l, err := live.Connect(o.Options)
	if err != nil {
		return nil, unavailable(err)
	}
	return l, nil
}

// unavailable says that the cluster could not be asked.
func unavailable(err error) error {
	r := app.Refuse(gate.ClusterUnavailable, "%v", err)
	r.Sentence.Fix = "check the kubeconfig, its context and your rights; retrying may help"
	return r
}
