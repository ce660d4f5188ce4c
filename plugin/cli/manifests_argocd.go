package cli

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/policy"
)

// What nobody said of Argo CD's objects, as the files say it.
const (
	allProjects     = "- name: projects\n    expression: |-\n      ['*']"
	noDestinations  = "- name: destinations\n    expression: |-\n      {}"
	argoPoliciesDir = "policies/argocd"
)

// argoPolicies are the files for the cluster of Argo CD's Applications. Of the
// projects, which are gated, none means all; the destinations are each
// "ENVIRONMENT=SERVER" or "ENVIRONMENT=NAME".
func argoPolicies(p *policy.Policy, onStart bool, projects, destinations []string) (manifestFiles, error) {
	table, err := destinationTable(p, destinations)
	if err != nil {
		return nil, err
	}
	if len(projects) == 0 {
		projects = []string{"*"}
	}
	a := p.Admission()
	var out manifestFiles
	for _, name := range []string{"applications.yaml", "metadata.yaml", "own-project.yaml"} {
		data, err := manifests.Policies.ReadFile(path.Join(argoPoliciesDir, name))
		if err != nil {
			return nil, err
		}
		text := strings.NewReplacer(
			defaultUsers, "request.userInfo.username in "+celList(append([]string{admission.APIServer}, a.Administrators.Users...)),
			defaultGroups, "in "+celList(a.Administrators.Groups)+")",
			allProjects, strings.Replace(allProjects, "['*']", celList(projects), 1),
			noDestinations, strings.Replace(noDestinations, "{}", table, 1),
		).Replace(string(data))
		f := manifestFile{path.Join("policies", "argocd-"+name), []byte(text)}
		if onStart {
			f = staticNames(f)
		}
		out = append(out, f)
	}
	return inNamespace(out, a.Namespace), nil
}

// destinationTable is a CEL map from a destination to its environments.
func destinationTable(p *policy.Policy, destinations []string) (string, error) {
	of := map[string][]string{}
	for _, d := range destinations {
		environment, where, ok := strings.Cut(d, "=")
		if !ok || where == "" {
			return "", fmt.Errorf("--destination %q: want ENVIRONMENT=SERVER or ENVIRONMENT=NAME", d)
		}
		if !slices.Contains(p.Environments(), environment) {
			return "", fmt.Errorf("--destination %q: policy has no environment %q", d, environment)
		}
		of[where] = append(of[where], environment)
	}
	var entries []string
	for _, where := range slices.Sorted(maps.Keys(of)) {
		entries = append(entries, celQuote(where)+": "+celList(of[where]))
	}
	return "{" + strings.Join(entries, ", ") + "}", nil
}
