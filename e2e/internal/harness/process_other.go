//go:build !linux

package harness

import "syscall"

// dieWithParent has no equivalent here: an aborted run may leave processes.
func dieWithParent() *syscall.SysProcAttr { return nil }
