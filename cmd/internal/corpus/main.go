// Command corpus runs the whole gate over a folder of real manifests,
// kustomizations and charts: render, project, pin against a loopback registry
// through mirrors, sign, and check what would be synced. It writes one line a
// unit (path, document, outcome, code, sentence) and ends with status 1 on a
// panic, a document that was dropped silently, an output that is no fixed
// point, or an outcome that nothing explains.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/syncgate/syncgate/plugin/gate"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("corpus: ")
	corpus := flag.String("corpus", "", "folder of manifests, overlays and charts")
	out := flag.String("out", "", "file for the table (default: standard output)")
	expect := flag.String("expect", "", "table of what other renderers make of the same folder: type, dir, result, documents")
	explained := flag.String("explained", "", "table of units that end otherwise here, and why: dir, reason")
	flag.Parse()
	if *corpus == "" {
		log.Fatal("give --corpus DIR")
	}
	bad, err := run(*corpus, *out, *expect, *explained)
	if err != nil {
		log.Fatal(err)
	}
	if bad > 0 {
		log.Fatalf("%d outcomes are wrong", bad)
	}
}

func run(dir, out, expect, explained string) (bad int, err error) {
	units, err := find(dir)
	if err != nil {
		return 0, err
	}
	e, err := newExpectations(expect, explained)
	if err != nil {
		return 0, err
	}
	g, err := newGate()
	if err != nil {
		return 0, err
	}
	defer g.close()
	rows := make([]row, len(units))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, u := range units {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			rows[i] = g.judge(context.Background(), dir, u)
		}()
	}
	wg.Wait()
	for i := range rows {
		e.compare(&rows[i])
	}
	var w io.Writer = os.Stdout
	if out != "" {
		f, err := os.Create(out)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		w = f
	}
	fmt.Fprintln(w, "path\tdocument\toutcome\tcode\tsentence")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", gate.ASCII(r.unit.path), r.document, r.outcome, r.code, gate.ASCII(r.sentence))
		if r.wrong() {
			bad++
			log.Printf("%s: %s: %s", r.unit.path, r.outcome, r.sentence)
		}
	}
	summary(rows)
	return bad, nil
}

// summary counts the outcomes by kind of unit on standard error.
func summary(rows []row) {
	counts := map[string]int{}
	var objects, gated, leaves, images int
	for _, r := range rows {
		key := r.unit.kind + "\t" + r.outcome
		if r.code != "" {
			key += "\t" + string(r.code)
		}
		counts[key]++
		objects, gated, leaves, images = objects+r.objects, gated+r.gated, leaves+r.leaves, images+r.images
	}
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(os.Stderr, "%6d  %s\n", counts[k], strings.ReplaceAll(k, "\t", " "))
	}
	fmt.Fprintf(os.Stderr, "%d units; in those allowed %d objects, %d gated, %d gated fields, %d images pinned\n", len(rows), objects, gated, leaves, images)
}
