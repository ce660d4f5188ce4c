package lock

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write puts one file into the lock of a new application.
func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, Folder, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(path, []byte(text), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpenNamesTheFileAndTheLine(t *testing.T) {
	good := entry(t, "prod", deployment("web"), "release", "1")
	const path = "prod/apps.Deployment.shop.web.release.jwt"
	line := "- {name: web, tag: \"1\", digest: " + digestA + "}\n"
	for _, tc := range []struct {
		name, path, text string
		want             string
	}{
		{"a pin of another image", "images/api.lock", line, ".syncgate/images/api.lock: line 1: got image web, which belongs into images/web.lock"},
		{"a tag twice", "images/web.lock", line + line, "images/web.lock: line 2: image web:1 twice"},
		{"another spelling", "images/web.lock", line + "- {tag: \"2\", name: web, digest: " + digestA + "}\n", "line 2: got"},
		{"a tag without quotes", "images/web.lock", "- {name: web, tag: 1, digest: " + digestA + "}\n", "line 1: got"},
		{"an empty line", "images/web.lock", line + "\n" + line, "line 2: got"},
		{"a short digest", "images/web.lock", line[:40] + "}\n", "line 1: image web:1: got digest"},
		{"a merge conflict in pins", "images/web.lock", "<<<<<<< HEAD\n" + line + "=======\n" + line + ">>>>>>> other\n", "images/web.lock: line 1: merge conflict"},
		{"a merge conflict in a receipt", path, "# a\n<<<<<<< HEAD\n" + good.Receipt + "\n=======\n>>>>>>> other\n", path + ": line 2: merge conflict"},
		{"no comment", path, good.Receipt + "\n", "got 1 lines, want a comment and a receipt"},
		{"nothing", path, "", "got 0 lines"},
		{"something else than a comment", path, "web\n" + good.Receipt + "\n", "line 1: got \"web\""},
		{"two receipts", path, "# a\n" + good.Receipt + "\n" + good.Receipt + "\n", "got 3 lines"},
		{"a broken receipt", path, "# a\n" + good.Receipt[1:] + "\n", path + ": line 2: parsing receipt"},
		{"a comment that hides", path, "# a\u202e\n" + good.Receipt + "\n", "line 1: comment"},
		{"the name of another subject", "prod/apps.Deployment.shop.api.release.jwt", formatReceipt(good), "line 2: the receipt is for apps/Deployment/shop/web in \"prod\" by \"release\", which belongs into " + path},
		{"the name of another issuer", "prod/apps.Deployment.shop.web.security.jwt", formatReceipt(good), "belongs into " + path},
		{"the folder of another environment", "stage/apps.Deployment.shop.web.release.jwt", formatReceipt(good), "belongs into " + path},
		{"a receipt among the images", "images/apps.Deployment.shop.web.release.jwt", formatReceipt(good), "not a file of the lock"},
		{"pins in an environment", "prod/web.lock", line, "prod/web.lock: not a file of the lock"},
		{"YAML", "prod/web.yaml", "a: b\n", "prod/web.yaml: not a file of the lock"},
		{"a file beside the folders", "images.lock", line, "images.lock: not a file of the lock"},
		{"a folder in a folder", "prod/deep/apps.Deployment.shop.web.release.jwt", formatReceipt(good), "prod/deep: not a regular file"},
		{"a large file of a receipt", path, strings.Repeat("a", maxReceiptFile+1), "more than"},
		{"a large file of pins", "images/web.lock", strings.Repeat("a", maxPinsFile+1), "more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := Open(write(t, tc.path, tc.text))
			if err == nil || l != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want an error with %q", l, err, tc.want)
			}
		})
	}
	if _, err := Open(write(t, path, formatReceipt(good))); err != nil {
		t.Errorf("the receipt in its place: %v", err)
	}
	if _, err := Open(write(t, path[:len(path)-4]+".prev.jwt", formatReceipt(good))); err != nil {
		t.Errorf("the receipt in the previous one's place: %v", err)
	}
}

func TestOpenLeavesHiddenFilesAlone(t *testing.T) {
	for _, path := range []string{".gitattributes", ".DS_Store", "prod/.tmp-ABC", "images/.web.lock.swp", ".cache/a.yaml"} {
		dir := write(t, path, "anything")
		l := open(t, dir)
		pin(t, l, "web", "1", digestA)
		save(t, l)
		if got := tree(t, filepath.Join(dir, Folder))[path]; got != "anything" {
			t.Errorf("%s: got %q, want it untouched", path, got)
		}
	}
}

func TestSymbolicLinksOutOfTheFolderAreRefused(t *testing.T) {
	outside := t.TempDir()
	good := entry(t, "prod", deployment("web"), "release", "1")
	const name = "apps.Deployment.shop.web.release.jwt"
	// A whole lock, with nothing wrong but where it is.
	err := os.Mkdir(filepath.Join(outside, "prod"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(outside, "prod", name)
	err = os.WriteFile(target, []byte(formatReceipt(good)), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, link, target string
	}{
		{"the folder itself", Folder, outside},
		{"the folder itself, dangling", Folder, filepath.Join(outside, "missing")},
		{"an environment", Folder + "/prod", filepath.Join(outside, "prod")},
		{"a receipt", Folder + "/prod/" + name, target},
		{"the render inputs", Folder + "/" + renderFile, target},
		{"a receipt, by a relative way", Folder + "/prod/" + name, "../../app.jwt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			err := os.WriteFile(filepath.Join(dir, "app.jwt"), []byte(formatReceipt(good)), 0o644)
			if err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(dir, tc.link)
			err = os.MkdirAll(filepath.Dir(link), 0o755)
			if err != nil {
				t.Fatal(err)
			}
			err = os.Symlink(tc.target, link)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Open(dir)
			_, renderErr := ReadRenderInputs(dir)
			if strings.HasSuffix(tc.link, renderFile) {
				err = renderErr
			}
			if err == nil {
				t.Errorf("got %v, want an error", l.Entries())
			}
			before := tree(t, outside)
			empty := &Lock{dir: dir, pins: map[string]map[string]string{}, receipts: map[string]Entry{}}
			put(t, empty, good)
			if tc.link != Folder+"/"+renderFile && !strings.HasSuffix(tc.link, ".jwt") {
				if err := empty.Save(); err == nil {
					t.Error("saved through the link")
				}
			}
			if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
				t.Errorf("files outside (-before +after):\n%s", diff)
			}
		})
	}
}

func TestOpenDoesNotWaitForAPipe(t *testing.T) {
	dir := write(t, "images/web.lock", "")
	pipe := filepath.Join(dir, Folder, "images", "api.lock")
	err := syscall.Mkfifo(pipe, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	if err == nil || !strings.Contains(err.Error(), "images/api.lock: not a regular file") {
		t.Errorf("got %v, want an error", err)
	}
}

// TestAFailedSaveLeavesNothingHalfWritten makes the second of two files
// impossible: a folder stands in its place.
func TestAFailedSaveLeavesNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	pin(t, l, "a", "1", digestA)
	pin(t, l, "b", "1", digestA)
	err := os.MkdirAll(filepath.Join(dir, Folder, "images", "b.lock", "in-the-way"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Save()
	if err == nil || !strings.Contains(err.Error(), "images/b.lock") {
		t.Errorf("got %v, want an error that names the file", err)
	}
	want := map[string]string{"images/a.lock": "- {name: a, tag: \"1\", digest: " + digestA + "}\n"}
	if diff := cmp.Diff(want, tree(t, filepath.Join(dir, Folder))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	err = os.RemoveAll(filepath.Join(dir, Folder, "images", "b.lock"))
	if err != nil {
		t.Fatal(err)
	}
	save(t, l)
	if diff := cmp.Diff(l.Pins(), open(t, dir).Pins()); diff != "" {
		t.Errorf("pins after saving again (-want +got):\n%s", diff)
	}
}

func TestRenderInputsRoundTripOneValueALine(t *testing.T) {
	dir := t.TempDir()
	got, err := ReadRenderInputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(RenderInputs{}, got); diff != "" {
		t.Errorf("without a file (-want +got):\n%s", diff)
	}
	in := RenderInputs{KubeVersion: "1.34", APIVersions: []string{"v1", "apps/v1", "v1"}, Renderers: map[string]string{"kustomize": "v5.8.1", "helm": "v4.0.0"}}
	err = WriteRenderInputs(dir, in)
	if err != nil {
		t.Fatal(err)
	}
	want := "kubeVersion: \"1.34\"\napiVersions:\n  - apps/v1\n  - v1\nrenderers:\n  helm: v4.0.0\n  kustomize: v5.8.1\n"
	if diff := cmp.Diff(map[string]string{"render.lock": want}, tree(t, filepath.Join(dir, Folder))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	got, err = ReadRenderInputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	in.APIVersions = []string{"apps/v1", "v1"}
	if diff := cmp.Diff(in, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	before, err := os.Stat(filepath.Join(dir, Folder, renderFile))
	if err != nil {
		t.Fatal(err)
	}
	err = WriteRenderInputs(dir, in)
	if err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(filepath.Join(dir, Folder, renderFile))
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("writing the same inputs replaced the file")
	}
	open(t, dir)
	for name, text := range map[string]string{"unknown": "kube: 1\n", "duplicate": "kubeVersion: a\nkubeVersion: b\n", "two documents": "kubeVersion: a\n---\nkubeVersion: b\n", "empty": "", "wrong case": "KubeVersion: a\n"} {
		_, err := ReadRenderInputs(write(t, renderFile, text))
		if err == nil || !strings.Contains(err.Error(), ".syncgate/render.lock") {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
	}
}
