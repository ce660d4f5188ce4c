package harness

import (
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
)

// GitServer serves every repository of the run over HTTP: source-controller
// takes no file:// URL.
type GitServer struct {
	dir, url string
}

// serveGit serves until the test ends.
func serveGit(e *Env) *GitServer {
	e.T.Helper()
	backend := strings.TrimSpace(string(e.Run(e.Dir, nil, "git", "--exec-path"))) + "/git-http-backend"
	server := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{
		"GIT_PROJECT_ROOT=" + e.Dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
	}})
	e.T.Cleanup(server.Close)
	return &GitServer{e.Dir, server.URL}
}

// URL is where a repository is served.
func (s *GitServer) URL(g *GitRepo) string {
	path, err := filepath.Rel(s.dir, strings.TrimPrefix(g.URL, "file://"))
	if err != nil {
		g.T.Fatal(err)
	}
	return s.url + "/" + filepath.ToSlash(path)
}
