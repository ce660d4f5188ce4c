package argocd_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n"
	pod       = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: IMAGE}]}}\n"
	digest    = "@sha256:abababababababababababababababababababababababababababababababab"

	prod = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\n"
)

// slotsDir outlives a test: a render that was given up goes on for a moment.
var slotsDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "syncgate-slots-")
	if err != nil {
		panic(err)
	}
	slotsDir = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// request writes an application and a policy and returns the plugin's call for
// them. settings is the policy without its issuers.
func request(t *testing.T, manifest, settings string, env ...string) argocd.Request {
	t.Helper()
	dir := t.TempDir()
	key, err := receipt.NewKey("", ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	must(t, err)
	set, err := keys.PublicJWKS([]receipt.Key{key})
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "app"), 0o755))
	for file, text := range map[string]string{
		"app/a.yaml": manifest, "jwks.json": string(set), "policy.yaml": settings + "issuers: [{name: release, keys: {file: jwks.json}}]\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	env = append([]string{"SYNCGATE_POLICY=" + filepath.Join(dir, "policy.yaml"), "ARGOCD_APP_NAME=web", "ARGOCD_APP_NAMESPACE=shop", "SYNCGATE_SLOTS=" + slotsDir}, env...)
	return argocd.Request{Dir: filepath.Join(dir, "app"), Environ: env, Getenv: lookup(env), Now: 1796174581}
}

func lookup(env []string) func(string) string {
	return func(name string) string {
		value := ""
		for _, kv := range env { // the last one counts, as in a process
			if n, v, _ := strings.Cut(kv, "="); n == name {
				value = v
			}
		}
		return value
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writer counts, and fails if it is told to.
type writer struct {
	bytes.Buffer
	writes int
	err    error
}

func (w *writer) Write(p []byte) (int, error) {
	w.writes++
	if w.err != nil {
		return 0, w.err
	}
	return w.Buffer.Write(p)
}

func refused(t *testing.T, err error, code string, texts ...string) {
	t.Helper()
	var r *app.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if got := string(r.Sentence.Reason()); got != code {
		t.Errorf("got %q, want %q: %v", got, code, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want %q in it", err, text)
		}
	}
}

func TestManifestsAreWrittenAtOnceOrNotAtAll(t *testing.T) {
	t.Run("allowed", func(t *testing.T) {
		var out, warnings writer
		must(t, argocd.Generate(context.Background(), request(t, configMap+"---\n"+strings.Replace(configMap, "name: a", "name: b", 1), prod), &out, &warnings))
		if out.writes != 1 || strings.Count(out.String(), "\n") != 2 || warnings.writes != 0 {
			t.Errorf("%d writes, %q, %d warnings; want two lines in one write", out.writes, out.String(), warnings.writes)
		}
	})
	t.Run("refused", func(t *testing.T) {
		var out, warnings writer
		err := argocd.Generate(context.Background(), request(t, configMap+"---\n"+strings.Replace(pod, "IMAGE", "a"+digest, 1), prod), &out, &warnings)
		refused(t, err, "ReceiptMissing", "1 of 1 gated objects: Pod shop/a: ")
		if out.writes+warnings.writes != 0 {
			t.Errorf("a refusal wrote %q and %q", out.String(), warnings.String())
		}
	})
	t.Run("nobody reads", func(t *testing.T) {
		out := writer{err: errors.New("broken pipe")}
		err := argocd.Generate(context.Background(), request(t, configMap, prod), &out, &writer{})
		refused(t, err, "RenderFailed", "writing manifests: broken pipe")
		if out.writes != 1 {
			t.Errorf("%d writes, want 1", out.writes)
		}
	})
	t.Run("warned", func(t *testing.T) {
		var out, warnings writer
		must(t, argocd.Generate(context.Background(), request(t, strings.Replace(pod, "IMAGE", "a"+digest, 1), prod+"mode: {render: Warn}\n"), &out, &warnings))
		if !strings.HasPrefix(warnings.String(), "SYNC WOULD BE REFUSED [ReceiptMissing] 1 of 1 gated objects: ") || strings.Count(warnings.String(), "\n") != 1 {
			t.Errorf("warning: got %q", warnings.String())
		}
		if out.writes != 1 || !strings.Contains(out.String(), `"kind":"Pod"`) {
			t.Errorf("got %q in %d writes", out.String(), out.writes)
		}
	})
	t.Run("warned of what cannot be rendered", func(t *testing.T) {
		var out, warnings writer
		err := argocd.Generate(context.Background(), request(t, "a: [\n", prod+"mode: {render: Warn}\n"), &out, &warnings)
		refused(t, err, "RenderFailed")
		if out.writes+warnings.writes != 0 {
			t.Errorf("wrote %q and %q", out.String(), warnings.String())
		}
	})
}

// TestWhatHangsIsRefusedInTime: beyond a minute Argo CD kills the plugin, and
// nobody learns why.
func TestWhatHangsIsRefusedInTime(t *testing.T) {
	t.Run("something that does not listen", func(t *testing.T) {
		r := request(t, configMap, prod, "SYNCGATE_TIMEOUT=50ms")
		known, hang := r.Getenv, make(chan struct{})
		defer close(hang)
		r.Getenv = func(name string) string { // asked while it renders
			if name == "KUBE_VERSION" {
				<-hang
			}
			return known(name)
		}
		var out writer
		err := argocd.Generate(context.Background(), r, &out, &writer{})
		refused(t, err, "RenderFailed", "not ready within 50ms; Fix: make the application smaller, or raise SYNCGATE_TIMEOUT")
		if out.writes != 0 {
			t.Errorf("wrote %q", out.String())
		}
	})
	t.Run("a registry that does not answer", func(t *testing.T) {
		asked, stop := make(chan struct{}, 100), make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			asked <- struct{}{}
			<-stop
		}))
		defer server.Close()
		defer close(stop)
		image := strings.TrimPrefix(server.URL, "http://") + "/a:1"
		r := request(t, strings.Replace(pod, "IMAGE", "'"+image+"'", 1), prod+"images: {pins: Registry}\n", "SYNCGATE_TIMEOUT=200ms")
		err := argocd.Generate(context.Background(), r, &writer{}, &writer{})
		refused(t, err, "RenderFailed", "not ready within 200ms")
		if len(asked) == 0 {
			t.Error("the registry was not asked: this tested something else")
		}
	})
	t.Run("a caller that is gone", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var out writer
		err := argocd.Generate(ctx, request(t, configMap, prod), &out, &writer{})
		// Whichever came first, it is a refusal or the whole answer, never a part.
		if err != nil {
			refused(t, err, "RenderFailed", "told to stop before it was ready; Fix: nothing, it is tried again")
		}
		if (err == nil) != (out.writes == 1) {
			t.Errorf("error %v and %d writes", err, out.writes)
		}
	})
	for _, value := range []string{"soon", "0s", "-1s", "45"} {
		t.Run("timeout "+value, func(t *testing.T) {
			err := argocd.Generate(context.Background(), request(t, configMap, prod, "SYNCGATE_TIMEOUT="+value), &writer{}, &writer{})
			refused(t, err, "PolicyInvalid", "SYNCGATE_TIMEOUT is ")
		})
	}
}

func TestAPanicIsARefusal(t *testing.T) {
	r := request(t, configMap, prod)
	getenv := r.Getenv
	r.Getenv = func(name string) string {
		if name == "ARGOCD_APP_NAME" {
			panic("one\ntwo")
		}
		return getenv(name)
	}
	var out writer
	err := argocd.Generate(context.Background(), r, &out, &writer{})
	refused(t, err, "RenderFailed", "the gate met a case that it does not know (one two): please report it")
	if out.writes != 0 || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("wrote %q, said %q", out.String(), err)
	}
}

func TestTheEnvironmentIsOneThatPolicyAllows(t *testing.T) {
	const several = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environments:
- {name: prod, match: {name: web}}
- {name: stage, match: {env: {TIER: low}}}
- {name: bank, match: {name: bank}}
`
	tests := []struct {
		name, operator string
		env            []string
		code, want     string // code "": allowed as far as the environment goes
	}{
		{"the only one that matches", "", nil, "ReceiptMissing", "--environment prod,"},
		{"plugin.env takes part in the choice", "", []string{"ARGOCD_ENV_TIER=low"}, "PolicyInvalid", `several environments are possible for application "web": prod, stage; select one; Fix: name one of these as SYNCGATE_ENVIRONMENT in plugin.env of the Application`},
		{"plugin.env selects", "", []string{"ARGOCD_ENV_TIER=low", "ARGOCD_ENV_SYNCGATE_ENVIRONMENT=stage"}, "ReceiptMissing", "--environment stage,"},
		{"not what policy keeps for another", "", []string{"ARGOCD_ENV_SYNCGATE_ENVIRONMENT=bank"}, "PolicyInvalid", `environment "bank" is not one that policy allows for application "web": prod; Fix: change SYNCGATE_ENVIRONMENT in plugin.env of the Application to one of these`},
		{"not without the prefix", "", []string{"SYNCGATE_ENVIRONMENT=stage", "TIER=low"}, "ReceiptMissing", "--environment prod,"},
		{"the operator's choice", "bank", []string{"ARGOCD_ENV_SYNCGATE_ENVIRONMENT=prod"}, "ReceiptMissing", "--environment bank,"},
		{"one that there is not", "moon", nil, "PolicyInvalid", `environment "moon" is not one of this policy: prod, stage, bank; Fix: whoever operates the gate: change --environment to one of these`},
		{"none for an unknown application", "", []string{"ARGOCD_APP_NAME=other"}, "PolicyInvalid", `no environment of the policy matches application "other"; Fix: mend the policy`},
		{"one where policy allows none", "", []string{"ARGOCD_APP_NAME=other", "ARGOCD_ENV_SYNCGATE_ENVIRONMENT=prod"}, "PolicyInvalid", `is not one that policy allows for application "other": none; Fix: mend the policy`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(t, strings.Replace(pod, "IMAGE", "a"+digest, 1), several, tt.env...)
			r.Environment = tt.operator
			refused(t, argocd.Generate(context.Background(), r, &writer{}, &writer{}), tt.code, tt.want)
		})
	}
}

func TestParametersSayHowToRenderAndNothingElse(t *testing.T) {
	tests := []struct{ name, parameters, code, want string }{
		{"none", "", "", ""},
		{"null, as Argo CD writes none", "null", "", ""},
		{"an empty list", "[]", "", ""},
		{"a renderer", `[{"name":"renderer","string":"directory"}]`, "", ""},
		{"nothing left", `[{"name":"exclude","string":"*"}]`, "EmptyRender", ""},
		{"an unknown one", `[{"name":"policy","string":"mine.yaml"}]`, "RenderFailed", `"policy"`},
		{"another case", `[{"name":"Renderer","string":"directory"}]`, "RenderFailed", `"Renderer"`},
		{"a renderer that there is not", `[{"name":"renderer","string":"sh"}]`, "RenderFailed", `"sh"`},
		{"yes", `[{"name":"recurse","string":"yes"}]`, "RenderFailed", "want true or false"},
		{"one twice", `[{"name":"recurse","string":"true"},{"name":"recurse","string":"false"}]`, "RenderFailed", "recurse"},
		{"an array for a string", `[{"name":"include","array":["a"]}]`, "RenderFailed", "include"},
		{"no JSON", `[{`, "RenderFailed", "plugin.parameters"},
		{"an object", `{"renderer":"directory"}`, "RenderFailed", "plugin.parameters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := argocd.Generate(context.Background(), request(t, configMap, prod, "ARGOCD_APP_PARAMETERS="+tt.parameters), &writer{}, &writer{})
			if tt.code == "" {
				must(t, err)
				return
			}
			refused(t, err, tt.code, tt.want)
		})
	}
}
