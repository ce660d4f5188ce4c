package kustomize

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// quietly runs fn and returns what it printed on standard error and through
// package log, a line each. kustomize prints deprecations there, but standard
// error carries the one line of a refusal and nothing else (docs/spec/refusal.md).
// While it runs, other goroutines must write to an *os.File of their own and
// not read os.Stderr.
func quietly(fn func() error) ([]string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	text := make(chan []byte, 1)
	go func() {
		data, _ := io.ReadAll(io.LimitReader(r, maxOutput)) // a failed read only loses warnings
		_, _ = io.Copy(io.Discard, r)                       // so that the writer never blocks
		text <- data
	}()
	err = func() error {
		stderr, logger := os.Stderr, log.Writer()
		os.Stderr = w
		log.SetOutput(w)
		defer func() {
			os.Stderr = stderr
			log.SetOutput(logger)
			w.Close()
		}()
		return fn()
	}()
	data := <-text
	r.Close()
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = logTime.ReplaceAllString(strings.TrimSpace(line), "")
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "#"), " Warning:"))
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

const maxOutput = 64 << 10 // bytes of warnings

var logTime = regexp.MustCompile(`^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `)

// guard is http.DefaultTransport once its proxy hook is ours.
var guard = protect()

var errNetwork = errors.New("remote files are refused: the gate renders without network; vendor the file into the repository")

// protect refuses every request that kustomize makes. Names of remote files
// are refused where a kustomization gives them, but the configuration of a
// built-in transformer can name a file too, and can itself be put together by
// patches. kustomize's loader has no option for it and uses
// http.DefaultTransport, so that is where it is stopped: the proxy hook is
// called once for each request on the goroutine that makes it. Requests of
// others pass untouched.
func protect() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	next := t.Proxy
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if fromKustomize() {
			return nil, errNetwork
		}
		if next == nil {
			return nil, nil
		}
		return next(r)
	}
	return t
}

func guarded() bool { return guard != nil && http.DefaultTransport == http.RoundTripper(guard) }

func fromKustomize() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "sigs.k8s.io/kustomize/") {
			return true
		}
		if !more {
			return false
		}
	}
}
