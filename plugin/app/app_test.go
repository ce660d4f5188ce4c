package app_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

const (
	image = "web:1@sha256:abababababababababababababababababababababababababababababababab"
	now   = 1796174581
	day   = 86400
)

// pod has an image and a service account to sign. The annotations are JSON.
func pod(namespace, annotations string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: web, ` + namespace + ` annotations: ` + annotations + `}, spec: {serviceAccountName: web, hostPID: true, containers: [{name: web, image: "` + image + `"}]}}` + "\n"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func signer(t *testing.T, party string) *receipt.KeySigner {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, party)
	s, err := receipt.NewSigner(ed25519.NewKeyFromSeed(seed), "", "")
	must(t, err)
	return s
}

// effective is what a policy of two issuers means; more is the rest of it.
func effective(t *testing.T, more string) policy.Effective {
	t.Helper()
	text := "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\nissuers:\n"
	for _, name := range []string{"release", "security"} {
		text += "- {name: " + name + ", keys: {file: " + name + "}, subjects: ['*/*/*/*']}\n"
	}
	p, err := policy.Parse([]byte(text+more), "policy.yaml", func(path string) ([]byte, error) {
		return keys.PublicJWKS([]receipt.Key{signer(t, filepath.Base(path)).Key()})
	})
	must(t, err)
	e, err := p.For(policy.App{Name: "web"})
	must(t, err)
	return e
}

// build builds an application of one file in a directory of its own, or in dir.
func build(t *testing.T, dir, manifests string, s app.Settings) (*app.Build, error) {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	must(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(manifests), 0o600))
	s.Render = render.Options{Dir: dir}
	return app.New(context.Background(), s)
}

func sign(t *testing.T, b *app.Build, e policy.Effective, issuer string) []app.Draft {
	t.Helper()
	s := app.Signing{Issuer: issuer, Environment: "prod", Now: now, Lifetime: day, Signer: signer(t, issuer)}
	drafts, err := b.Drafts(s, e)
	must(t, err)
	must(t, b.Write(drafts, s))
	return drafts
}

// reasons are the codes of what is wrong, one an object.
func reasons(v app.Verdict) []gate.Reason {
	var out []gate.Reason
	for _, r := range v.Results {
		for _, it := range r.Items {
			out = append(out, it.Reason)
		}
	}
	return out
}

func TestTheZeroVerdictRefuses(t *testing.T) {
	var v app.Verdict
	if v.Allowed() {
		t.Error("a verdict that nobody gave allows")
	}
	if got := v.Sentence().Class().ExitStatus(); got != 30 {
		t.Errorf("exit status: got %d, want 30", got)
	}
}

func TestAForcedReplacementOfAGatedObjectIsRefused(t *testing.T) {
	const argo, flux = "argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/force"
	job := strings.NewReplacer("apiVersion: v1, kind: Pod", "apiVersion: batch/v1, kind: Job", "spec: {", "spec: {template: {spec: {", "}]}}\n", "}]}}}}\n")
	tests := []struct {
		name, key, value string
		edit             func(string) string
		want             bool
	}{
		{"Force", argo, "Force=true", nil, true},
		{"Replace", argo, "Replace=true", nil, true},
		{"among others", argo, "Prune=false, Replace=true ,Validate=false", nil, true},
		{"in upper case", argo, "Replace=TRUE", nil, true},
		{"without a value", argo, "Force", nil, true},
		{"turned off", argo, "Force=false,Replace=false", nil, false},
		{"others only", argo, "Prune=false,ServerSideApply=true", nil, false},
		{"Flux", flux, "enabled", nil, true},
		{"Flux, by a label", flux, "", func(string) string { return pod("namespace: shop, labels: {"+flux+": enabled},", "{}") }, true},
		{"Flux with any other word", flux, "true", nil, true},
		{"Flux turned off", flux, "Disabled", nil, false},
		{"a Job, which can only be replaced", argo, "Force=true,Replace=true", job.Replace, false},
		{"what is not gated", argo, "Replace=true", func(string) string {
			return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, annotations: {" + argo + ": Replace=true}}}\n"
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := pod("namespace: shop,", "{"+tt.key+": '"+tt.value+"'}")
			if tt.edit != nil {
				text = tt.edit(text)
			}
			b, err := build(t, "", text, app.Settings{Effective: effective(t, "")})
			must(t, err)
			got := b.Objects[0].Problem != nil && b.Objects[0].Problem.Reason == gate.ForceNotAllowed
			if got != tt.want {
				t.Errorf("got %v, want %v: %+v", got, tt.want, b.Objects[0].Problem)
			}
		})
	}
}

func TestProtectedNamespacesAreForTheirWritersAlone(t *testing.T) {
	config := func(kind, name, namespace string) string {
		return "{apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + namespace + "}}\n"
	}
	tests := []struct {
		name, manifest, destination, policy string
		want                                bool
	}{
		{"named on the object", config("ConfigMap", "a", ", namespace: kube-system"), "shop", "", true},
		{"by the destination", config("Secret", "a", ""), "argocd", "", true},
		{"the Namespace itself", config("Namespace", "flux-system", ""), "shop", "", true},
		{"another", config("ConfigMap", "a", ", namespace: shop"), "kube-system", "", false},
		{"a cluster-scoped object is in none", config("PersistentVolume", "a", ""), "kube-system", "", false},
		{"an object of an unknown kind", "{apiVersion: x.io/v1, kind: X, metadata: {name: a}}\n", "kube-public", "", true},
		{"for a writer", config("ConfigMap", "a", ", namespace: kube-system"), "", "protected: {writers: [w*]}\n", false},
		{"policy's own list", config("ConfigMap", "a", ", namespace: shop"), "", "protected: {namespaces: [shop]}\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := build(t, "", tt.manifest, app.Settings{Effective: effective(t, tt.policy), Namespace: tt.destination})
			must(t, err)
			p := b.Objects[0].Problem
			if got := p != nil && p.Reason == gate.ProtectedTarget; got != tt.want {
				t.Errorf("got %+v, want protected: %v", p, tt.want)
			}
		})
	}
}

func TestReceiptsAreStampedOnTheObjectAndOnACronJobsJobs(t *testing.T) {
	e := effective(t, "")
	cron := `{apiVersion: batch/v1, kind: CronJob, metadata: {name: web, namespace: shop}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, image: "` + image + `"}]}}}}}}` + "\n"
	dir := t.TempDir()
	b, err := build(t, dir, pod("namespace: shop,", "{a: b}")+"---\n"+cron, app.Settings{Effective: e})
	must(t, err)
	sign(t, b, e, "release")
	b, err = build(t, dir, pod("namespace: shop,", "{a: b}")+"---\n"+cron, app.Settings{Effective: e})
	must(t, err)
	var text strings.Builder
	must(t, b.EncodeYAML(&text))
	for i, o := range b.Objects {
		if len(o.Receipts) != 1 {
			t.Fatalf("object %d: %d receipts, want 1", i, len(o.Receipts))
		}
		want := map[string]any{"a": "b", "syncgate.io/receipt": o.Receipts[0]}
		if o.Subject.Kind == "CronJob" {
			delete(want, "a")
			job := o.Tree["spec"].(map[string]any)["jobTemplate"].(map[string]any)
			if diff := cmp.Diff(map[string]any{"annotations": want}, job["metadata"]); diff != "" {
				t.Errorf("jobTemplate (-want +got):\n%s", diff)
			}
			if _, there := job["spec"].(map[string]any)["template"].(map[string]any)["metadata"]; there {
				t.Error("a receipt in a Pod template would roll Pods")
			}
		}
		if diff := cmp.Diff(want, o.Tree["metadata"].(map[string]any)["annotations"]); diff != "" {
			t.Errorf("annotations (-want +got):\n%s", diff)
		}
	}
	if v := b.Evaluate(e, now); !v.Allowed() {
		t.Errorf("refused: %s", v.Sentence())
	}
}

func TestSignCoversWhatTheIssuerMaySign(t *testing.T) {
	tests := []struct {
		name, policy string
		want         map[string][]string // issuer -> covers
	}{
		{"anybody may sign everything", "", map[string][]string{
			"release": {"command", "identity", "image", "network", "privilege", "secret"}}},
		{"what has leaves that only security may sign is left to it", "requirements: [{categories: [privilege, rbac], issuers: [security]}]\n", map[string][]string{
			"release":  {"command", "identity", "image", "network", "secret"},
			"security": {"command", "network", "privilege", "secret"}}}, // and leaves to release what release may sign
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := effective(t, tt.policy)
			dir := t.TempDir()
			for issuer, want := range tt.want {
				b, err := build(t, dir, pod("namespace: shop,", "{}"), app.Settings{Effective: e})
				must(t, err)
				drafts := sign(t, b, e, issuer)
				if len(drafts) != 1 || !drafts[0].First {
					t.Fatalf("%s: got %+v, want one first draft", issuer, drafts)
				}
				if diff := cmp.Diff(want, drafts[0].Claims.Covers); diff != "" {
					t.Errorf("%s covers (-want +got):\n%s", issuer, diff)
				}
			}
			b, err := build(t, dir, pod("namespace: shop,", "{}"), app.Settings{Effective: e})
			must(t, err)
			if v := b.Evaluate(e, now); !v.Allowed() {
				t.Errorf("refused: %s", v.Sentence())
			}
			for issuer := range tt.want {
				if again := sign(t, b, e, issuer); len(again) != 0 {
					t.Errorf("%s signs again what is signed: %+v", issuer, again)
				}
			}
		})
	}
}

func TestACommentThatLiesIsFoundByCommentsAlone(t *testing.T) {
	e := effective(t, "")
	dir := t.TempDir()
	b, err := build(t, dir, pod("namespace: shop,", "{}"), app.Settings{Effective: e})
	must(t, err)
	sign(t, b, e, "release")
	file := filepath.Join(dir, ".syncgate/prod/core.Pod.shop.web.release.jwt")
	data, err := os.ReadFile(file)
	must(t, err)
	const comment = "# Pod shop/web, prod, until 2026-12-03: image web:1\n"
	if !strings.HasPrefix(string(data), comment) {
		t.Fatalf("got %q, want it to start with %q", data, comment)
	}
	for name, want := range map[string][]gate.Reason{
		comment: nil,
		"# Pod shop/web, prod, until 2026-12-03: image web:2\n":                   {gate.ReceiptMalformed},
		"# Pod shop/web, prod, until 2036-12-03: image web:1\n":                   {gate.ReceiptMalformed},
		"# Pod shop/web, prod, until 2026-12-03, approver alice: image web:1\n":   {gate.ReceiptMalformed},
		"# Pod shop/web, prod, until 2026-12-03: image web:1, and nothing else\n": {gate.ReceiptMalformed},
	} {
		must(t, os.WriteFile(file, []byte(strings.Replace(string(data), comment, name, 1)), 0o600))
		b, err := build(t, dir, pod("namespace: shop,", "{}"), app.Settings{Effective: e})
		must(t, err)
		v := b.Evaluate(e, now)
		if !v.Allowed() {
			t.Fatalf("%q: a comment decides: %s", name, v.Sentence())
		}
		must(t, b.Comments(e, &v))
		if diff := cmp.Diff(want, reasons(v)); diff != "" || v.Allowed() != (want == nil) {
			t.Errorf("%q: allowed=%v (-want +got):\n%s", name, v.Allowed(), diff)
		}
	}
}

func TestWhatIsWrongWithSeveralObjectsIsToldAtOnce(t *testing.T) {
	manifests := pod("namespace: shop,", "{}") + "---\n" + pod("namespace: kube-system,", "{}") + "---\n" + strings.Replace(pod("namespace: bank,", "{}"), "web:1@", "web:2@x", 1)
	e := effective(t, "")
	b, err := build(t, "", manifests, app.Settings{Effective: e})
	must(t, err)
	v := b.Evaluate(e, now)
	if diff := cmp.Diff([]gate.Reason{gate.ReceiptMissing, gate.ProtectedTarget, gate.ImageNotPinned}, reasons(v)); diff != "" || v.Gated != 3 {
		t.Errorf("%d gated, reasons (-want +got):\n%s", v.Gated, diff)
	}
	text := v.Sentence().String()
	for _, want := range []string{"SYNC REFUSED [ProtectedTarget] 3 of 3 gated objects: (1) Pod kube-system/web: ", "(2) [ImageNotPinned] Pod bank/web: ", "(3) [ReceiptMissing] Pod shop/web: "} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
	var r *app.Refusal
	if err := b.Sound(e); !errors.As(err, &r) || len(r.Sentence.Items) != 2 {
		t.Errorf("Sound: got %v, want the two that no receipt can mend", err)
	}
}

func TestFixIsTheNextStepForTheGravestReason(t *testing.T) {
	plain, helped := effective(t, ""), effective(t, "help: ask us\n")
	two, glass := plain, plain // issuers release and security
	plain.Rules.Issuers = maps.Clone(two.Rules.Issuers)
	delete(plain.Rules.Issuers, "security")
	glass.Rules.Issuers = maps.Clone(plain.Rules.Issuers)
	glass.Rules.Issuers["glass"] = gate.Issuer{BreakGlass: true}
	tests := []struct {
		reason        gate.Reason
		plain, helped string
	}{
		{gate.ReceiptMissing, "syncgate sign --key FILE --issuer release --environment prod, commit .syncgate", "ask us"},
		{gate.DigestMismatch, "syncgate sign --key FILE --issuer release --environment prod, commit .syncgate", "ask us"},
		{gate.ImageNotPinned, "syncgate pin, commit .syncgate", "syncgate pin, commit .syncgate"},
		{gate.ForceNotAllowed, "change the manifest it names", "change the manifest it names"},
		{gate.RevocationListStale, "whoever keeps the revocation list: syncgate revoke --reissue", "whoever keeps the revocation list: syncgate revoke --reissue"},
	}
	for _, tt := range tests {
		s := gate.Sentence{Items: []gate.Item{{Reason: tt.reason, Text: "x"}, {Reason: gate.ThresholdNotMet, Text: "y"}}}
		if got := glass.Fix(s.Reason()); got != tt.plain {
			t.Errorf("%s with a break-glass issuer: got %q, want %q", tt.reason, got, tt.plain)
		}
		if got, want := two.Fix(s.Reason()), strings.Replace(tt.plain, "--issuer release", "--issuer NAME", 1); got != want {
			t.Errorf("%s with two issuers: got %q, want %q", tt.reason, got, want)
		}
		if got := plain.Fix(s.Reason()); got != tt.plain {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.plain)
		}
		if got := helped.Fix(s.Reason()); got != tt.helped {
			t.Errorf("%s with policy's help: got %q, want %q", tt.reason, got, tt.helped)
		}
	}
}

func TestWriteFileReplacesOrLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	must(t, app.WriteFile(file, []byte("one")))
	must(t, app.WriteFile(file, []byte("two")))
	if data, err := os.ReadFile(file); err != nil || string(data) != "two" {
		t.Errorf("got %q, %v", data, err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "b"), 0o755))
	if err := app.WriteFile(filepath.Join(dir, "b"), []byte("x")); err == nil {
		t.Error("replaced a directory")
	}
	if err := app.WriteFile(filepath.Join(dir, "missing", "c"), []byte("x")); err == nil {
		t.Error("wrote into a directory that is not there")
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
