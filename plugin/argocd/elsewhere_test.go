package argocd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/offswitch"
)

// TestAnApplicationOfAnotherNamespaceHasItsWholeName: Argo CD calls it
// NAMESPACE_NAME, and so do policy, settings and switches. Its chart's release
// has the bare name, as with Argo CD's own Helm.
func TestAnApplicationOfAnotherNamespaceHasItsWholeName(t *testing.T) {
	const names = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironments: [{name: prod, match: {name: team_web}}, {name: lab, match: {name: web}}]\n"
	r := request(t, "apiVersion: v2\nname: c\nversion: 1.0.0\n", names, "ARGOCD_APP_NAME=team_web")
	must(t, os.Rename(filepath.Join(r.Dir, "a.yaml"), filepath.Join(r.Dir, "Chart.yaml")))
	must(t, os.Mkdir(filepath.Join(r.Dir, "templates"), 0o755))
	chart := func(rest string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(r.Dir, "templates", "all.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"+rest), 0o600))
	}
	generate := func() (string, error) {
		var out writer
		err := argocd.Generate(context.Background(), r, &out, &writer{})
		return out.String(), err
	}
	chart("")
	out, err := generate()
	must(t, err)
	if !strings.Contains(out, `"name":"web"`) {
		t.Errorf("got %s, want a release web", out)
	}
	chart("---\n" + unsigned)
	_, err = generate()
	refused(t, err, "ReceiptMissing", "--environment prod,")

	r.Apps, r.Off = t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(r.Apps, "web"), []byte("{}"), 0o600))
	_, err = generate()
	refused(t, err, "PolicyInvalid", `no settings are published for application "team_web"`, "see whether syncgate-controller runs with --application-namespaces=team")
	must(t, os.WriteFile(filepath.Join(r.Apps, "team_web"), []byte("{}"), 0o600))
	for app, off := range map[string]bool{"web": false, "team_web": true} {
		s := offswitch.Switch{App: app, Until: time.Unix(r.Now+600, 0).UTC().Format(time.RFC3339), Reason: "drill", By: "alice"}
		text, err := s.Encode(time.Unix(r.Now, 0))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(r.Off, s.Key()), []byte(text), 0o600))
		_, err = generate()
		must(t, os.Remove(filepath.Join(r.Off, s.Key())))
		if (err == nil) != off {
			t.Errorf("a switch for %s: got %v, want off %t", app, err, off)
		}
	}

	// What validates an Application before there is one has its bare name: that
	// is another application to policy.
	r.Apps, r.Off = "", ""
	r.Environ = append(r.Environ, "ARGOCD_APP_NAME=web")
	r.Getenv = lookup(r.Environ)
	_, err = generate()
	refused(t, err, "ReceiptMissing", "--environment lab,")
}
