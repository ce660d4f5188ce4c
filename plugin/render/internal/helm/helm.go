// Package helm renders a chart with Helm's own engine, values and loader, as
// `helm template` does with --include-crds, but kept inside one repository,
// without cluster, network, plugins or post-renderers. A chart that renders
// differently each time is refused by name: nobody could sign it.
package helm

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Version is that of the Helm library (helm.sh/helm/v4) that go.mod names.
const Version = "v4.3.2"

// FileName makes a directory a chart.
const FileName = "Chart.yaml"

// Settings are what `helm template` takes from its command line.
type Settings struct {
	ReleaseName string // required; at most 53 characters
	Namespace   string // .Release.Namespace; empty means "default", as in Helm

	KubeVersion string   // .Capabilities.KubeVersion, such as "1.35" or "v1.35.2"
	APIVersions []string // added to those that Helm assumes

	ValueFiles              []string // paths relative to the chart, or with a leading "/" to the repository
	IgnoreMissingValueFiles bool
	Values                  map[string]any // over the files
	Set, SetString, SetFile []string       // over those, in Helm's syntax: "a.b=c,d[0]=e"

	SkipCRDs, SkipTests, SkipSchemaValidation bool
}

// Build renders the chart in dir, relative to the root of tree. The objects
// stand in the order of their template's name, relative to the chart, and
// within it in that of the documents. Warnings are lines, unsorted, some twice.
func Build(ctx context.Context, tree *repo.Tree, dir string, s Settings) ([]manifest.Object, []string, error) {
	if s.ReleaseName == "" {
		return nil, nil, errors.New("a chart needs a release name: on the command line --name NAME or --release-name, in the plugin ARGOCD_APP_NAME or helm.releaseName")
	}
	if err := chartutil.ValidateReleaseName(s.ReleaseName); err != nil {
		return nil, nil, fmt.Errorf("release name %q: want at most 53 lower-case letters, digits, '-' or '.'", s.ReleaseName)
	}
	kube, err := common.ParseKubeVersion(s.KubeVersion)
	if err != nil {
		return nil, nil, fmt.Errorf("kubernetes version %q: want one such as 1.35 or 1.35.2", s.KubeVersion)
	}
	r := renderer{settings: s, kube: *kube, start: time.Now()}
	var objects []manifest.Object
	said, err := quietly(func() (err error) {
		if r.files, err = read(tree, dir); err != nil {
			return err
		}
		if r.values, err = s.values(tree, dir); err != nil {
			return err
		}
		objects, err = r.render(ctx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return objects, append(said, r.warnings...), nil
}

// render renders once, and again if what came out may depend on chance.
func (r *renderer) render(ctx context.Context) ([]manifest.Object, error) {
	first, err := r.pass(ctx, false)
	if err != nil {
		return nil, err
	}
	objects, err := r.parse(first.texts)
	if err != nil || !first.chance {
		return objects, err
	}
	second, err := r.pass(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("the chart renders once and fails the next time, so it depends on chance: %w", err)
	}
	if slices.Equal(first.texts, second.texts) {
		return objects, nil
	}
	others, err := r.parse(second.texts)
	if err != nil {
		return nil, fmt.Errorf("the chart renders once and fails the next time, so it depends on chance: %w", err)
	}
	return objects, same(objects, others)
}

// maxMemory bounds what one run of the engine adds to the heap, in bytes: `tpl`
// can call itself for ever, and other applications render in the same
// container. Charts of a hundred objects take some 50 MB.
const maxMemory = 512 << 20

// pass is one run of the engine. The engine cannot be interrupted, so when ctx
// ends or memory does it is left to itself; the processes that render charts
// end soon after.
func (r *renderer) pass(ctx context.Context, again bool) (run, error) {
	type answer struct {
		run run
		err error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			// The input is somebody else's, and a crash of the gate's process
			// is not a refusal.
			if p := recover(); p != nil {
				a = answer{err: fmt.Errorf("helm cannot process this chart: internal error: %v", p)}
			}
			done <- a
		}()
		a.run, a.err = r.execute(ctx, again)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for before := heap(); ; {
		select {
		case a := <-done:
			return a.run, a.err
		case <-ctx.Done():
			return run{}, ctx.Err()
		case <-tick.C:
			if now := heap(); now > before+maxMemory {
				return run{}, fmt.Errorf("the chart takes more than %d MiB of memory to render: does a template call itself?", maxMemory>>20)
			}
		}
	}
}

// heap is the size of live and not yet swept objects, in bytes.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// trimChart takes the chart's own name from the path of a template.
func trimChart(name string) string {
	_, rest, found := strings.Cut(name, "/")
	if !found {
		return name
	}
	return rest
}
