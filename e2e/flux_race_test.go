//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// pushes is how many a race has: an even number, enough to see each order of
// events now and then. "make flux-race" has 200.
func pushes(t *testing.T) int {
	text := os.Getenv("SYNCGATE_E2E_FLUX_PUSHES")
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n%2 != 0 {
		t.Fatalf("SYNCGATE_E2E_FLUX_PUSHES=%s: want an even number", text)
	}
	return n
}

// TestFluxRace: while signed and unsigned revisions alternate as fast as
// source-controller takes them, no version of the object ever has what nobody
// signed.
func TestFluxRace(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) { w.race(t, mode) })
	}
	w.Kubectl(nil, "delete", "validatingwebhookconfigurations", "--all")
	w.WaitAdmission()
	t.Run("artifact without the webhook", func(t *testing.T) { w.race(t, byArtifact) })
}

func (w *fluxWorld) race(t *testing.T, mode string) {
	n := pushes(t)
	s := w.newShop(mode)
	signed := map[string]bool{}
	var commits []string
	for i := range n + 1 {
		s.write(strconv.Itoa(i), 1+i%3, fmt.Sprint(i), nil)
		if i%2 == 0 { // the first and the last
			s.sign()
			signed[harness.Image("web:"+strconv.Itoa(i))] = true
		}
		commits = append(commits, s.repo.Record(fmt.Sprintf("Revision %d", i)))
	}
	s.repo.Push(commits[0])
	w.Request(harness.GitRepositories, s.Namespace, "shop")
	s.create()
	s.WaitApplied("main@sha1:" + commits[0])

	seen := w.watchImages(s.Namespace)
	log := len(w.gate.Log())
	for _, commit := range commits[1:] {
		s.repo.Push(commit)
		w.Request(harness.GitRepositories, s.Namespace, "shop")
		w.Eventually("artifact of "+commit, func() (string, bool) {
			revision := harness.Field(w.Get(harness.GitRepositories, s.Namespace, "shop"), "status", "artifact", "revision")
			return revision, revision == "main@sha1:"+commit
		})
	}
	s.WaitApplied("main@sha1:" + commits[n])
	versions, images := seen()
	for _, v := range versions {
		for _, image := range v.images {
			if !signed[image] {
				t.Errorf("version %s of the Deployment has %s, which nobody signed", v.version, image)
			}
		}
	}
	refused := strings.Count(w.gate.Log()[log:], `"approved":false`)
	if refused == 0 {
		t.Error("the gate refused nothing: no race was run")
	}
	t.Logf("%s: %d pushes; the gate refused %d revisions; %d versions of the Deployment with %d different images, each signed", mode, n, refused, len(versions), len(images))
}

// version is one of an object.
type version struct {
	version string
	images  []string
}

// watchImages keeps every version of the Deployments of a namespace, as the
// API server tells of it, until the function that it returns is called.
func (w *fluxWorld) watchImages(namespace string) func() (versions []version, images map[string]bool) {
	w.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := w.Client().Resource(harness.Deployments).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		w.T.Fatal(err)
	}
	var mu sync.Mutex
	var versions []version
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range watch.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			mu.Lock()
			if ok {
				versions = append(versions, version{u.GetResourceVersion(), harness.Images(u)})
			}
			mu.Unlock()
		}
	}()
	return func() ([]version, map[string]bool) {
		w.T.Helper()
		select {
		case <-ended:
			w.T.Error("the watch ended before the race: not every version was seen")
		default:
		}
		cancel()
		<-ended
		images := map[string]bool{}
		for _, v := range versions {
			for _, image := range v.images {
				images[image] = true
			}
		}
		return versions, images
	}
}
