package helm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// schemaURL is the name of the schema for itself, as in Helm.
const schemaURL = "file:///values.schema.json"

// validate checks the values of a chart and its subcharts against their
// values.schema.json. Helm's own function would open the files and addresses
// that a schema refers to, and quotes values, which may be secret.
func validate(c *chart.Chart, values map[string]any) error {
	if c.Schema != nil {
		if err := validateOne(c.Schema, values); err != nil {
			return fmt.Errorf("the values do not meet values.schema.json of chart %q: %w", c.Name(), err)
		}
	}
	for _, sub := range c.Dependencies() {
		raw := values[sub.Name()]
		if raw == nil {
			continue
		}
		m, ok := raw.(map[string]any)
		if !ok {
			return fmt.Errorf("the values of subchart %q are %T, want an object", sub.Name(), raw)
		}
		if err := validate(sub, m); err != nil {
			return err
		}
	}
	return nil
}

func validateOne(schema []byte, values map[string]any) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return fmt.Errorf("parsing the schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(closed{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return fmt.Errorf("parsing the schema: %w", err)
	}
	s, err := compiler.Compile(schemaURL)
	if err != nil {
		var load *jsonschema.LoadURLError
		if errors.As(err, &load) {
			return load.Err
		}
		return fmt.Errorf("compiling the schema: %w", err)
	}
	err = s.Validate(values)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	problems := leaves(invalid)
	slices.Sort(problems)
	problems = slices.Compact(problems)
	if len(problems) > maxProblems {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more", len(problems)-maxProblems))
	}
	return errors.New(strings.Join(problems, "; "))
}

const maxProblems = 5

// leaves says what is wrong without the values themselves.
func leaves(e *jsonschema.ValidationError) []string {
	if len(e.Causes) > 0 {
		var out []string
		for _, c := range e.Causes {
			out = append(out, leaves(c)...)
		}
		return out
	}
	at := strings.Join(e.InstanceLocation, ".")
	if at == "" {
		at = "values"
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return []string{fmt.Sprintf("%q is of type %s, want %s", at, k.Got, strings.Join(k.Want, " or "))}
	case *kind.Required:
		return []string{fmt.Sprintf("%q lacks %q", at, k.Missing)}
	case *kind.AdditionalProperties:
		return []string{fmt.Sprintf("%q has the unknown %q", at, k.Properties)}
	}
	return []string{fmt.Sprintf("%q breaks %q", at, strings.Join(e.ErrorKind.KeywordPath(), "."))}
}

// closed opens nothing. The drafts' own schemas are built into the library.
type closed struct{}

var _ jsonschema.URLLoader = closed{}

// Load refuses url; an unknown URN stands for "anything", as in Helm.
func (closed) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil
	}
	if strings.HasPrefix(url, "file:") {
		return nil, errors.New("the schema refers to another file, which is not opened: put its definitions into the schema")
	}
	return nil, fmt.Errorf("the schema refers to %.200q, and the gate renders without network: put its definitions into the schema", url)
}
