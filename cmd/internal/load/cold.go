package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// later is how many answers the first one is compared with.
const later = 50

// cold starts the webhook again and again, and compares the time of the first
// answer with that of later ones: each over a connection of its own, as an API
// server begins that has just found the webhook.
func (f *fixture) cold(program string, flags []string, starts int) error {
	var ratios []float64
	for i := range starts {
		s, err := f.start(program, flags...)
		if err != nil {
			return err
		}
		first, err := f.once(s, i)
		if err != nil {
			return fmt.Errorf("the first request: %w", err)
		}
		var warm []time.Duration
		for n := range later {
			d, err := f.once(s, n)
			if err != nil {
				return err
			}
			warm = append(warm, d)
		}
		s.stop()
		slices.Sort(warm)
		fmt.Printf("start %d: first answer %s, later ones %s (median)\n", i+1, first, warm[later/2])
		ratios = append(ratios, float64(first)/float64(warm[later/2]))
	}
	fmt.Printf("BENCH\twebhook-cold-over-warm\t%.3f\t2\n", median(ratios))
	return nil
}

// once asks over a new connection and returns the time from dialling to the
// answer.
func (f *fixture) once(s *server, n int) (time.Duration, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: f.pool}}}
	start := time.Now()
	err := f.ask(client, s, n)
	return time.Since(start), err
}
