package harness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// tailSize is how much of a log a failure shows.
const tailSize = 1500

// gracePeriod is how long a process has after SIGTERM.
const gracePeriod = 5 * time.Second

// process is a child with its log file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{}
}

// start runs bin in the background until the test ends. env is added to a
// copy of our own environment without proxies and cluster settings.
func (e *Env) start(name string, env []string, bin string, args ...string) *process {
	e.T.Helper()
	p := &process{name: name, log: filepath.Join(e.Dir, name+".log"), done: make(chan struct{})}
	logFile, err := os.Create(p.log)
	if err != nil {
		e.T.Fatal(err)
	}
	defer logFile.Close()
	p.cmd = exec.Command(bin, args...)
	p.cmd.Env = append(cleanEnvironment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = logFile, logFile
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		e.T.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.done)
	}()
	e.procs = append(e.procs, p)
	return p
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
func (p *process) stop() {
	if p.ended() {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has just ended
	select {
	case <-p.done:
	case <-time.After(gracePeriod):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
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

// freePort returns a loopback port that was free a moment ago.
func (e *Env) freePort() int {
	e.T.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.T.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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
