// Command demo shows the main job of syncgate without a cluster: a registry
// on loopback, a kustomize application, and the syncgate binary doing what a
// release engineer and Argo CD would make it do. It ends with status 1 if any
// step does not end as it says.
package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed shop policy.yaml
var files embed.FS

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "syncgate-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	d := &demo{dir: dir}
	if err := d.build(); err != nil {
		return err
	}
	stop, err := d.registry("acme/web:1.4", "acme/web:1.5", "acme/metrics:2.0")
	if err != nil {
		return err
	}
	defer stop()
	if err := d.unpack(); err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.run(d); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	fmt.Printf("\nAll %d steps ended as they should, in %s.\n", len(steps), time.Since(start).Round(time.Second))
	return nil
}

// unpack writes the application and the policy, with the registry's address.
func (d *demo) unpack() error {
	return fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(d.dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(strings.ReplaceAll(string(data), "REGISTRY", d.host)), 0o644)
	})
}
