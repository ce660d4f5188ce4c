package harness

import (
	"slices"
	"time"
)

// Component is a process that a test may stop, kill and start again. It keeps
// its name, log, addresses and flags.
type Component struct {
	*Env
	*component
}

// component is what the views of one Component share.
type component struct {
	run   *run
	name  string
	env   []string
	bin   string
	args  []string
	ready func(*Env) // waits until it is, see WaitReady
	// abrupt: nobody waits for it to stop when the test is over.
	abrupt bool

	proc *process // nil while it is down
}

// Launch starts the component with flags behind its own (where one is given
// twice the later counts, unless it is a list) and does not wait.
func (c *Component) Launch(flags ...string) {
	c.T.Helper()
	if c.proc != nil {
		c.T.Fatalf("%s runs already", c.name)
	}
	c.proc = c.component.run.start(c.T, c.name, c.env, c.bin, slices.Concat(c.args, flags)...)
	c.proc.abrupt = c.abrupt
}

// WaitReady waits until the component says that it is ready.
func (c *Component) WaitReady() {
	c.T.Helper()
	c.ready(c.Env)
}

// Start is Launch and WaitReady.
func (c *Component) Start(flags ...string) {
	c.T.Helper()
	c.Launch(flags...)
	c.WaitReady()
}

// Stop ends the component with SIGTERM, as a node does, and returns when it is
// gone. It does nothing when the component is down.
func (c *Component) Stop() { c.end(func(p *process) { p.stop(gracePeriod) }) }

// Kill ends the component with SIGKILL, as a lost node does, and returns when
// it is gone. It does nothing when the component is down.
func (c *Component) Kill() { c.end((*process).kill) }

func (c *Component) end(how func(*process)) {
	if c.proc == nil {
		return
	}
	c.component.run.forget(c.proc)
	how(c.proc)
	c.proc = nil
}

// Restart is Stop and Start. The flags count until the next start.
func (c *Component) Restart(flags ...string) {
	c.T.Helper()
	c.Stop()
	c.Start(flags...)
}

// Up reports whether the component was started and has not ended.
func (c *Component) Up() bool { return c.proc != nil && !c.proc.ended() }

// PID is the process's ID, for a signal of another kind. It is 0 when the
// component is down.
func (c *Component) PID() int {
	if c.proc == nil {
		return 0
	}
	return c.proc.cmd.Process.Pid
}

// WaitEnd waits until the component has ended by itself and returns its exit
// status (-1: by a signal). It is down then.
func (c *Component) WaitEnd() int {
	c.T.Helper()
	if c.proc == nil {
		c.T.Fatalf("%s is down already", c.name)
	}
	p := c.proc
	c.component.run.forget(p)
	select {
	case <-p.done:
	case <-time.After(Patience):
		p.kill()
		c.T.Fatalf("%s did not end: %s", c.name, p.tail())
	}
	c.proc = nil
	return p.cmd.ProcessState.ExitCode()
}

// Log returns all that the component has logged since its first start.
func (c *Component) Log() string {
	c.T.Helper()
	return string(c.readFile(c.component.run.dir, c.name+".log"))
}
