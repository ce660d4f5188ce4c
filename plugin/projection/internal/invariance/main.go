// Command invariance asks a real API server, for every manifest of a folder,
// whether what it would store has the projection digest of what was written.
//
// Each document is created and applied in server-side dry runs, and what comes
// back is submitted once more. One line a document goes to --out: path,
// document, kind, outcome, digest before, digest after, and the field or the
// reason. The outcomes are those of compare.go; status 1 says that one of them
// is Differs, or that there was nothing to ask.
//
// The cluster is changed: definitions of custom resources that the folder
// holds are installed, missing namespaces, service accounts and classes that
// Pods name are created, and so are the objects of setup.yaml, which make the
// cluster decide what it may decide. Use one that is thrown away.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("invariance: ")
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "of an administrator of a cluster that is thrown away")
	flag.StringVar(&o.corpus, "corpus", "", "folder of manifests")
	flag.StringVar(&o.out, "out", "", "file for the table (default: standard output)")
	flag.StringVar(&o.crds, "crds", "", "folders with further definitions of custom resources, separated by commas")
	flag.StringVar(&o.record, "record", "", "folder for what was sent and what is stored, a file for each of the corpus")
	flag.Parse()
	if o.kubeconfig == "" || o.corpus == "" {
		log.Fatal("give --kubeconfig FILE and --corpus DIR")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	bad, err := run(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	if bad > 0 {
		log.Fatalf("%d documents differ once stored", bad)
	}
}

type options struct{ kubeconfig, corpus, out, crds, record string }

// run returns the number of documents whose digest changes unexplained.
func run(ctx context.Context, o options) (bad int, err error) {
	rows, err := read(o.corpus)
	if err != nil {
		return 0, err
	}
	c, err := connect(o.kubeconfig)
	if err != nil {
		return 0, err
	}
	var definitions []*row
	for _, dir := range strings.FieldsFunc(o.crds, func(r rune) bool { return r == ',' }) {
		more, err := read(dir)
		if err != nil {
			return 0, err
		}
		definitions = append(definitions, more...)
	}
	if err := c.ask(ctx, rows, definitions); err != nil {
		return 0, err
	}
	if err := write(o.out, rows); err != nil {
		return 0, err
	}
	if o.record != "" {
		if err := record(o.record, c.version, rows); err != nil {
			return 0, err
		}
	}
	summarise(os.Stderr, rows)
	asked := 0
	for _, r := range rows {
		if r.outcome == differs {
			bad++
		}
		if r.after != "" {
			asked++
		}
	}
	if asked == 0 {
		return bad, fmt.Errorf("the API server accepted none of %d documents", len(rows))
	}
	return bad, nil
}

func write(file string, rows []*row) (err error) {
	var w io.Writer = os.Stdout
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer func() {
			if e := f.Close(); err == nil {
				err = e
			}
		}()
		w = f
	}
	return table(w, rows)
}
