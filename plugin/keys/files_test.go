package keys

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestKeysAreNotReadFromAPipe would never end if a pipe were opened as a file
// is: nobody writes to it.
func TestKeysAreNotReadFromAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "keys")
	err := syscall.Mkfifo(pipe, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, os.DevNull} {
		_, err = ReadJWKS(path)
		if err == nil || !strings.HasSuffix(err.Error(), path+": not a regular file") {
			t.Errorf("key set %s: got %v, want that it is not a regular file", path, err)
		}
		_, err = ReadSigner(path, "")
		if err == nil || !strings.HasSuffix(err.Error(), path+": not a regular file") {
			t.Errorf("private key %s: got %v, want that it is not a regular file", path, err)
		}
	}
}
