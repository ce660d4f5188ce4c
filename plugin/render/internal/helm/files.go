package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/render/internal/repo"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"
)

// The bounds of a chart. Helm's own allow 100 MiB for every archive, and an
// archive may hold archives.
const (
	maxUnpacked = 128 << 20 // bytes of all archives together
	maxNested   = 16        // archives within archives, and folders within folders below it
	maxDepth    = 64        // folders
)

var bom = []byte("\xef\xbb\xbf")

// read returns the files of the chart in dir as Helm's loader wants them:
// named relative to the chart, archives in charts/ unpacked, and dependencies
// that lie elsewhere in the repository (file://) put into charts/.
func read(tree *repo.Tree, dir string) ([]*archive.BufferedFile, error) {
	files, err := readDir(tree, dir)
	if err != nil {
		return nil, err
	}
	c, err := load(files)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Metadata.APIVersion != chart.APIVersionV1 && c.Metadata.APIVersion != chart.APIVersionV2:
		return nil, fmt.Errorf("%s: apiVersion %q is not supported: want %q or %q", FileName, c.Metadata.APIVersion, chart.APIVersionV1, chart.APIVersionV2)
	case c.Metadata.Type == "library":
		return nil, fmt.Errorf("%s: the chart is a library, which renders nothing by itself", FileName)
	}
	var missing []string
	for _, d := range c.Metadata.Dependencies {
		if d == nil || slices.ContainsFunc(c.Dependencies(), func(x *chart.Chart) bool { return x.Name() == d.Name }) {
			continue
		}
		rel, local := strings.CutPrefix(d.Repository, "file://")
		if !local {
			missing = append(missing, fmt.Sprintf("%q", d.Name))
			continue
		}
		sub, err := readLocal(tree, path.Join(dir, rel), d)
		if err != nil {
			return nil, fmt.Errorf("dependency %q in %q: %w", d.Name, d.Repository, err)
		}
		files = append(files, under("charts/"+d.Name, sub)...)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("charts/ lacks the dependencies %s that %s names: run \"helm dependency build\" and commit charts/, because the gate renders without network", strings.Join(missing, ", "), FileName)
	}
	return files, nil
}

// readLocal reads a dependency that is a directory of the repository, as `helm
// dependency build` packs it.
func readLocal(tree *repo.Tree, dir string, d *chart.Dependency) ([]*archive.BufferedFile, error) {
	files, err := readDir(tree, dir)
	if err != nil {
		return nil, err
	}
	c, err := load(files)
	if err != nil {
		return nil, err
	}
	if c.Name() != d.Name || !chartutil.IsCompatibleRange(d.Version, c.Metadata.Version) {
		return nil, fmt.Errorf("got chart %q version %q, want %q version %q", c.Name(), c.Metadata.Version, d.Name, d.Version)
	}
	return files, nil
}

// load loads the chart of the files, which it leaves as they are.
func load(files []*archive.BufferedFile) (*chart.Chart, error) {
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	if err := settle(c, 0); err != nil {
		return nil, err
	}
	return c, nil
}

// settle puts the subcharts, which the loader leaves in random order, in that
// of their names, and refuses those between which only the order would choose.
func settle(c *chart.Chart, depth int) error {
	if depth > maxNested {
		return fmt.Errorf("charts are nested more than %d deep", maxNested)
	}
	subs := slices.Clone(c.Dependencies())
	slices.SortStableFunc(subs, func(a, b *chart.Chart) int {
		return strings.Compare(a.Name()+" "+a.Metadata.Version, b.Name()+" "+b.Metadata.Version)
	})
	for i, s := range subs {
		if i > 0 && subs[i-1].Name() == s.Name() && ambiguous(c, subs[i-1], s) {
			return fmt.Errorf("charts/ of chart %q holds %q twice (versions %q and %q): remove the one that is not meant", c.Name(), s.Name(), subs[i-1].Metadata.Version, s.Metadata.Version)
		}
		if err := settle(s, depth+1); err != nil {
			return err
		}
	}
	c.SetDependencies(subs...)
	return nil
}

// ambiguous reports whether two subcharts of one name could take each other's
// place: unless every entry that Chart.yaml has for the name fits exactly one
// of them, and each of them is fitted.
func ambiguous(c, a, b *chart.Chart) bool {
	fitsA, fitsB := false, false
	for _, d := range c.Metadata.Dependencies {
		if d == nil || d.Name != a.Name() {
			continue
		}
		x := chartutil.IsCompatibleRange(d.Version, a.Metadata.Version)
		y := chartutil.IsCompatibleRange(d.Version, b.Metadata.Version)
		if x && y {
			return true
		}
		fitsA, fitsB = fitsA || x, fitsB || y
	}
	return !fitsA || !fitsB
}

func readDir(tree *repo.Tree, dir string) ([]*archive.BufferedFile, error) {
	if !tree.IsFile(path.Join(dir, FileName)) {
		return nil, fmt.Errorf("%q does not exist: %w", path.Join(dir, FileName), fs.ErrNotExist)
	}
	w := walker{tree: tree, top: dir, rules: ignore.Empty(), budget: maxUnpacked}
	file := path.Join(dir, ignore.HelmIgnore)
	if tree.IsFile(file) {
		data, err := tree.ReadFile(file)
		if err != nil {
			return nil, err
		}
		w.rules, err = ignore.Parse(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	w.rules.AddDefaults()
	if err := w.walk(".", 0); err != nil {
		return nil, err
	}
	return w.files, nil
}

type walker struct {
	tree   *repo.Tree
	top    string
	rules  *ignore.Rules
	files  []*archive.BufferedFile
	budget int
}

// walk reads the files below rel, a folder relative to the chart. As in Helm,
// symbolic links are followed; here they end at the repository's border.
func (w *walker) walk(rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%q is more than %d folders deep", rel, maxDepth)
	}
	list, err := w.tree.ReadDir(path.Join(w.top, rel))
	if err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(rel, e.Name())
		if e.Name() == ".git" || e.Name() == ".syncgate" {
			continue
		}
		info, err := w.tree.Stat(path.Join(w.top, name))
		if err != nil {
			return err
		}
		if w.rules.Ignore(name, info) {
			continue
		}
		if info.IsDir() {
			if err := w.walk(name, depth+1); err != nil {
				return err
			}
			continue
		}
		data, err := w.tree.ReadFile(path.Join(w.top, name))
		if err != nil {
			return err
		}
		if err := w.add(name, bytes.TrimPrefix(data, bom), 0); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file, or the files of a packed subchart in its place, so that one
// budget holds for all archives.
func (w *walker) add(name string, data []byte, depth int) error {
	if isValues(name) {
		if err := manifest.SingleDocument(data); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	folder, packed := strings.CutSuffix(name, ".tgz")
	if !packed || !isSubchart(name) {
		w.files = append(w.files, &archive.BufferedFile{Name: name, Data: data})
		return nil
	}
	if depth >= maxNested {
		return fmt.Errorf("%q: archives are nested more than %d deep", name, maxNested)
	}
	files, err := archive.LoadArchiveFiles(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	for _, f := range files {
		if w.budget -= len(f.Data); w.budget < 0 {
			return fmt.Errorf("the packed subcharts are together larger than %d bytes", maxUnpacked)
		}
		// A folder of the same name may stand beside the archive.
		if err := w.add(folder+" (packed)/"+f.Name, f.Data, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isValues reports whether name is that of the values of the chart or of a
// subchart.
func isValues(name string) bool {
	dir, file := path.Split(name)
	return file == "values.yaml" && (dir == "" || isSubchart(path.Clean(dir)))
}

// isSubchart reports whether name stands where Helm looks for a subchart:
// charts/NAME, charts/PARENT/charts/NAME, and so on.
func isSubchart(name string) bool {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if i%2 == 0 && p != "charts" || i%2 == 1 && strings.IndexAny(p, "_.") == 0 {
			return false
		}
	}
	return len(parts)%2 == 0
}

func under(dir string, files []*archive.BufferedFile) []*archive.BufferedFile {
	out := make([]*archive.BufferedFile, len(files))
	for i, f := range files {
		out[i] = &archive.BufferedFile{Name: path.Join(dir, f.Name), Data: f.Data}
	}
	return out
}
