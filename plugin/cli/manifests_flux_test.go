package cli

import (
	"strings"
	"testing"
)

// A text that is looked for and is not there would leave the default in force,
// unnoticed.
func TestPoliciesForFluxSayWhatTheyAreTold(t *testing.T) {
	files, err := fluxPolicies(parsePolicy(t, sitePolicy), true, fluxSite{namespaces: []string{"shop", "pay"}, ungated: []string{"flux-system/flux-system"}})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		all[f.path] = string(f.data)
		for _, was := range []string{"syncgate-system", "syncgate:administrators", "['*']", "      []\n", "namespace-controller'", "\nname: syncgate-flux-objects\n"} {
			if strings.Contains(string(f.data), was) {
				t.Errorf("%s still says %q", f.path, was)
			}
		}
	}
	for file, wants := range map[string][]string{
		"policies/flux-objects.yaml": {"!= 'system:serviceaccount:gate:syncgate-flux'", "'system:kube-controller-manager'", "name: syncgate-flux-objects.static.k8s.io"},
		"policies/flux-kustomizations.yaml": {"- name: namespaces\n    expression: |-\n      ['shop', 'pay']", "- name: ungated\n    expression: |-\n      ['flux-system/flux-system']",
			`request.userInfo.username in ['system:apiserver', 'oidc:alice', 'o\'brien']`},
		"policies/flux-metadata.yaml": {"g in ['platform', 'system:masters']", "policyName: syncgate-flux-metadata.static.k8s.io"},
	} {
		for _, want := range wants {
			if !strings.Contains(all[file], want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// TestAnAccountIsNotAskedForWhereTheWebhookJudgesClusterRoles: nor where
// kustomize-controller has one for all. One of the two kinds is not enough.
func TestAnAccountIsNotAskedForWhereTheWebhookJudgesClusterRoles(t *testing.T) {
	scope := func(kinds string) string {
		return leastPolicy + "scope: {admission: {clusterScoped: [" + kinds + "]}}\n"
	}
	for _, c := range []struct {
		policy, account string
		asked           bool
	}{
		{leastPolicy, "", true},
		{scope("Namespace, ClusterRole"), "", true},
		{scope("Namespace, ClusterRoleBinding"), "", true},
		{scope("ClusterRole, ClusterRoleBinding"), "", false},
		{scope("Namespace, ClusterRole.rbac.authorization.k8s.io, ClusterRoleBinding.rbac.authorization.k8s.io"), "", false},
		{leastPolicy, "default", false},
	} {
		files, err := fluxPolicies(parsePolicy(t, c.policy), false, fluxSite{account: c.account})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for word, want := range map[string]bool{"true": c.asked, "false": !c.asked} {
				if got := strings.Contains(string(f.data), "- name: needsAccount\n    expression: |-\n      "+word+"\n"); got != want && strings.HasSuffix(f.path, "flux-kustomizations.yaml") {
					t.Errorf("%q, account %q: needsAccount is %s: %v, want %v", c.policy, c.account, word, got, want)
				}
			}
		}
	}
}

func TestPoliciesForFluxTakeOnlyNames(t *testing.T) {
	p := parsePolicy(t, leastPolicy)
	for _, site := range []fluxSite{
		{namespaces: []string{"*"}}, {namespaces: []string{""}}, {namespaces: []string{"shop/web"}},
		{ungated: []string{"web"}}, {ungated: []string{"shop/"}}, {ungated: []string{"shop/web/x"}}, {ungated: []string{"*/web"}}, {account: "shop/flux"},
	} {
		if _, err := fluxPolicies(p, false, site); err == nil {
			t.Errorf("%+v: got no error", site)
		}
	}
	if _, err := fluxPolicies(p, false, fluxSite{namespaces: []string{"shop"}, ungated: []string{"shop/web.v1"}, account: "flux"}); err != nil {
		t.Error(err)
	}
}
