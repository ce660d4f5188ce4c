package flux

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resource"
)

const (
	// substituteKey on an object, as a label or annotation, with the value
	// disabled, leaves it as it is.
	substituteKey = "kustomize.toolkit.fluxcd.io/substitute"
	// maxEscapes is how many "$$" an object may have: Flux's code copies all of
	// its text for each of them.
	maxEscapes = 10_000
)

// bare is a variable without an operator.
var bare = regexp.MustCompile(`\$\{([a-z0-9_]{1,200})\}`)

// substitute does what kustomize-controller does, strictly: a variable without
// value and default is an error. With own nil, the variables of the gate stand
// for themselves.
func (e *editor) substitute(r *resource.Resource, own map[string]string) error {
	if !e.spec.postBuild {
		return nil
	}
	data, err := r.AsYAML()
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	text := string(data)
	if strings.Count(text, "$$") > maxEscapes {
		return fmt.Errorf("more than %d times \"$$\"", maxEscapes)
	}
	vars := maps.Clone(e.vars)
	if e.settings.Own != "" {
		names, err := e.placeholders(r, text)
		if err != nil {
			return err
		}
		if own == nil {
			own = names
		}
		maps.Copy(vars, own)
	}
	values := make(map[string]any, len(vars))
	for k, v := range vars {
		values[k] = v
	}
	k := unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"postBuild": map[string]any{"substitute": values}},
	}}
	// "Dry run" means that the variables are these: they have been looked up, once
	// for all objects. The gate's ConfigMap always has a key, so that Flux
	// substitutes whatever else there is.
	_, err = fluxkustomize.SubstituteVariables(e.ctx, nil, k, r,
		fluxkustomize.SubstituteWithDryRun(true), fluxkustomize.SubstituteWithStrict(true),
		fluxkustomize.SubstituteWithAlways(e.spec.always || e.settings.Own != ""))
	return withoutValues(err)
}

// placeholders are the gate's variables in an object, each standing for itself.
func (e *editor) placeholders(r *resource.Resource, text string) (map[string]string, error) {
	opening := "${" + e.settings.Prefix
	all := strings.Count(text, opening)
	if all == 0 {
		return nil, nil
	}
	if r.GetLabels()[substituteKey] == fluxkustomize.DisabledValue || r.GetAnnotations()[substituteKey] == fluxkustomize.DisabledValue {
		return nil, fmt.Errorf("has variables of the gate, and %s: disabled, which leaves them as they are", substituteKey)
	}
	if strings.Contains(text, "$"+opening) || strings.Contains(text, `\`+opening) {
		return nil, fmt.Errorf("has a variable of the gate behind an escape: write %sNAME} alone", opening)
	}
	out := map[string]string{}
	for _, m := range bare.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], e.settings.Prefix) {
			out[m[1]] = m[0]
			all--
		}
	}
	if all != 0 {
		return nil, fmt.Errorf("has a variable of the gate that is not bare: write %sNAME}, without a default or any other operator; Flux would use that where the gate gives no value", opening)
	}
	return out, nil
}

// withoutValues keeps the values of variables, which may be secret, out of a
// message.
func withoutValues(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "YAMLToJSON") || strings.HasPrefix(err.Error(), "UnmarshalJSON") || strings.Contains(err.Error(), "YAMLToJSON"):
		return errors.New("is no manifest any more once its variables are substituted: a value changes its structure (kustomize drops quotes, and Flux pastes values as text)")
	}
	return err
}
