package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/syncgate/syncgate/manifests"
	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

// expectFlux fills in what follows from the policy for Flux.
func (o *doctorOptions) expectFlux(c *cobra.Command, p *policy.Policy) error {
	files, err := fluxPolicies(p, false, fluxSite{namespaces: o.flux.Namespaces, ungated: o.flux.Ungated, account: o.defaultAccount})
	if err != nil {
		return usage(c, "%v", err)
	}
	own, err := manifests.Flux.ReadFile("flux/policy.yaml")
	if err != nil {
		return fmt.Errorf("generating the policies: %w", err)
	}
	text := strings.ReplaceAll(string(own), manifests.Namespace, p.Admission().Namespace)
	if o.flux.Policies, err = append(files, manifestFile{"flux/policy.yaml", []byte(text)}).objects(); err != nil {
		return fmt.Errorf("generating the policies: %w", err)
	}
	if o.flux.Want, err = webhookConfiguration(p); err != nil {
		return err
	}
	o.flux.Policy, o.flux.Environment = p, o.Environment
	return nil
}

// webhookConfiguration is the generated ValidatingWebhookConfiguration, as a raw
// tree.
func webhookConfiguration(p *policy.Policy) (map[string]any, error) {
	config, err := admission.NewConfiguration(p, admission.Place{})
	if err != nil {
		return nil, app.Refuse(gate.PolicyInvalid, "%v", err)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("generating the configuration: %w", err)
	}
	var tree map[string]any
	return tree, json.Unmarshal(data, &tree)
}

// set counts the flags that are set.
func set(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}
