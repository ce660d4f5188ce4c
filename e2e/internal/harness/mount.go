package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mount is a folder as the kubelet makes one of a ConfigMap or a Secret: the
// names are links into ..data, itself a link to a folder of one generation, and
// a new generation appears whole, by renaming that link.
type Mount struct {
	*Env
	Dir string

	generation int
}

// NewMount makes a folder of that name in the run's with files by name.
func NewMount(e *Env, name string, files map[string]string) *Mount {
	e.T.Helper()
	m := &Mount{Env: e, Dir: e.Mkdir(name)}
	m.Swap(files)
	return m
}

// File is the path of a file in the mount.
func (m *Mount) File(name string) string { return filepath.Join(m.Dir, name) }

// Swap puts files in the place of all that there are, in the kubelet's order.
func (m *Mount) Swap(files map[string]string) {
	m.T.Helper()
	if err := m.swap(files); err != nil {
		m.T.Fatal(err)
	}
}

func (m *Mount) swap(files map[string]string) error {
	const data = "..data"
	m.generation++
	generation := fmt.Sprintf("..generation_%d", m.generation)
	if err := os.Mkdir(filepath.Join(m.Dir, generation), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.Dir, generation, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	last, err := os.Readlink(m.File(data))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(generation, m.File("..data_tmp")); err != nil {
		return err
	}
	if err := os.Rename(m.File("..data_tmp"), m.File(data)); err != nil {
		return err
	}
	for name := range files {
		err := os.Symlink(filepath.Join(data, name), m.File(name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if _, kept := files[entry.Name()]; kept || strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		if err := os.Remove(m.File(entry.Name())); err != nil {
			return err
		}
	}
	if last == "" {
		return nil
	}
	return os.RemoveAll(m.File(last))
}

// mountPeriod is how often Follow looks: sooner than a kubelet, which takes up
// to two minutes.
const mountPeriod = 500 * time.Millisecond

// Follow keeps the mount what a ConfigMap of the cluster holds until the end, as
// a kubelet does. While there is none the folder is empty.
func (m *Mount) Follow(c *Cluster, namespace, name string) {
	m.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		version := ""
		for ticker := time.NewTicker(mountPeriod); ; {
			u, err := c.client.Resource(ConfigMaps).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				u, err = &unstructured.Unstructured{}, nil
			}
			if err == nil && u.GetResourceVersion() != version { // else it looks again
				if err := m.swap(configMapFiles(u)); err != nil {
					m.T.Errorf("mounting ConfigMap %s/%s: %v", namespace, name, err)
					return
				}
				version = u.GetResourceVersion()
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	m.T.Cleanup(func() {
		cancel()
		wait.Wait()
	})
}

// configMapFiles are what a mount of a ConfigMap holds.
func configMapFiles(u *unstructured.Unstructured) map[string]string {
	files := map[string]string{}
	data, _ := u.Object["data"].(map[string]any)
	for name, v := range data {
		files[name], _ = v.(string)
	}
	return files
}
