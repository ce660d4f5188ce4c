package lock

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/syncgate/syncgate/plugin/receipt"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func deployment(name string) receipt.Subject {
	return receipt.Subject{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name}
}

// entry signs a receipt; release tells two of one subject apart.
func entry(t testing.TB, environment string, s receipt.Subject, issuer, release string) Entry {
	t.Helper()
	signer, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)), "k1", "")
	if err != nil {
		t.Fatal(err)
	}
	compact, err := receipt.Sign(receipt.Claims{
		Issuer: issuer, Subject: s.String(), Generated: s.Generated, Environment: environment, Profile: "v1",
		Covers: []string{"image"}, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(release))), IssuedAt: 1767225600, Expires: 1775001600,
		ID: "mJ8w3Qe5R1uXz0aB7cD9fg", Release: release,
	}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return Entry{Environment: environment, Subject: s, Issuer: issuer, Comment: s.Short() + ": release " + release, Receipt: compact}
}

func open(t testing.TB, dir string) *Lock {
	t.Helper()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A renewed receipt says the same for longer: the one that it replaces must not
// stay good when the new one is revoked.
func TestARenewalKeepsNoPreviousReceipt(t *testing.T) {
	l := open(t, t.TempDir())
	old := entry(t, "prod", deployment("web"), "release", "1")
	renewed := resign(t, old, func(c *receipt.Claims) { c.Expires++; c.ID = "mJ8w3Qe5R1uXz0aB7cD9fh" })
	other := entry(t, "prod", deployment("web"), "release", "2")
	put(t, l, old, renewed)
	if got := l.Entries(); len(got) != 1 || got[0].Receipt != renewed.Receipt {
		t.Fatalf("after renewing: got %d entries, want the renewed one alone", len(got))
	}
	put(t, l, other)
	again := resign(t, other, func(c *receipt.Claims) { c.Expires++ })
	put(t, l, again)
	got := l.Entries()
	if len(got) != 2 || got[0].Receipt != again.Receipt || got[1].Receipt != renewed.Receipt || !got[1].Previous {
		t.Errorf("after a change and a renewal: got %+v, want the renewed change and what was before it", got)
	}
}

func resign(t testing.TB, e Entry, change func(*receipt.Claims)) Entry {
	t.Helper()
	u, err := receipt.ParseUnverified(e.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	change(&u.Claims)
	signer, err := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32)), "k1", "")
	if err != nil {
		t.Fatal(err)
	}
	if e.Receipt, err = receipt.Sign(u.Claims, signer); err != nil {
		t.Fatal(err)
	}
	return e
}

func put(t testing.TB, l *Lock, entries ...Entry) {
	t.Helper()
	for _, e := range entries {
		err := l.PutReceipt(e)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func pin(t testing.TB, l *Lock, name, tag, digest string) {
	t.Helper()
	err := l.SetPin(Pin{Name: name, Tag: tag, Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
}

func save(t testing.TB, l *Lock) {
	t.Helper()
	err := l.Save()
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns every file under the directory and what it holds.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out
}

func TestTheDirectoryLooksAsDocumented(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	pin(t, l, "ghcr.io/acme/web", "1.5", digestB)
	pin(t, l, "ghcr.io/acme/web", "1.4", digestA)
	pin(t, l, "nginx", "", digestA)
	first := entry(t, "prod", deployment("web"), "release", "1.4")
	second := entry(t, "prod", deployment("web"), "release", "1.5")
	role := entry(t, "prod", receipt.Subject{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "viewer"}, "security", "1")
	job := entry(t, "stage", receipt.Subject{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate-", Generated: true}, "release", "1")
	pod := entry(t, "stage", receipt.Subject{Kind: "Pod", Namespace: "shop", Name: "web-0"}, "release", "1")
	put(t, l, first, second, role, job, pod)
	save(t, l)
	want := map[string]string{
		"images/ghcr.io+acme+web.lock":                                     "- {name: ghcr.io/acme/web, tag: \"1.4\", digest: " + digestA + "}\n- {name: ghcr.io/acme/web, tag: \"1.5\", digest: " + digestB + "}\n",
		"images/nginx.lock":                                                "- {name: nginx, tag: \"\", digest: " + digestA + "}\n",
		"prod/apps.Deployment.shop.web.release.jwt":                        "# Deployment shop/web: release 1.5\n" + second.Receipt + "\n",
		"prod/apps.Deployment.shop.web.release.prev.jwt":                   "# Deployment shop/web: release 1.4\n" + first.Receipt + "\n",
		"prod/rbac.authorization.k8s.io.ClusterRole.-.viewer.security.jwt": "# ClusterRole viewer: release 1\n" + role.Receipt + "\n",
		"stage/batch.Job.shop.migrate-+.release.jwt":                       "# Job shop/migrate-*: release 1\n" + job.Receipt + "\n",
		"stage/core.Pod.shop.web-0.release.jwt":                            "# Pod shop/web-0: release 1\n" + pod.Receipt + "\n",
	}
	if diff := cmp.Diff(want, tree(t, filepath.Join(dir, Folder))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	again := open(t, dir)
	if diff := cmp.Diff(l.Entries(), again.Entries()); diff != "" {
		t.Errorf("entries after a round trip (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(l.Pins(), again.Pins()); diff != "" {
		t.Errorf("pins after a round trip (-want +got):\n%s", diff)
	}
	first.Previous = true
	if diff := cmp.Diff([]Entry{second, first}, again.Receipts("prod", deployment("web"))); diff != "" {
		t.Errorf("receipts of one subject (-want +got):\n%s", diff)
	}
	if got := again.Receipts("stage", deployment("web")); got != nil {
		t.Errorf("receipts of another environment: got %v", got)
	}
	if got, ok := again.Pin("ghcr.io/acme/web", "1.5"); !ok || got != digestB {
		t.Errorf("pin: got %q, %t, want %q", got, ok, digestB)
	}
	if got, ok := again.Pin("ghcr.io/acme/web", "1.6"); ok || got != "" {
		t.Errorf("pin of an unknown tag: got %q, %t", got, ok)
	}
}

func TestCurrentReceiptsComeBeforePreviousOnes(t *testing.T) {
	l := open(t, t.TempDir())
	put(t, l, entry(t, "prod", deployment("web"), "security", "1"), entry(t, "prod", deployment("web"), "release", "1"),
		entry(t, "prod", deployment("web"), "release", "2"), entry(t, "prod", deployment("web"), "security", "2"))
	var got []string
	for _, e := range l.Receipts("prod", deployment("web")) {
		got = append(got, fmt.Sprint(e.Issuer, e.Previous))
	}
	want := []string{"releasefalse", "securityfalse", "releasetrue", "securitytrue"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestAnApplicationWithoutALockHasAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	if len(l.Pins()) != 0 || len(l.Entries()) != 0 {
		t.Errorf("got %v, %v, want nothing", l.Pins(), l.Entries())
	}
	save(t, l)
	if got := tree(t, dir); len(got) != 0 {
		t.Errorf("saving nothing wrote %v", got)
	}
	if _, err := Open(filepath.Join(dir, "missing")); err == nil {
		t.Error("opened the lock of a directory that is not there")
	}
}

// TestSaveTouchesOnlyWhatChanged makes every file old and looks which ones are
// new afterwards.
func TestSaveTouchesOnlyWhatChanged(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	pin(t, l, "web", "1", digestA)
	pin(t, l, "api", "1", digestA)
	put(t, l, entry(t, "prod", deployment("web"), "release", "1"), entry(t, "prod", deployment("api"), "release", "1"))
	save(t, l)
	old := time.Unix(1000000000, 0)
	age := func() {
		for name := range tree(t, filepath.Join(dir, Folder)) {
			err := os.Chtimes(filepath.Join(dir, Folder, name), old, old)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	touched := func() []string {
		var list []string
		err := filepath.Walk(filepath.Join(dir, Folder), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && !info.ModTime().Equal(old) {
				list = append(list, info.Name())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, tc := range []struct {
		name   string
		change func(*Lock)
		want   []string
	}{
		{"nothing", func(*Lock) {}, nil},
		{"the same again, with another comment", func(l *Lock) {
			e := entry(t, "prod", deployment("web"), "release", "1")
			e.Comment = "other words"
			put(t, l, e)
			pin(t, l, "web", "1", digestA)
			l.KeepPins(func(Pin) bool { return true })
		}, nil},
		{"one pin", func(l *Lock) { pin(t, l, "web", "1", digestB) }, []string{"web.lock"}},
		{"one receipt", func(l *Lock) { put(t, l, entry(t, "prod", deployment("api"), "release", "2")) },
			[]string{"apps.Deployment.shop.api.release.jwt", "apps.Deployment.shop.api.release.prev.jwt"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			age()
			l := open(t, dir)
			tc.change(l)
			save(t, l)
			if diff := cmp.Diff(tc.want, touched()); diff != "" {
				t.Errorf("touched files (-want +got):\n%s", diff)
			}
			age()
			save(t, l)
			if got := touched(); got != nil {
				t.Errorf("saving again touched %v", got)
			}
		})
	}
}

func TestFilesWithLineEndsOfWindowsAreUnchanged(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	pin(t, l, "web", "1", digestA)
	put(t, l, entry(t, "prod", deployment("web"), "release", "1"))
	save(t, l)
	for name, text := range tree(t, dir) {
		err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "\n", "\r\n")), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	again := open(t, dir)
	if diff := cmp.Diff(l.Entries(), again.Entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	save(t, again)
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
}

func TestDroppedEntriesLeaveNoFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	pin(t, l, "web", "1", digestA)
	pin(t, l, "web", "2", digestA)
	pin(t, l, "api", "1", digestA)
	put(t, l, entry(t, "prod", deployment("web"), "release", "1"), entry(t, "prod", deployment("web"), "release", "2"), entry(t, "stage", deployment("web"), "release", "1"))
	save(t, l)
	l = open(t, dir)
	l.KeepPins(func(p Pin) bool { return p.Name == "web" && p.Tag == "2" })
	n := l.Remove(func(e Entry) bool { return e.Environment == "prod" })
	if n != 2 {
		t.Errorf("removed %d entries, want the current and the previous one", n)
	}
	save(t, l)
	got := []string{}
	for name := range tree(t, dir) {
		got = append(got, name)
	}
	if len(got) != 2 {
		t.Errorf("got files %v, want one of web's pins and one receipt", got)
	}
	if _, err := os.Stat(filepath.Join(dir, Folder, "prod")); !os.IsNotExist(err) {
		t.Errorf("got %v, want the empty folder gone", err)
	}
	if diff := cmp.Diff([]Pin{{"web", "2", digestA}}, open(t, dir).Pins()); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
}

func TestPutReceiptRefusesWhatLies(t *testing.T) {
	good := entry(t, "prod", deployment("web"), "release", "1")
	for _, tc := range []struct {
		name   string
		change func(*Entry)
		want   string
	}{
		{"another environment", func(e *Entry) { e.Environment = "stage" }, `environment: got "prod" in the receipt, want "stage"`},
		{"another issuer", func(e *Entry) { e.Issuer = "security" }, `iss: got "release" in the receipt`},
		{"another subject", func(e *Entry) { e.Subject.Name = "api" }, "sub: got"},
		{"a prefix", func(e *Entry) { e.Subject.Generated = true }, "sub: got"},
		{"not a receipt", func(e *Entry) { e.Receipt = "x" }, "parsing receipt"},
		{"two receipts", func(e *Entry) { e.Receipt += " " + e.Receipt }, "parsing receipt"},
		{"a comment of two lines", func(e *Entry) { e.Comment = "a\nb" }, "cannot be printed"},
		{"a comment that hides", func(e *Entry) { e.Comment = "a\u202eb" }, "cannot be printed"},
		{"a long comment", func(e *Entry) { e.Comment = strings.Repeat("a", maxComment+1) }, "501 bytes"},
		{"a previous one", func(e *Entry) { e.Previous = true }, "want a current one"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := open(t, t.TempDir())
			e := good
			tc.change(&e)
			err := l.PutReceipt(e)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if got := l.Entries(); len(got) != 0 {
				t.Errorf("got %v beside an error", got)
			}
		})
	}
	l := open(t, t.TempDir())
	good.Comment = ""
	put(t, l, good)
	if got := l.Entries()[0].Comment; got != "Deployment shop/web" {
		t.Errorf("got comment %q, want the subject", got)
	}
}

func TestSetPinRefusesWhatYAMLWouldReadOtherwise(t *testing.T) {
	for _, p := range []Pin{
		{}, {"web", "1", ""}, {"web", "1", "sha256:abc"}, {"web", "1", strings.ToUpper(digestA)}, {"", "1", digestA},
		{"we b", "1", digestA}, {"web}", "1", digestA}, {"web\n- {", "1", digestA}, {"web:", "1", digestA}, {"../web", "1", digestA},
		{strings.Repeat("a", 256), "1", digestA}, {"web", `1"`, digestA}, {"web", "-1", digestA}, {"web", strings.Repeat("1", 129), digestA}, {"web", "1\n", digestA},
	} {
		l := open(t, t.TempDir())
		if err := l.SetPin(p); err == nil || len(l.Pins()) != 0 {
			t.Errorf("%+v: got %v and %v, want an error", p, err, l.Pins())
		}
	}
}

// A disk that fills up while the lock is written must not leave half of it: the
// receipts that made it would be for an application that is refused.
func TestSaveThatFailsWhileWritingChangesNothing(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	put(t, l, entry(t, "dev", deployment("api"), "release", "1"), entry(t, "prod", deployment("web"), "release", "1"))
	if err := os.MkdirAll(filepath.Join(dir, Folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Folder, "prod"), nil, 0o644); err != nil { // where a folder belongs
		t.Fatal(err)
	}
	if err := l.Save(); err == nil {
		t.Fatal("no error")
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "prod" {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
