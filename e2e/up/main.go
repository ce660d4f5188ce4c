// Command up starts what the end-to-end tests run in, for a newcomer to look at:
// a control plane, a real Argo CD with the plugin and the controller, or a real
// Flux with the gate, and the webhook, as manifests/ has them, an image registry,
// and an example in a local Git repository. All of it is on loopback and ends
// with Ctrl-C.
//
// "make argocd-up" and "make flux-up" run it. It needs Go and git.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

func main() {
	version := flag.String("argocd", harness.ArgoCD3, "version of Argo CD, "+harness.ArgoCD2+" or "+harness.ArgoCD3)
	withFlux := flag.Bool("flux", false, "start Flux instead")
	flag.Parse()
	if flag.NArg() > 0 || *version != harness.ArgoCD2 && *version != harness.ArgoCD3 {
		flag.Usage()
		os.Exit(2)
	}
	rest := argoCD(*version)
	if *withFlux {
		rest = flux
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(rest, interrupted, os.Stdout, os.Stderr))
}

// run returns the status of the program. rest starts what is not common to all
// that it can start, and prints how to look at it.
func run(rest func(*starter), interrupted <-chan os.Signal, stdout, stderr io.Writer) int {
	s := &session{stderr: stderr}
	end := make(chan struct{}) // the start is over, however
	go func() {
		defer close(end)
		rest(newStarter(s, stdout))
	}()
	select {
	case <-interrupted: // during the start, which now fails sooner or later: what it started gets the signal, too
		s.interrupt()
		<-end
	case <-end:
		if !s.Failed() {
			<-interrupted
			s.interrupt()
		}
	}
	fmt.Fprintln(stderr, "\nending ...")
	s.cleanUp()
	if s.Failed() {
		return 1
	}
	return 0
}

// starter has what everything is started on: a cluster with a node.
type starter struct {
	*harness.Env
	b       harness.Binaries
	cluster *harness.Cluster
	stdout  io.Writer
	session *session
}

func newStarter(s *session, stdout io.Writer) *starter {
	e := harness.New(s)
	st := &starter{Env: e, b: harness.Build(e), stdout: stdout, session: s}
	st.say("etcd, kube-apiserver, kube-controller-manager and a node")
	st.cluster = harness.StartCluster(e, st.b)
	harness.StartNode(st.cluster, "node")
	return st
}

func (s *starter) say(what string) { fmt.Fprintln(s.session.stderr, "starting", what, "...") }

// webhook starts the admission webhook by the example's policy.
func (s *starter) webhook(b harness.Binaries, x *example) {
	harness.StartWebhooks(s.cluster, b, 1, x.policy.Dir).Install(harness.WebhookConfiguration(s.Env, b, x.policy.Path()))
}
