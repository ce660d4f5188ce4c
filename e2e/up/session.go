package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// session is what the harness takes for a test: it keeps what is to be done at
// the end, and knows whether anything failed. What fails ends the goroutine.
type session struct {
	testing.TB // for what the harness does not call; nil
	stderr     io.Writer

	mu                  sync.Mutex
	cleanups            []func()
	failed, interrupted bool
}

func (s *session) Helper() {}

func (s *session) Name() string { return "up" }

func (s *session) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// interrupt says that from now on nothing is a failure.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = true
}

func (s *session) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Log shows nothing of what comes after an interruption: that processes end.
func (s *session) Log(args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.interrupted {
		fmt.Fprintln(s.stderr, args...)
	}
}

func (s *session) Logf(format string, args ...any) { s.Log(fmt.Sprintf(format, args...)) }

func (s *session) Error(args ...any) {
	s.Log(args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = s.failed || !s.interrupted
}

func (s *session) Errorf(format string, args ...any) { s.Error(fmt.Sprintf(format, args...)) }

func (s *session) Fatal(args ...any) {
	s.Error(args...)
	runtime.Goexit()
}

func (s *session) Fatalf(format string, args ...any) { s.Fatal(fmt.Sprintf(format, args...)) }

// cleanUp does what is to be done at the end, the last first. It runs each in a
// goroutine of its own, which may end early.
func (s *session) cleanUp() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
}
