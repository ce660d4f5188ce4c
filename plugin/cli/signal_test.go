package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// deafVariable makes the test binary a command that does not listen to signals.
const deafVariable = "SYNCGATE_TEST_DEAF"

func terminate() error { return syscall.Kill(os.Getpid(), syscall.SIGTERM) }

func TestACommandThatListensEndsByItself(t *testing.T) {
	status, _, stderr := answer(t, func(c *cobra.Command) error {
		if err := terminate(); err != nil {
			return err
		}
		<-c.Context().Done()
		return errors.New("cleaned up")
	}, "x")
	if status != 1 || stderr != "syncgate: cleaned up\n" {
		t.Errorf("got %d, %q, want what the command says", status, stderr)
	}
}

func TestASignalEndsACommandThatWaitsForAPipe(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	status, stdout, stderr := answer(t, func(*cobra.Command) error {
		if err := terminate(); err != nil {
			return err
		}
		<-hang
		return nil
	}, "x")
	if status != 1 || stdout != "" || stderr != "syncgate: stopped by a signal\n" {
		t.Errorf("got %d, %q, %q, want status 1", status, stdout, stderr)
	}
}

// TestASecondSignalEndsTheProcess goes on sending signals: the first is for the
// command, and one that follows must not be swallowed.
func TestASecondSignalEndsTheProcess(t *testing.T) {
	if os.Getenv(deafVariable) != "" {
		status, _, _ := answer(t, func(*cobra.Command) error {
			for {
				if err := terminate(); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		}, "x")
		os.Exit(status)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), deafVariable+"=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("got %v, want that the signal ends it\n%s", err, out.String())
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); !ok || !w.Signaled() || w.Signal() != syscall.SIGTERM {
		t.Errorf("got %v, want that the signal ends it\n%s", exit, out.String())
	}
}
