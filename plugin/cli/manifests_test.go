package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/policy"
)

// sitePolicy says otherwise wherever a policy can.
const sitePolicy = leastPolicy + `namespace: gate
administrators: {users: ["oidc:alice", "o'brien"], groups: ["platform"]}
scope: {admission: {namespaces: {include: [shop, blog]}}}
images: {allowUnpinned: [auto, "registry.example/*/dev:*"]}
sharedControllerIdentity: system:kube-controller-manager
`

func parsePolicy(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), "policy.yaml", func(string) ([]byte, error) {
		return []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPoliciesSayWhatThePolicySays(t *testing.T) {
	files, err := policies(parsePolicy(t, sitePolicy), true)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[filepath.Base(f.path)] = string(f.data)
		for _, was := range []string{"syncgate-system", "syncgate:administrators", "NotIn", "kube-system:replicaset-controller", "namespace-controller'"} {
			if strings.Contains(string(f.data), was) {
				t.Errorf("%s still says %q", f.path, was)
			}
		}
	}
	for file, wants := range map[string][]string{
		"digests.yaml": {
			"operator: In\n        values: [blog, shop]",
			`['^auto$', '^registry\\.example/[^/]*/dev:[^/]*$']`,
			"(request.userInfo.username == 'system:kube-controller-manager' && request.operation in ['CREATE', 'UPDATE'] && request.resource.group + '/' + request.resource.resource in ['apps/replicasets']",
			"validationActions: [Deny, Audit]", "'SYNC REFUSED [",
		},
		"own-namespace.yaml": {
			`request.userInfo.username in ['system:apiserver', 'oidc:alice', 'o\'brien']`, "g in ['platform', 'system:masters']",
			"- name: shared\n    expression: |-\n      'system:kube-controller-manager'", "values: [gate]",
			"'system:serviceaccount:gate:syncgate-certificates'",
			"startsWith('system:serviceaccount:kube-system:')",
		},
		"namespace.yaml": {"== 'gate'", "oidc:alice", "'platform'"},
		"accounts.yaml":  {"== 'gate'", "'system:serviceaccount:gate:'", "oidc:alice", "'platform'"},
		"admission.yaml": {"oidc:alice", "'platform'", "name: syncgate-admission.static.k8s.io", "policyName: syncgate-admission.static.k8s.io"},
	} {
		for _, want := range wants {
			if !strings.Contains(all[file], want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// A text that is looked for and is not there would leave the default in force,
// unnoticed.
func TestPoliciesHaveEveryPlaceThatAPolicyFillsIn(t *testing.T) {
	files, err := policies(parsePolicy(t, leastPolicy), false)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, f := range files {
		for _, place := range []string{defaultUsers, defaultGroups, defaultScope, noUnpinned, noShared, noTrusted, noExempt()} {
			count[place] += strings.Count(string(f.data), place)
		}
	}
	want := map[string]int{defaultUsers: 3, defaultGroups: 3, defaultScope: 1, noUnpinned: 1, noShared: 1, noTrusted: 1, noExempt(): 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("places under a policy that says nothing (-want +got):\n%s", diff)
	}
}

// An operator who begins with Warn has no refusal on the first day but those that
// protect the gate's own objects.
func TestUnderWarnImagesAreWarnedOf(t *testing.T) {
	files, err := policies(parsePolicy(t, leastPolicy+"mode: {admission: Warn}\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, digests := string(f.data), filepath.Base(f.path) == "digests.yaml"
		for says, want := range map[string]bool{
			"validationActions: [Warn, Audit]": digests, "SYNC WOULD BE REFUSED [ImageNotPinned]": digests,
			"Deny": !digests, "SYNC REFUSED": !digests, "failurePolicy: Fail": true,
		} {
			if got := strings.Contains(text, says); got != want {
				t.Errorf("%s says %q: got %t, want %t", f.path, says, got, want)
			}
		}
	}
}

// What a policy names is printed as it is named: a user must not become another
// one because a controller or the gate's namespace is called alike.
func TestNamesOfThePolicyStayInThePolicies(t *testing.T) {
	const robot, writer = "system:serviceaccount:kube-system:robot", "system:serviceaccount:syncgate-system:writer"
	files, err := policies(parsePolicy(t, leastPolicy+`namespace: gate
sharedControllerIdentity: system:kube-controller-manager
administrators: {users: ["`+robot+`", "`+writer+`"], acceptImpersonation: true}
scope: {admission: {namespaces: {exclude: [kube-system, syncgate-system]}}}
trustedWriters:
- {user: "`+robot+`", namespaces: [shop], kinds: [Pod], categories: [image], images: ["registry.example/robot/*"]}
- {user: "`+writer+`", namespaces: ["*"], kinds: [ReplicaSet], categories: [command], exempt: true}
- {user: "oidc:judged", namespaces: ["*"], categories: [network]}
`), false)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[filepath.Base(f.path)] = string(f.data)
	}
	for file, wants := range map[string][]string{
		"digests.yaml": {
			"values: [gate, kube-system, syncgate-system]",
			"(request.userInfo.username == '" + writer + "' && request.operation != 'DELETE' && request.resource.group + '/' + request.resource.resource in ['apps/replicasets']",
			"- name: trusted\n    expression: |-\n      (request.userInfo.username == '" + robot + "' && ",
		},
		"own-namespace.yaml": {"'" + robot + "', '" + writer + "'", "values: [gate]"},
		"accounts.yaml":      {"'" + robot + "', '" + writer + "'", "'system:serviceaccount:gate:'"},
	} {
		for _, want := range wants {
			if !strings.Contains(all[file], want) {
				t.Errorf("%s does not say %q:\n%s", file, want, all[file])
			}
		}
	}
	if strings.Contains(all["digests.yaml"], "oidc:judged") {
		t.Error("who is trusted with network leaves out digests")
	}
}

// Both the file and what is printed for the least policy are the defaults.
func TestPoliciesOfTheLeastPolicyAreTheShippedFiles(t *testing.T) {
	files, err := policies(parsePolicy(t, leastPolicy), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join("../../manifests", filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(f.data)); diff != "" {
			t.Errorf("%s (-shipped +printed):\n%s", f.path, diff)
		}
	}
}

func printed(t *testing.T, args ...string) string {
	t.Helper()
	var b bytes.Buffer
	c := New("")
	c.SetOut(&b)
	c.SetArgs(append([]string{"manifests"}, args...))
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func decodeConfiguration(t *testing.T, text string) admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	var c admissionv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheConfigurationIsTheSameEachTime(t *testing.T) {
	first := printed(t, "webhook", "--configuration", "--policy=")
	for range 3 {
		if again := printed(t, "webhook", "--configuration", "--policy="); again != first {
			t.Fatal("two runs differ: a diff in Git, and a doctor, would see changes that are none")
		}
	}
	if c := decodeConfiguration(t, first); len(c.Webhooks) < 10 {
		t.Errorf("got %d entries", len(c.Webhooks))
	}
	if n := len(regexp.MustCompile(`(?m)^.*expression: ['"].*$`).FindAllString(first, -1)); n > 0 {
		t.Errorf("%d expressions are quoted, which nobody can read", n)
	}
}

func TestPlacesOfTheWebhook(t *testing.T) {
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte(testCertificate), 0o600); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(t.TempDir(), "policy.yaml")
	keys := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","alg":"EdDSA","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	if err := os.WriteFile(filepath.Join(filepath.Dir(site), "none.jwks.json"), []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(site, []byte(sitePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string // of the first entry: "url" or "namespace/name:port path"
	}{
		"by default":              {nil, "syncgate-system/syncgate-webhook:443 /validate"},
		"in a policy's namespace": {[]string{"--policy", site}, "gate/syncgate-webhook:443 /validate"},
		"a Service":               {[]string{"--service", "infra/gate"}, "infra/gate:443 /validate"},
		"a Service's port":        {[]string{"--service", "infra/gate:8443"}, "infra/gate:8443 /validate"},
		"a URL":                   {[]string{"--url", "https://gate.example.test:9443"}, "https://gate.example.test:9443/validate"},
		"a URL with a slash":      {[]string{"--url", "https://gate.example.test:9443/"}, "https://gate.example.test:9443/validate"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"webhook", "--configuration", "--ca-bundle", pem}, tt.args...)
			if len(tt.args) == 0 || tt.args[0] != "--policy" {
				args = append(args, "--policy=")
			}
			client := decodeConfiguration(t, printed(t, args...)).Webhooks[0].ClientConfig
			var got string
			if s := client.Service; s != nil {
				port := "443"
				if s.Port != nil && *s.Port != 443 {
					port = "8443"
				}
				got = s.Namespace + "/" + s.Name + ":" + port + " " + *s.Path
			} else {
				got = *client.URL
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if string(client.CABundle) != testCertificate {
				t.Errorf("caBundle: got %q, want the file", client.CABundle)
			}
		})
	}
	if got := printed(t, "webhook", "--configuration", "--cert-manager", "--policy="); !strings.Contains(got, "cert-manager.io/inject-ca-from: syncgate-system/syncgate-webhook\n") {
		t.Error("cert-manager is not asked for the bundle")
	}
}

func TestWebhookManifestsThatContradictAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	key, empty := filepath.Join(dir, "key.pem"), filepath.Join(dir, "empty.pem")
	for path, text := range map[string]string{key: testCertificate + "-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n", empty: "no PEM"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"--url https://a --service b/c", "want one of the two"},
		{"--static", "--static needs --url"},
		{"--static --url https://a --configuration", "--static excludes"},
		{"--cert-manager --url https://a", "leave out --url"},
		{"--cert-manager --ca-bundle " + empty, "leave out --ca-bundle"},
		{"--url http://a", "want https://HOST:PORT"},
		{"--url https://a/path", "want https://HOST:PORT"},
		{"--url https://me@a", "want https://HOST:PORT"},
		{"--url a:443", "want https://HOST:PORT"},
		{"--service webhook", "want NAMESPACE/NAME"},
		{"--service a/b/c", "want NAMESPACE/NAME"},
		{"--service a/b:0", "want NAMESPACE/NAME"},
		{"--service a/b:99999", "want NAMESPACE/NAME"},
		{"--service A/b", "want NAMESPACE/NAME"},
		{"--ca-bundle " + empty, "holds no certificate"},
		{"--ca-bundle " + key, "PRIVATE KEY"},
		{"--ca-bundle " + dir, "no regular file"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out bytes.Buffer
			c := New("")
			c.SetOut(&out)
			c.SetArgs(append([]string{"manifests", "webhook", "--policy="}, strings.Fields(tt.args)...))
			err := c.Execute()
			if err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
				t.Errorf("got %v and %d bytes, want %q and none", err, out.Len(), tt.want)
			}
		})
	}
}

// The streams and folders hold what each way of certificates needs.
func TestWebhookManifestsHoldWhatTheyNeed(t *testing.T) {
	for name, tt := range map[string]struct {
		args      string
		has, lack string
	}{
		"a Job":        {"", "serviceAccountName: syncgate-certificates", "cert-manager.io/v1"},
		"cert-manager": {"--cert-manager", "cert-manager.io/v1", "serviceAccountName: syncgate-certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			got := printed(t, append([]string{"webhook", "--policy="}, strings.Fields(tt.args)...)...)
			if !strings.Contains(got, tt.has) || strings.Contains(got, tt.lack) {
				t.Errorf("want %q and not %q", tt.has, tt.lack)
			}
			last := strings.LastIndex(got, "\nkind: ")
			if !strings.HasPrefix(got[last:], "\nkind: ValidatingWebhookConfiguration\n") {
				t.Errorf("the last object is a %.60q, want the configuration", got[last:])
			}
		})
	}
	out := filepath.Join(t.TempDir(), "out")
	printed(t, "webhook", "--policy=", "--out", out)
	data, err := os.ReadFile(filepath.Join(out, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	for _, r := range k.Resources {
		if _, err := os.Stat(filepath.Join(out, r)); err != nil {
			t.Errorf("kustomization.yaml: %v", err)
		}
	}
	if len(k.Resources) != 10 {
		t.Errorf("resources: got %q", k.Resources)
	}
}

// testCertificate is nobody's.
const testCertificate = `-----BEGIN CERTIFICATE-----
MIIBdDCCARugAwIBAgIUMKBOMAYWCFa2ybdQZfhI5jZjS40wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjEyMDIwNDMxNDZaGA8yMTI2MTEwODA0MzE0
NlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKST
23/+hRSFcnPYLczbfsMeRuFd+2bGRJoRR36SRWpexldDUKtBt64SpJ60r9DUXRkQ
1lyWraeBp1lxpBScNE6jUzBRMB0GA1UdDgQWBBRWwy+5DGvFtw8CM2yD/oQyfJln
5DAfBgNVHSMEGDAWgBRWwy+5DGvFtw8CM2yD/oQyfJln5DAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0cAMEQCIAov6d3zY5cqrHqxO5SgeKS/Kj/eL21iIpYu
soL69A3CAiBHXDCNiZ/oaftYvSpjIvz45ojd4jqvaPBZl5WVo/Ot2w==
-----END CERTIFICATE-----
`
