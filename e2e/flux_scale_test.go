//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// fluxScaleOfSuite is how many Kustomizations of each kind the suite has, and
// how many objects each. "make scale-flux" has 200.
const (
	fluxScaleOfSuite = 6
	fluxObjectsEach  = 10
)

// fluxScale is a Flux with Kustomizations of three kinds, each kind in a
// repository: as Flux has them, and gated in one of the two ways.
type fluxScale struct {
	*fluxWorld
	n int
}

// ungated is the kind that the gate does not know of.
const ungated = "native"

// fluxSet are the Kustomizations of a kind, which is the name of their namespace
// and their repository, too.
type fluxSet struct {
	*fluxScale
	kind, namespace string
	repo            *harness.GitRepo
}

// gateCounts are what the gate has asked the API server, by method, and judged.
type gateCounts struct{ get, put, post, patch, remove, verdicts, writes float64 }

// TestFluxScale: with many Kustomizations in a repository each push is one
// verdict of each and a few requests, however many there are; while nothing
// changes nothing is asked or written. How long it takes, and how much memory,
// is printed beside what Flux takes for Kustomizations without the gate.
func TestFluxScale(t *testing.T) {
	s := newFluxScale(t)
	all := map[string]*fluxSet{}
	for _, kind := range []string{ungated, byPostBuild, byArtifact} {
		all[kind] = s.newSet(kind)
	}
	memory := s.WatchMemory(s.gate.PID())
	took := map[string]time.Duration{}
	for _, kind := range []string{ungated, byPostBuild, byArtifact} {
		set := all[kind]
		set.write("1", "hello")
		set.sign()
		set.create()
		set.applied(set.push("Release all"))

		// What is free changes in all of them.
		set.write("1", "welcome")
		before, watch := s.counts(), s.WatchMemory(s.gate.PID())
		start := time.Now()
		revision := set.push("Greet")
		if kind != ungated {
			s.judged(before, s.n)
			t.Logf("%d Kustomizations, %s: the last verdict %.1f s after the push", s.n, kind, time.Since(start).Seconds())
		}
		set.applied(revision)
		took[kind] = time.Since(start)
		per := s.settled().since(before)
		t.Logf("%d Kustomizations, %s: the last applied %.1f s after the push; gate %s; %s", s.n, kind, took[kind].Seconds(), watch(), per.each(s.n))
		if kind == ungated {
			continue
		}
		// The library that writes the condition sends two patches, the second of which
		// is empty; Flux writes at the same time, and what conflicts is done again.
		if n := float64(s.n); per.verdicts != n || per.get > 8*n || per.put > 2*n || per.patch > 4*n || per.post > 2*n || per.remove > 0 {
			t.Errorf("%s: %s, want one verdict, 8 reads and 8 writes at most", kind, per.each(s.n))
		}
		t.Logf("BENCH\tflux-scale-%s-time-over-native\t%.2f", kind, took[kind].Seconds()/took[ungated].Seconds())
	}
	for _, kind := range []string{byPostBuild, byArtifact} {
		s.quiet(t, all[kind])
	}
	s.oneRefused(t, all[byPostBuild])
	m := memory()
	t.Logf("gate: %s", m)
	t.Logf("BENCH\tflux-scale-gate-MiB\t%d", m.Own>>20)
}

func newFluxScale(t *testing.T) *fluxScale {
	t.Helper()
	s := &fluxScale{n: fluxScaleOfSuite}
	if text := os.Getenv("SYNCGATE_E2E_FLUX_SCALE"); text != "" {
		var err error
		if s.n, err = strconv.Atoi(text); err != nil || s.n < 1 {
			t.Fatalf("SYNCGATE_E2E_FLUX_SCALE=%s: want a number", text)
		}
	}
	e := harness.New(t)
	b := harness.Build(e)
	cluster := harness.StartCluster(e, b)
	// Flux's own limit of requests would be all that is measured.
	w := &fluxWorld{b: b, Flux: harness.StartFlux(cluster, b, "--feature-gates=ExternalArtifact=true", "--kube-api-qps=1000", "--kube-api-burst=2000")}
	w.signer = harness.NewSigner(e, b, "release")
	w.policy = harness.NewPolicy(e, "policy", harness.BasicPolicy("release"), w.signer)
	// Without the lease, which is renewed all the time: what is counted is for
	// Kustomizations. And without the webhook, which has measures of its own.
	w.gate = harness.StartFluxGate(w.Flux, b, w.policy.Dir, "--leader-elect=false")
	s.fluxWorld = w
	return s
}

func (s *fluxScale) newSet(kind string) *fluxSet {
	s.T.Helper()
	namespace := s.NewNamespace("scale-" + strings.ToLower(kind))
	set := &fluxSet{fluxScale: s, kind: kind, namespace: namespace, repo: harness.NewGitRepoAt(s.Env, namespace)}
	s.CreateGitRepository(namespace, "many", set.repo)
	return set
}

func (set *fluxSet) name(i int) string { return fmt.Sprintf("app-%03d", i) }

// manifest is the Kustomization of an application.
func (set *fluxSet) manifest(i int) string {
	annotations, spec := "{}", fmt.Sprintf("  path: ./apps/%s\n  targetNamespace: %s\n  sourceRef: {kind: GitRepository, name: many}\n", set.name(i), set.namespace)
	switch set.kind {
	case byPostBuild:
		spec += fmt.Sprintf("  postBuild: {substituteFrom: [{kind: ConfigMap, name: syncgate-flux-%s}]}\n", set.name(i))
	case byArtifact:
		annotations = fmt.Sprintf("{syncgate.io/source: GitRepository/many, syncgate.io/path: ./apps/%s}", set.name(i))
		spec = fmt.Sprintf("  sourceRef: {kind: ExternalArtifact, name: syncgate-flux-%s}\n", set.name(i))
	}
	return fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s, namespace: %s, annotations: %s}\nspec:\n  interval: 1h\n  retryInterval: 5s\n  prune: true\n%s", set.name(i), set.namespace, annotations, spec)
}

// write writes all applications: the tag of their images, and what is free.
func (set *fluxSet) write(tag, greeting string) {
	set.T.Helper()
	for i := range set.n {
		set.writeOne(i, tag, greeting)
	}
}

func (set *fluxSet) writeOne(i int, tag, greeting string) {
	set.T.Helper()
	name := set.name(i)
	image, receipt, namespace := harness.Image(name+":"+tag), "", ""
	switch set.kind {
	case byPostBuild:
		base, _, _ := strings.Cut(image, "@")
		image, receipt = base+"@${syncgate_pin_web}", `, annotations: {syncgate.io/receipt: "${syncgate_receipt_web}"}`
	case byArtifact:
		namespace = "namespace: " + set.namespace + "\n"
	}
	text := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s%[3]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: %[2]q
        env: [{name: TIER, value: prod}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: %[1]s, key: password}}}]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: http}}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {clusterIP: None, selector: {app: %[1]s}, ports: [{name: http, port: 80, targetPort: http}]}
`, name, image, receipt)
	for j := range fluxObjectsEach - 2 {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\ndata:\n  greeting: %s\n  application.yaml: |\n%s", name, j, greeting, strings.Repeat("    server: {port: 8080, greeting: hello}\n", 20))
	}
	set.repo.Write(map[string]string{
		"apps/" + name + "/kustomization.yaml":                                       namespace + "resources: [all.yaml]\n",
		"apps/" + name + "/all.yaml":                                                 text,
		"apps/" + name + "/.syncgate/images/registry.example.test+" + name + ".lock": locked(name + ":" + tag),
		"clusters/" + name + ".yaml":                                                 set.manifest(i),
	})
}

// sign approves all that the work tree has.
func (set *fluxSet) sign() {
	set.T.Helper()
	if set.kind == ungated {
		return
	}
	var names []string
	for i := range set.n {
		names = append(names, set.name(i))
	}
	inTwos(names, func(name string) {
		set.Run(set.repo.Work, nil, set.b.Syncgate, "sign", "--policy", set.policy.Path(), "--key", set.signer.Key, "--issuer", "release",
			"--application", filepath.Join("clusters", name+".yaml"), "--yes", ".")
	})
}

func (set *fluxSet) create() {
	set.T.Helper()
	var text strings.Builder
	for i := range set.n {
		text.WriteString("---\n" + set.manifest(i))
	}
	set.Apply([]byte(text.String()))
}

func (set *fluxSet) push(message string) string {
	set.T.Helper()
	return set.PushTo(set.namespace, "many", set.repo, message)
}

// applied waits until a revision is what runs of all of them.
func (set *fluxSet) applied(revision string) { set.T.Helper(); set.appliedBut(revision, 0) }

// appliedBut waits until a revision is what runs of all but some, for as long as
// there are fewer and fewer left.
func (set *fluxSet) appliedBut(revision string, some int) {
	set.T.Helper()
	for left := set.n + 1; left > some; {
		set.Eventually("apply of "+revision, func() (string, bool) {
			now, example := set.behind(revision)
			time.Sleep(200 * time.Millisecond) // a list is work, too
			done := now < left
			left = min(left, now)
			return fmt.Sprintf("%d are left, such as %s", now, example), done
		})
	}
}

// behind is how many do not run a revision, and what Flux says of one of them.
func (set *fluxSet) behind(revision string) (n int, example string) {
	set.T.Helper()
	for _, u := range set.List(harness.Kustomizations, set.namespace, "") {
		ready := harness.Condition(&u, "Ready")
		if ready["status"] != "True" || harness.Field(&u, "status", "lastAppliedRevision") != revision && harness.Field(&u, "status", "lastAppliedOriginRevision") != revision {
			n, example = n+1, fmt.Sprintf("%s: %s", u.GetName(), ready["message"])
		}
	}
	return n, example
}

// watches are what the gate follows: each is a GET that is made anew every few
// minutes.
const watches = 10

// counts reads what the gate counts.
func (s *fluxScale) counts() gateCounts {
	s.T.Helper()
	requests := func(method string) float64 {
		return s.gate.Metric("rest_client_requests_total", map[string]string{"method": method})
	}
	return gateCounts{
		requests("GET"), requests("PUT"), requests("POST"), requests("PATCH"), requests("DELETE"),
		s.gate.Metric("syncgate_flux_verdicts_total", nil), s.gate.Metric("syncgate_flux_writes_total", nil),
	}
}

func (a gateCounts) since(b gateCounts) gateCounts {
	return gateCounts{a.get - b.get, a.put - b.put, a.post - b.post, a.patch - b.patch, a.remove - b.remove, a.verdicts - b.verdicts, a.writes - b.writes}
}

// each is what it is for one of n Kustomizations.
func (a gateCounts) each(n int) string {
	f := float64(n)
	return fmt.Sprintf("for each %.2f verdicts, requests GET %.2f PUT %.2f POST %.2f PATCH %.2f DELETE %.2f", a.verdicts/f, a.get/f, a.put/f, a.post/f, a.patch/f, a.remove/f)
}

// judged waits until there are n verdicts more.
func (s *fluxScale) judged(before gateCounts, n int) {
	s.T.Helper()
	s.Eventually(fmt.Sprintf("%d verdicts", n), func() (string, bool) {
		verdicts := s.counts().since(before).verdicts
		return fmt.Sprint(verdicts), verdicts >= float64(n)
	})
}

// settled waits until the gate has nothing to do, and returns what it has asked
// by then: its queue is empty, no worker is busy, and no event is on its way.
func (s *fluxScale) settled() gateCounts {
	s.T.Helper()
	var last gateCounts
	same := 0
	s.Eventually("nothing to be left for the gate", func() (string, bool) {
		now := s.counts()
		left := s.gate.Metric("workqueue_depth", nil) + s.gate.Metric("controller_runtime_active_workers", nil)
		if same++; now != last || left > 0 {
			last, same = now, 0
		}
		time.Sleep(200 * time.Millisecond)
		return fmt.Sprintf("%+v, %v in the queue", now, left), same >= 10
	})
	return last
}

// quiet: Flux looks at what has not changed, and so does the gate, when asked.
func (s *fluxScale) quiet(t *testing.T, set *fluxSet) {
	t.Helper()
	before := s.settled()
	s.Request(harness.GitRepositories, set.namespace, "many")
	k := &harness.Kustomization{Flux: s.Flux, Namespace: set.namespace, Name: set.name(0)}
	s.Eventually("source-controller to look again", func() (string, bool) {
		u := s.Get(harness.GitRepositories, set.namespace, "many")
		handled := harness.Field(u, "status", "lastHandledReconcileAt")
		return handled, handled == u.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
	})
	s.Patch(harness.Kustomizations, set.namespace, k.Name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/note": "a"}}})
	s.judged(before, 1) // what anybody annotates may be for the gate
	if d := s.settled().since(before); d.verdicts != 1 || d.get > 1+watches || d.put+d.post+d.patch+d.remove+d.writes > 0 {
		t.Errorf("%s: nothing has changed, and the gate asked: %+v", set.kind, d)
	}

	before = s.settled()
	for i := range s.n {
		s.Request(harness.Kustomizations, set.namespace, set.name(i))
	}
	s.judged(before, s.n)
	d := s.settled().since(before)
	t.Logf("%d Kustomizations, %s, asked for without a change: %s", s.n, set.kind, d.each(s.n))
	if d.verdicts != float64(s.n) || d.get > float64(s.n)+watches || d.put+d.post+d.patch+d.remove+d.writes > 0 {
		t.Errorf("%s: want one verdict, one read at most, and no write", set.kind)
	}
}

// oneRefused: one without a signature is among them.
func (s *fluxScale) oneRefused(t *testing.T, set *fluxSet) {
	t.Helper()
	set.write("1", "bonjour")
	set.writeOne(0, "2", "bonjour")
	before := s.settled()
	start := time.Now()
	revision := set.push("Change an image, and greet")
	s.judged(before, s.n)
	t.Logf("%d Kustomizations, one of them refused: the last verdict %.1f s after the push", s.n, time.Since(start).Seconds())
	(&harness.Kustomization{Flux: s.Flux, Namespace: set.namespace, Name: set.name(0)}).WaitRefused("DigestMismatch", set.name(0)+":2")
	set.appliedBut(revision, 1)
}
