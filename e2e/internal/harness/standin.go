package harness

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	admissionv1 "k8s.io/api/admission/v1"
)

// standInVariable makes the test binary the program of StartStandIns.
const standInVariable = "SYNCGATE_E2E_STANDIN"

// standInMetric counts what a stand-in was asked, by kind and operation.
const standInMetric = "standin_reviews_total"

// StartStandIns is StartWebhooks with a program that only decodes reviews and
// allows them all, or denies them all while the policy file contains the word
// deny. Its flags, ports and paths are the backstop's. It is for tests of the
// harness, and the handler to compare the backstop with under load.
//
// Its metric is standin_reviews_total{kind,operation}, its audit annotation
// "replica" its own address.
func StartStandIns(c *Cluster, n int, policyDir string, flags ...string) *Webhooks {
	c.T.Helper()
	program, err := os.Executable()
	if err != nil {
		c.T.Fatal(err)
	}
	return startWebhooks(c, n, program, []string{standInVariable + "=1"}, policyDir, flags)
}

// standIn is the program. It returns its exit status.
func standIn(args []string) int {
	if err := runStandIn(args); err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		return 1
	}
	return 0
}

func runStandIn(args []string) error {
	flags := flag.NewFlagSet("stand-in", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	metricsListen := flags.String("metrics-listen", "", "")
	policy := flags.String("policy", "", "")
	cert := flags.String("tls-cert", "", "")
	key := flags.String("tls-key", "", "")
	flags.String("off", "", "") // nothing here switches it off
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(*policy); err != nil {
		return err
	}
	var mu sync.Mutex
	counts := map[string]int{}
	decide := reviewer(func(_ []byte, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		mu.Lock()
		counts[fmt.Sprintf("%s{kind=%q,operation=%q}", standInMetric, request.Kind.Kind, request.Operation)]++
		mu.Unlock()
		response := Allow(request)
		if text, err := os.ReadFile(*policy); err != nil || strings.Contains(string(text), "deny") {
			response = Deny("stand-in says no")(request)
		}
		response.AuditAnnotations = map[string]string{"replica": *listen}
		return response
	})
	mux := http.NewServeMux()
	ok := func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") }
	mux.HandleFunc("/healthz", ok)
	mux.HandleFunc("/readyz", ok)
	mux.HandleFunc("/metrics", func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var lines []string
		for series, n := range counts {
			lines = append(lines, fmt.Sprintf("%s %d\n", series, n))
		}
		slices.Sort(lines)
		fmt.Fprintf(rw, "# TYPE %s counter\n%s", standInMetric, strings.Join(lines, ""))
	})
	reviews := &http.Server{Addr: *listen, Handler: decide, TLSConfig: &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(*cert, *key)
			return &pair, err
		},
	}}
	metrics := &http.Server{Addr: *metricsListen, Handler: mux}
	failed := make(chan error, 2)
	go func() { failed <- reviews.ListenAndServeTLS("", "") }()
	go func() { failed <- metrics.ListenAndServe() }()
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	select {
	case err := <-failed:
		return err
	case <-stop.Done():
		return reviews.Shutdown(context.Background())
	}
}
