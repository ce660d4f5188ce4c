package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/syncgate/syncgate/plugin/admission"
)

// staticSuffix ends the name of everything that an API server loads from its
// disk; the API takes no such names
// (k8s.io/apiserver/pkg/admission/plugin/manifest/validation.go,
// StaticConfigSuffix).
const staticSuffix = ".static.k8s.io"

// Folders on the machine of each API server.
const (
	staticWebhooks = "/etc/kubernetes/syncgate/webhooks"
	staticPolicies = "/etc/kubernetes/syncgate/policies"
)

// admissionConfiguration is what the flag --admission-control-config-file names.
const admissionConfiguration = `# /etc/kubernetes/syncgate/admission.yaml on the machine of each API server:
#   kube-apiserver --admission-control-config-file=/etc/kubernetes/syncgate/admission.yaml
# Where the API server is itself a Pod (kubeadm), mount /etc/kubernetes/syncgate
# into it. Every API server needs the same files: nothing brings them to the others.
#
# staticManifestsDir is beta and on by default in 1.37 (alpha in 1.36), feature gate
# ManifestBasedAdmissionControlConfig. Both folders are read at start, where a wrong
# file keeps the API server from starting, and again when a file changes, where a
# wrong one leaves the last good ones in force.
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    staticManifestsDir: ` + staticWebhooks + `
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: ` + staticPolicies + ` # from: syncgate manifests policies --static --out DIR
`

// staticWebhook returns the two files of the form that an API server loads at
// start (k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/loader/loader.go):
// v1, a name with the suffix, every entry by URL.
func staticWebhook(c admission.Configuration) (manifestFiles, error) {
	c.Metadata.Name += staticSuffix
	data, err := blockYAML(c)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("%s#\n# %s/syncgate.yaml on the machine of each API server, and nowhere in the API:\n# with the configuration \"%s\" applied as well, each review would be asked for twice.\n",
		generated, staticWebhooks, admission.Name)
	return manifestFiles{
		{"static/admission.yaml", []byte(admissionConfiguration)},
		{"static/webhooks/syncgate.yaml", append([]byte(head), data...)},
	}, nil
}

var policyName = regexp.MustCompile(`(?m)^(metadata:\n  name: |  policyName: )(syncgate-[a-z-]+)$`)

// staticNames gives the objects of a file the names that an API server takes
// from its disk (k8s.io/apiserver/pkg/admission/plugin/policy/manifest/loader).
func staticNames(f manifestFile) manifestFile {
	text := policyName.ReplaceAllString(string(f.data), "${1}${2}"+staticSuffix)
	where := fmt.Sprintf("# %s/%s on the machine of each API server.\n#\n", staticPolicies, strings.TrimPrefix(f.path, "policies/"))
	return manifestFile{f.path, []byte(where + text)}
}

// blockYAML writes a value of JSON tags as a person would: in the order of its
// fields, in block style, expressions of several lines as literal blocks.
func blockYAML(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil { // JSON is YAML, and a node keeps its order
		return nil, fmt.Errorf("encoding: %w", err)
	}
	restyle(&n)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&n); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return b.Bytes(), nil
}

// shortList is how many bytes of words a list may have to stand on one line.
const shortList = 70

func restyle(n *yaml.Node) {
	n.Style = 0
	short, size := n.Kind == yaml.SequenceNode, 0
	for _, c := range n.Content {
		restyle(c)
		size += len(c.Value) + 2
		short = short && c.Kind == yaml.ScalarNode
	}
	switch {
	case short && size <= shortList:
		n.Style = yaml.FlowStyle
	case n.Kind == yaml.ScalarNode && strings.ContainsAny(n.Value, "'\n"): // CEL: no quote is doubled
		n.Style = yaml.LiteralStyle
	}
}
