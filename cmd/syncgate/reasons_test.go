package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
)

const web = "apps/Deployment/shop/web"

// deployment has image, command and identity to sign. The annotation is for
// forged receipts.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations: {syncgate.io/receipt: $RECEIPT}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: $REGISTRY/acme/web:1.4
        command: [serve]
`

// second is a policy of two issuers; what release may sign is filled in.
const second = `apiVersion: syncgate.io/v1alpha1
kind: GatePolicy
environment: prod
issuers:
- name: release
  keys: {file: keys/release.jwks.json}
  subjects: ["*/*/*/*"]
- name: security
  keys: {file: keys/security.jwks.json}
  subjects: ["*/*/*/*"]
`

// pinned brings an application to the point where only receipts are missing.
func pinned(t *testing.T, s *stage) {
	t.Helper()
	s.must(t, "pin", "app")
}

// lockPin pins as "syncgate pin" would if nothing else were wrong.
func lockPin(t *testing.T, s *stage) {
	t.Helper()
	l, err := lock.Open(s.path("app"))
	ok(t, err)
	ok(t, l.SetPin(lock.Pin{Name: s.host + "/acme/web", Tag: "1.4", Digest: "sha256:" + strings.Repeat("ab", 32)}))
	ok(t, l.Save())
}

func signed(t *testing.T, s *stage) {
	t.Helper()
	pinned(t, s)
	s.must(t, "sign", "app", "--key", "keys/release.pem", "--issuer", "release", "--yes")
}

// forged puts one forged receipt on the pinned Deployment.
func forged(f forgery) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		pinned(t, s)
		c, err := s.forge("app", web, f)
		if err != nil {
			t.Fatal(err)
		}
		ok(t, s.annotate("app/web.yaml", c))
	}
}

func claim(name string, value any) forgery { return forgery{claims: map[string]any{name: value}} }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// notYet are the codes that no step of this version leads to.
var notYet = map[gate.Reason]string{
	gate.FieldDefaulted:     "said by fixedpoint, which asks a cluster",
	gate.FieldDropped:       "said by fixedpoint, which asks a cluster",
	gate.ClusterUnavailable: "nothing asks a cluster yet",
	gate.GateBusy:           "said while others render: plugin/argocd TestOnlySoManyRenderAtATime",
}

// The one line that each code ends in. A step prepares the stage; what refuses
// is "generate app", unless args say otherwise.
var refusals = []struct {
	name    string
	code    gate.Reason
	policy  string // instead of basePolicy
	files   map[string]string
	prepare func(*testing.T, *stage)
	args    []string
	want    string // the line, or a part of it
}{
	{
		name: "a new Deployment that nobody signed", code: gate.ReceiptMissing,
		files:   map[string]string{"app/web.yaml": strings.Replace(deployment, "  annotations: {syncgate.io/receipt: $RECEIPT}\n", "", 1)},
		prepare: pinned,
		want:    "SYNC REFUSED [ReceiptMissing] 1 of 1 gated objects: Deployment shop/web: no receipt for command (containers[web].command), identity (serviceAccountName and 1 more), image (containers[web].image); Fix: syncgate sign --key FILE --issuer release --environment prod, commit .syncgate",
	},
	{name: "an annotation that is no receipt", code: gate.ReceiptMalformed, prepare: pinned, want: "Deployment shop/web: command (containers[web].command), identity, image: receipt: "},
	{name: "a receipt with an unknown claim", code: gate.ReceiptMalformed, prepare: forged(claim("admin", true)), want: "image: receipt: payload:"},
	{
		name: "a receipt that covers a category that no profile knows", code: gate.ReceiptMalformed,
		prepare: forged(claim("covers", []string{"everything"})), want: "covers:",
	},
	{
		name: "a receipt signed with a shared secret", code: gate.AlgorithmNotAllowed,
		prepare: forged(forgery{header: map[string]any{"alg": "HS256"}}), want: `algorithm "HS256"`,
	},
	{name: "a receipt without a signature", code: gate.AlgorithmNotAllowed, prepare: forged(forgery{header: map[string]any{"alg": "none"}}), want: `algorithm "none"`},
	{
		name: "an issuer that policy does not have", code: gate.IssuerUnknown,
		prepare: forged(claim("iss", "nobody")), want: `issuer "nobody"`,
	},
	{name: "the key of somebody else", code: gate.KeyUnknown, prepare: forged(forgery{by: "intruder"}), want: `selects 0 keys of issuer "release", want 1; Fix:`},
	{
		name: "a retired key", code: gate.KeyRetired,
		policy:  strings.Replace(basePolicy, "release.jwks.json}", "both.jwks.json}\n  retired: [$RETIRED]", 1),
		prepare: retired, want: ", which is retired; Fix:",
	},
	{
		name: "another key under a good key ID", code: gate.SignatureInvalid,
		prepare: func(t *testing.T, s *stage) {
			kid := strings.Fields(s.must(t, "keys", "show", "keys/release.pem"))[5]
			forged(forgery{by: "intruder", kid: kid})(t, s)
		},
		want: "signature is not that of key ",
	},
	{name: "a changed signature", code: gate.SignatureInvalid, prepare: forged(forgery{broken: true}), want: "signature is not that of key "},
	{
		name: "the receipt of another Deployment", code: gate.SubjectMismatch,
		prepare: forged(claim("sub", "apps/Deployment/shop/api")), want: "(issuer release) is for apps/Deployment/shop/api; Fix:",
	},
	{
		name: "what was approved for another environment", code: gate.EnvironmentMismatch,
		prepare: forged(claim("environment", "test")), want: "(issuer release) is for environment test, this is prod; Fix:",
	},
	{
		name: "a profile of a later version", code: gate.ProfileUnsupported,
		prepare: forged(claim("profile", "v9")), want: "has gated-fields profile v9, this version knows v1; Fix:",
	},
	{
		name: "a receipt for the image alone", code: gate.CategoryNotCovered,
		prepare: forged(claim("covers", []string{"image"})), want: "no receipt covers command (containers[web].command), identity (serviceAccountName and 1 more); Fix:",
	},
	{
		name: "an issuer of other subjects", code: gate.IssuerNotAllowed,
		policy:  strings.Replace(second, `subjects: ["*/*/*/*"]`, `subjects: ["*/*/bank/*"]`, 1),
		prepare: forged(forgery{}), want: "issuer release may not sign apps/Deployment/shop/web; Fix:",
	},
	{
		name: "an issuer of other categories", code: gate.IssuerNotAllowed,
		policy:  strings.Replace(second, `subjects: ["*/*/*/*"]`, "subjects: [\"*/*/*/*\"]\n  categories: [image, command]", 1),
		prepare: forged(forgery{}), want: "identity must be signed by ",
	},
	{name: "a receipt for longer than policy allows", code: gate.IssuerNotAllowed, prepare: forged(claim("exp", 100*24*time.Hour)), want: "issuer release may sign for at most 90 days; Fix:"},
	{
		name: "one approval where two are asked for", code: gate.ThresholdNotMet,
		policy:  second + "requirements:\n- {categories: [command], issuers: [release, security], threshold: 2}\n",
		prepare: forged(forgery{}), want: "command needs 2 distinct approvals, has 1; Fix:",
	},
	{
		name: "another command than was signed", code: gate.DigestMismatch,
		prepare: func(t *testing.T, s *stage) { signed(t, s); ok(t, s.replace("app/web.yaml", "[serve]", "[sh]")) },
		want:    "containers[web].command is changed, receipt ",
	},
	{
		name: "a receipt for next week", code: gate.ReceiptNotYetValid,
		prepare: forged(forgery{claims: map[string]any{"nbf": 7 * 24 * time.Hour, "exp": 8 * 24 * time.Hour}}), want: "(issuer release) is valid from ",
	},
	{
		name: "a receipt issued in the future", code: gate.ReceiptNotYetValid,
		prepare: forged(claim("iat", 2*time.Hour)), want: "(issuer release) is issued at ",
	},
	{
		name: "a receipt that ran out", code: gate.ReceiptExpired,
		prepare: forged(forgery{claims: map[string]any{"iat": -48 * time.Hour, "exp": -24 * time.Hour}}), want: "(issuer release) expired at ",
	},
	{
		name: "a receipt that was taken back", code: gate.ReceiptRevoked,
		policy: basePolicy + "revocations: {file: revocations.jwt, issuers: [release]}\n",
		prepare: func(t *testing.T, s *stage) {
			s.must(t, "revoke", "--list", "revocations.jwt", "--key", "keys/release.pem", "--issuer", "release", "--release", "v1")
			forged(claim("release", "v1"))(t, s)
		},
		want: "(issuer release) is revoked (release v1); Fix:",
	},
	{
		name: "a list of revocations that stopped coming", code: gate.RevocationListStale,
		policy: basePolicy + "revocations: {file: revocations.jwt, issuers: [release], maxAge: 1h}\n",
		prepare: func(t *testing.T, s *stage) {
			ok(t, s.revocations("revocations.jwt", 2*time.Hour))
			forged(forgery{})(t, s)
		},
		want: "Deployment shop/web: ",
	},
	{
		name: "an image without a pin", code: gate.ImageNotPinned,
		want: "/acme/web:1.4, which has no digest and no pin in the lock; Fix: syncgate pin, commit .syncgate",
	},
	{
		name: "an image that is no reference", code: gate.ImageNotPinned,
		files: map[string]string{"app/web.yaml": strings.Replace(deployment, "$REGISTRY/acme/web:1.4", "UPPER/case", 1)}, want: "containers[web].image is UPPER/case, which cannot be pinned: ",
	},
	{
		name: "a tag that was pushed again", code: gate.ImageTagMoved,
		prepare: func(t *testing.T, s *stage) { pinned(t, s); ok(t, s.push("acme/web:1.4", "another image")) },
		args:    []string{"pin", "--check", "app"}, want: "Deployment shop/web: ",
	},
	{
		name: "an image that the registry does not have", code: gate.ImageUnresolvable,
		policy: basePolicy + "images: {pins: Registry}\n",
		files:  map[string]string{"app/web.yaml": strings.Replace(deployment, "web:1.4", "web:9.9", 1)},
		want:   "/acme/web:9.9, which cannot be pinned: ",
	},
	{
		name: "pin of an image that the registry does not have", code: gate.ImageUnresolvable,
		files: map[string]string{"app/web.yaml": strings.Replace(deployment, "web:1.4", "web:9.9", 1)},
		args:  []string{"pin", "app"}, want: "Deployment shop/web: ",
	},
	{
		name: "one object in two files", code: gate.DuplicateObject,
		files: map[string]string{"app/again.yaml": deployment},
		want:  "RENDER FAILED [DuplicateObject] Deployment shop/web stands twice: in again.yaml document 1 and in web.yaml document 1; Fix: keep one of the two",
	},
	{
		name: "an application without objects", code: gate.EmptyRender,
		files: map[string]string{"app/web.yaml": "# nothing\n"},
		want:  "RENDER FAILED [EmptyRender] the render has no objects; with pruning on, syncing it would delete the application; Fix: check the path and the renderer; to remove the application delete it in Argo CD or Flux",
	},
	{
		name: "a gated field of another type", code: gate.ObjectMalformed,
		files: map[string]string{"app/web.yaml": strings.Replace(deployment, "serviceAccountName: web", "serviceAccountName: [web]", 1)}, prepare: lockPin, want: "(web.yaml document 1); Fix: change the manifest it names",
	},
	{
		name: "an object without a namespace anywhere", code: gate.ObjectMalformed,
		files: map[string]string{"app/web.yaml": strings.Replace(deployment, "  namespace: shop\n", "", 1)},
		want:  "Deployment web: no namespace, and the destination names none (web.yaml document 1); Fix:",
	},
	{
		name: "a ConfigMap for kube-system", code: gate.ProtectedTarget,
		files: map[string]string{"app/web.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: aws-auth, namespace: kube-system}, data: {a: b}}\n"},
		want:  "SYNC REFUSED [ProtectedTarget] 1 of 1 gated objects: ConfigMap kube-system/aws-auth: namespace kube-system is protected: ",
	},
	{
		name: "a Deployment that asks to be replaced", code: gate.ForceNotAllowed,
		files: map[string]string{"app/web.yaml": strings.Replace(deployment, "annotations: {", "annotations: {argocd.argoproj.io/sync-options: 'Prune=false, Replace=true', ", 1)}, prepare: lockPin,
		want: "annotation argocd.argoproj.io/sync-options: Prune=false, Replace=true would delete a running object before its change is refused: remove it; Fix:",
	},
	{
		name: "an image in a kind that nobody described", code: gate.UnknownImage, policy: basePolicy + "unknownImages: Refuse\n",
		files: map[string]string{"app/web.yaml": "{apiVersion: x.example.com/v1, kind: App, metadata: {name: a, namespace: shop}, spec: {image: 'ghcr.io/acme/web:1.4'}}\n"},
		want:  "SYNC REFUSED [UnknownImage] 1 of 1 gated objects: App shop/a: spec.image looks like an image, in a kind that neither syncgate nor policy knows; Fix: name the path under kinds in policy",
	},
	{
		name: "a manifest that is no YAML", code: gate.RenderFailed,
		files: map[string]string{"app/web.yaml": "a: [1\n"}, want: "RENDER FAILED [RenderFailed] directory: web.yaml",
	},
	{
		name: "a directory that is not there", code: gate.RenderFailed,
		args: []string{"generate", "missing"}, want: `RENDER FAILED [RenderFailed] "missing" is not a directory; Fix: `,
	},
	{name: "a policy with a misspelt key", code: gate.PolicyInvalid, policy: basePolicy + "protect: {}\n", want: "GATE ERROR [PolicyInvalid] policy.yaml line 7: "},
	{
		name: "a policy that is not there", code: gate.PolicyInvalid, args: []string{"generate", "--policy", "missing.yaml", "app"},
		want: "GATE ERROR [PolicyInvalid] missing.yaml: no such file or directory; Fix: mend the policy; retrying does not help",
	},
	{
		name: "a key set that is not there", code: gate.KeysUnavailable, policy: strings.Replace(basePolicy, "release.jwks", "missing.jwks", 1),
		want: `GATE ERROR [KeysUnavailable] policy.yaml line 6: issuers[0].keys.file: reading "keys/missing.jwks.json": no such file or directory; Fix: mend the policy; retrying does not help`,
	},
	{
		name: "a list of revocations that somebody else signed", code: gate.KeysUnavailable,
		policy: basePolicy + "revocations: {file: revocations.jwt, issuers: [release]}\n",
		prepare: func(t *testing.T, s *stage) {
			s.must(t, "revoke", "--list", "revocations.jwt", "--key", "keys/intruder.pem", "--issuer", "release", "--reissue")
		},
		want: `GATE ERROR [KeysUnavailable] policy.yaml line 7: revocations.file: verifying "revocations.jwt": `,
	},
}

// retired signs with a key that is then retired.
func retired(t *testing.T, s *stage) {
	t.Helper()
	both := s.must(t, "keys", "jwks", "keys/release.pem", "keys/release-old.pem")
	ok(t, s.write("keys/both.jwks.json", both))
	old := strings.Fields(s.must(t, "keys", "show", "keys/release-old.pem"))[5]
	ok(t, s.replace("policy.yaml", "$RETIRED", old))
	forged(forgery{by: "release-old"})(t, s)
}

// glance is how much of a line everybody reads: Argo CD's panels cut it.
const glance = 200

// glances are what the beginning of a line must name beside the code: the object
// and the field, or the file, or the line of the policy.
// Commands that pin, which refuse no sync, name the image.
var glances = map[gate.Class]*regexp.Regexp{
	gate.Refused:       regexp.MustCompile(`(Deployment|ConfigMap|App) [a-z-]+/[a-z-]+: .*(containers\[web\]\.[a-z]+|serviceAccountName|spec\.image|command needs|identity must|metadata.annotations|namespace kube-system|annotation argocd|acme/web:1.4 is pinned)`),
	gate.RenderFailure: regexp.MustCompile(`Deployment (shop/)?web|web\.yaml|no objects|"missing" is not a directory`),
	gate.GateError:     regexp.MustCompile(`policy\.yaml line [0-9]+: |missing\.yaml: |Deployment shop/web: (containers\[web\]\.image|[0-9.:]+/acme/web:9.9)`),
}

func TestEveryReasonCodeIsOneLineOfTheProgram(t *testing.T) {
	for _, tt := range refusals {
		t.Run(string(tt.code)+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			s := testStage(t)
			ok(t, s.write("app/web.yaml", deployment))
			if tt.policy != "" {
				ok(t, s.write("policy.yaml", tt.policy))
			}
			for file, text := range tt.files {
				ok(t, s.write(file, text))
			}
			if tt.prepare != nil {
				tt.prepare(t, s)
			}
			args := tt.args
			if args == nil {
				args = []string{"generate", "app"}
			}
			first := s.run(t, nil, args...)
			if err := first.refusal(string(tt.code)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(first.stderr, tt.want) {
				t.Errorf("got  %q\nwant %q in it", first.stderr, tt.want)
			}
			if begins := first.stderr[:min(len(first.stderr), glance)]; !glances[tt.code.Class()].MatchString(begins) {
				t.Errorf("the first %d bytes lack what it is about: %q", glance, begins)
			}
			if strings.Contains(first.stderr, filepath.Dir(s.dir)) || strings.Contains(first.stderr, os.TempDir()) {
				t.Errorf("the line names a directory of this machine: %q", first.stderr)
			}
			if again := s.run(t, nil, args...); again != first {
				t.Errorf("a second run says something else:\n%q\n%q", first.stderr, again.stderr)
			}
		})
	}
}

func TestEveryReasonCodeIsProducedOrExcused(t *testing.T) {
	produced := map[gate.Reason]bool{}
	for _, tt := range refusals {
		produced[tt.code] = true
	}
	for _, code := range gate.Reasons() {
		why, excused := notYet[code]
		if produced[code] == excused {
			t.Errorf("%s: produced=%v, excused=%v (%s): want one of the two", code, produced[code], excused, why)
		}
		delete(produced, code)
	}
	for code := range produced {
		t.Errorf("%s is not a reason", code)
	}
}
