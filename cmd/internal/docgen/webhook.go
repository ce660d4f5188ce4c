package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/admission"
)

// webhookConfiguration is what "syncgate manifests webhook --configuration"
// prints without a policy.
func webhookConfiguration() ([]byte, error) {
	var b bytes.Buffer
	c := root()
	c.SetOut(&b)
	c.SetArgs([]string{"manifests", "webhook", "--configuration", "--policy="})
	if err := c.Execute(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// webhookDoc is docs/webhook.md with the table of what the webhook is asked.
func webhookDoc(docs string, configuration []byte) ([]byte, error) {
	path := filepath.Join(docs, "webhook.md")
	old, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c admission.Configuration
	if err := yaml.UnmarshalStrict(configuration, &c); err != nil {
		return nil, err
	}
	out, err := replace(old, entries(c))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// entries is a table of the entries of a configuration.
func entries(c admission.Configuration) []byte {
	var b bytes.Buffer
	b.WriteString("| entry | asked about | namespaces |\n|---|---|---|\n")
	for _, w := range c.Webhooks {
		var what []string
		for _, r := range w.Rules {
			resources := slices.Clone(r.Resources)
			for i := range resources {
				if g := r.APIGroups[0]; g != "" {
					resource, subresource, found := strings.Cut(resources[i], "/")
					if resources[i] = resource + "." + g; found {
						resources[i] += "/" + subresource
					}
				}
			}
			what = append(what, strings.Join(r.Operations, ", ")+" of "+strings.Join(resources, ", "))
		}
		where := "none: cluster-scoped"
		if s := w.NamespaceSelector; s != nil {
			e := s.MatchExpressions[0]
			where = strings.Join(e.Values, ", ")
			if e.Operator == "NotIn" {
				where = "all but " + where
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", w.Name, strings.Join(what, "; "), where)
	}
	return b.Bytes()
}
