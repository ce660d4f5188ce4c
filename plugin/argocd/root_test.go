package argocd

import (
	"path/filepath"
	"testing"
)

func TestRootIsTheRepositoryAboveTheSourcePath(t *testing.T) {
	tests := []struct{ name, dir, path, want string }{
		{"below the root", "/tmp/x/apps/web", "apps/web", "/tmp/x"},
		{"the path as people write it", "/tmp/x/apps/web", "./apps//web/", "/tmp/x"},
		{"with a slash in front", "/tmp/x/apps/web", "/apps/web", "/tmp/x"},
		{"the root itself", "/tmp/x", ".", "/tmp/x"},
		{"no path told", "/tmp/x/apps/web", "", ""},
		{"a path that is elsewhere", "/tmp/x/apps/web", "apps/api", ""},
		{"half a name", "/tmp/x/myapps/web", "apps/web", ""},
		{"a path that climbs", "/tmp/x/apps/web", "../../apps/web", "/tmp/x"},
		{"a path that is the whole of the file system", "/apps/web", "apps/web", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := root(filepath.FromSlash(tt.dir), tt.path); got != filepath.FromSlash(tt.want) {
				t.Errorf("root(%q, %q): got %q, want %q", tt.dir, tt.path, got, tt.want)
			}
		})
	}
}
