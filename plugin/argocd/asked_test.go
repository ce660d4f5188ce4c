package argocd_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/lock"
)

const unsigned = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a" + digest + "}]}}\n"

func TestAnnotationsTightenAndNeverRelax(t *testing.T) {
	const several = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironments: [{name: prod, match: {name: web}}, {name: eu, match: {name: web}}, {name: bank, match: {name: bank}}]\n"
	const service = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}\n"
	const none = "absent"
	tests := []struct {
		name, manifest, policy, entry string
		env                           []string
		code                          string // empty: allowed
		want                          []string
	}{
		{"nothing asked for", configMap, prod, "{}", nil, "", nil},
		{"nothing published", configMap, prod, none, nil, "PolicyInvalid", []string{`no settings are published for application "web"; Fix: wait two minutes`}},
		{"no entry", configMap, prod, `{"mode":"Enforce"`, nil, "PolicyInvalid", []string{`settings of application "web": `}},
		{"a member of a later version", configMap, prod, `{"quorum":2}`, nil, "PolicyInvalid", []string{"quorum"}},
		{"Warn is the policy's", unsigned, prod + "mode: {render: Warn}\n", `{"mode":"Warn"}`, nil, "", nil},
		{"Enforce where policy warns", unsigned, prod + "mode: {render: Warn}\n", `{"mode":"Enforce"}`, nil, "ReceiptMissing", []string{"SYNC REFUSED"}},
		{"Warn where policy enforces", configMap, prod + "mode: {render: Enforce}\n", `{"mode":"Warn"}`, nil, "PolicyInvalid",
			[]string{"policy.yaml line 4: mode.render: the mode is Enforce, and Warn would relax it; Fix: change or remove the annotation"}},
		{"a category more", service, prod, `{"categories":["service"]}`, nil, "ReceiptMissing", nil},
		{"that category is free without", service, prod, "{}", nil, "", nil},
		{"a category less", configMap, prod + "categories: [{name: image}]\n", `{"categories":["-image"]}`, nil, "PolicyInvalid", []string{"policy.yaml line 4: categories[0]: category image must be signed"}},
		{"one of several environments", unsigned, several, `{"environment":"eu"}`, nil, "ReceiptMissing", []string{"--environment eu,"}},
		{"an environment of others", configMap, several, `{"environment":"bank"}`, nil, "PolicyInvalid", []string{"policy.yaml line 3: environments: environment \"bank\" is not one that policy allows for application \"web\": prod, eu"}},
		{"another environment than plugin.env", configMap, several, `{"environment":"eu"}`, []string{"ARGOCD_ENV_SYNCGATE_ENVIRONMENT=prod"}, "PolicyInvalid", []string{"plugin.env asks for"}},
		{"no environment still", configMap, several, "{}", nil, "PolicyInvalid", []string{"several environments are possible", "Fix: name one of these as SYNCGATE_ENVIRONMENT in plugin.env of the Application"}},
		{"what the controller refused", configMap, prod, `{"refused":"annotation x is wrong"}`, nil, "PolicyInvalid", []string{"annotation x is wrong; Fix: change or remove the annotation"}},
		{"a renderer", configMap, prod, `{"renderer":"directory"}`, nil, "", nil},
		{"a renderer that does not fit", configMap, prod, `{"renderer":"helm"}`, nil, "RenderFailed", nil},
		{"the same renderer twice", configMap, prod, `{"renderer":"directory"}`, []string{`ARGOCD_APP_PARAMETERS=[{"name":"renderer","string":"directory"}]`}, "", nil},
		{"another renderer than the parameters'", configMap, prod, `{"renderer":"helm"}`, []string{`ARGOCD_APP_PARAMETERS=[{"name":"renderer","string":"directory"}]`}, "PolicyInvalid", []string{`syncgate.io/renderer is helm, and the Application's source says "directory"`}},
		{"a lock elsewhere", configMap, prod, `{"lock":"locks/web"}`, []string{"ARGOCD_APP_SOURCE_PATH=app"}, "", nil},
		{"a lock that is not there", configMap, prod, `{"lock":"locks/api"}`, []string{"ARGOCD_APP_SOURCE_PATH=app"}, "PolicyInvalid", []string{`"locks/api" is no directory of the repository`}},
		{"a lock behind a link out", configMap, prod, `{"lock":"out"}`, []string{"ARGOCD_APP_SOURCE_PATH=app"}, "PolicyInvalid", []string{`"out" is no directory of the repository`}},
		{"a lock above", configMap, prod, `{"lock":".."}`, []string{"ARGOCD_APP_SOURCE_PATH=app"}, "PolicyInvalid", []string{`".." is no directory of the repository`}},
		{"a lock in an unknown repository", configMap, prod, `{"lock":"locks/web"}`, nil, "PolicyInvalid", []string{"root is not known"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, tt.manifest, tt.policy, tt.env...)
			repository := filepath.Dir(r.Dir)
			must(t, os.MkdirAll(filepath.Join(repository, "locks/web"), 0o755))
			must(t, os.Symlink(t.TempDir(), filepath.Join(repository, "out")))
			r.Apps = t.TempDir()
			if tt.entry != none {
				must(t, os.WriteFile(filepath.Join(r.Apps, "web"), []byte(tt.entry), 0o600))
			}
			var out writer
			err := argocd.Generate(context.Background(), r, &out, &writer{})
			if tt.code == "" {
				must(t, err)
				return
			}
			refused(t, err, tt.code, tt.want...)
			if out.writes != 0 {
				t.Errorf("wrote %q", out.String())
			}
		})
	}
}

// TestTheLockIsReadWhereTheAnnotationSays: a pin that only that lock has.
func TestTheLockIsReadWhereTheAnnotationSays(t *testing.T) {
	r := request(t, strings.Replace(pod, "IMAGE", "registry.example/a:1", 1), prod, "ARGOCD_APP_SOURCE_PATH=app")
	r.Apps = t.TempDir()
	where := filepath.Join(filepath.Dir(r.Dir), "locks", "web")
	must(t, os.MkdirAll(where, 0o755))
	must(t, os.WriteFile(filepath.Join(r.Apps, "web"), []byte("{}"), 0o600))
	refused(t, argocd.Generate(context.Background(), r, &writer{}, &writer{}), "ImageNotPinned", "has no digest and no pin in the lock")

	must(t, os.WriteFile(filepath.Join(r.Apps, "web"), []byte(`{"lock":"locks/web"}`), 0o600))
	l, err := lock.Open(where)
	must(t, err)
	must(t, l.SetPin(lock.Pin{Name: "registry.example/a", Tag: "1", Digest: digest[1:]}))
	must(t, l.Save())
	refused(t, argocd.Generate(context.Background(), r, &writer{}, &writer{}), "ReceiptMissing")
}

func TestSettingsCanBeNamedInTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	r := request(t, configMap, prod, "SYNCGATE_APPS="+dir)
	refused(t, argocd.Generate(context.Background(), r, &writer{}, &writer{}), "PolicyInvalid", "no settings are published")
	must(t, os.WriteFile(filepath.Join(dir, "web"), []byte("{}"), 0o600))
	must(t, argocd.Generate(context.Background(), r, &writer{}, &writer{}))
}
