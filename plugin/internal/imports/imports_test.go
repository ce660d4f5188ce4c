// Package imports holds the rules of what may import what, as tests: the core
// is pure, what decides links nothing that it does not need, and nothing looks
// upwards.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/syncgate/syncgate/"

// pkg is a package as "go list" tells it.
type pkg struct {
	ImportPath, Dir  string
	Standard         bool
	Imports, GoFiles []string
}

// graph lists the module's packages and everything that they link.
func graph(t *testing.T) map[string]*pkg {
	t.Helper()
	c := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,Imports,GoFiles", "./plugin/...", "./cmd/...")
	c.Dir = "../../.."
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	all := map[string]*pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		err := d.Decode(p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	return all
}

// The core decides. It gets bytes and values, and the time as an argument.
var core = []string{"plugin/internal/jcs", "plugin/projection", "plugin/receipt", "plugin/gate", "plugin/pin"}

// links is what a package may link beyond the standard library, by itself or
// by way of others, and what of the standard library it must not. A name
// stands for the packages below it too.
var links = map[string]struct{ allowed, never []string }{
	"plugin/internal/jcs":      {[]string{"github.com/gowebpki/jcs"}, []string{"net/http", "os/exec"}},
	"plugin/projection":        {[]string{module + "plugin/internal/jcs", "github.com/gowebpki/jcs"}, []string{"net", "os/exec"}},
	"plugin/receipt":           {append(own("internal/jcs", "projection"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4"), []string{"net/http", "os/exec"}},
	"plugin/gate":              {append(own("internal/jcs", "projection", "receipt"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4"), []string{"net/http", "os/exec"}},
	"plugin/pin":               {append(own("internal/jcs", "projection"), "github.com/gowebpki/jcs", "github.com/distribution/reference", "github.com/opencontainers/go-digest"), []string{"net/http", "os/exec"}},
	"plugin/internal/parallel": {nil, []string{"net", "os", "os/exec", "time"}},
	"plugin/internal/manifest": {append(own("internal/jcs", "internal/parallel"), "github.com/gowebpki/jcs", "go.yaml.in/yaml"), []string{"net/http", "os/exec"}},
	"plugin/lock":              {append(own("internal/jcs", "projection", "receipt"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml"), []string{"net/http", "os/exec"}},
	"plugin/policy":            {append(own("internal/jcs", "projection", "receipt", "gate", "keys"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml"), []string{"net/http"}},
	"plugin/offswitch":         {append(own("internal/jcs"), "github.com/gowebpki/jcs"), []string{"net/http", "os/exec"}},
	"plugin/settings":          {append(own("internal/jcs", "projection", "receipt", "gate", "keys", "policy"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml"), []string{"net/http"}},
	"plugin/admission":         {append(own("internal/jcs", "projection", "receipt", "gate", "keys", "policy"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml"), []string{"net/http"}},
	// What stands in the path of every request links the core, the policy and
	// what it is measured with: no renderer, no client of the API server.
	"cmd/syncgate-webhook": {append(own("internal/jcs", "projection", "receipt", "gate", "keys", "policy", "offswitch", "admission", "webhook"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml", "github.com/spf13/pflag", "golang.org/x/sync",
		"github.com/prometheus", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/munnerz/goautoneg", "google.golang.org/protobuf", "golang.org/x/sys", "go.opentelemetry.io/otel"), []string{"plugin"}},
	// What follows Applications links a client of the API server, and nothing
	// that renders or fetches.
	"plugin/argocd/controller": {append(own("internal/jcs", "projection", "receipt", "gate", "keys", "policy", "offswitch", "settings", "process"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4", "go.yaml.in/yaml", "github.com/spf13/pflag",
		"sigs.k8s.io/controller-runtime", "k8s.io", "sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/yaml", "github.com/argoproj/argo-cd/v2/pkg/apis/application",
		"github.com/prometheus", "github.com/beorn7/perks", "github.com/cespare/xxhash", "github.com/munnerz/goautoneg", "google.golang.org/protobuf", "golang.org/x", "go.opentelemetry.io/otel",
		"github.com/davecgh/go-spew", "github.com/emicklei/go-restful", "github.com/evanphx/json-patch", "github.com/fsnotify/fsnotify", "github.com/fxamacker/cbor", "github.com/go-logr/logr", "github.com/go-openapi", "github.com/google/gnostic-models", "github.com/google/uuid",
		"github.com/json-iterator/go", "github.com/modern-go", "github.com/pmezard/go-difflib", "github.com/x448/float16", "gomodules.xyz/jsonpatch", "gopkg.in/evanphx/json-patch.v4", "gopkg.in/inf.v0"), []string{"plugin"}},
	"plugin/keys": {append(own("internal/jcs", "projection", "receipt"), "github.com/gowebpki/jcs", "github.com/go-jose/go-jose/v4"), []string{"net/http"}},
}

func own(names ...string) []string {
	for i, n := range names {
		names[i] = module + "plugin/" + n
	}
	return names
}

func below(path, name string) bool { return path == name || strings.HasPrefix(path, name+"/") }

func TestPackagesLinkOnlyWhatTheyMay(t *testing.T) {
	all := graph(t)
	for name, rule := range links {
		root := all[module+name]
		if root == nil {
			t.Errorf("%s is no package", name)
			continue
		}
		for path, chain := range reach(all, root.ImportPath) {
			p := all[path]
			switch {
			case p == nil || path == root.ImportPath:
				continue
			case p.Standard && !slices.Contains(rule.never, path):
				continue
			case !p.Standard && slices.ContainsFunc(rule.allowed, func(a string) bool { return below(path, a) }):
				continue
			}
			t.Errorf("%s links %s:\n\t%s", name, path, strings.Join(chain, "\n\t"))
		}
	}
}

// reach returns a shortest chain of imports to each package that root links.
func reach(all map[string]*pkg, root string) map[string][]string {
	chains := map[string][]string{root: {root}}
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		p := all[queue[0]]
		if p == nil || p.Standard && queue[0] != root {
			// Beyond a package of the standard library only what it names itself
			// counts: fmt imports os, whoever uses it.
			continue
		}
		for _, next := range p.Imports {
			if chains[next] == nil {
				chains[next] = append(slices.Clone(chains[queue[0]]), next)
				queue = append(queue, next)
			}
		}
	}
	return chains
}

// TestTheCoreIsPure: no files, no network, no processes, no clock, no
// goroutines in the source of the core.
func TestTheCoreIsPure(t *testing.T) {
	all := graph(t)
	for _, name := range core {
		p := all[module+name]
		if p == nil {
			t.Errorf("%s is no package", name)
			continue
		}
		for _, i := range p.Imports {
			if slices.Contains([]string{"os", "os/exec", "os/signal", "io/ioutil", "net", "net/http", "syscall", "log", "log/slog", "unsafe", "plugin"}, i) {
				t.Errorf("%s imports %s", name, i)
			}
		}
		for _, file := range p.GoFiles {
			impure(t, filepath.Join(p.Dir, file))
		}
	}
}

// clock are the functions of package time that look at one.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Sleep"}

func impure(t *testing.T, file string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine", set.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				t.Errorf("%s looks at a clock: time.%s", set.Position(n.Pos()), n.Sel.Name)
			}
		}
		return true
	})
}

// layers, from the ground up: a package imports its own layer and those below
// it. The members of one that stays apart never import each other.
var layers = []struct {
	name     string
	packages []string
	apart    bool
}{
	{"core", core, false},
	{"edge", []string{"manifests", "plugin/internal/parallel", "plugin/internal/manifest", "plugin/lock", "plugin/keys", "plugin/policy", "plugin/offswitch", "plugin/settings", "plugin/admission", "plugin/flux/hook"}, false},
	{"adapters", []string{"plugin/render", "plugin/registry", "plugin/gitrev", "plugin/live"}, true},
	{"the joining of them", []string{"plugin/app", "plugin/application", "plugin/annotate", "plugin/migrate", "plugin/flux/scaffold", "plugin/process",
		// The doctor looks at an Argo CD, and at a Flux, as the controller beside it does.
		"plugin/argocd/controller", "plugin/flux/request", "plugin/live/doctor"}, false},
	{"front ends", []string{"plugin/argocd", "plugin/cli", "plugin/flux", "plugin/webhook"}, true},
	{"programs", []string{"cmd/syncgate", "cmd/syncgate-webhook", "cmd/syncgate-controller"}, true},
}

// tools are programs of the developers. They import what they need, and nobody
// imports them.
var tools = []string{
	"plugin/receipt/vectors", "plugin/receipt/internal", "plugin/projection/vectors", "plugin/projection/internal", "plugin/internal/bench", "plugin/internal/imports", "cmd/internal",
}

func isTool(path string) bool {
	return slices.ContainsFunc(tools, func(t string) bool { return below(path, t) })
}

// place returns the layer of a package of this module, and which of its
// packages it belongs to.
func place(path string) (layer int, member string, known bool) {
	for i, l := range layers {
		for _, p := range l.packages {
			if below(path, p) && len(p) > len(member) { // the nearest name counts
				layer, member, known = i, p, true
			}
		}
	}
	return layer, member, known
}

func TestNothingImportsUpwards(t *testing.T) {
	for path, p := range graph(t) {
		name, ours := strings.CutPrefix(path, module)
		if !ours || isTool(name) {
			continue
		}
		layer, member, known := place(name)
		if !known {
			t.Errorf("%s is in no layer: say in which one it is", name)
			continue
		}
		for _, i := range p.Imports {
			other, ours := strings.CutPrefix(i, module)
			if !ours {
				continue
			}
			below, neighbour, known := place(other)
			switch {
			case isTool(other):
				t.Errorf("%s imports the tool %s", name, other)
			case !known: // said for the other one
			case below > layer:
				t.Errorf("%s (%s) imports %s (%s)", name, layers[layer].name, other, layers[below].name)
			case below == layer && layers[layer].apart && neighbour != member:
				t.Errorf("%s imports %s: %s stay apart", name, other, layers[layer].name)
			}
		}
	}
}

func TestReachFindsTheShortestChain(t *testing.T) {
	all := map[string]*pkg{
		"a": {ImportPath: "a", Imports: []string{"b", "c"}},
		"b": {ImportPath: "b", Imports: []string{"d"}},
		"c": {ImportPath: "c", Imports: []string{"e"}},
		"d": {ImportPath: "d", Imports: []string{"e"}},
		"e": {ImportPath: "e", Standard: true, Imports: []string{"f"}},
	}
	got := reach(all, "a")
	if want := []string{"a", "c", "e"}; !slices.Equal(got["e"], want) {
		t.Errorf("chain to e: got %q, want %q", got["e"], want)
	}
	if got["f"] != nil {
		t.Errorf("f is behind the standard library: got %q", got["f"])
	}
}
