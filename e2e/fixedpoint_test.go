//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// loopTime is how long the control is watched, so that the log has a figure to
// compare with other people's incidents.
const loopTime = 30 * time.Second

// loopSize is the number of ReplicaSets that nobody takes for ordinary work.
const loopSize = 50

func TestOutputIsAFixedPointOfGenerate(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	registry := harness.StartRegistry(e)
	s := newShop(e, b)
	registry.Push("shop/web", "1")
	s.repo.Write(merge(base, change{image: registry.Host + "/shop/web", tag: "1", replicas: 1}.files()))
	s.pin()
	s.sign()
	registry.Stop() // neither run may look anything up

	first := s.generate(s.dir())
	out := e.Mkdir("rendered")
	if err := os.WriteFile(filepath.Join(out, "manifests.json"), first, 0o644); err != nil {
		t.Fatal(err)
	}
	second := s.generate(out) // without a lock: all it needs is in the objects
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("generate over its own output (-first +second):\n%s", diff)
	}
	if n := bytes.Count(first, []byte("\n")); n != 3 {
		t.Errorf("got %d documents, want 3", n)
	}
	if again := s.generate(s.dir()); !bytes.Equal(first, again) {
		t.Errorf("two renders of one commit differ:\n%s", cmp.Diff(string(first), string(again)))
	}
}

func TestPinningWebhookMakesOneReplicaSetOfOurOutput(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	registry := harness.StartRegistry(e)
	s := newShop(e, b)
	ref, digest := registry.Push("shop/web", "1")
	s.repo.Write(merge(base, change{image: registry.Host + "/shop/web", tag: "1", replicas: 1}.files()))
	s.pin()
	s.sign()
	cluster := harness.StartCluster(e, b)
	cluster.Kubectl(nil, "create", "namespace", namespace)
	webhook := harness.StartPinningWebhook(cluster, namespace, map[string]string{ref: digest})

	// The same Deployment by tag, as a control: same controller, same time.
	control := fmt.Appendf(nil, `apiVersion: apps/v1
kind: Deployment
metadata: {name: control}
spec:
  selector: {matchLabels: {app: control}}
  template:
    metadata: {labels: {app: control}}
    spec: {containers: [{name: web, image: %q}]}
`, ref)
	cluster.Apply(control, "--namespace", namespace)
	cluster.Apply(s.generate(s.dir()), "--namespace", namespace)
	start := time.Now()
	replicaSets := func(app string) int {
		return len(cluster.List(harness.ReplicaSets, namespace, "app="+app))
	}
	e.Eventually("the control to loop", func() (string, bool) {
		n := replicaSets("control")
		return fmt.Sprintf("%d ReplicaSets", n), n > loopSize && time.Since(start) > loopTime
	})
	t.Logf("control, %s: %d ReplicaSets after %.0f s, webhook %+v",
		ref, replicaSets("control"), time.Since(start).Seconds(), webhook.Calls("control"))

	web := cluster.Get(harness.Deployments, namespace, "web")
	t.Logf("our output, %s: %d ReplicaSet after %.0f s, collisionCount %d, webhook %+v", harness.Images(web),
		replicaSets("web"), time.Since(start).Seconds(), harness.Int(web, "status", "collisionCount"), webhook.Calls("web"))
	if got := replicaSets("web"); got != 1 {
		t.Errorf("ReplicaSets of our output: got %d, want 1", got)
	}
	if got := harness.Int(web, "status", "collisionCount"); got != 0 {
		t.Errorf("collisionCount of our output: got %d, want 0", got)
	}
	if got, want := harness.Int(web, "status", "observedGeneration"), web.GetGeneration(); got != want {
		t.Errorf("observedGeneration of our output: got %d, want %d", got, want)
	}
	if diff := cmp.Diff([]string{ref + "@" + digest}, harness.Images(web)); diff != "" {
		t.Errorf("images of our output (-want +got):\n%s", diff)
	}
	if n := webhook.Calls("web"); n.Seen == 0 || n.Patched != 0 {
		t.Errorf("webhook calls for our output: got %+v, want some seen and none patched", n)
	}
}
