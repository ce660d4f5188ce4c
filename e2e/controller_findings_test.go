//go:build e2e

package e2e

// What goes around the gate, as the real controller tells it through a real API
// server. Argo CD itself does not run, so that nothing else writes Applications.

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

func TestTheControllerTellsWhatGoesAroundTheGate(t *testing.T) {
	e := harness.New(t)
	b := harness.Build(e)
	c := harness.StartCluster(e, b)
	installArgoKinds(c, b, "argocd")
	const respect = gatedSource + ", syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]}, ignoreDifferences: [{kind: Deployment, jsonPointers: [/spec/template]}]"
	want := map[string]string{"bare": "PluginMissing", "second": "UngatedSource", "hydrated": "SourceHydrator", "local": "LocalSync", "rollback": "UngatedOperation", "live": "RespectIgnoreDifferences"}
	for _, app := range []string{
		appOf("web", "shop", gatedSource),
		appOf("bare", "shop", "source: {"+gitSource+"}"),
		appOf("second", "shop", "sources: [{"+gitSource+", "+prodPlugin+"}, {"+gitSource+"}]"),
		appOf("hydrated", "shop", "sourceHydrator: {drySource: {repoURL: x, path: a, targetRevision: b}, syncSource: {path: a, targetBranch: b}}"),
		appOf("local", "shop", gatedSource, `operation: {sync: {manifests: ["{}"]}}`),
		appOf("rollback", "shop", gatedSource, "operation: {sync: {source: {"+gitSource+"}}}"),
		appOf("live", "shop", respect),
	} {
		c.Apply([]byte(app))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	policy := harness.NewPolicy(e, "policy", argoGatePolicy, harness.NewSigner(e, b, "release"))
	harness.StartController(c, b, harness.NewMount(e, "apps", nil), filepath.Dir(policy.Path()), "--metrics-listen="+address)

	status := func(name string) string {
		return c.Get(harness.Applications, "argocd", name).GetAnnotations()["syncgate.io/status"]
	}
	for name, code := range want {
		e.Eventually("the status of "+name, func() (string, bool) {
			text := status(name)
			return text, strings.HasPrefix(text, "["+code+"] ")
		})
		e.Eventually("the event of "+name, func() (string, bool) {
			out := string(c.Kubectl(nil, "get", "events", "--namespace", "argocd", "--field-selector", "involvedObject.name="+name, "-o", "jsonpath={range .items[*]}{.type} {.reason}\n{end}"))
			return out, strings.Contains(out, "Warning "+code+"\n")
		})
		e.Eventually("the metric of "+name, func() (string, bool) {
			r, err := http.Get("http://" + address + "/metrics")
			if err != nil {
				return err.Error(), false
			}
			defer r.Body.Close()
			text, err := io.ReadAll(io.LimitReader(r.Body, 1<<22))
			line := fmt.Sprintf("syncgate_argocd_application_finding{finding=%q,name=%q,namespace=\"argocd\"} 1\n", code, name)
			return "no " + line, err == nil && strings.Contains(string(text), line)
		})
	}
	if text := status("web"); text != "" {
		t.Errorf("the status of web is %q, want none", text)
	}
	// It is taken back.
	c.Apply([]byte(appOf("bare", "shop", gatedSource)))
	e.Eventually("the end of the finding of bare", func() (string, bool) { return status("bare"), status("bare") == "" })
}
