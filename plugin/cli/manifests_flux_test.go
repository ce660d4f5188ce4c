package cli

import (
	"strings"
	"testing"
)

// A text that is looked for and is not there would leave the default in force,
// unnoticed.
func TestPoliciesForFluxSayWhatTheyAreTold(t *testing.T) {
	files, err := fluxPolicies(parsePolicy(t, sitePolicy), true, []string{"shop", "pay"}, []string{"flux-system/flux-system"})
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

func TestPoliciesForFluxTakeOnlyNames(t *testing.T) {
	p := parsePolicy(t, leastPolicy)
	for _, c := range []struct{ namespaces, ungated []string }{
		{namespaces: []string{"*"}}, {namespaces: []string{""}}, {namespaces: []string{"shop/web"}},
		{ungated: []string{"web"}}, {ungated: []string{"shop/"}}, {ungated: []string{"shop/web/x"}}, {ungated: []string{"*/web"}},
	} {
		if _, err := fluxPolicies(p, false, c.namespaces, c.ungated); err == nil {
			t.Errorf("namespaces %q, ungated %q: got no error", c.namespaces, c.ungated)
		}
	}
	if _, err := fluxPolicies(p, false, []string{"shop"}, []string{"shop/web.v1"}); err != nil {
		t.Error(err)
	}
}
