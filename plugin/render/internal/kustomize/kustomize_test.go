package kustomize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionIsThatOfTheModule(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "sigs.k8s.io/kustomize/api " + Version; !strings.Contains(string(data), want) {
		t.Errorf("go.mod does not hold %q", want)
	}
}

// Whatever kustomize takes for a repository to clone, we take for remote.
func TestRemoteNamesAreRecognised(t *testing.T) {
	for _, tc := range []struct {
		name string
		want bool
	}{
		{"https://example.com/x", true},
		{"http:x", true},
		{" https://example.com/x", true},
		{"SSH://git@example.com/x", true},
		{"file:///srv/git/x", true},
		{"git::https://example.com/x", true},
		{"GIT::git::me@example.com:x", true},
		{"git@example.com:org/repo.git", true},
		{"deploy-bot@example.com:org/repo", true},
		{"GitHub.com/org/repo", true},
		{"github.com:org/repo", true},
		{"../base", false},
		{"deploy.yaml", false},
		{"github.company/x", false},
		{"vendor/github.com/org/repo", false},
		{"apps/web@2/deploy.yaml", false},
		{"key: value@example.com", false},
		{"", false},
	} {
		if got := isRemote(tc.name); got != tc.want {
			t.Errorf("%q: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
