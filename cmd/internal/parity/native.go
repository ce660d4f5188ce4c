package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubeVersion is what Argo CD before 3.4 says of a cluster.
const kubeVersion = "1.35"

// native is a process that renders as Argo CD does.
type native struct {
	dir     string // of its own
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	shared  map[string]string // copies of repositories, which plain units only read
	copies  int
}

// startNative starts it without a network: what it would fetch fails at once,
// as it does here.
func startNative(o options, dir string) (*native, error) {
	n := &native{dir: dir, shared: map[string]string{}}
	for _, sub := range []string{"bin", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]string{"kustomize": o.kustomize, "helm": o.helm} {
		if to == "" {
			continue
		}
		if err := os.Symlink(to, filepath.Join(dir, "bin", name)); err != nil {
			return nil, err
		}
	}
	n.command = exec.Command(o.argocd, "native")
	if o.flux != "" {
		n.command = exec.Command(o.flux)
	}
	n.command.Env = []string{
		"PATH=" + filepath.Join(dir, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "GIT_SSH_COMMAND=false", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=file:https",
		"ARGOCD_GPG_ENABLED=false", "ARGOCD_EXEC_TIMEOUT=60s", "ARGOCD_LOG_LEVEL=error",
	}
	var err error
	if n.in, err = n.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.out = bufio.NewReaderSize(out, 1<<20)
	return n, n.command.Start()
}

func (n *native) close() {
	_ = n.in.Close()
	_ = n.command.Wait() // it ends at the end of its input
}

// checkout copies a repository. What an Application says, kustomize is told by
// edits of its files, so that each Application gets a copy of its own.
func (n *native) checkout(root string, u unit) (string, error) {
	if to, ok := n.shared[root]; ok && u.manifest == nil {
		return to, nil
	}
	n.copies++
	to := filepath.Join(n.dir, fmt.Sprint("repository", n.copies))
	if u.manifest == nil {
		n.shared[root] = to
	}
	return to, os.CopyFS(to, os.DirFS(root))
}

// render returns the objects that Argo CD makes, or what it says is wrong.
func (n *native) render(g *ours, root string, u unit) (objects []map[string]any, failed string, err error) {
	if u.flux != nil {
		return n.renderFlux(g, root, u)
	}
	data, err := json.Marshal(map[string]any{
		"Root": root, "Path": u.dir, "Name": u.name, "Namespace": u.namespace, "KubeVersion": kubeVersion, "Source": u.source, "Timeout": 60,
	})
	if err != nil {
		return nil, "", err
	}
	var a struct {
		Objects []string
		Error   string
	}
	if err := n.ask(data, &a); err != nil {
		return nil, "", err
	}
	if a.Error != "" {
		return nil, strings.Join(strings.Fields(strings.ReplaceAll(a.Error, root, "ROOT")), " "), nil
	}
	for _, text := range a.Objects {
		o, err := decode([]byte(text))
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, o)
	}
	return objects, "", nil
}

// ask sends a line and reads one.
func (n *native) ask(question []byte, answer any) error {
	if _, err := n.in.Write(append(question, '\n')); err != nil {
		return err
	}
	line, err := n.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	if err != nil {
		return fmt.Errorf("reading what %s renders: %w", they, err)
	}
	return nil
}
