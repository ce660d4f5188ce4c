//go:build e2e && linux

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// scaleOfSuite is how many applications the suite has. "make scale-argocd" has
// 200, and measures several times.
const scaleOfSuite = 6

// perRepository is how many applications share a repository: a plugin is sent
// the whole of it for each.
const perRepository = 20

// objectsEach are those of one application.
const objectsEach = 30

// scale is two sets of applications with the same sources: in one Argo CD
// renders natively, in the other by the plugin.
type scale struct {
	*harness.ArgoCD
	n, rounds int
	held      string // a file: while it is there a render hangs
}

// set is one way to render.
type set struct{ name, source string }

var (
	native = set{"native", "kustomize: {}"}
	plugin = set{"plugin", `plugin: {name: syncgate, parameters: [{name: renderer, string: kustomize}]}`}
)

// measured is what one refresh of a whole set took.
type measured struct {
	time                time.Duration
	sidecar, repoServer harness.Memory
}

// TestOneApplicationHoldsUpNoOther: one that nobody signed and one whose render
// hangs all the time are among others, which are compared meanwhile. How long
// that takes, and how much memory, is printed beside what Argo CD takes for the
// same applications natively.
func TestOneApplicationHoldsUpNoOther(t *testing.T) {
	s := newScale(t)
	var of [2][]measured
	for round := range s.rounds {
		for i, which := range []set{native, plugin} {
			m := s.refresh(which)
			t.Logf("round %d, %d applications of %d objects, %s: %.1f s; sidecar %s; repo-server %s", round+1, s.n, objectsEach, which.name, m.time.Seconds(), m.sidecar, m.repoServer)
			of[i] = append(of[i], m)
		}
	}
	s.compared(t)
	for _, m := range []struct {
		name string
		of   func(native, plugin measured) float64
	}{
		{"argocd-scale-time-over-native", func(n, p measured) float64 { return p.time.Seconds() / n.time.Seconds() }},
		{"argocd-scale-cpu-over-native", func(n, p measured) float64 {
			return (p.sidecar.CPU + p.repoServer.CPU).Seconds() / (n.sidecar.CPU + n.repoServer.CPU).Seconds()
		}},
		{"argocd-scale-sidecar-memory-over-native", func(n, p measured) float64 {
			return float64(p.sidecar.Own) / float64(n.repoServer.Own)
		}},
		{"argocd-scale-all-memory-over-native", func(n, p measured) float64 {
			return float64(p.sidecar.Own+p.repoServer.Own) / float64(n.sidecar.Own+n.repoServer.Own)
		}},
		{"argocd-scale-sidecar-MiB", func(_, p measured) float64 { return float64(p.sidecar.Own >> 20) }},
	} {
		t.Logf("BENCH\t%s\t%.2f", m.name, median(of, m.of))
	}
}

// median is that of a ratio, round by round.
func median(all [2][]measured, of func(native, plugin measured) float64) float64 {
	var ratios []float64
	for i := range all[0] {
		ratios = append(ratios, of(all[0][i], all[1][i]))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func newScale(t *testing.T) *scale {
	t.Helper()
	s := &scale{n: scaleOfSuite, rounds: 1}
	if text := os.Getenv("SYNCGATE_E2E_SCALE"); text != "" {
		var err error
		if s.n, err = strconv.Atoi(text); err != nil || s.n < 1 {
			t.Fatalf("SYNCGATE_E2E_SCALE=%s: want a number", text)
		}
		s.rounds = 3
	}
	e := harness.New(t)
	b := harness.Build(e).With(cmp.Or(os.Getenv("SYNCGATE_E2E_SCALE_ARGOCD"), harness.ArgoCD2))
	t.Setenv("PATH", kustomizeFolder(e)+string(os.PathListSeparator)+os.Getenv("PATH"))
	cluster := harness.StartCluster(e, b)
	signer := harness.NewSigner(e, b, "release")
	policy := harness.NewPolicy(e, "policy", harness.BasicPolicy("release"), signer)
	s.held = e.Write("held", nil)
	t.Cleanup(func() { _ = os.Remove(s.held) }) // after a failure, too: the process ends
	command := fmt.Sprintf(`["sh", "-c", "while [ -e %s ]; do sleep 0.2; done; cat web.yaml"]`, s.held)
	s.ArgoCD = harness.StartArgoCDWith(cluster, b, harness.ArgoCDOptions{
		Plugin: filepath.Join(b.Manifests, "argocd"),
		// What hangs goes on hanging, and nothing is refreshed but what is asked for.
		Sidecar:    []string{"SYNCGATE_POLICY=" + policy.Path(), "SYNCGATE_TIMEOUT=1h", "SYNCGATE_RENDER_COMMAND=" + command},
		Controller: []string{"ARGOCD_RECONCILIATION_TIMEOUT=24h", "ARGOCD_APPLICATION_CONTROLLER_REPO_SERVER_TIMEOUT_SECONDS=3700"},
	})

	var applications strings.Builder
	add := func(name string, which set, repo *harness.GitRepo, path string) {
		fmt.Fprintf(&applications, `---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd, labels: {set: %s}}
spec:
  project: default
  source: {repoURL: %q, path: %q, targetRevision: main, %s}
  destination: {server: "https://kubernetes.default.svc", namespace: %s}
`, name, which.name, repo.URL, path, which.source, path)
	}
	for first := 0; first < s.n; first += perRepository {
		repo := harness.NewGitRepoAt(e, fmt.Sprintf("repository-%d", first/perRepository))
		var names []string
		for i := first; i < min(first+perRepository, s.n); i++ {
			name := fmt.Sprintf("app-%03d", i)
			names = append(names, name)
			repo.Write(scaleFiles(name))
			add("native-"+name, native, repo, name)
			add("plugin-"+name, plugin, repo, name)
		}
		inTwos(names, func(name string) {
			e.Run(filepath.Join(repo.Work, name), nil, b.Syncgate, "sign", "--policy", policy.Path(), "--key", signer.Key, "--issuer", "release", "--namespace", name, "--yes")
		})
		if first == 0 {
			repo.Write(scaleFiles("unsigned"))
			repo.Write(map[string]string{"hanging/web.yaml": unsignedDeployment("web", harness.Image("web:1"))})
			add("unsigned", set{"unsigned", plugin.source}, repo, "unsigned")
			add("hanging", set{"hanging", byPlugin}, repo, "hanging")
		}
		repo.Commit("Release them all")
	}
	s.Apply([]byte(applications.String()))
	return s
}

// inTwos does something for each, two at a time.
func inTwos(names []string, do func(string)) {
	var wait sync.WaitGroup
	for half := range 2 {
		wait.Go(func() {
			for i := half; i < len(names); i += 2 {
				do(names[i])
			}
		})
	}
	wait.Wait()
}

// kustomizeFolder is the folder of the program kustomize that Argo CD brings
// along.
func kustomizeFolder(e *harness.Env) string {
	e.T.Helper()
	build := exec.Command("./build.sh", "native")
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		e.T.Fatalf("running build.sh native: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "kustomize "); ok {
			link := e.Path("native", "kustomize")
			if err := os.Symlink(path, link); err != nil {
				e.T.Fatal(err)
			}
			return filepath.Dir(link)
		}
	}
	e.T.Fatal("build.sh native builds no kustomize")
	return ""
}

// refresh asks for a hard refresh of a set, and returns when all of it is
// compared. With the plugin the one that nobody signed is among them. Another
// hangs all the time.
func (s *scale) refresh(which set) measured {
	s.T.Helper()
	s.settle()
	sidecar, repoServer := s.WatchMemory(s.Sidecar), s.WatchMemory(s.RepoServer)
	start := time.Now()
	all := "set=" + which.name
	if which == plugin {
		all = "set in (plugin,unsigned)"
	}
	s.ask(all)
	s.Eventually("refresh of all that are "+which.name, func() (string, bool) {
		left := s.pending(all)
		time.Sleep(200 * time.Millisecond) // a list is work, too
		return fmt.Sprintf("%d are left", left), left == 0
	})
	return measured{time.Since(start), sidecar(), repoServer()}
}

// ask asks for a hard refresh of those that have been refreshed.
func (s *scale) ask(selector string) {
	s.T.Helper()
	for _, u := range s.List(harness.Applications, "argocd", selector) {
		if u.GetAnnotations()[refreshAnnotation] == "" {
			s.Patch(harness.Applications, "argocd", u.GetName(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{refreshAnnotation: "hard"}}})
		}
	}
}

const refreshAnnotation = "argocd.argoproj.io/refresh"

// pending is how many of the applications are still to be refreshed.
func (s *scale) pending(selector string) int {
	s.T.Helper()
	n := 0
	for _, u := range s.List(harness.Applications, "argocd", selector) {
		if u.GetAnnotations()[refreshAnnotation] != "" || harness.Field(&u, "status", "reconciledAt") == "" {
			n++
		}
	}
	return n
}

// settle waits until nothing else is refreshed than what hangs.
func (s *scale) settle() {
	s.T.Helper()
	s.Eventually("all to be compared", func() (string, bool) {
		left := s.pending("set in (native,plugin,unsigned)")
		return fmt.Sprintf("%d are left", left), left == 0
	})
}

// compared wants every application to be compared with all its objects, and the
// two that are not to be refused.
func (s *scale) compared(t *testing.T) {
	t.Helper()
	for _, which := range []set{native, plugin} {
		for _, u := range s.List(harness.Applications, "argocd", "set="+which.name) {
			a := harness.Application{ArgoCD: s.ArgoCD, Name: u.GetName()}
			resources, _, err := unstructured.NestedSlice(u.Object, "status", "resources")
			if st := a.Status(); err != nil || len(resources) != objectsEach || st.Sync != "OutOfSync" || st.Condition != "" {
				t.Errorf("%s: %d objects, %v, %s; want %d and OutOfSync", u.GetName(), len(resources), err, st, objectsEach)
			}
		}
	}
	unsigned := &harness.Application{ArgoCD: s.ArgoCD, Name: "unsigned"}
	unsigned.WaitRefused("SYNC REFUSED [ReceiptMissing]")
	hanging := &harness.Application{ArgoCD: s.ArgoCD, Name: "hanging"}
	if st := hanging.Status(); st.Compared != "" {
		t.Errorf("what was to hang was compared: %s", st)
	}
	if err := os.Remove(s.held); err != nil {
		t.Fatal(err)
	}
	hanging.WaitRefused("SYNC REFUSED [ReceiptMissing]") // which is said once it is rendered
}

// scaleFiles are an application of 30 objects in a folder of its name.
func scaleFiles(name string) map[string]string {
	var all strings.Builder
	object := func(version, kind, name, rest string) {
		fmt.Fprintf(&all, "---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {team: shop}}\n%s", version, kind, name, rest)
	}
	for i := range 6 {
		web := fmt.Sprintf("web-%d", i)
		object("v1", "ServiceAccount", web, "")
		object("v1", "ConfigMap", web, "data:\n  application.yaml: |\n"+strings.Repeat("    server: {port: 8080, greeting: hello}\n", 40))
		object("v1", "Service", web, fmt.Sprintf("spec: {selector: {app: %s}, ports: [{name: http, port: 80, targetPort: http}]}\n", web))
		object("networking.k8s.io/v1", "Ingress", web, fmt.Sprintf("spec: {ingressClassName: nginx, rules: [{host: %s.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: %[1]s, port: {name: http}}}}]}}]}\n", web))
		object("apps/v1", "Deployment", web, fmt.Sprintf(`spec:
  replicas: 3
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      serviceAccountName: %[1]s
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: %[2]q
        args: [--config, /etc/web/application.yaml]
        env: [{name: TIER, value: prod}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: %[1]s, key: password}}}]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /ready, port: http}}
        livenessProbe: {httpGet: {path: /live, port: http}}
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: config, mountPath: /etc/web}]
      volumes: [{name: config, configMap: {name: %[1]s}}]
`, web, harness.Image("shop/"+web+":1")))
	}
	return map[string]string{
		name + "/kustomization.yaml": "resources: [all.yaml]\nlabels: [{pairs: {app.kubernetes.io/part-of: shop}}]\n",
		name + "/all.yaml":           all.String(),
	}
}
