package harness

import "syscall"

// dieWithParent ends a child when the test process is killed, so that an
// aborted run leaves no control plane behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
