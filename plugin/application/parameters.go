package application

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render"
)

// Parameter is one of plugin.parameters of an Application, as Argo CD also
// passes them to a plugin in JSON.
type Parameter struct {
	Name   string            `json:"name"`
	String *string           `json:"string"`
	Array  []string          `json:"array"`
	Map    map[string]string `json:"map"`
}

// parameter sets what one name means. It gets a parameter of the right form.
type parameter struct {
	name string
	form string // "a string", "true or false", "an array", "a map or an array"
	set  func(o *render.Options, p Parameter) error
}

// parameters are all that there are. Nothing of them relaxes the check:
// whatever is rendered is judged.
var parameters = []parameter{
	text("renderer", func(o *render.Options, v string) { o.Renderer = v }),
	flag("recurse", func(o *render.Options, v bool) { o.Recurse = v }),
	text("include", func(o *render.Options, v string) { o.Include = v }),
	text("exclude", func(o *render.Options, v string) { o.Exclude = v }),
	text("helm.releaseName", func(o *render.Options, v string) { o.ReleaseName = v }),
	text("helm.namespace", func(o *render.Options, v string) { o.Namespace = v }),
	list("helm.valueFiles", func(o *render.Options, v []string) { o.Helm.ValueFiles = v }),
	flag("helm.ignoreMissingValueFiles", func(o *render.Options, v bool) { o.Helm.IgnoreMissingValueFiles = v }),
	{"helm.values", "a string", func(o *render.Options, p Parameter) (err error) {
		o.Helm.Values, err = values(*p.String)
		return err
	}},
	pairs("helm.set", func(o *render.Options, v []string) { o.Helm.Set = v }),
	pairs("helm.setString", func(o *render.Options, v []string) { o.Helm.SetString = v }),
	pairs("helm.setFile", func(o *render.Options, v []string) { o.Helm.SetFile = v }),
	flag("helm.skipCrds", func(o *render.Options, v bool) { o.Helm.SkipCRDs = v }),
	flag("helm.skipTests", func(o *render.Options, v bool) { o.Helm.SkipTests = v }),
	flag("helm.skipSchemaValidation", func(o *render.Options, v bool) { o.Helm.SkipSchemaValidation = v }),
	text("helm.kubeVersion", func(o *render.Options, v string) { o.KubeVersion = v }),
	list("helm.apiVersions", func(o *render.Options, v []string) { o.APIVersions = v }),
}

func text(name string, set func(*render.Options, string)) parameter {
	return parameter{name, "a string", func(o *render.Options, p Parameter) error {
		set(o, *p.String)
		return nil
	}}
}

func flag(name string, set func(*render.Options, bool)) parameter {
	return parameter{name, "true or false", func(o *render.Options, p Parameter) error {
		// What reads like yes and means no would prune.
		if *p.String != "true" && *p.String != "false" {
			return fmt.Errorf("%s is %.40q, want true or false", name, *p.String)
		}
		set(o, *p.String == "true")
		return nil
	}}
}

func list(name string, set func(*render.Options, []string)) parameter {
	return parameter{name, "an array", func(o *render.Options, p Parameter) error {
		set(o, p.Array)
		return nil
	}}
}

// pairs are settings: an array of Helm's KEY=VALUE as they are, or a map, whose
// values are taken as Argo CD takes those of its own Helm source.
func pairs(name string, set func(*render.Options, []string)) parameter {
	return parameter{name, "a map or an array", func(o *render.Options, p Parameter) error {
		out := p.Array
		for _, k := range slices.Sorted(maps.Keys(p.Map)) {
			out = append(out, k+"="+escape(p.Map[k]))
		}
		set(o, out)
		return nil
	}}
}

// Parameters applies the parameters to o. It returns an error for a name that
// it does not know, which was meant to change something, for one given twice
// and for a value of another form.
func Parameters(list []Parameter, o *render.Options) error {
	seen := map[string]bool{}
	for _, p := range list {
		i := slices.IndexFunc(parameters, func(x parameter) bool { return x.name == p.Name })
		if i < 0 {
			names := make([]string, len(parameters))
			for i, x := range parameters {
				names[i] = x.name
			}
			return fmt.Errorf("%.40q is not one of %s", p.Name, strings.Join(names, ", "))
		}
		known := parameters[i]
		if seen[p.Name] || !p.fits(known.form) {
			return fmt.Errorf("want %q once, with %s", p.Name, known.form)
		}
		seen[p.Name] = true
		if err := known.set(o, p); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether p has the one form that is wanted.
func (p Parameter) fits(form string) bool {
	switch form {
	case "an array":
		return p.String == nil && p.Map == nil && p.Array != nil
	case "a map or an array":
		return p.String == nil && (p.Map == nil) != (p.Array == nil)
	}
	return p.String != nil && p.Map == nil && p.Array == nil
}

// values reads inline values, one YAML object.
func values(text string) (map[string]any, error) {
	if err := manifest.SingleDocument([]byte(text)); err != nil {
		if errors.Is(err, manifest.ErrSeveralDocuments) {
			return nil, fmt.Errorf("helm.values: %w", err)
		}
		return nil, fmt.Errorf("helm.values: %w", plain(err))
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("helm.values: %w", plain(err))
	}
	return out, nil
}

// plain keeps the error's kind and drops what it quotes of the values.
func plain(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.IndexAny(line, "`\""); i >= 0 {
		line = strings.TrimRight(line[:i], " :")
	}
	return errors.New(line)
}

var comma = regexp.MustCompile(`([^\\]),`)

// escape keeps the commas of a value together, as Argo CD does: only a value in
// braces is a list.
func escape(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		return value
	}
	return comma.ReplaceAllString(value, `$1\,`)
}
