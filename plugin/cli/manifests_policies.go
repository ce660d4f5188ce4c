package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

func newManifestsPolicies() *cobra.Command {
	var file, out string
	var onStart, argo, flux bool
	var projects, destinations []string
	var site fluxSite
	c := &cobra.Command{
		Use:   "policies",
		Short: "Print the ValidatingAdmissionPolicies that hold while the webhook is dead",
		Long: `Policies prints ValidatingAdmissionPolicies that the API server evaluates by itself:
images by digest in gated namespaces, and the gate's own namespace, objects and
accounts for its administrators alone. Namespaces, administrators and references
that need no digest are those of the policy.

--static prints the form that an API server of 1.37 or later loads from its own
disk, with one more policy that guards the webhook's configuration and these
policies themselves.

--argocd prints those for the cluster that Argo CD's Applications are in instead:
the plugin on every source in gated projects (--projects, by default all), the
environment asked for by destination (--destination), and the gate's annotations
and project for its administrators alone.

--flux prints those for the cluster that Flux runs in instead: the gate's
ConfigMaps and ExternalArtifacts for the gate alone, one of them in the path of
every Kustomization in gated namespaces (--namespaces, by default all) but those
that are not gated (--ungated), an account of its own on each in postBuild mode
(or --default-service-account) unless the policy has the webhook judge
ClusterRoles and ClusterRoleBindings, and no annotation relaxed but by
administrators.

With --out the files are written to a directory, which must not exist.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := admissionPolicy(file)
			if err != nil {
				return err
			}
			if !argo && (len(projects) > 0 || len(destinations) > 0) {
				return usage(c, "--projects and --destination go with --argocd")
			}
			if !flux && (len(site.namespaces) > 0 || len(site.ungated) > 0 || site.account != "") {
				return usage(c, "--namespaces, --ungated and --default-service-account go with --flux")
			}
			var files manifestFiles
			switch {
			case argo && flux:
				return usage(c, "give either --argocd or --flux")
			case argo:
				if files, err = argoPolicies(p, onStart, projects, destinations); err != nil {
					return usage(c, "%v", err)
				}
			case flux:
				if files, err = fluxPolicies(p, onStart, site); err != nil {
					return usage(c, "%v", err)
				}
			default:
				if files, err = policies(p, onStart); err != nil {
					return err
				}
			}
			if out != "" && !onStart {
				files = append(files, kustomizationOf(files))
			}
			return files.put(c.OutOrStdout(), out)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "policy", os.Getenv("SYNCGATE_POLICY"), "the operator's policy file (default $SYNCGATE_POLICY)")
	f.BoolVar(&onStart, "static", false, "print the form that an API server loads at start")
	f.StringVar(&out, "out", "", "directory to write the files to")
	f.BoolVar(&argo, "argocd", false, "print those for Argo CD's Applications instead")
	f.StringSliceVar(&projects, "projects", nil, "argocd: the gated projects (default: all but the gate's own, syncgate)")
	f.StringArrayVar(&destinations, "destination", nil, "argocd: ENVIRONMENT=SERVER or ENVIRONMENT=NAME, an environment of policy that may be asked for at a destination, as Applications write it: of a cluster that some name by server and some by name, give both; with one given, every other pair is refused")
	f.BoolVar(&flux, "flux", false, "print those for Flux's Kustomizations instead")
	f.StringSliceVar(&site.namespaces, "namespaces", nil, "flux: the namespaces whose Kustomizations are gated (default: all)")
	f.StringSliceVar(&site.ungated, "ungated", nil, "flux: NAMESPACE/NAME of Kustomizations there that are not, such as flux-system/flux-system; administrators alone change them")
	f.StringVar(&site.account, "default-service-account", "", "flux: as kustomize-controller has it; without one Kustomizations of postBuild mode must name theirs, unless the policy's scope.admission.clusterScoped names ClusterRole and ClusterRoleBinding")
	return c
}

// kustomizationOf names the files, which stand beside it.
func kustomizationOf(files manifestFiles) manifestFile {
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
	for _, f := range files {
		text += "- " + path.Base(f.path) + "\n"
	}
	return manifestFile{"policies/kustomization.yaml", []byte(text)}
}

// What a policy decides, as the files say it when none has.
const (
	defaultUsers  = "request.userInfo.username in ['system:apiserver']"
	defaultGroups = "in ['syncgate:administrators', 'system:masters'])"
	defaultScope  = "operator: NotIn\n        values: [kube-system, " + manifests.Namespace + "]"
	noUnpinned    = "- name: allowed\n    expression: |-\n      []"
	noShared      = "- name: shared\n    expression: |-\n      ''"
	noTrusted     = "- name: trusted\n    expression: |-\n      false"
	enforced      = "validationActions: [Deny, Audit]"
)

// indented stands in a block of a file as the value of an expression.
func indented(expression string) string {
	return "expression: |-\n      " + strings.ReplaceAll(expression, "\n", "\n      ")
}

// noExempt is the exemption of the file for images, which no policy adds to.
func noExempt() string { return indented(admission.DigestsExemption(policy.Admission{})) }

// builtin are controllers where each has its own account.
var builtin = regexp.MustCompile(`system:serviceaccount:kube-system:[a-z-]+[a-z]`)

// policies are the files with what policy says filled in.
func policies(p *policy.Policy, onStart bool) (manifestFiles, error) {
	names := []string{"digests.yaml", "own-namespace.yaml", "namespace.yaml", "accounts.yaml"}
	if onStart {
		names = append(names, "static/admission.yaml")
	}
	a := p.Admission()
	effective, err := p.ForEnvironment(policy.App{}, p.Environments()[0])
	if err != nil {
		return nil, err
	}
	var out manifestFiles
	for _, name := range names {
		data, err := manifests.Policies.ReadFile(path.Join("policies", name))
		if err != nil {
			return nil, err
		}
		// What the files say is changed before what policy says is filled in: a
		// user or namespace of the policy's stays as it is.
		text := strings.ReplaceAll(string(data), manifests.Namespace, a.Namespace)
		if name == "digests.yaml" {
			text = digestsOf(text, a, effective.Rules.AllowUnpinned)
		} else if a.SharedControllerIdentity != "" {
			text = builtin.ReplaceAllLiteralString(text, strings.Trim(celQuote(a.SharedControllerIdentity), "'"))
		}
		text = strings.NewReplacer(
			defaultUsers, "request.userInfo.username in "+celList(append([]string{admission.APIServer}, a.Administrators.Users...)),
			defaultGroups, "in "+celList(a.Administrators.Groups)+")",
			strings.ReplaceAll(defaultScope, manifests.Namespace, a.Namespace), scopeOf(a),
			noShared, strings.Replace(noShared, "''", celQuote(a.SharedControllerIdentity), 1),
		).Replace(text)
		f := manifestFile{path.Join("policies", path.Base(name)), []byte(text)}
		if onStart {
			f = staticNames(f)
		}
		out = append(out, f)
	}
	return out, nil
}

// policyObjects are the policies and bindings that are printed for the API, as
// raw trees.
func policyObjects(p *policy.Policy) ([]map[string]any, error) {
	files, err := policies(p, false)
	if err != nil {
		return nil, err
	}
	return files.objects()
}

// objects are the objects in the files, as raw trees.
func (files manifestFiles) objects() ([]map[string]any, error) {
	var out []map[string]any
	for _, f := range files {
		d := yaml.NewDecoder(bytes.NewReader(f.data))
		for {
			var object map[string]any
			err := d.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("decoding %s: %w", f.path, err)
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// digestsOf is the file for images by digest: whoever the webhook would let
// write without one, and no refusals while policy only warns.
func digestsOf(text string, a policy.Admission, unpinned []gate.Glob) string {
	text = strings.NewReplacer(
		noUnpinned, strings.Replace(noUnpinned, "[]", celList(patterns(unpinned)), 1),
		noExempt(), indented(admission.DigestsExemption(a)),
		noTrusted, strings.Replace(noTrusted, "expression: |-\n      false", indented(admission.DigestsTrusted(a)), 1),
	).Replace(text)
	if !a.Warn {
		return text
	}
	return strings.NewReplacer(enforced, "validationActions: [Warn, Audit]", "SYNC REFUSED", "SYNC WOULD BE REFUSED").Replace(text)
}

func scopeOf(a policy.Admission) string {
	operator, values := "NotIn", a.Exclude
	if a.Include != nil {
		operator, values = "In", a.Include
	}
	values = slices.Sorted(slices.Values(values))
	return fmt.Sprintf("operator: %s\n        values: [%s]", operator, strings.Join(values, ", "))
}

// patterns are regular expressions (RE2) that match what globs do: '*' never
// crosses a '/'.
func patterns(globs []gate.Glob) []string {
	out := make([]string, len(globs))
	for i, g := range globs {
		parts := strings.Split(string(g), "*")
		for j := range parts {
			parts[j] = regexp.QuoteMeta(parts[j])
		}
		out[i] = "^" + strings.Join(parts, "[^/]*") + "$"
	}
	return out
}

func celList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = celQuote(v)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// celQuote writes a CEL string literal.
func celQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
