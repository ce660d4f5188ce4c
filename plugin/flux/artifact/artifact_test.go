package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/flux/artifact"
)

type entry struct {
	header tar.Header
	body   string
}

func file(name, body string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(body))}, body}
}

func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := w.WriteHeader(&e.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func sum(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/gitrepository/flux-system/shop/abc.tar.gz"
}

func content(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// files lists what is below dir: names, and for files their content.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			out = append(out, rel+" "+d.Type().String())
			return nil
		}
		data, err := os.ReadFile(p)
		out = append(out, rel+"="+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsFetched(t *testing.T) {
	data := pack(t,
		entry{tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o000}, ""},
		entry{tar.Header{Name: "apps/", Typeflag: tar.TypeDir, Mode: 0o000}, ""},
		file("apps/web.yaml", "old"),
		file("apps/web.yaml", "web"),
		file("deep/er/x.yaml", "x"),
		entry{tar.Header{Name: "apps/link.yaml", Typeflag: tar.TypeSymlink, Linkname: "web.yaml"}, ""},
	)
	address := serve(t, content(data))
	want := []string{"apps d---------", "apps/web.yaml=web", "deep d---------", "deep/er d---------", "deep/er/x.yaml=x"}
	for _, digest := range []string{sum(data), sum(data)[7:], fmt.Sprintf("sha512:%x", sha512.Sum512(data)), fmt.Sprintf("sha384:%x", sha512.Sum384(data))} {
		dir := t.TempDir()
		if err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, digest, dir); err != nil {
			t.Fatalf("%s: %v", digest, err)
		}
		if got := files(t, dir); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", digest, got, want)
		}
	}
}

func TestNothingIsUnpackedThatIsNotWhatTheSourceSays(t *testing.T) {
	data := pack(t, file("web.yaml", "web"))
	address := serve(t, content(data))
	for name, digest := range map[string]string{
		"another":              sum([]byte("other")),
		"none":                 "",
		"cut":                  sum(data)[:70],
		"upper case":           "sha256:" + strings.ToUpper(sum(data)[7:]),
		"an unknown algorithm": "md5:d41d8cd98f00b204e9800998ecf8427e",
		"of another algorithm": "sha512:" + sum(data)[7:],
	} {
		dir := t.TempDir()
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, digest, dir)
		if err == nil || name == "another" && !errors.Is(err, artifact.ErrDigest) {
			t.Errorf("%s: got error %v", name, err)
		}
		if got := files(t, dir); len(got) > 0 {
			t.Errorf("%s: unpacked %q", name, got)
		}
	}
}

func TestEntriesThatAreNotPlainFilesWithin(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, e := range map[string][]entry{
		"a parent":           {file("../x.yaml", "x")},
		"a parent, late":     {file("a/../../x.yaml", "x")},
		"an absolute name":   {file(outside, "x")},
		"a backslash":        {file(`a\..\..\x`, "x")},
		"a link out":         {{tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../../etc"}, ""}, file("l/x", "x")},
		"an absolute link":   {{tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""}},
		"a hard link":        {file("a", "a"), {tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}, ""}},
		"a device":           {{tar.Header{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, ""}},
		"a pipe":             {{tar.Header{Name: "p", Typeflag: tar.TypeFifo}, ""}},
		"a file as a folder": {file("a", "a"), file("a/b", "b")},
	} {
		data := pack(t, e...)
		dir := t.TempDir()
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), serve(t, content(data)), sum(data), dir)
		if !errors.Is(err, artifact.ErrUnsafe) {
			t.Errorf("%s: got error %v, want %v", name, err, artifact.ErrUnsafe)
		}
		for _, f := range files(t, dir) {
			if !strings.HasPrefix(f, "a=") {
				t.Errorf("%s: unpacked %q", name, f)
			}
		}
		if _, err := os.Lstat(outside); err == nil {
			t.Fatalf("%s: %s was written", name, outside)
		}
	}
}

func TestWhatIsNoArchive(t *testing.T) {
	good := pack(t, file("web.yaml", strings.Repeat("x", 10_000)))
	for name, data := range map[string][]byte{"text": []byte("hello"), "nothing": nil, "cut": good[:len(good)/2]} {
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), serve(t, content(data)), sum(data), t.TempDir())
		if !errors.Is(err, artifact.ErrUnsafe) {
			t.Errorf("%s: got error %v, want %v", name, err, artifact.ErrUnsafe)
		}
	}
}

// zeros is an archive of one file of n zero bytes.
func zeros(t *testing.T, n int64) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "zeros.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: n}); err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	for ; n > 0; n -= int64(len(chunk)) {
		if _, err := w.Write(chunk[:min(n, int64(len(chunk)))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestBounds(t *testing.T) {
	var many []entry
	for i := range 20 {
		many = append(many, file(fmt.Sprint(i), "x"))
	}
	for name, tc := range map[string]struct {
		data   []byte
		limits artifact.Limits
	}{
		"packed":   {pack(t, file("x", "x")), artifact.Limits{Packed: 20}},
		"unpacked": {zeros(t, 8<<20), artifact.Limits{Unpacked: 8<<20 - 1}},
		"a bomb":   {zeros(t, 300<<20), artifact.Limits{}},
		"files":    {pack(t, many...), artifact.Limits{Files: 19}},
		"together": {pack(t, file("a", "12345"), file("b", "12345")), artifact.Limits{Unpacked: 9}},
	} {
		dir := t.TempDir()
		err := artifact.New(tc.limits).Fetch(t.Context(), serve(t, content(tc.data)), sum(tc.data), dir)
		if !errors.Is(err, artifact.ErrTooLarge) {
			t.Errorf("%s: got error %v, want %v", name, err, artifact.ErrTooLarge)
		}
		for _, f := range files(t, dir) {
			if strings.HasPrefix(f, "zeros") {
				t.Errorf("%s: unpacked a file of more than the limit", name)
			}
		}
	}
	data := pack(t, many...)
	if err := artifact.New(artifact.Limits{Files: 20, Unpacked: 20, Packed: int64(len(data))}).Fetch(t.Context(), serve(t, content(data)), sum(data), t.TempDir()); err != nil {
		t.Errorf("just within the limits: %v", err)
	}
}

// A server that sends without end, without saying how much.
func TestAnEndlessAnswerEnds(t *testing.T) {
	var sent atomic.Int64
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 64<<10)
		for {
			n, err := w.Write(chunk)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	err := artifact.New(artifact.Limits{Packed: 1 << 20}).Fetch(t.Context(), address, sum(nil), t.TempDir())
	if !errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("got error %v, want %v", err, artifact.ErrTooLarge)
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("took %d bytes of an endless answer", n)
	}
}

func TestASlowServerAndAnEndOfWork(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	err := artifact.New(artifact.Limits{Time: 50 * time.Millisecond}).Fetch(t.Context(), address, sum(nil), t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "took longer than 50ms") {
		t.Errorf("got error %v, want one about the time", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := artifact.New(artifact.Limits{}).Fetch(ctx, address, sum(nil), t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

func TestAnswersOtherThanTheFile(t *testing.T) {
	data := pack(t, file("web.yaml", "web"))
	var asked atomic.Int32
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		is      error
		text    string
		asked   int32
	}{
		"gone":      {http.NotFound, artifact.ErrNotFound, "no such artifact", 1},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, nil, "status 403", 1},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, nil, "status 302", 1},
		"broken once": {func(w http.ResponseWriter, _ *http.Request) {
			if asked.Load() == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write(data)
		}, nil, "", 2},
	} {
		asked.Store(0)
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			tc.handler(w, r)
		})
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, sum(data), t.TempDir())
		switch {
		case tc.text == "" && err != nil, tc.text != "" && (err == nil || !strings.Contains(err.Error(), tc.text)):
			t.Errorf("%s: got error %v, want %q", name, err, tc.text)
		case tc.is != nil && !errors.Is(err, tc.is):
			t.Errorf("%s: got error %v, want %v", name, err, tc.is)
		case asked.Load() != tc.asked:
			t.Errorf("%s: asked %d times, want %d", name, asked.Load(), tc.asked)
		}
	}
}

func TestOnlyHTTP(t *testing.T) {
	for _, address := range []string{"file:///etc/passwd", "ftp://x/y", "http:", "/x", "", "http://%zz"} {
		if err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, sum(nil), t.TempDir()); err == nil || !strings.Contains(err.Error(), "want an http or https URL") {
			t.Errorf("%q: got error %v", address, err)
		}
	}
}
