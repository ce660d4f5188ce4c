package main_test

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the program as it is shipped, built once: what these tests say of
// exit statuses and streams they say of a process.
var program string

func TestMain(m *testing.M) {
	if party := os.Getenv("SYNCGATE_TEST_SIGNER"); party != "" {
		os.Exit(signStdin(party)) // this binary, as the command of --sign-command
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "syncgate-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "syncgate")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building syncgate:", err)
		return 1
	}
	return m.Run()
}

// signStdin signs what comes on standard input, as a key service would.
func signStdin(party string) int {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	_, err = os.Stdout.Write(ed25519.Sign(privateKey(party), input))
	if err != nil {
		return 1
	}
	return 0
}
