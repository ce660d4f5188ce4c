// Command bench measures the gate against what it cannot be faster than, in
// one process and one run, and ends with one line a measure:
//
//	BENCH<TAB>name<TAB>value<TAB>limit
//
// Values are ratios: machines are shared and noisy, ratios of one run are not.
// docs/benchmarks.md says what each measure is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"time"
)

// measure is one ratio and the most that it may be.
type measure struct {
	name  string
	limit float64
	run   func(context.Context, *fixture) (float64, error)
}

var measures = []measure{
	{"decision-over-floor", 1.5, decisionOverFloor},
	{"check-over-decode", 1.3, checkOverDecode},
	{"scale-10k-over-1k", 11, scale},
	{"memory-over-manifests", 4, memory},
	{"generate-over-render", 1.10, generateOverRender},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	only := flag.String("only", "", "run this measure alone")
	strict := flag.Bool("strict", false, "end with status 1 if a limit is passed")
	flag.Parse()
	f, err := newFixture()
	if err != nil {
		log.Fatal(err)
	}
	var lines []string
	passed := true
	for _, m := range measures {
		if *only != "" && *only != m.name {
			continue
		}
		v, err := m.run(context.Background(), f)
		if err != nil {
			log.Fatalf("%s: %v", m.name, err)
		}
		passed = passed && v <= m.limit
		lines = append(lines, fmt.Sprintf("BENCH\t%s\t%.3f\t%.2f", m.name, v, m.limit))
	}
	for _, l := range lines {
		fmt.Println(l)
	}
	if *strict && !passed {
		os.Exit(1)
	}
}

// ratio runs a and b in turn, rounds times each after one warm-up, and returns
// the median of a/b pair by pair: what else the machine does hits both.
func ratio(rounds int, a, b func() error) (float64, error) {
	var out []float64
	for i := -1; i < rounds; i++ {
		x, err := timed(a)
		if err != nil {
			return 0, err
		}
		y, err := timed(b)
		if err != nil {
			return 0, err
		}
		if i >= 0 {
			out = append(out, float64(x)/float64(y))
		}
	}
	sort.Float64s(out)
	return out[len(out)/2], nil
}

func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}
