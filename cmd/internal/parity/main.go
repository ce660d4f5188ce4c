// Command parity renders every kustomization, chart and directory of a folder,
// and every Argo CD Application in it, twice: by Argo CD's own code, and by the
// gate, pinned and with receipts. With --flux it builds every kustomization and
// directory, and every Flux Kustomization, as kustomize-controller does. It writes one line a unit (path, kind, outcome,
// detail) and ends with status 1 if the objects of one differ in more than pins
// and receipts, or if only one of the two renders it, and nothing says why.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"github.com/syncgate/syncgate/plugin/gate"
)

// The outcomes.
const (
	equal   = "equal"
	differs = "differs"
	neither = "both fail"
	refused = "ours refuses"
	theirs  = "theirs fails"
	absent  = "not here" // an Application of another repository
)

type row struct {
	unit            unit
	outcome, detail string
	explained       string
	objects         int
}

// options are what the command was called with.
type options struct {
	corpus, out, explained  string
	argocd, kustomize, helm string
	flux                    string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("parity: ")
	var o options
	flag.StringVar(&o.corpus, "corpus", "", "folder of overlays, charts, directories and Applications")
	flag.StringVar(&o.out, "out", "", "file for the table (default: standard output)")
	flag.StringVar(&o.explained, "explained", "", "table of what may differ, and why: outcome, pattern of the detail or path, reason")
	flag.StringVar(&o.argocd, "argocd", "", "the program of e2e/argocd2")
	flag.StringVar(&o.kustomize, "kustomize", "", "kustomize, as Argo CD brings it along")
	flag.StringVar(&o.helm, "helm", "", "helm, as Argo CD brings it along")
	flag.StringVar(&o.flux, "flux", "", "the program of e2e/flux/native, instead of those of Argo CD")
	flag.Parse()
	switch {
	case o.corpus != "" && o.flux != "":
		they = "Flux"
	case o.corpus == "" || o.argocd == "" || o.kustomize == "" || o.helm == "":
		log.Fatal("give --corpus, and --flux or --argocd, --kustomize and --helm")
	}
	bad, err := run(o)
	if err != nil {
		log.Fatal(err)
	}
	if bad > 0 {
		log.Fatalf("%d outcomes that nothing explains", bad)
	}
}

func run(o options) (bad int, err error) {
	x, err := readExplanations(o.explained)
	if err != nil {
		return 0, err
	}
	dir, err := filepath.Abs(o.corpus)
	if err != nil {
		return 0, err
	}
	units, err := find(dir)
	if o.flux != "" && err == nil {
		units, err = findFlux(dir, units)
	}
	if err != nil {
		return 0, err
	}
	scratch, err := os.MkdirTemp("", "syncgate-parity-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	g, err := newOurs()
	if err != nil {
		return 0, err
	}
	rows := make([]row, len(units))
	next := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		n, err := startNative(o, filepath.Join(scratch, fmt.Sprint(i)))
		if err != nil {
			return 0, err
		}
		defer n.close()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range next {
				if errs[i] == nil {
					rows[j], errs[i] = judge(context.Background(), g, n, dir, units[j])
				}
			}
		}()
	}
	for j := range units {
		next <- j
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	for i := range rows {
		bad += x.explain(&rows[i])
	}
	return bad, write(o.out, rows)
}

// judge renders one unit twice. An error is one of the native renderer's
// process, not of the unit.
func judge(ctx context.Context, g *ours, n *native, dir string, u unit) (row, error) {
	r := row{unit: u}
	if u.elsewhere != "" {
		r.outcome, r.detail = absent, u.elsewhere
		return r, nil
	}
	root, err := n.checkout(filepath.Join(dir, u.root), u)
	if err != nil {
		return r, err
	}
	want, failed, err := n.render(g, root, u)
	if err != nil {
		return r, fmt.Errorf("%s: %w", u.path, err)
	}
	got, refusal := g.render(ctx, filepath.Join(dir, u.root), u)
	r.objects = len(got)
	switch {
	case failed != "" && refusal != nil:
		r.outcome, r.detail = neither, refusal.Error()
	case refusal != nil && len(want) == 0:
		r.outcome, r.detail = neither, "no objects; "+refusal.Error()
	case failed != "":
		r.outcome, r.detail = theirs, failed
	case refusal != nil:
		r.outcome, r.detail = refused, refusal.Error()
	default:
		r.outcome, r.detail = equal, difference(want, got)
		if r.detail != "" {
			r.outcome = differs
		}
	}
	return r, nil
}

func write(out string, rows []row) error {
	var w io.Writer = os.Stdout
	if out != "" {
		f, err := os.Create(out)
		if err != nil {
			return err
		}
		defer f.Close()
		w = f
	}
	counts, objects := map[string]int{}, 0
	fmt.Fprintln(w, "path\tkind\toutcome\tdetail\texplained")
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", gate.ASCII(r.unit.path), r.unit.kind, r.outcome, gate.ASCII(r.detail), r.explained); err != nil {
			return err
		}
		key := r.unit.kind + " " + r.outcome
		if r.explained != "" {
			key += ": " + r.explained
		}
		counts[key]++
		if r.outcome == equal {
			objects += r.objects
		}
	}
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(os.Stderr, "%6d  %s\n", counts[k], k)
	}
	fmt.Fprintf(os.Stderr, "%d units, %d objects equal\n", len(rows), objects)
	return nil
}
