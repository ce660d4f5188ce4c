package lock

import (
	"regexp"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/receipt"
)

func TestFileNamesAreSafeEverywhereAndTellEntriesApart(t *testing.T) {
	long := strings.Repeat("n", 253)
	subject := func(group, kind, namespace, name string) receipt.Subject {
		return receipt.Subject{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	entries := []Entry{
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "Web"), Issuer: "release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "WEB"), Issuer: "release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "Release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "web.a"), Issuer: "b"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "a.b"},
		{Environment: "prod", Subject: subject("", "Pod", "shop", "web"), Issuer: "release"},
		{Environment: "prod", Subject: subject("", "Namespace", "", "web"), Issuer: "release"},
		{Environment: "prod", Subject: subject("rbac.authorization.k8s.io", "ClusterRole", "", "system:auth*"), Issuer: "release"},
		{Environment: "prod", Subject: subject("rbac.authorization.k8s.io", "ClusterRole", "", "system:auth~"), Issuer: "release"},
		{Environment: "prod", Subject: subject("rbac.authorization.k8s.io", "ClusterRole", "", "system_auth_"), Issuer: "release"},
		{Environment: "prod", Subject: subject("rbac.authorization.k8s.io", "ClusterRole", "", "a/../../b"), Issuer: "release"},
		{Environment: "prod", Subject: subject("rbac.authorization.k8s.io", "ClusterRole", "", "é"), Issuer: "release"},
		{Environment: "prod", Subject: receipt.Subject{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate-", Generated: true}, Issuer: "release"},
		{Environment: "prod", Subject: subject("batch", "Job", "shop", "migrate-"), Issuer: "release"},
		{Environment: "prod", Subject: subject("batch", "Job", "shop", "migrate-+"), Issuer: "release"},
		{Environment: "prod", Subject: receipt.Subject{Group: "batch", Kind: "Job", Namespace: "shop", Name: "Migrate-", Generated: true}, Issuer: "release"},
		{Environment: "prod", Subject: subject("batch", "Job", "shop", "Migrate-"), Issuer: "release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", long), Issuer: "release"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", long), Issuer: "security"},
		{Environment: "prod", Subject: subject("apps", "Deployment", "shop", long+"b"), Issuer: "release"},
		{Environment: "prod", Subject: subject("nul", "Thing", "shop", "web"), Issuer: "release"},
		{Environment: "Prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "images", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "render.lock", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "..", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: ".prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "prod.", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "-prod", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "prod/eu", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
		{Environment: "com1", Subject: subject("apps", "Deployment", "shop", "web"), Issuer: "release"},
	}
	safe := regexp.MustCompile(`^[a-z0-9_][a-z0-9._=-]*/[a-z0-9][A-Za-z0-9._+=-]*\.jwt$`)
	plain := map[string]bool{}
	seen := map[string]Entry{}
	for _, e := range entries {
		for _, e.Previous = range []bool{false, true} {
			path := receiptPath(e)
			folder, name, _ := strings.Cut(path, "/")
			if !safe.MatchString(path) || len(folder) > 200 || len(name) > 200 || strings.Contains(path, "..") {
				t.Errorf("%+v: got %q, want a safe name", e, path)
			}
			if other, taken := seen[strings.ToLower(path)]; taken {
				t.Errorf("%+v and %+v: both are %q", e, other, path)
			}
			seen[strings.ToLower(path)] = e
			plain[path] = true
		}
	}
	for _, want := range []string{"prod/apps.Deployment.shop.web.release.jwt", "prod/core.Namespace.-.web.release.prev.jwt", "prod/batch.Job.shop.migrate-+.release.jwt"} {
		if !plain[want] {
			t.Errorf("no file %q: names that are safe stay as they are", want)
		}
	}
	hashed := regexp.MustCompile(`^prod/apps\.Deployment\.shop\.___\.release=[0-9a-f]{8}\.jwt$`)
	if got := receiptPath(entries[2]); !hashed.MatchString(got) {
		t.Errorf("got %q, want 8 hexadecimal digits after what was replaced", got)
	}
}

func TestPinFileNamesAreSafeEverywhereAndTellImagesApart(t *testing.T) {
	safe := regexp.MustCompile(`^images/[a-z0-9_][a-z0-9._+~=-]*\.lock$`)
	seen := map[string]string{}
	for _, image := range []string{
		"nginx", "nginx.", "library/nginx", "library_nginx", "library+nginx", "ghcr.io/acme/web", "ghcr.io/acme-web", "localhost:5000/web", "localhost/5000/web",
		"Host.example/web", "host.example/web", "nul", "con.d/web", "-x", ".x", "..", "a/../b", strings.Repeat("a", 255), strings.Repeat("a", 254),
	} {
		path := pinsPath(image)
		if !safe.MatchString(path) || len(path) > 210 || strings.Contains(path, "/..") {
			t.Errorf("%q: got %q, want a safe name", image, path)
		}
		if other, taken := seen[strings.ToLower(path)]; taken {
			t.Errorf("%q and %q: both are %q", image, other, path)
		}
		seen[strings.ToLower(path)] = image
	}
	if got, want := pinsPath("localhost:5000/acme/web"), "images/localhost~5000+acme+web.lock"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKindsThatDifferByCaseOnlyAreRefused(t *testing.T) {
	l := open(t, t.TempDir())
	put(t, l, entry(t, "prod", receipt.Subject{Group: "a.example", Kind: "Foo", Namespace: "shop", Name: "x"}, "release", "1"))
	err := l.PutReceipt(entry(t, "prod", receipt.Subject{Group: "a.example", Kind: "FOO", Namespace: "shop", Name: "x"}, "release", "1"))
	if err == nil || !strings.Contains(err.Error(), "share the file") {
		t.Errorf("got %v, want an error", err)
	}
}
