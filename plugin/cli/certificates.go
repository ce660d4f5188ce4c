package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/live/certificate"
)

// newCertificates is the command of the Job in manifests/webhook/certificates:
// a part of the installation and none of the command line that people type.
func newCertificates() *cobra.Command {
	var cluster clusterFlags
	o := certificate.Options{Secret: admission.CertificateSecret, Configuration: admission.Name, Now: time.Now, Sleep: sleep}
	c := &cobra.Command{
		Use:    "certificates",
		Short:  "Make or renew the webhook's serving certificate",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.Wait < 0 || o.Wait > time.Hour {
				return usage(c, "--wait %s: want 0s to 1h", o.Wait)
			}
			o.Log = c.ErrOrStderr()
			l, err := cluster.connect()
			if err != nil {
				return err
			}
			return certificate.Renew(c.Context(), l, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Namespace, "namespace", "syncgate-system", "namespace of the gate")
	f.StringVar(&o.Service, "service", "syncgate-webhook", "Service of the webhook")
	f.StringSliceVar(&o.Hosts, "host", nil, "further host name or IP address to serve under (repeatable)")
	f.DurationVar(&o.Wait, "wait", 0, "how long to wait for the webhook configuration, if it is not there yet")
	cluster.flags(c)
	return c
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
