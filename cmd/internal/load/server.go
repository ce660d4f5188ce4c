package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is one process under load.
type server struct {
	name, address string
	cmd           *exec.Cmd
	done          chan error
}

// start runs a program that serves at a free address: this one as the handler
// to compare with, or the webhook.
func (f *fixture) start(program string, args ...string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{name: "decode only", address: l.Addr().String(), done: make(chan error, 1)}
	if err := l.Close(); err != nil {
		return nil, err
	}
	common := []string{"--tls-cert", f.cert, "--tls-key", f.key}
	if len(args) == 0 {
		args = append(common, "--decode-only", s.address)
	} else {
		s.name = "webhook"
		args = append(append(args, common...), "--listen", s.address, "--metrics-listen", "")
	}
	s.cmd = exec.Command(program, args...)
	log, err := os.Create(f.dir + "/" + s.name + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	for range 500 {
		conn, err := net.Dial("tcp", s.address)
		if err == nil {
			return s, conn.Close()
		}
		select {
		case err := <-s.done:
			text, _ := os.ReadFile(log.Name())
			return nil, fmt.Errorf("%s ended: %v: %s", s.name, err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s does not listen", s.name)
}

// stop ends the process and waits for it.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGKILL) // it may have ended already
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
	}
}

// resident is the memory of the process in KiB, 0 where /proc does not tell.
func (s *server) resident() int {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// cpu is the processor time that the process has taken so far, 0 where /proc
// does not tell.
func (s *server) cpu() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100
}

// serveDecodeOnly answers each review without looking at it: what any handler
// has to do before it can decide.
func serveDecodeOnly(address, cert, key string) error {
	s := &http.Server{
		Addr: address, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
			var review struct {
				Request struct {
					UID    string         `json:"uid"`
					Object map[string]any `json:"object"`
				} `json:"request"`
			}
			if err == nil {
				err = json.Unmarshal(body, &review)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
				"response": map[string]any{"uid": review.Request.UID, "allowed": review.Request.Object != nil}})
		}),
	}
	return s.ListenAndServeTLS(cert, key)
}
