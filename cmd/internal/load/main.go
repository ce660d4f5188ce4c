// Command load puts syncgate-webhook under load over TLS on loopback, with the
// generator on the same processors, and compares it with a handler that only
// decodes the same reviews. It ends with lines
//
//	BENCH<TAB>name<TAB>value<TAB>limit
//
// (docs/benchmarks.md). With --soak it runs for that long at a steady rate
// while policy and certificates change, and ends the webhook by SIGTERM under
// load.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("load: ")
	program := flag.String("program", "", "syncgate-webhook; empty: build it")
	duration := flag.Duration("duration", 10*time.Second, "of each measurement at full speed")
	rounds := flag.Int("rounds", 3, "measurements at full speed")
	rate := flag.Int("rate", 500, "requests a second of the steady measurement")
	clients := flag.Int("clients", 8, "connections of the generator")
	soak := flag.Duration("soak", 0, "steady load for this long, with changes of policy and certificate")
	cold := flag.Int("cold", 0, "start the webhook this often and compare its first answer with later ones")
	offline := flag.Bool("no-network", false, "run in a network namespace that has a loopback device only, and no DNS (Linux)")
	decodeOnly := flag.String("decode-only", "", "be the handler to compare with, at this address")
	cert := flag.String("tls-cert", "", "")
	key := flag.String("tls-key", "", "")
	flag.Parse()
	if *decodeOnly != "" {
		log.Fatal(serveDecodeOnly(*decodeOnly, *cert, *key))
	}
	if *offline {
		if done, err := withoutNetwork(); done || err != nil {
			if err != nil {
				log.Fatal(err)
			}
			return
		}
	}
	if err := run(*program, *duration, *rounds, *rate, *clients, *cold, *soak); err != nil {
		log.Fatal(err)
	}
}

func run(program string, duration time.Duration, rounds, rate, clients, cold int, soak time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "syncgate-load-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if program == "" {
		program = filepath.Join(dir, "syncgate-webhook")
		build := exec.Command("go", "build", "-o", program, "./cmd/syncgate-webhook")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building the webhook: %w", err)
		}
	}
	f, err := newFixture(dir)
	if err != nil {
		return err
	}
	flags := []string{"--policy", f.policy, "--drain", "3s", "--off", ""}
	if cold > 0 {
		return f.cold(program, flags, cold)
	}
	hook, err := f.start(program, flags...)
	if err != nil {
		return err
	}
	defer hook.stop()
	if soak > 0 {
		return f.soak(hook, soak, rate, clients)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	decode, err := f.start(self)
	if err != nil {
		return err
	}
	defer decode.stop()
	return f.compare(hook, decode, duration, rounds, rate, clients)
}

// compare measures both at full speed in turn, then the webhook at a rate.
func (f *fixture) compare(hook, decode *server, duration time.Duration, rounds, rate, clients int) error {
	var ratios []float64
	for i := range rounds {
		var perSecond [2]float64
		var each [2]time.Duration
		for j, s := range []*server{decode, hook} {
			before := s.cpu()
			r := f.generate(s, clients, 0, duration)
			if r.errors > 0 {
				return fmt.Errorf("%s: %d of %d requests failed: %v", s.name, r.errors, r.requests, r.first)
			}
			perSecond[j] = float64(r.requests) / r.took.Seconds()
			each[j] = (s.cpu() - before) / time.Duration(max(r.requests, 1))
		}
		fmt.Printf("round %d: decode only %.0f/s (%s of a processor each), webhook %.0f/s (%s)\n", i+1, perSecond[0], each[0], perSecond[1], each[1])
		ratios = append(ratios, perSecond[1]/perSecond[0])
	}
	steady := f.generate(hook, clients, rate, duration)
	fmt.Printf("at %d/s: %d requests, p50 %s, p99 %s, %d errors, %d KiB resident\n",
		rate, steady.requests, steady.quantile(.5), steady.quantile(.99), steady.errors, hook.resident())
	fmt.Printf("BENCH\twebhook-over-decode-only\t%.3f\tat least 0.60\n", median(ratios))
	fmt.Printf("BENCH\twebhook-p99-ms-at-%d\t%.2f\t10\n", rate, float64(steady.quantile(.99).Microseconds())/1000)
	fmt.Printf("BENCH\twebhook-errors\t%d\t0\n", steady.errors)
	return nil
}
