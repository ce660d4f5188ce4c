package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// example is what a newcomer works with: a Git repository, a registry with the
// tags 1 and 2 of the images that it names, and the key of who releases them.
type example struct {
	*harness.Env
	policy          *harness.Policy
	signer          *harness.Signer
	repo            *harness.GitRepo
	syncgate, tools string
	kubeconfig      string
	registry        string // HOST:PORT
}

// newExample makes the repository of files, in which REGISTRY is the registry's
// address, and images of these names. Nothing is committed yet.
func newExample(e *harness.Env, b harness.Binaries, cluster *harness.Cluster, files map[string]string, images ...string) *example {
	signer := harness.NewSigner(e, b, "release")
	registry := harness.StartRegistry(e)
	for _, image := range images {
		for _, tag := range []string{"1", "2"} {
			registry.Push(image, tag)
		}
	}
	x := &example{
		Env: e, signer: signer, repo: harness.NewGitRepo(e), syncgate: b.Syncgate, tools: filepath.Dir(b.Syncgate),
		policy:     harness.NewPolicy(e, "policy", harness.BasicPolicy("release")+"receipts: {backstop: true}\n", signer),
		kubeconfig: cluster.Kubeconfig, registry: registry.Host,
	}
	written := map[string]string{".gitignore": "*.bak\n"}
	for name, text := range files {
		written[name] = strings.ReplaceAll(text, "REGISTRY", registry.Host)
	}
	x.repo.Write(written)
	// One program is all of the control plane, and kubectl.
	kubectl := fmt.Sprintf("#!/bin/sh\nexec '%s' kubectl \"$@\"\n", b.Kube)
	if err := os.WriteFile(filepath.Join(x.tools, "kubectl"), []byte(kubectl), 0o755); err != nil {
		e.T.Fatal(err)
	}
	for _, setting := range [][]string{{"user.name", "Newcomer"}, {"user.email", "newcomer@example.test"}, {"push.default", "current"}, {"commit.gpgSign", "false"}} {
		e.Run(x.repo.Work, nil, "git", append([]string{"config"}, setting...)...)
	}
	return x
}

// release pins and signs what is in a directory of the work tree. where are the
// flags that say which application it is.
func (x *example) release(dir string, where ...string) {
	dir = filepath.Join(x.repo.Work, dir)
	x.Run(dir, nil, x.syncgate, append([]string{"pin"}, where...)...)
	x.Run(dir, nil, x.syncgate, append([]string{"sign", "--policy", x.policy.Path(), "--key", x.signer.Key, "--issuer", "release", "--yes"}, where...)...)
}

// setup are the commands that come first, in another terminal. In all that is
// printed lines that begin with four spaces are commands; the tests of this
// program run them.
func (x *example) setup() string {
	return fmt.Sprintf(`    export KUBECONFIG='%s' SYNCGATE_POLICY='%s'
    export PATH='%s':"$PATH"
    cd '%s'
`, x.kubeconfig, x.policy.Path(), x.tools, x.repo.Work)
}

// ending is what is printed last.
func (x *example) ending() string {
	return fmt.Sprintf("Every process's log is in '%s'. Ctrl-C ends all of it, and removes that folder.\n", x.Dir)
}
