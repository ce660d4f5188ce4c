//go:build e2e

package e2e

// A cluster whose writes the webhook judges, and people who try to get
// something past it: for kubectl, for the red team's attacks and for the
// reported cases.

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// gated is that cluster, for one subtest with a namespace of its own.
type gated struct {
	*harness.Cluster
	b        harness.Binaries
	policy   *harness.Policy
	text     string // of the policy
	webhooks *harness.Webhooks

	release, security, glass *harness.Signer

	gate       string            // the gate's own namespace
	namespaces map[string]string // by subtest
	ns         string
	signed     *int
}

// Who acts. None of them is an administrator of the gate.
const (
	developer = "dev"      // has the role edit in the namespaces, as app teams do
	owner     = "mallory"  // has the role admin in the namespaces
	deployer  = "deployer" // has the role cluster-admin, as Argo CD's account does
)

// subtest is one thing that is tried in a namespace of its own. before is done
// before there is a gate.
type subtest struct {
	name       string
	before, do func(*gated)
}

// newGated makes a namespace for each subtest and who acts there, all before the
// gate. more says what the policy says beside its issuers.
func newGated(t *testing.T, more func(*gated) string, tests []subtest) *gated {
	t.Helper()
	c := harness.SharedCluster(t)
	g := &gated{Cluster: c, b: harness.Build(c.Env), namespaces: map[string]string{}, signed: new(int)}
	run := rand.IntN(100000)
	g.gate = g.NewNamespace("gate")
	var objects []string
	for i, x := range tests {
		ns := fmt.Sprintf("try-%05d-%d", run, i)
		g.namespaces[x.name] = ns
		objects = append(objects, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns),
			roleBinding(ns, "edit", developer), roleBinding(ns, "admin", owner))
	}
	g.Apply([]byte(stream(objects...)))
	t.Cleanup(func() {
		for _, ns := range g.namespaces {
			g.TryKubectl(nil, "delete", "namespace", ns, "--wait=false")
		}
	})
	for _, ns := range g.namespaces {
		g.Eventually("default ServiceAccount of "+ns, func() (string, bool) {
			return "none", g.Get(harness.ServiceAccounts, ns, "default") != nil
		})
	}
	g.Bind("cluster-admin", "", deployer)
	for _, x := range tests {
		if x.before != nil {
			x.before(g.on(t, x.name))
		}
	}
	g.release, g.security = harness.NewSigner(g.Env, g.b, "release"), harness.NewSigner(g.Env, g.b, "security")
	g.glass = harness.NewSigner(g.Env, g.b, "glass")
	g.text = harness.BasicPolicy("release", "security") + `- {name: glass, keys: {file: glass.jwks.json}, subjects: ["*/*/*/*"], breakGlass: true, maxLifetime: 4h}
namespace: ` + g.gate + "\n" + more(g)
	g.policy = harness.NewPolicy(g.Env, "policy", g.text, g.release, g.security, g.glass)
	g.webhooks = harness.StartWebhooks(g.Cluster, g.b, 1, g.policy.Dir)
	g.webhooks.Install(harness.WebhookConfiguration(g.Env, g.b, g.policy.Path()))
	return g
}

// methods makes a subtest of each method whose name begins with prefix, in the
// order of their names. What a method named Before and the next three letters
// does is done before the gate.
func methods(prefix string, of func(*gated) any) []subtest {
	call := func(method string) func(*gated) {
		return func(g *gated) { reflect.ValueOf(of(g)).MethodByName(method).Call(nil) }
	}
	var tests []subtest
	kind := reflect.TypeOf(of(nil))
	for i := range kind.NumMethod() {
		name, ok := strings.CutPrefix(kind.Method(i).Name, prefix)
		if !ok {
			continue
		}
		x := subtest{name: name, do: call(prefix + name)}
		if _, ok := kind.MethodByName("Before" + name[:3]); ok {
			x.before = call("Before" + name[:3])
		}
		tests = append(tests, x)
	}
	return tests
}

// stream joins manifests.
func stream(manifests ...string) string { return strings.Join(manifests, "\n---\n") }

func roleBinding(namespace, clusterRole, user string) string {
	return fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s, namespace: %s},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]}`,
		user, namespace, clusterRole, user)
}

// run runs the subtests.
func (g *gated) run(t *testing.T, tests []subtest) {
	t.Helper()
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) { x.do(g.on(t, x.name)) })
	}
}

// on is the cluster as a subtest has it.
func (g *gated) on(t testing.TB, name string) *gated {
	view := *g
	view.Cluster = g.Cluster.On(t)
	view.ns = g.namespaces[name]
	for _, s := range []**harness.Signer{&view.release, &view.security, &view.glass} {
		if *s != nil {
			signer := **s
			signer.Env = view.Env
			*s = &signer
		}
	}
	return &view
}

// as runs kubectl as somebody in the namespace.
func (g *gated) as(user string, args ...string) harness.Result {
	g.T.Helper()
	return g.send(user, "", args...)
}

// send is as with manifests, for which "-" stands in args.
func (g *gated) send(user, manifests string, args ...string) harness.Result {
	g.T.Helper()
	var stdin []byte
	if manifests != "" {
		stdin = []byte(manifests)
	}
	return g.As(user).TryKubectl(stdin, append(args, "--namespace", g.ns)...)
}

// sign signs manifests as the release does, without applying them.
func (g *gated) sign(manifests string, flags ...string) string {
	g.T.Helper()
	return g.signBy(g.release, manifests, flags...)
}

func (g *gated) signBy(s *harness.Signer, manifests string, flags ...string) string {
	g.T.Helper()
	*g.signed++
	return s.SignApp(g.policy, fmt.Sprintf("app-%d", *g.signed), manifests, g.ns, flags...)
}

// deploy applies manifests with their receipts.
func (g *gated) deploy(manifests string, flags ...string) {
	g.T.Helper()
	g.Apply([]byte(g.sign(manifests, flags...)), "--namespace", g.ns)
}

// refused wants the webhook's refusal: its code, and everything of its sentence
// that a person needs. %s in texts is the namespace.
func (g *gated) refused(r harness.Result, code string, texts ...string) string {
	g.T.Helper()
	text := strings.TrimSpace(string(r.Stderr))
	if r.Status == 0 || !strings.Contains(text, `syncgate.io" denied the request: `) || !strings.Contains(text, "["+code+"]") {
		g.T.Errorf("got status %d, %s%s, want a refusal [%s] by the webhook", r.Status, r.Stdout, text, code)
		return text
	}
	for _, want := range texts {
		if want = strings.ReplaceAll(want, "%s", g.ns); !strings.Contains(text, want) {
			g.T.Errorf("got %q, want it to contain %q", text, want)
		}
	}
	g.T.Logf("refused: %s", text)
	return text
}

// passed wants that nothing is refused.
func (g *gated) passed(r harness.Result) string {
	g.T.Helper()
	if r.Status != 0 {
		g.T.Fatalf("got status %d, %s, want that it passes", r.Status, r.Stderr)
	}
	text := strings.TrimSpace(string(r.Stdout) + string(r.Stderr))
	g.T.Logf("passed: %s", text)
	return text
}

// asked counts the reviews that the webhook has answered.
func (g *gated) asked() float64 {
	g.T.Helper()
	return g.webhooks.Metric("syncgate_admission_requests_total", nil)
}

// may wants RBAC to let somebody do something in the namespace, or not.
func (g *gated) may(user, verb, resource string, want bool) {
	g.T.Helper()
	r := g.As(user).TryKubectl(nil, "auth", "can-i", verb, resource, "--namespace", g.ns)
	if got := strings.TrimSpace(string(r.Stdout)); (got == "yes") != want || got != "yes" && got != "no" {
		g.T.Errorf("may %s %s %s: got %s%s, want %t", user, verb, resource, got, r.Stderr, want)
	}
}
