package helm

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
)

type renderer struct {
	files    []*archive.BufferedFile
	values   map[string]any
	settings Settings
	kube     common.KubeVersion
	start    time.Time // the same for both runs
	warnings []string
}

// text is what one template, or one file of crds/, became.
type text struct{ name, body string }

// run is what one run of the engine made.
type run struct {
	texts  []text // sorted by name
	chance bool   // a function was called that answers differently each time
}

// execute does what `helm template` does. The chart is loaded anew, because
// rendering changes it and the values.
func (r *renderer) execute(ctx context.Context, again bool) (run, error) {
	c, err := load(r.files)
	if err != nil {
		return run{}, err
	}
	if err := chartutil.ProcessDependencies(c, r.values); err != nil {
		return run{}, fmt.Errorf("processing the chart's dependencies: %w", err)
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = r.kube
	caps.APIVersions = append(slices.Clone(caps.APIVersions), r.settings.APIVersions...)
	// A Helm of the command line says so; the compiler must not matter.
	caps.HelmVersion.Version, caps.HelmVersion.GoVersion = Version, ""
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, r.kube.String()) {
		return run{}, fmt.Errorf("the chart wants Kubernetes %q and is rendered for %s: change the Kubernetes version it is rendered for, or the chart", want, r.kube.Version)
	}
	namespace := r.settings.Namespace
	if namespace == "" {
		namespace = "default"
	}
	release := common.ReleaseOptions{Name: r.settings.ReleaseName, Namespace: namespace, Revision: 1, IsInstall: true}
	// Helm's own validation fetches what a schema refers to.
	values, err := util.ToRenderValuesWithSchemaValidation(c, r.values, release, caps, true)
	if err != nil {
		return run{}, fmt.Errorf("merging the values: %w", err)
	}
	if !r.settings.SkipSchemaValidation {
		merged, err := values.Table("Values")
		if err != nil {
			return run{}, fmt.Errorf("merging the values: %w", err)
		}
		if err := validate(c, merged); err != nil {
			return run{}, err
		}
	}
	f := functions{again: again, now: r.start}
	e := engine.Engine{CustomTemplateFuncs: f.all()}
	rendered, err := e.RenderWithContext(ctx, c, values)
	if err != nil {
		return run{}, fmt.Errorf("executing the templates: %s", middle(quoted.ReplaceAllString(err.Error(), "$1 a value")))
	}
	return run{r.collect(c, rendered), f.chance}, nil
}

// quoted is what `tpl` says of a text that is no template: the text, which is
// a value, and may be secret.
var quoted = regexp.MustCompile(`(cannot parse template|tpl function execution for) "(?:[^"\\]|\\.)*"`)

// middle cuts out the middle of a long error: it begins with the template that
// failed and ends with why, and each include adds a line between them.
func middle(s string) string {
	const head, tail = 300, 500
	if len(s) <= head+tail {
		return s
	}
	return strings.ToValidUTF8(s[:head], "") + " ... " + strings.ToValidUTF8(s[len(s)-tail:], "")
}

// collect takes from what the engine rendered that which is manifests.
func (r *renderer) collect(c *chart.Chart, rendered map[string]string) []text {
	var out []text
	for name, body := range rendered {
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(body) == "" {
			continue
		}
		out = append(out, text{trimChart(name), body})
	}
	if !r.settings.SkipCRDs {
		for _, crd := range c.CRDObjects() {
			out = append(out, text{trimChart(crd.Filename), string(crd.File.Data)})
		}
	}
	slices.SortFunc(out, func(a, b text) int { return strings.Compare(a.name, b.name) })
	return out
}
