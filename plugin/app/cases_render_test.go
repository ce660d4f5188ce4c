package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/argocd"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/render"
)

// generate runs the Argo CD plugin in the application; env are NAME=value.
func (s *site) generate(env ...string) (stdout string, err error) {
	env = append(env, "ARGOCD_APP_NAME=shop", "ARGOCD_APP_NAMESPACE=shop", "ARGOCD_APP_SOURCE_PATH=app")
	values := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	var out, warnings bytes.Buffer
	err = argocd.Generate(s.t.Context(), argocd.Request{
		Dir: s.appDir(), Getenv: func(name string) string { return values[name] }, Environ: env,
		Policy: s.path("gate/policy.yaml"), Now: s.now,
	}, &out, &warnings)
	return out.String(), err
}

// generateRefuses checks a refusal of the plugin: one line of ASCII, nothing
// on stdout.
func (s *site) generateRefuses(reason gate.Reason, env []string, words ...string) {
	s.t.Helper()
	out, err := s.generate(env...)
	if out != "" {
		s.t.Errorf("got %q on stdout, want nothing", out)
	}
	var r *app.Refusal
	if !errors.As(err, &r) {
		s.t.Errorf("got error %v, want a refusal", err)
		return
	}
	text := r.Sentence.String()
	saysNo(s.t, text, reason, words...)
	if len(text) > 2000 || strings.ContainsAny(text, "\n\t") || strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
		s.t.Errorf("got %q, want one line of at most 2000 printable ASCII bytes", text)
	}
	for _, never := range []string{"Usage:", "goroutine ", "eyJ", s.dir} {
		if strings.Contains(text, never) {
			s.t.Errorf("got %q, want no %q in it", text, never)
		}
	}
}

func TestCase081AFailedRenderNeverCountsAsAnEmptyOne(t *testing.T) {
	for _, tc := range []struct {
		name   string
		files  map[string]string
		env    []string
		reason gate.Reason
	}{
		{"kustomize fails", map[string]string{"kustomization.yaml": "resources: [missing.yaml]\n"}, nil, gate.RenderFailed},
		{"helm fails after a good template", map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n", "templates/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
			"templates/b.yaml": `{{ fail "no" }}`}, nil, gate.RenderFailed},
		{"the command fails after it has printed", nil,
			[]string{`SYNCGATE_RENDER_COMMAND=["sh","-c","echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'; exit 3"]`}, gate.RenderFailed},
		{"a pipeline loses the error of its first command", nil, []string{`SYNCGATE_RENDER_COMMAND=["sh","-c","false | cat"]`}, gate.RenderFailed},
		{"there is nothing to render", map[string]string{"kustomization.yaml": "resources: []\ncommonLabels: {a: b}\n"}, nil, gate.EmptyRender},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t, "")
			for file, text := range tc.files {
				s.write(file, text)
			}
			s.generateRefuses(tc.reason, tc.env, "RENDER FAILED")
		})
	}
}

func TestCase083EveryRefusalIsOneSentenceWithANextStep(t *testing.T) {
	unauthorized, _ := stubRegistry(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	for _, tc := range []struct {
		name    string
		prepare func(s *site)
		reason  gate.Reason
		words   []string
	}{
		{"no receipt", func(s *site) { s.write("all.yaml", web("", "")) }, gate.ReceiptMissing, []string{"Deployment shop/web", "Fix: syncgate sign"}},
		{"bad signature", func(s *site) {
			s.write("all.yaml", web("", ""))
			s.signed("release")
			s.keySet("release", "release")
			s.damage()
		}, gate.SignatureInvalid, []string{"Deployment shop/web", "Fix: syncgate sign"}},
		{"tag moved", func(s *site) {
			s.write("all.yaml", webOf("ghcr.io/acme/web:1", "", ""))
			s.pin("ghcr.io/acme/web", "1", sha("1"))
			s.signed("release")
			s.pin("ghcr.io/acme/web", "1", sha("2"))
		}, gate.DigestMismatch, []string{"ghcr.io/acme/web:1@sha256:22222", "Fix: syncgate sign"}},
		{"registry 401", func(s *site) {
			s.policy(siteHeader + siteRelease + "images: {pins: Registry}\n")
			s.write("all.yaml", webOf(unauthorized+"/app:1", "", ""))
		}, gate.ImageUnresolvable, []string{unauthorized, "not authorized", "Fix: syncgate pin"}},
		{"parse error", func(s *site) { s.write("all.yaml", "apiVersion: v1\nkind: [\n") }, gate.RenderFailed, []string{"all.yaml", "line"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of whoever runs the test
			s := newSite(t, "")
			tc.prepare(s)
			s.generateRefuses(tc.reason, nil, tc.words...)
		})
	}
}

// damage changes the signature of every receipt in the lock.
func (s *site) damage() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.appDir(), ".syncgate/prod/*.jwt"))
	s.check(err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		s.check(err)
		at := bytes.LastIndexByte(data, '.') + 5
		if data[at] == 'A' {
			data[at] = 'B'
		} else {
			data[at] = 'A'
		}
		s.check(os.WriteFile(f, data, 0o600))
	}
}

func TestCase085TheVersionThatAChartSeesIsRecordedAndExplained(t *testing.T) {
	s := newSite(t, "")
	s.write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n")
	s.write("templates/web.yaml", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: web, image: "ghcr.io/acme/tool:{{ .Capabilities.KubeVersion.Version }}"}]}}}}`)
	for _, tag := range []string{"v1.34.0", "v1.34.5"} {
		s.pin("ghcr.io/acme/tool", tag, sha("a"))
	}
	s.options.KubeVersion = "1.34"
	s.signed("release")
	s.allowed()
	fromCommandLine := s.output()
	out, err := s.generate("KUBE_VERSION=1.34")
	s.check(err)
	if diff := cmp.Diff(fromCommandLine, out); diff != "" {
		t.Errorf("the plugin's output for the same version (-command line +plugin):\n%s", diff)
	}
	if out, err = s.generate("KUBE_VERSION=1.34.0"); err != nil || out != fromCommandLine {
		t.Errorf("the same version in other words: got %q, %v", out, err)
	}
	s.generateRefuses(gate.DigestMismatch, []string{"KUBE_VERSION=1.34.5"}, "ghcr.io/acme/tool:v1.34.5", "rendered for Kubernetes 1.34.5, signed for 1.34.0")
}

func TestCase087LayoutsOfSeveralSourcesAreAnsweredByName(t *testing.T) {
	const head = "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: shop, namespace: argocd}, spec: {project: p, destination: {namespace: shop}, "
	const git = "{repoURL: 'https://git.example/a', path: a, plugin: {name: syncgate}}"
	for _, tc := range []struct{ name, sources, want string }{
		{"one source in a list", "[" + git + "]", ""},
		{"a chart and the plugin", "[{repoURL: 'https://charts.example', chart: redis, targetRevision: '1'}, " + git + "]", "want one source; of several each is rendered alone"},
		{"a chart alone", "[{repoURL: 'https://charts.example', chart: redis, targetRevision: '1'}]", "chart has no directory in Git to keep a lock in"},
		{"values for other sources", "[{repoURL: 'https://git.example/a', ref: values}]", "ref is for other sources, which are not seen here"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := application.Parse([]byte(head+"sources: "+tc.sources+"}}"), "app.yaml")
			if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCase089OneApplicationsReceiptNeverFitsItsNamesake(t *testing.T) {
	s := newSite(t, "")
	chart := func(team string) string {
		return strings.Replace(web("", ""), "namespace: shop", "namespace: "+team, 1)
	}
	s.write("all.yaml", chart("team-a"))
	s.signed("release")
	s.allowed()
	receipts := s.build().Objects[0].Receipts[0]
	s.write("all.yaml", strings.Replace(chart("team-b"), "namespace: team-b", "namespace: team-b, annotations: {syncgate.io/receipt: '"+receipts+"'}", 1))
	s.refused(gate.SubjectMismatch, "Deployment team-b/web", "is for apps/Deployment/team-a/web")
	// Nor does one of the same object in another cluster.
	s.write("all.yaml", chart("team-a"))
	s.policy(strings.Replace(siteHeader, "environment: prod", "environment: prod-us\nacceptsEnvironments: [prod-eu]", 1) + siteRelease)
	s.write("all.yaml", strings.Replace(chart("team-a"), "namespace: team-a", "namespace: team-a, annotations: {syncgate.io/receipt: '"+receipts+"'}", 1))
	s.refused(gate.EnvironmentMismatch, "is for environment prod, this is prod-us")
}

func TestCase091OnlyWhatTheBuildReachesIsRead(t *testing.T) {
	s := newSite(t, "")
	s.write("../base/kustomization.yaml", "resources: [web.yaml]\n")
	s.write("../base/web.yaml", web("", ""))
	s.write("kustomization.yaml", "resources: [../base]\n")
	for i := range 50 { // the rest of the monorepo, none of which would do
		s.write(fmt.Sprintf("../other/%d/kustomization.yaml", i), "resources: [nowhere.yaml]\n")
		s.write(fmt.Sprintf("../other/%d/broken.yaml", i), "kind: [\n")
	}
	s.signed("release")
	s.allowed()
	outside := t.TempDir()
	s.check(os.WriteFile(filepath.Join(outside, "web.yaml"), []byte(web("hostPID: true", "")), 0o600))
	s.check(os.Remove(s.path("repo/base/web.yaml")))
	s.check(os.Symlink(filepath.Join(outside, "web.yaml"), s.path("repo/base/web.yaml")))
	s.refused(gate.RenderFailed, "base/web.yaml", "symbolic link that leads out of the repository")
	s.write("kustomization.yaml", "resources: ["+strings.Repeat("../", 12)+"etc]\n")
	s.refused(gate.RenderFailed)
}

func TestCase093VariablesOfAnotherToolAreLeftAloneAndNeverAnImage(t *testing.T) {
	s := newSite(t, "")
	const script = "echo ${HOME} $${X}"
	s.write("all.yaml", object("v1", "ConfigMap", "name: script, namespace: shop", `data: {run.sh: "`+script+`"}`))
	if got := s.output(); !strings.Contains(got, script) {
		t.Errorf("got %s, want the script as it is", got)
	}
	for _, image := range []string{"ghcr.io/acme/web:${TAG}", "ghcr.io/acme/web:"} { // not substituted; substituted by nothing
		s.write("all.yaml", webOf(image, "", ""))
		s.refused(gate.ImageNotPinned, image)
	}
	// Flux substitutes, and there the result is what is pinned and signed.
	source, err := application.Parse([]byte("{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: shop}, spec: {path: ./app, sourceRef: {kind: GitRepository, name: r}, postBuild: {substitute: {TAG: '1'}}}}"), "ks.yaml")
	s.check(err)
	s.write("all.yaml", webOf("ghcr.io/acme/web:${TAG}", "", ""))
	o, err := source.Options(s.path("repo"))
	s.check(err)
	r, err := render.Render(t.Context(), o)
	s.check(err)
	if got := fmt.Sprint(r.Objects[0].Tree); !strings.Contains(got, "ghcr.io/acme/web:1 ") {
		t.Errorf("got %s, want the variable substituted", got)
	}
	// What no variable of Flux's is named by is never made empty: it is refused, or left to who says so.
	s.write("all.yaml", webOf("ghcr.io/acme/web:${TAG}", "", "")+object("v1", "ConfigMap", "name: script", `data: {run.sh: "`+script+`"}`))
	if _, err := render.Render(t.Context(), o); err == nil || !strings.Contains(err.Error(), `ConfigMap "script"`) || !strings.Contains(err.Error(), `variable not set (strict mode): "HOME"`) {
		t.Errorf("got error %v, want the object and the variable named", err)
	}
	s.write("all.yaml", object("v1", "ConfigMap", "name: script, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}", `data: {run.sh: "`+script+`"}`)+
		object("v1", "ConfigMap", "name: escaped", `data: {run.sh: "echo $${HOME} $${X}"}`))
	r, err = render.Render(t.Context(), o)
	s.check(err)
	if got := fmt.Sprint(r.Objects[0].Tree, r.Objects[1].Tree); !strings.Contains(got, script) || !strings.Contains(got, "echo ${HOME} ${X}") {
		t.Errorf("got %s, want the one script as it is and the other with its dollars", got)
	}
}

const sopsBlock = "sops: {mac: 'ENC[AES256_GCM,data:abc,iv:d,tag:e,type:str]', version: 3.9.0, age: [{recipient: age1q, enc: xyz}]}"

func TestCase095EncryptedValuesAreGatedByNameWithoutDecrypting(t *testing.T) {
	s := newSite(t, "")
	const cipher = "PASSWORD=ENC[AES256_GCM,data:c2VjcmV0,iv:YQ==,tag:Yg==,type:str]\n"
	s.write("../parts/secrets/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nsecretGenerator: [{name: db, namespace: shop, envs: [db.env], options: {disableNameSuffixHash: true}}]\n")
	s.write("../parts/secrets/db.env", cipher+"sops_version=3.9.0\nsops_mac=ENC[AES256_GCM,data:bQ==]\n")
	s.write("web.yaml", web("", "envFrom: [{secretRef: {name: db}}]"))
	s.write("kustomization.yaml", "resources: [web.yaml]\ncomponents: [../parts/secrets]\n")
	s.refused(gate.ReceiptMissing, "1 of 1 gated objects: Deployment shop/web", "secret (containers[web].envFrom")
	drafts := s.signed("release")
	s.allowed()
	for _, d := range drafts {
		if text := fmt.Sprint(d.Claims); strings.Contains(text, "c2VjcmV0") || strings.Contains(text, "PASSWORD") {
			t.Errorf("got claims %s, want nothing of the Secret in them", text)
		}
	}
	s.write("web.yaml", web("", "envFrom: [{secretRef: {name: root-db}}]"))
	s.refused(gate.DigestMismatch, "envFrom")
}

func TestCase097AnEncryptedManifestPassesAsItIs(t *testing.T) {
	s := newSite(t, "")
	secret := object("v1", "Secret", "name: db, namespace: shop", "stringData: {password: 'ENC[AES256_GCM,data:x]'}, "+sopsBlock)
	s.write("all.yaml", secret+strings.Replace(web("", ""), "spec: {template", sopsBlock+", spec: {template", 1))
	s.signed("release")
	s.allowed()
	if n := strings.Count(s.output(), `"sops":{`); n != 2 {
		t.Errorf("got %d sops blocks in the output, want both", n)
	}
	s.sameDigest("the sops block", web("", ""), strings.Replace(web("", ""), "spec: {template", sopsBlock+", spec: {template", 1))
}

func TestCase099ADuplicateKeyIsRefusedWithItsLine(t *testing.T) {
	for _, tc := range []struct{ name, text, key string }{
		{"image", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers:\n  - name: a\n    image: good\n    image: bad\n", `"image"`},
		{"hostNetwork", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers: []\n  dnsPolicy: Default\n  hostNetwork: false\n  hostNetwork: true\n", `"hostNetwork"`},
	} {
		t.Run(tc.name+" in a plain file", func(t *testing.T) {
			s := newSite(t, "")
			s.write("all.yaml", tc.text)
			s.refused(gate.RenderFailed, "all.yaml", "line 8: duplicate key "+tc.key)
		})
		t.Run(tc.name+" in a kustomization's resource", func(t *testing.T) {
			s := newSite(t, "")
			s.write("pod.yaml", tc.text)
			s.write("kustomization.yaml", "resources: [pod.yaml]\n")
			s.refused(gate.RenderFailed, "pod.yaml", "line 8: key "+tc.key+" is already on line 7")
		})
	}
}

func TestCase101ADuplicateBlockOfAKustomizationIsRefusedWithBothLines(t *testing.T) {
	for _, block := range []string{"configMapGenerator: [{name: %s, literals: [a=b]}]", "images: [{name: %s, newTag: '1'}]"} {
		s := newSite(t, "")
		s.write("web.yaml", web("", ""))
		s.write("kustomization.yaml", "resources: [web.yaml]\n"+fmt.Sprintf(block, "a")+"\n"+fmt.Sprintf(block, "b")+"\n")
		s.refused(gate.RenderFailed, "kustomization.yaml", "line 3: key ", " is already on line 2")
	}
}
