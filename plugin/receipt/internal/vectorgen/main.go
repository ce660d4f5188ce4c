// Command vectorgen writes the test vectors of package vectors into the
// current directory: go generate ./plugin/receipt/vectors. Everything is
// derived from fixed seeds, so that the files come out byte for byte the same.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	err := run(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "vectorgen:", err)
		os.Exit(1)
	}
}

// run also removes the vectors that are no longer generated.
func run(dir string) error {
	files, err := generate()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, wanted := files[filepath.Base(path)]; wanted {
			continue
		}
		err = os.Remove(path)
		if err != nil {
			return err
		}
	}
	for name, data := range files {
		err = os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o644)
		if err != nil {
			return err
		}
	}
	return nil
}
