package harness

import (
	"os"
	"path/filepath"
	"strings"
)

// GitRepo is a bare repository with a work tree that pushes to it.
type GitRepo struct {
	*Env
	URL  string // file:// of the bare repository
	Work string // the work tree
}

// gitEnvironment makes commits the same on every machine: no user settings.
var gitEnvironment = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
	"GIT_AUTHOR_NAME=e2e", "GIT_AUTHOR_EMAIL=e2e@example.test",
	"GIT_COMMITTER_NAME=e2e", "GIT_COMMITTER_EMAIL=e2e@example.test",
}

// NewGitRepo makes an empty repository with a branch main.
func NewGitRepo(e *Env) *GitRepo {
	e.T.Helper()
	return NewGitRepoAt(e, "repository")
}

// NewGitRepoAt is NewGitRepo for one of several.
func NewGitRepoAt(e *Env, name string) *GitRepo {
	e.T.Helper()
	bare := filepath.Join(e.Dir, name+".git")
	g := &GitRepo{Env: e, URL: "file://" + bare, Work: e.Mkdir("work-" + name)}
	g.git("init", "--quiet", "--bare", "--initial-branch=main", bare)
	g.git("init", "--quiet", "--initial-branch=main")
	g.git("remote", "add", "origin", bare)
	return g
}

// Write puts files (path in the work tree to content) into the work tree.
func (g *GitRepo) Write(files map[string]string) {
	g.T.Helper()
	for name, content := range files {
		p := filepath.Join(g.Work, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			g.T.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			g.T.Fatal(err)
		}
	}
}

// Commit commits everything that changed in the work tree, pushes, and returns
// the commit's SHA.
func (g *GitRepo) Commit(message string) string {
	g.T.Helper()
	commit := g.Record(message)
	g.Push(commit)
	return commit
}

// Record is Commit without a push.
func (g *GitRepo) Record(message string) string {
	g.T.Helper()
	g.git("add", "--all")
	g.git("commit", "--quiet", "--message", message)
	return g.git("rev-parse", "HEAD")
}

// Push makes a commit of the work tree the head of main.
func (g *GitRepo) Push(commit string) {
	g.T.Helper()
	g.git("push", "--quiet", "origin", commit+":refs/heads/main")
}

func (g *GitRepo) git(args ...string) string {
	g.T.Helper()
	return strings.TrimSpace(string(g.Run(g.Work, gitEnvironment, "git", args...)))
}
