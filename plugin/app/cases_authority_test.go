package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

func covering(names ...string) []projection.Category {
	var out []projection.Category
	for _, n := range names {
		out = append(out, projection.Category(n))
	}
	return out
}

// example is a site with a policy of docs/examples and keys of our own.
func example(t *testing.T, name string) *site {
	t.Helper()
	text, err := os.ReadFile("../../docs/examples/" + name + "/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteOf(t, strings.Replace(string(text), "{file: release.jwks.json}", "{file: keys/release.jwks.json}", 1))
	s.keySet("release", "release", "release-2026-01") // hardened has a retired one
	s.revoke("security", receipt.RevocationList{Serial: 1})
	s.who = policy.App{Name: "shop", Namespace: "shop-eu"}
	return s
}

// in moves a manifest into the namespace that release may sign for.
func in(namespace, manifest string) string {
	return strings.ReplaceAll(manifest, "namespace: shop", "namespace: "+namespace)
}

// Release signs images every day, security what grants power every quarter:
// each change asks for exactly the party whose business it is.
func TestSplitAuthorityAsksForExactlyTheRightSignature(t *testing.T) {
	const agent = "hostPID: true, serviceAccountName: agent"
	binding := object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: b, namespace: shop", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: u}]")
	signed := webOf(webImage("1.5", "a"), agent, "args: [run]")
	for _, tc := range []struct {
		name, after string
		by          []string // who has something to sign then
		words       string   // of the refusal before
	}{
		{"a new image", webOf(webImage("1.6", "b"), agent, "args: [run]"), []string{"release"}, "containers[web].image is ghcr.io/acme/web:1.6"},
		{"another argument", webOf(webImage("1.5", "a"), agent, "args: [walk]"), []string{"release"}, "containers[web].args is changed"},
		{"a host namespace", webOf(webImage("1.5", "a"), agent+", hostIPC: true", "args: [run]"), []string{"security"}, "hostIPC is true"},
		{"a service account", webOf(webImage("1.5", "a"), "hostPID: true, serviceAccountName: admin", "args: [run]"), []string{"security"}, "serviceAccountName is admin"},
		{"another program", webOf("ghcr.io/acme/miner:1.5@"+sha("a"), agent, "args: [run]"), []string{"release", "security"}, "ghcr.io/acme/miner"},
		{"a RoleBinding", signed + binding, []string{"security"}, "RoleBinding shop-eu/b"},
		{"replicas and resources", strings.Replace(webOf(webImage("1.5", "a"), agent, "args: [run], resources: {limits: {cpu: '2'}}"), "spec: {template", "spec: {replicas: 9, template", 1), nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := example(t, "split-authority")
			s.write("all.yaml", in("shop-eu", signed))
			s.signed("release")
			s.refused(gate.CategoryNotCovered, "privilege")
			s.signed("security", func(g *app.Signing) { g.Lifetime = 90 * siteDay })
			s.allowed()
			s.write("all.yaml", in("shop-eu", tc.after))
			if tc.words == "" {
				s.allowed()
			} else {
				saysNoOneOf(t, s.sentence(), tc.words)
			}
			var by []string
			for _, party := range []string{"release", "security"} {
				if len(s.sign(party)) > 0 {
					by = append(by, party)
				}
			}
			if diff := cmp.Diff(tc.by, by); diff != "" {
				t.Errorf("who signs (-want +got):\n%s", diff)
			}
			s.allowed()
		})
	}
}

// saysNoOneOf wants a refusal, for whatever reason, with these words.
func saysNoOneOf(t *testing.T, got, words string) {
	t.Helper()
	if !strings.HasPrefix(got, "SYNC REFUSED [") || !strings.Contains(got, words) {
		t.Errorf("got %q, want it refused with %q", got, words)
	}
}

func TestRedTeamF19YesterdaysPrivilegeIsNotForAnotherProgram(t *testing.T) {
	s := example(t, "split-authority")
	const power = "volumes: [{name: docker, hostPath: {path: /var/run}}]"
	const container = "securityContext: {privileged: true}, volumeMounts: [{name: docker, mountPath: /run/host}]"
	s.write("all.yaml", in("shop-eu", web(power, container)))
	s.signed("security")
	s.signed("release")
	s.allowed()
	// Release alone signs another image for the same container name.
	s.write("all.yaml", in("shop-eu", webOf("ghcr.io/acme/shell:1@"+sha("e"), power, container)))
	s.signed("release")
	s.refused(gate.DigestMismatch, "ghcr.io/acme/shell", "issuer security")
	// A new version of the same program needs nobody else.
	s.write("all.yaml", in("shop-eu", webOf(webImage("1.6", "b"), power, container)))
	s.signed("release")
	s.allowed()
}

func TestATrivialDeploymentNeedsNoSecondSignature(t *testing.T) {
	for name, manifest := range map[string]string{
		"an image alone": web("", ""),
		"hardened, with values that only tighten": web("automountServiceAccountToken: false, securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}",
			"securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"),
	} {
		s := example(t, "split-authority")
		s.write("all.yaml", in("shop-eu", manifest))
		s.signed("release")
		if got := s.sentence(); got != "" {
			t.Errorf("%s: got %q, want it allowed", name, got)
		}
		if d := s.sign("security"); len(d) > 0 {
			t.Errorf("%s: security would sign %v, want it to have nothing to sign", name, d[0].Claims.Covers)
		}
	}
}

func TestRedTeamF39AThresholdCountsDistinctPartiesAlone(t *testing.T) {
	binding := in("shop-eu", object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: b, namespace: shop", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: u}]"))
	approver := func(name string) func(*app.Signing) { return func(g *app.Signing) { g.Approver = name } }
	hardened := func(t *testing.T) *site {
		s := example(t, "hardened")
		s.write("all.yaml", binding)
		return s
	}
	t.Run("two parties", func(t *testing.T) {
		s := hardened(t)
		s.signed("security", approver("alice"))
		s.refused(gate.ThresholdNotMet, "rbac needs 2 distinct approvals, has 1")
		s.signed("platform", approver("bob"))
		s.allowed()
	})
	t.Run("one person with two keys", func(t *testing.T) {
		s := hardened(t)
		s.signed("security", approver("alice"))
		s.signed("platform", approver("alice"))
		s.refused(gate.ThresholdNotMet)
	})
	t.Run("break-glass counts alone", func(t *testing.T) {
		s := hardened(t)
		s.policy(strings.Replace(mustRead(t, s.path("gate/policy.yaml")), "minRemaining: 24h", "minRemaining: 0s", 1))
		s.signed("break-glass", func(g *app.Signing) { g.Lifetime = 4 * 3600 })
		s.allowed()
	})
	t.Run("one key under two names", func(t *testing.T) {
		s := hardened(t)
		s.keySet("platform", "security")
		if got := s.policyError(); !strings.Contains(got, `also one of issuer "security"`) {
			t.Errorf("got %q, want the policy refused", got)
		}
	})
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
