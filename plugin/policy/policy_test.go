package policy

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// private is a key made from its name.
func private(seed string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%-32.32s", seed)))
}

// jwks is the key set of "ID" or "ID=seed".
func jwks(ids ...string) (string, error) {
	var list []receipt.Key
	for _, id := range ids {
		id, seed, other := strings.Cut(id, "=")
		if !other {
			seed = id
		}
		k, err := receipt.NewKey(id, private(seed).Public())
		if err != nil {
			return "", err
		}
		list = append(list, k)
	}
	text, err := keys.PublicJWKS(list)
	return string(text), err
}

// revocations is a list of issuer b with serial 7.
func revocations(key string) (string, error) {
	s, err := receipt.NewSigner(private(key), key, "EdDSA")
	if err != nil {
		return "", err
	}
	text, err := receipt.SignRevocations(receipt.RevocationList{Issued: 1000, Serial: 7, Entries: []receipt.Revocation{}}, "b", s)
	return text + "\n", err
}

// files are what parse may read.
var files = sync.OnceValues(func() (map[string]string, error) {
	out := map[string]string{"conf/bad.json": "{}", "conf/r-bad.jwt": "x"}
	var errs error
	for path, ids := range map[string][]string{
		"conf/a.json": {"a1", "a2"}, "conf/b.json": {"b1", "b2"}, "conf/c.json": {"c1"}, "/abs/d.json": {"d1"},
		"conf/keys/release.jwks.json": {"release-2026-01", "release-2026-02"}, "conf/keys/security.jwks.json": {"security"},
		"conf/keys/break-glass.jwks.json": {"break-glass"},
		"conf/id.json":                    {"a1=x"}, "conf/key.json": {"x=a1"}, "conf/twice.json": {"y1=y", "y2=y"},
	} {
		text, err := jwks(ids...)
		out[path], errs = text, errors.Join(errs, err)
	}
	for path, key := range map[string]string{"conf/r.jwt": "b1", "conf/r-retired.jwt": "b2"} {
		text, err := revocations(key)
		out[path], errs = text, errors.Join(errs, err)
	}
	return out, errs
})

func parse(t *testing.T, text string) (*Policy, error) {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	return Parse([]byte(text), "conf/policy.yaml", func(path string) ([]byte, error) {
		data, found := all[path]
		if !found {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(data), nil
	})
}

const header = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\n"

const minimal = header + "environment: prod\nissuers:\n- name: a\n  keys: {file: a.json}\n"

// two issuers, which need subjects.
const two = header + "environment: prod\nissuers:\n- {name: a, keys: {file: a.json}, subjects: ['*/*/*/*']}\n- {name: b, keys: {file: b.json}, subjects: ['*/*/*/*']}\n"

var cmpEffective = cmp.Options{cmpopts.IgnoreUnexported(Effective{}, projection.Projector{}), cmpopts.IgnoreFields(receipt.Key{}, "Public", "Thumbprint"), cmpopts.IgnoreFields(Effective{}, "Warnings")}

func TestMinimalPolicyHasSafeDefaults(t *testing.T) {
	p, err := parse(t, minimal)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.For(App{})
	if err != nil {
		t.Fatal(err)
	}
	want := Effective{
		Rules: gate.Rules{
			Environment: "prod",
			Issuers: map[string]gate.Issuer{"a": {
				Issuer:      receipt.Issuer{Name: "a", Keys: []receipt.Key{{ID: "a1"}, {ID: "a2"}}},
				AllSubjects: true, Retired: map[string]bool{}, MaxLifetime: 2160 * 3600,
			}},
			Required: []gate.Required{{Category: "admission"}, {Category: "command"}, {Category: "delivery"}, {Category: "identity"}, {Category: "image"},
				{Category: "network"}, {Category: "privilege"}, {Category: "rbac"}, {Category: "secret"}},
			Expired: gate.RefuseExpired,
		},
		Annotation: "syncgate.io/receipt", Pins: LockFile, UnknownImages: WarnUnknown, KeepPrevious: 1, Grace: 168 * 3600,
	}
	// The key set says for which algorithm each key is; that is keys' part.
	opts := append(cmpEffective, cmpopts.IgnoreFields(receipt.Key{}, "Algorithm"))
	if d := cmp.Diff(want, got, opts...); d != "" {
		t.Error(d)
	}
	for ns, protected := range map[string]bool{"kube-system": true, "kube-public": true, "syncgate-system": true, "argocd": true, "flux-system": true, "shop": false, "": false} {
		if got.Protected(ns) != protected {
			t.Errorf("namespace %q: protected is %t, want %t", ns, !protected, protected)
		}
	}
	wantAdmission := Admission{
		Namespace: "syncgate-system", Administrators: Administrators{Groups: []string{"syncgate:administrators", "system:masters"}},
		Exclude: []string{"kube-system", "syncgate-system"}, ClusterScoped: []string{"Namespace"},
	}
	if d := cmp.Diff(wantAdmission, p.Admission()); d != "" {
		t.Error(d)
	}
	if len(p.Warnings()) > 0 {
		t.Errorf("got warnings %q", p.Warnings())
	}
}

func date(s string) int64 {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return -1
	}
	return t.Unix()
}

// everything is the example of the specification; see spec/policy.md. The
// writer's own namespace is gated there, which has to be accepted.
const everything = header + `environment: prod-eu
acceptsEnvironments: [prod]
help: "Releases are signed by the release workflow; RBAC by #security"
mode: {render: Enforce, admission: Warn}
issuers:
- name: release
  keys: {file: keys/release.jwks.json}
  retired: [release-2026-01]
  algorithms: [EdDSA, ES256]
  categories: [image, command, x-operators]
  subjects: ["*/*/shop-*/*"]
  environments: [prod-eu]
  maxLifetime: 100h
- name: security
  keys: {file: keys/security.jwks.json}
  subjects: ["*/*/*/*"]
- name: break-glass
  keys: {file: keys/break-glass.jwks.json}
  breakGlass: true
  maxLifetime: 4h
requirements:
- {categories: [rbac, privilege], issuers: [security], threshold: 1}
categories:
- {name: command, since: 2027-01-15}
scope:
  admission:
    namespaces: {exclude: [kube-system, ops]}
    clusterScoped: [Namespace, ClusterRole, PersistentVolume]
    kinds: [Endpoints, Rollout.argoproj.io]
namespace: gate
administrators: {users: [alice, "system:serviceaccount:ops:robot"], groups: [gatekeepers]}
protected:
  namespaces: [kube-system, argocd]
  writers: [platform-*]
kinds:
- {group: monitoring.coreos.com, kind: Prometheus, path: spec.image, category: x-operators, pin: true, resource: prometheuses, scope: Namespaced}
- {group: example.com, kind: Fleet, path: spec.image, category: x-operators, scope: Cluster}
trustedWriters:
- {user: "system:serviceaccount:cert-manager:cert-manager", namespaces: ["*"], kinds: [Pod, Service, Ingress], names: ["cm-acme-http-solver-*"], categories: [image, network], images: ["quay.io/jetstack/cert-manager-acmesolver@*"], until: 2027-06-01, acceptImpersonation: true}
- {user: "system:serviceaccount:kube-system:rollouts", namespaces: [shop], kinds: [ReplicaSet], categories: [image], exempt: true}
- {preset: csi-provisioner, user: "system:serviceaccount:kube-system:csi", namespaces: ["-"]}
images: {pins: Registry, mirrors: {docker.io: "registry.internal:5000"}, allowUnpinned: [auto]}
unknownImages: Refuse
gatedDeletes: [NetworkPolicy]
sharedControllerIdentity: system:kube-controller-manager
receipts: {annotation: acme.example/receipt, minRemaining: 1h, keepPrevious: 2, expired: LeaveToAdmission, backstop: true, grace: 24h}
apps:
- match: {name: sandbox-*}
  mode: {render: Warn}
`

func TestEveryFieldIsDecoded(t *testing.T) {
	p, err := parse(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.For(App{Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	required := []gate.Required{{Category: "admission"}, {Category: "command", Since: date("2027-01-15")}, {Category: "delivery"}, {Category: "identity"}, {Category: "image"},
		{Category: "network"}, {Category: "privilege"}, {Category: "rbac"}, {Category: "secret"}, {Category: "x-operators"}}
	want := Effective{
		Rules: gate.Rules{
			Environment: "prod-eu", Accepts: []string{"prod"}, Required: required,
			Issuers: map[string]gate.Issuer{
				"release": {
					Issuer:     receipt.Issuer{Name: "release", Algorithms: []string{"EdDSA", "ES256"}, Keys: []receipt.Key{{ID: "release-2026-01"}, {ID: "release-2026-02"}}},
					Categories: []projection.Category{"image", "command", "x-operators"}, Subjects: []gate.Glob{"*/*/shop-*/*"}, Environments: []string{"prod-eu"},
					Retired: map[string]bool{"release-2026-01": true}, MaxLifetime: 100 * 3600,
				},
				"security": {
					Issuer:   receipt.Issuer{Name: "security", Keys: []receipt.Key{{ID: "security"}}},
					Subjects: []gate.Glob{"*/*/*/*"}, Retired: map[string]bool{}, MaxLifetime: 2160 * 3600,
				},
				"break-glass": {
					Issuer:      receipt.Issuer{Name: "break-glass", Keys: []receipt.Key{{ID: "break-glass"}}},
					AllSubjects: true, Retired: map[string]bool{}, MaxLifetime: 4 * 3600, BreakGlass: true,
				},
			},
			Requirements: []gate.Requirement{{Categories: []projection.Category{"rbac", "privilege"}, Issuers: []string{"security"}, Threshold: 1}},
			Expired:      gate.LeaveToAdmission, MinRemaining: 3600, AllowUnpinned: []gate.Glob{"auto"},
		},
		Help:       "Releases are signed by the release workflow; RBAC by #security",
		Annotation: "acme.example/receipt", Pins: Registry, Mirrors: map[string]string{"docker.io": "registry.internal:5000"}, UnknownImages: RefuseUnknown,
		Kinds: []CustomKind{{Group: "monitoring.coreos.com", Kind: "Prometheus", Path: "spec.image", Category: "x-operators", Pin: true},
			{Group: "example.com", Kind: "Fleet", Path: "spec.image", Category: "x-operators"}},
		Projector:    &projection.Projector{},
		KeepPrevious: 2, Grace: 24 * 3600, Backstop: true,
	}
	opts := append(cmpEffective, cmpopts.IgnoreFields(receipt.Key{}, "Algorithm"))
	if d := cmp.Diff(want, got, opts...); d != "" {
		t.Error(d)
	}
	wantAdmission := Admission{
		Warn: true, Namespace: "gate", Administrators: Administrators{Users: []string{"alice", "system:serviceaccount:ops:robot"}, Groups: []string{"gatekeepers", "system:masters"}},
		Exclude: []string{"kube-system", "ops", "gate"}, ClusterScoped: []string{"Namespace", "ClusterRole", "PersistentVolume", "Fleet.example.com"},
		Kinds:        []string{"Endpoints", "Rollout.argoproj.io", "Prometheus.monitoring.coreos.com"},
		GatedDeletes: []string{"NetworkPolicy"}, SharedControllerIdentity: "system:kube-controller-manager",
		TrustedWriters: []TrustedWriter{
			{User: "system:serviceaccount:cert-manager:cert-manager", Namespaces: []gate.Glob{"*"}, Kinds: []string{"Pod", "Service", "Ingress"}, Names: []gate.Glob{"cm-acme-http-solver-*"},
				Categories: []projection.Category{"image", "network"}, Images: []gate.Glob{"quay.io/jetstack/cert-manager-acmesolver@*"}, Until: date("2027-06-01")},
			{User: "system:serviceaccount:kube-system:rollouts", Namespaces: []gate.Glob{"shop"}, Kinds: []string{"ReplicaSet"}, Categories: []projection.Category{"image"}, Exempt: true},
			{Preset: "csi-provisioner", User: "system:serviceaccount:kube-system:csi", Namespaces: []gate.Glob{"-"}, Kinds: []string{"PersistentVolume"}, Names: []gate.Glob{"pvc-*"}, Categories: []projection.Category{"secret"}},
		},
	}
	if d := cmp.Diff(wantAdmission, p.Admission()); d != "" {
		t.Error(d)
	}
	wantCustom := []projection.Kind{
		{Group: "monitoring.coreos.com", Kind: "Prometheus", Resource: "prometheuses"},
		{Group: "example.com", Kind: "Fleet", Resource: "fleets", ClusterScoped: true},
		{Group: "argoproj.io", Kind: "Rollout", Resource: "rollouts"},
	}
	if d := cmp.Diff(wantCustom, p.CustomKinds()); d != "" {
		t.Error(d)
	}
	warnings := []string{
		"mode.admission is Warn: nothing is refused at admission",
		"receipts.backstop is true: render passes receipts that have expired or were revoked, for the webhook to judge; without the webhook nothing does",
	}
	if d := cmp.Diff(warnings, p.Warnings()); d != "" {
		t.Error(d)
	}
	sandbox, err := p.For(App{Name: "sandbox-1"})
	if err != nil || !sandbox.Warn || got.Warn {
		t.Errorf("warn is %t for sandbox-1 (%v) and %t for web, want true and false", sandbox.Warn, err, got.Warn)
	}
	platform, err := p.For(App{Name: "platform-dns"})
	if err != nil || platform.Protected("kube-system") || !got.Protected("kube-system") || got.Protected("flux-system") {
		t.Errorf("protected namespaces: platform-dns %t (%v), web %t, web in flux-system %t; want false, true, false", platform.Protected("kube-system"), err, got.Protected("kube-system"), got.Protected("flux-system"))
	}
}

func TestZeroValuesDeny(t *testing.T) {
	var e Effective
	if e.Warn || !e.Protected("shop") || e.Pins != AlreadyPinned || e.UnknownImages != RefuseUnknown || e.Rules.Expired != gate.RefuseExpired {
		t.Errorf("zero Effective is lax: %+v", e)
	}
	var p Policy
	if _, err := p.For(App{Name: "a"}); err == nil {
		t.Error("zero Policy allows an application")
	}
	if _, err := p.ForEnvironment(App{}, ""); err == nil {
		t.Error("zero Policy knows an environment")
	}
}

// Defaults and a minimal policy differ in whom they trust, and in nothing else.
func TestDefaultsAreThoseOfAMinimalPolicyThatTrustsNobody(t *testing.T) {
	want, err := mustParse(t, minimal).For(App{})
	if err != nil {
		t.Fatal(err)
	}
	want.Rules.Issuers = map[string]gate.Issuer{}
	want.Rules.Required = nil // which means the same
	got := Defaults("prod")
	if d := cmp.Diff(want, got, cmpEffective...); d != "" {
		t.Error(d)
	}
	if !got.Protected("kube-system") || got.Protected("shop") {
		t.Error("the protected namespaces are others")
	}
}

func TestRevocationListIsVerifiedAndDated(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		staleAt    int64
	}{
		{"without maxAge", "revocations: {file: r.jwt, issuers: [b], minSerial: 7}\n", 0},
		{"with maxAge", "revocations: {file: r.jwt, issuers: [b], maxAge: 1h}\n", 4600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parse(t, two+tt.text)
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.For(App{})
			if err != nil {
				t.Fatal(err)
			}
			if r := e.Rules.Revocations; r == nil || r.List.Serial != 7 || r.StaleAt != tt.staleAt {
				t.Errorf("got %+v, want serial 7, stale at %d", r, tt.staleAt)
			}
		})
	}
}

func TestTurningCommandOffIsSaid(t *testing.T) {
	p, err := parse(t, minimal+"mode: {render: Warn}\ncategories: [{name: command, required: false}, {name: service}]\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"category command is not required: an approved image can be told to run any program that it contains",
		"mode.render is Warn: nothing is refused at render",
	}
	if d := cmp.Diff(want, p.Warnings()); d != "" {
		t.Error(d)
	}
	e, err := p.For(App{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range e.Rules.Required {
		names = append(names, string(r.Category))
	}
	if got, want := strings.Join(names, " "), "admission delivery identity image network privilege rbac secret service"; got != want {
		t.Errorf("required: got %s, want %s", got, want)
	}
}
