package app_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

const (
	siteNow = int64(1_800_000_000) // 2027-01-15
	siteDay = int64(86400)
)

// site is an operator's policy with keys, and one application in a repository.
// Times are the test's own.
type site struct {
	t        *testing.T
	dir      string // holds gate (the operator's files) and repo
	who      policy.App
	now      int64
	registry pin.Resolver
	options  render.Options // Dir and Root are filled in
}

// siteParties have a key each, made from their name. Policies of these tests
// name keys/PARTY.jwks.json.
var siteParties = []string{"release", "security", "platform", "break-glass", "intruder"}

const siteHeader = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\n"

// siteRelease and siteSecurity are issuers of everything.
const (
	siteRelease  = "issuers:\n- {name: release, keys: {file: keys/release.jwks.json}, subjects: ['*/*/*/*']}\n"
	siteSecurity = "- {name: security, keys: {file: keys/security.jwks.json}, subjects: ['*/*/*/*']}\n"
)

// newSite has the issuer release, and what rest adds to the policy.
func newSite(t *testing.T, rest string) *site {
	t.Helper()
	return newSiteOf(t, siteHeader+siteRelease+rest)
}

func newSiteOf(t *testing.T, policyText string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), who: policy.App{Name: "shop", Namespace: "shop"}, now: siteNow}
	for _, party := range siteParties {
		s.keySet(party, party)
	}
	s.policy(policyText)
	s.write("README.md", "an application\n")
	return s
}

// keySet writes the public keys of an issuer; the key's ID is its seed.
func (s *site) keySet(issuer string, seeds ...string) {
	s.t.Helper()
	var list []receipt.Key
	for _, seed := range seeds {
		list = append(list, siteSigner(s.t, seed).Key())
	}
	set, err := keys.PublicJWKS(list)
	s.check(err)
	s.put("gate/keys/"+issuer+".jwks.json", string(set))
}

func siteSigner(t *testing.T, seed string) *receipt.KeySigner {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	k, err := receipt.NewSigner(ed25519.NewKeyFromSeed(sum[:]), seed, "")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (s *site) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) path(file string) string { return filepath.Join(s.dir, filepath.FromSlash(file)) }

func (s *site) put(file, text string) {
	s.t.Helper()
	s.check(os.MkdirAll(filepath.Dir(s.path(file)), 0o755))
	s.check(os.WriteFile(s.path(file), []byte(text), 0o600))
}

func (s *site) policy(text string) { s.t.Helper(); s.put("gate/policy.yaml", text) }

// write writes a file of the application; ../ leads to the repository's rest.
func (s *site) write(file, text string) { s.t.Helper(); s.put("repo/app/"+file, text) }

func (s *site) remove(file string) { s.t.Helper(); s.check(os.RemoveAll(s.path("repo/app/" + file))) }

func (s *site) appDir() string { return s.path("repo/app") }

// effective reads the policy and the keys anew, as every run of the plugin.
func (s *site) effective() policy.Effective {
	s.t.Helper()
	p, err := app.LoadPolicy(s.path("gate/policy.yaml"))
	s.check(err)
	e, err := app.Effective(p, s.who, "")
	s.check(err)
	return e
}

func (s *site) settings(e policy.Effective) app.Settings {
	o := s.options
	o.Dir, o.Root, o.Namespace = s.appDir(), s.path("repo"), s.who.Namespace
	if o.ReleaseName == "" {
		o.ReleaseName = s.who.Name
	}
	return app.Settings{Render: o, Namespace: s.who.Namespace, Effective: e, Registry: s.registry}
}

func (s *site) build() *app.Build {
	s.t.Helper()
	b, err := app.New(context.Background(), s.settings(s.effective()))
	s.check(err)
	return b
}

// pin locks a tag, as syncgate pin does.
func (s *site) pin(name, tag, digest string) {
	s.t.Helper()
	l, err := lock.Open(s.appDir())
	s.check(err)
	s.check(l.SetPin(lock.Pin{Name: name, Tag: tag, Digest: digest}))
	s.check(l.Save())
}

// sign signs what is missing for a month and commits it to the lock.
func (s *site) sign(party string, change ...func(*app.Signing)) []app.Draft {
	s.t.Helper()
	e := s.effective()
	b, err := app.New(context.Background(), s.settings(e))
	s.check(err)
	s.check(b.Sound(e))
	g := app.Signing{Issuer: party, Environment: e.Rules.Environment, Now: s.now, Lifetime: 30 * siteDay, Signer: siteSigner(s.t, party)}
	for _, f := range change {
		f(&g)
	}
	drafts, err := b.Drafts(g, e)
	s.check(err)
	s.check(b.Write(drafts, g))
	return drafts
}

// signed is sign where there must be something to sign.
func (s *site) signed(party string, change ...func(*app.Signing)) []app.Draft {
	s.t.Helper()
	d := s.sign(party, change...)
	if len(d) == 0 {
		s.t.Fatalf("%s had nothing to sign", party)
	}
	return d
}

// sentence is what the gate says, "" if it allows.
func (s *site) sentence() string {
	s.t.Helper()
	e := s.effective()
	b, err := app.New(context.Background(), s.settings(e))
	return s.judged(e, b, err)
}

// stream is sentence for manifests that somebody else rendered: there is no
// lock, receipts are in annotations.
func (s *site) stream(manifests string) string {
	s.t.Helper()
	e := s.effective()
	b, err := app.New(context.Background(), app.Settings{Namespace: s.who.Namespace, Effective: e, Registry: s.registry,
		Stream: &app.Stream{Data: []byte(manifests), File: "stream"}})
	return s.judged(e, b, err)
}

func (s *site) judged(e policy.Effective, b *app.Build, err error) string {
	s.t.Helper()
	var r *app.Refusal
	if errors.As(err, &r) {
		return r.Sentence.String()
	}
	s.check(err)
	v := b.Evaluate(e, s.now)
	if v.Allowed() {
		return ""
	}
	return v.Sentence().String()
}

func (s *site) allowed() {
	s.t.Helper()
	if got := s.sentence(); got != "" {
		s.t.Errorf("got %q, want it allowed", got)
	}
}

func (s *site) refused(reason gate.Reason, words ...string) {
	s.t.Helper()
	saysNo(s.t, s.sentence(), reason, words...)
}

// saysNo checks a refusal: its reason code and words that it must hold.
func saysNo(t *testing.T, got string, reason gate.Reason, words ...string) {
	t.Helper()
	if got == "" {
		t.Errorf("got it allowed, want %s", reason)
		return
	}
	for _, w := range append([]string{fmt.Sprintf("[%s]", reason)}, words...) {
		if !strings.Contains(got, w) {
			t.Errorf("got %q, want %q in it", got, w)
		}
	}
}

// output is what would be synced.
func (s *site) output() string {
	s.t.Helper()
	var buf bytes.Buffer
	s.check(s.build().Encode(&buf))
	return buf.String()
}

// policyError is what is wrong with the policy, "" if it loads.
func (s *site) policyError() string {
	_, err := app.LoadPolicy(s.path("gate/policy.yaml"))
	if err != nil {
		return err.Error()
	}
	return ""
}

// revoke publishes a revocation list.
func (s *site) revoke(party string, list receipt.RevocationList) {
	s.t.Helper()
	if list.Issued == 0 {
		list.Issued = s.now
	}
	compact, err := receipt.SignRevocations(list, party, siteSigner(s.t, party))
	s.check(err)
	s.put("gate/revocations.jwt", compact)
}

// sha is an image digest: one hexadecimal digit, 64 times.
func sha(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// webImage is a pinned image of the program that these tests run.
func webImage(tag, digit string) string { return "ghcr.io/acme/web:" + tag + "@" + sha(digit) }

// object writes one object in flow style; rest are its members beside those
// that name it.
func object(apiVersion, kind, metadata, rest string) string {
	if rest != "" {
		rest = ", " + rest
	}
	return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {%s}%s}\n---\n", apiVersion, kind, metadata, rest)
}

// workload is Deployment shop/web with this pod spec.
func workload(podSpec string) string {
	return object("apps/v1", "Deployment", "name: web, namespace: shop", "spec: {template: {spec: {"+podSpec+"}}}")
}

// web is the Deployment with one container of a pinned image; pod and
// container are further members of the pod spec and the container.
func web(pod, container string) string { return webOf(webImage("1.5", "a"), pod, container) }

func webOf(image, pod, container string) string {
	if pod != "" {
		pod += ", "
	}
	if container != "" {
		container = ", " + container
	}
	return workload(fmt.Sprintf("%scontainers: [{name: web, image: %q%s}]", pod, image, container))
}
