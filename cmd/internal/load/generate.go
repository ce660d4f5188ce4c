package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// result of one measurement. Latencies are sorted.
type result struct {
	requests, errors int
	first            error
	took             time.Duration
	latencies        []time.Duration
}

func (r result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)]
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// generate asks from a number of clients, each with a connection of its own, as
// fast as answers come (rate 0) or at a rate in all. A latency counts from when
// the request was due, so that a stall is not hidden by waiting for it.
func (f *fixture) generate(s *server, clients, rate int, d time.Duration) result {
	var mu sync.Mutex
	var out result
	var next atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.pool}}}
			defer client.CloseIdleConnections()
			var mine result
			for {
				n := next.Add(1) - 1
				due := time.Now()
				if rate > 0 {
					due = start.Add(time.Duration(n) * time.Second / time.Duration(rate))
					time.Sleep(time.Until(due))
				}
				if time.Since(start) >= d {
					break
				}
				mine.requests++
				if err := f.ask(client, s, int(n)); err != nil {
					mine.errors++
					mine.first = err
				}
				mine.latencies = append(mine.latencies, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			out.requests += mine.requests
			out.errors += mine.errors
			if out.first == nil {
				out.first = mine.first
			}
			out.latencies = append(out.latencies, mine.latencies...)
		})
	}
	wg.Wait()
	out.took = time.Since(start)
	slices.Sort(out.latencies)
	return out
}

var allowed = []byte(`"allowed":true`)

func (f *fixture) ask(c *http.Client, s *server, n int) error {
	resp, err := c.Post("https://"+s.address+"/validate", "application/json", bytes.NewReader(f.reviews[n%len(f.reviews)]))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || !bytes.Contains(data, allowed) {
		return fmt.Errorf("%s: %.300s", resp.Status, data)
	}
	return nil
}

// soak keeps a steady load while files change, watches the memory, and ends the
// webhook under load.
func (f *fixture) soak(hook *server, d time.Duration, rate, clients int) error {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var changes int
	var changed error
	wg.Go(func() {
		for tick := time.NewTicker(5 * time.Second); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			changes++
			if changed = f.change(changes); changed != nil {
				return
			}
		}
	})
	var memory []int
	wg.Go(func() {
		for tick := time.NewTicker(d / 20); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				memory = append(memory, hook.resident())
			}
		}
	})
	r := f.generate(hook, clients, rate, d)
	close(stop)
	wg.Wait()
	if changed != nil {
		return changed
	}
	fmt.Printf("soak: %s at %d/s, %d requests, %d changes of policy or certificate, p50 %s, p99 %s, %d errors (%v), resident KiB %v\n",
		d, rate, r.requests, changes, r.quantile(.5), r.quantile(.99), r.errors, r.first, memory)

	// SIGTERM under load: for as long as it drains nothing may be lost.
	time.AfterFunc(time.Second, func() { _ = hook.cmd.Process.Signal(syscall.SIGTERM) })
	end := f.generate(hook, clients, rate, 3*time.Second)
	fmt.Printf("SIGTERM after 1 s of 3 s: %d requests, %d errors (%v)\n", end.requests, end.errors, end.first)
	err := <-hook.done
	fmt.Printf("it ended with: %v\n", err)
	hook.done <- err
	fmt.Printf("BENCH\twebhook-soak-errors\t%d\t0\n", r.errors+end.errors)
	if half := len(memory) / 2; half > 0 {
		fmt.Printf("BENCH\twebhook-soak-memory-growth\t%.3f\t1.10\n", float64(slices.Max(memory[half:]))/float64(slices.Max(memory[:half])))
	}
	return nil
}

// change changes the policy, then the certificate, then breaks and mends the
// policy.
func (f *fixture) change(n int) error {
	switch n % 4 {
	case 0:
		return f.rotate()
	case 1:
		return f.writePolicy(fmt.Sprintf("help: change %d\n", n))
	case 2:
		return os.WriteFile(f.policy, []byte("nonsense"), 0o600)
	}
	return f.writePolicy("")
}
