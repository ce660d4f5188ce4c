// Command syncgate-webhook is the backstop: a validating admission webhook that
// judges what the API server is about to store by the same policy and receipts
// as the pre-sync gate. It reads files, answers reviews, and does nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/syncgate/syncgate/plugin/webhook"
)

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	o, err := options(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "syncgate-webhook:", err)
		os.Exit(2)
	}
	o.Log = log
	collectSeldom()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := webhook.Run(ctx, o); err != nil {
		log.Error("ended", "error", err.Error())
		os.Exit(1)
	}
}

// collectSeldom lets the heap, of which a few MiB live, grow to some ten times
// that before it is collected: at the default the collector runs dozens of
// times a second under load, and takes as much time as the decisions (measured
// by cmd/internal/load). Near the memory limit it runs as often as it must.
func collectSeldom() {
	const limit = 192 << 20 // below the limit of the Deployment that is shipped
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

func options(args []string) (webhook.Options, error) {
	var o webhook.Options
	f := pflag.NewFlagSet("syncgate-webhook", pflag.ContinueOnError)
	f.StringVar(&o.Source.Policy, "policy", "/etc/syncgate/policy.yaml", "policy file; key sets and the revocation list that it names are beside it")
	f.StringVar(&o.Source.Off, "off", "/etc/syncgate-off", "directory of off-switches, where the ConfigMap syncgate-off is mounted")
	f.StringVar(&o.Source.Environment, "environment", "", "which of the policy's environments this cluster is, if it has several")
	f.StringVar(&o.Listen, "listen", ":8443", "address for the API server (TLS)")
	f.StringVar(&o.MetricsListen, "metrics-listen", ":8080", "address for probes and metrics (plain HTTP); empty for none")
	f.StringVar(&o.Certificate, "tls-cert", "/etc/syncgate-tls/tls.crt", "serving certificate (PEM), read again when it changes")
	f.StringVar(&o.Key, "tls-key", "/etc/syncgate-tls/tls.key", "its key (PEM)")
	f.StringVar(&o.ClientCA, "client-ca", "", "take requests only from clients with a certificate of this authority (PEM)")
	f.DurationVar(&o.Drain, "drain", 5*time.Second, "how long new connections are still taken after SIGTERM")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.Drain < 0 || o.Drain > time.Minute {
		return o, fmt.Errorf("--drain %s: want 0s to 1m", o.Drain)
	}
	return o, nil
}
