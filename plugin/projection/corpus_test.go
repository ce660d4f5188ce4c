package projection

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// document is one manifest that nobody on this project wrote.
type document struct {
	where string
	obj   map[string]any
}

// corpus reads real manifests from the directory that SYNCGATE_SHARED names,
// or from where the project's machines keep them; the test is skipped when
// there are none.
func corpus(t *testing.T) []document {
	t.Helper()
	root := os.Getenv("SYNCGATE_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	root = filepath.Join(root, "corpus", "open")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no manifest corpus: set SYNCGATE_SHARED (%v)", err)
	}
	var out []document
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		for _, doc := range bytes.Split(raw, []byte("\n---")) {
			for _, obj := range objects(doc) {
				out = append(out, document{rel, obj})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects decodes a document; none if it is a template, or no object.
func objects(doc []byte) []map[string]any {
	raw, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var obj map[string]any
	if d.Decode(&obj) != nil {
		return nil
	}
	if items, ok := obj["items"].([]any); ok && strings.HasSuffix(str(obj["kind"]), "List") {
		var out []map[string]any
		for _, x := range items {
			if m, ok := x.(map[string]any); ok {
				out = append(out, m)
			}
		}
		return out
	}
	if str(obj["kind"]) == "" || str(obj["apiVersion"]) == "" {
		return nil
	}
	return []map[string]any{obj}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func TestCorpusStatistics(t *testing.T) {
	docs := corpus(t)
	leafCount, kinds := map[Category]int{}, map[string]int{}
	gated, structural, malformed, unknown := 0, 0, 0, 0
	harmless, privileged := 0, 0
	var sizes []int
	for _, d := range docs {
		unknown += len(UnknownImages(d.obj))
		p, err := Project(d.obj)
		if err != nil {
			malformed++
			t.Logf("%s: %s %v", d.where, str(d.obj["kind"]), err)
			continue
		}
		if !p.Gated() {
			continue
		}
		gated++
		if lookup(d.obj) == nil {
			structural++
			kinds[str(d.obj["kind"])]++
		}
		for _, l := range p.Leaves() {
			if !l.binding {
				leafCount[l.Category]++
			}
		}
		if str(d.obj["kind"]) == "Deployment" && p.Has(Privilege) {
			privileged++
			if p.Harmless(Privilege) {
				harmless++
			}
		}
		b, err := p.Canonical(p.Applies())
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(b))
	}
	sort.Ints(sizes)
	t.Logf("%d objects, %d gated, %d structurally, %d malformed, %d unknown images", len(docs), gated, structural, malformed, unknown)
	t.Logf("structural kinds: %v", kinds)
	t.Logf("leaves without bindings: %v", leafCount)
	t.Logf("%d Deployments with privilege leaves, %d of them harmless", privileged, harmless)
	if gated < len(docs)/3 || structural == 0 {
		t.Errorf("%d of %d objects gated, %d structurally: the projection overlooks what it should see", gated, len(docs), structural)
	}
	if n := len(sizes); n > 0 {
		t.Logf("canonical bytes: median %d, p90 %d, p99 %d, max %d", sizes[n/2], sizes[n*9/10], sizes[n*99/100], sizes[n-1])
	}
}

// budget bounds what a property test takes of the real corpus; the order is
// shuffled so that runs together see all of it.
const budget = 5 * time.Second

func eachGated(t *testing.T, check func(d document, p *Projection)) {
	t.Helper()
	docs := corpus(t)
	rand.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	start, n := time.Now(), 0
	for _, d := range docs {
		p, err := Project(d.obj)
		if err != nil || !p.Gated() {
			continue
		}
		check(d, p)
		if n++; time.Since(start) > budget {
			break
		}
	}
	t.Logf("%d gated objects", n)
}

// scalars lists the places of all scalars and empty collections in a tree.
func scalars(v any, path []any, out [][]any) [][]any {
	switch t := v.(type) {
	case map[string]any:
		for k, x := range t {
			out = scalars(x, append(path[:len(path):len(path)], k), out)
		}
		if len(t) > 0 {
			return out
		}
	case []any:
		for i, x := range t {
			out = scalars(x, append(path[:len(path):len(path)], i), out)
		}
		if len(t) > 0 {
			return out
		}
	}
	return append(out, path)
}
