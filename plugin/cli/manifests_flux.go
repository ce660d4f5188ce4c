package cli

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/policy"
)

// What nobody said of Flux's objects, as the files say it.
const (
	allNamespaces   = "- name: namespaces\n    expression: |-\n      ['*']"
	noneUngated     = "- name: ungated\n    expression: |-\n      []"
	needsAccount    = "- name: needsAccount\n    expression: |-\n      true"
	fluxPoliciesDir = "policies/flux"
)

// Names as Kubernetes has them: namespaceName of a namespace, ungatedName of a
// Kustomization with its namespace, accountName of a service account. A wrong one
// would match nothing.
var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	accountName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	ungatedName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// fluxSite is what the policy file does not say of a cluster with Flux.
type fluxSite struct {
	// Of the namespaces, whose Kustomizations are gated, none means all; ungated
	// are each "NAMESPACE/NAME".
	namespaces, ungated []string
	// account is kustomize-controller's --default-service-account, as which it
	// applies a Kustomization that names none.
	account string
}

// fluxPolicies are the files for the cluster of Flux.
func fluxPolicies(p *policy.Policy, onStart bool, site fluxSite) (manifestFiles, error) {
	namespaces, ungated := site.namespaces, site.ungated
	for _, n := range namespaces {
		if !namespaceName.MatchString(n) {
			return nil, fmt.Errorf("--namespaces %.80q: want names of namespaces", n)
		}
	}
	for _, u := range ungated {
		if !ungatedName.MatchString(u) {
			return nil, fmt.Errorf("--ungated %.80q: want NAMESPACE/NAME", u)
		}
	}
	if site.account != "" && !accountName.MatchString(site.account) {
		return nil, fmt.Errorf("--default-service-account %.80q: want the name of a service account", site.account)
	}
	if len(namespaces) == 0 {
		namespaces = []string{"*"}
	}
	a := p.Admission()
	account := needsAccount
	if site.account != "" || len(a.UnjudgedGrants()) == 0 {
		account = strings.Replace(account, "true", "false", 1)
	}
	var out manifestFiles
	for _, name := range []string{"objects.yaml", "kustomizations.yaml", "metadata.yaml"} {
		data, err := manifests.Policies.ReadFile(path.Join(fluxPoliciesDir, name))
		if err != nil {
			return nil, err
		}
		// Before what policy says is filled in, which stays as it is.
		text := strings.ReplaceAll(string(data), manifests.Namespace, a.Namespace)
		if a.SharedControllerIdentity != "" {
			text = builtin.ReplaceAllLiteralString(text, strings.Trim(celQuote(a.SharedControllerIdentity), "'"))
		}
		text = strings.NewReplacer(
			defaultUsers, "request.userInfo.username in "+celList(append([]string{admission.APIServer}, a.Administrators.Users...)),
			defaultGroups, "in "+celList(a.Administrators.Groups)+")",
			allNamespaces, strings.Replace(allNamespaces, "['*']", celList(namespaces), 1),
			noneUngated, strings.Replace(noneUngated, "[]", celList(ungated), 1),
			needsAccount, account,
		).Replace(text)
		f := manifestFile{path.Join("policies", "flux-"+name), []byte(text)}
		if onStart {
			f = staticNames(f)
		}
		out = append(out, f)
	}
	return out, nil
}
