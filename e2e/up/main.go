// Command up starts what the end-to-end tests run in, for a newcomer to look at:
// a control plane, a real Argo CD with the plugin, the webhook and the controller
// as manifests/ has them, an image registry, and one application in a local Git
// repository. All of it is on loopback and ends with Ctrl-C.
//
// "make argocd-up" runs it. It needs Go and git.
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
	flag.Parse()
	if flag.NArg() > 0 || *version != harness.ArgoCD2 && *version != harness.ArgoCD3 {
		flag.Usage()
		os.Exit(2)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(*version, interrupted, os.Stdout, os.Stderr))
}

// run returns the status of the program.
func run(version string, interrupted <-chan os.Signal, stdout, stderr io.Writer) int {
	s := &session{stderr: stderr}
	end := make(chan struct{}) // the start is over, however
	go func() {
		defer close(end)
		start(s, version, stdout, stderr)
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

// start starts everything and prints how to look at it.
func start(s *session, version string, stdout, stderr io.Writer) {
	e := harness.New(s)
	b := harness.Build(e).With(version)
	say := func(what string) { fmt.Fprintln(stderr, "starting", what, "...") }

	say("etcd, kube-apiserver, kube-controller-manager and a node")
	cluster := harness.StartCluster(e, b)
	harness.StartNode(cluster, "node")
	a := newApplication(e, b, cluster)
	say("Argo CD " + version + " with the plugin")
	apps, off := harness.NewMount(e, "apps", nil), harness.NewMount(e, "off", nil)
	argo := harness.StartArgoCD(cluster, b, b.Manifests+"/argocd", "SYNCGATE_POLICY="+a.policy.Path(), "SYNCGATE_APPS="+apps.Dir, "SYNCGATE_OFF="+off.Dir)
	apps.Follow(cluster, "argocd", "syncgate-apps")
	off.Follow(cluster, "argocd", "syncgate-off")
	say("the controller and the webhook")
	// What it publishes is mounted at once here, and not within two minutes.
	harness.StartController(cluster, b, apps, a.policy.Dir, "--settle=3s")
	webhooks := harness.StartWebhooks(cluster, b, 1, a.policy.Dir)
	webhooks.Install(harness.WebhookConfiguration(e, b, a.policy.Path()))
	say("the application shop")
	argo.Create(harness.ApplicationOptions{
		Name: "shop", RepoURL: a.repo.URL, Path: appPath, Namespace: "shop", SelfHeal: true, NoRetry: true,
	}).WaitSynced(a.release())
	a.explain(stdout, version)
}
