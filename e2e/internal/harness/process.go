package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tailSize is how much of a log a failure shows.
const tailSize = 1500

// gracePeriod is how long a process has after SIGTERM when a test stops it: what
// a Pod has. When the test is over nobody waits as long.
const (
	gracePeriod = 30 * time.Second
	endPeriod   = 5 * time.Second
)

// process is a child with its log file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{}
	abrupt    bool // nobody waits for it when the test is over
}

// run is the processes that end together, and the folder of their logs. A nil
// run has none.
type run struct {
	dir string

	mu    sync.Mutex
	procs []*process
}

// start runs bin in the background until the test ends. env is added to a
// copy of our own environment without proxies and cluster settings.
func (e *Env) start(name string, env []string, bin string, args ...string) *process {
	e.T.Helper()
	return e.run.start(e.T, name, env, bin, args...)
}

// start is Env.start. A process of the same name continues the log of the last.
func (r *run) start(t testing.TB, name string, env []string, bin string, args ...string) *process {
	t.Helper()
	p := &process{name: name, log: filepath.Join(r.dir, name+".log"), done: make(chan struct{})}
	logFile, err := os.OpenFile(p.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer logFile.Close()
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env = append(cleanEnvironment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs = append(r.procs, p)
	return p
}

// forget takes out a process that is about to be ended on purpose: its end is
// then no failure.
func (r *run) forget(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs = slices.DeleteFunc(r.procs, func(other *process) bool { return other == p })
}

// dead returns a process that ended by itself, or nil.
func (r *run) dead() *process {
	for _, p := range r.processes() {
		if p.ended() {
			return p
		}
	}
	return nil
}

// tails returns the ends of the logs.
func (r *run) tails() []string {
	var tails []string
	for _, p := range r.processes() {
		tails = append(tails, "end of "+p.log+":\n"+p.tail())
	}
	return tails
}

// stop stops all, the last first.
func (r *run) stop() {
	for _, p := range slices.Backward(r.processes()) {
		if p.abrupt {
			p.kill()
		}
		p.stop(endPeriod)
	}
}

func (r *run) processes() []*process {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.procs)
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop asks with SIGTERM, then insists.
func (p *process) stop(grace time.Duration) {
	if p.ended() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has just ended
	select {
	case <-p.done:
	case <-time.After(grace):
		p.kill()
	}
}

// kill ends it with SIGKILL, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has just ended
	<-p.done
}

func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	if len(b) > tailSize {
		b = b[len(b)-tailSize:]
	}
	return string(b)
}

// cleanEnvironment leaves out what would send loopback traffic elsewhere
// (Argo CD dials the plugin's socket through golang.org/x/net/proxy) and what
// would point a process to another cluster or another policy.
func cleanEnvironment() []string {
	var keep []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		switch {
		case strings.HasSuffix(name, "_PROXY"), name == "KUBECONFIG",
			strings.HasPrefix(name, "ARGOCD_"), strings.HasPrefix(name, "SYNCGATE_"),
			strings.HasPrefix(name, "GIT_"):
		default:
			keep = append(keep, v)
		}
	}
	return keep
}

// Run runs a command to its end and returns its standard output. A status
// other than 0 fails the test.
func (e *Env) Run(dir string, env []string, bin string, args ...string) []byte {
	e.T.Helper()
	r := e.Try(dir, env, bin, args...)
	if r.Status != 0 {
		e.T.Fatalf("%s %s: exit status %d: %s", filepath.Base(bin), strings.Join(args, " "), r.Status, r.Stderr)
	}
	return r.Stdout
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr []byte
	Status         int
}

// Try runs a command to its end, whatever its status.
func (e *Env) Try(dir string, env []string, bin string, args ...string) Result {
	e.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnvironment(), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		e.T.Fatalf("running %s: %v", bin, err)
	}
	return Result{[]byte(stdout.String()), []byte(stderr.String()), cmd.ProcessState.ExitCode()}
}

// freePort returns a loopback port that was free a moment ago. It is outside of
// the range from which the system takes the ports of outgoing connections
// (ip_local_port_range, 32768 and up): else a client that dials a server which
// is down can get that server's port for its own end, reach itself, and keep
// the server from coming back.
func (e *Env) freePort() int {
	e.T.Helper()
	const first, last, attempts = 20000, 32767, 100
	for range attempts {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
	e.T.Fatalf("no free port from %d to %d", first, last)
	return 0
}

// freeAddress is freePort with the host.
func (e *Env) freeAddress() string {
	e.T.Helper()
	return fmt.Sprintf("127.0.0.1:%d", e.freePort())
}

// waitHTTP waits until url answers 200.
func (e *Env) waitHTTP(client *http.Client, url string) {
	e.T.Helper()
	e.Eventually(url, func() (string, bool) {
		resp, err := client.Get(url)
		if err != nil {
			return err.Error(), false
		}
		resp.Body.Close()
		return resp.Status, resp.StatusCode == http.StatusOK
	})
}

// waitTCP waits until something listens on a loopback port.
func (e *Env) waitTCP(name string, port int) {
	e.T.Helper()
	e.Eventually(name+" listening", func() (string, bool) {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return err.Error(), false
		}
		conn.Close()
		return "", true
	})
}
