package artifact_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/syncgate/syncgate/plugin/flux/artifact"
)

// sending counts the bytes that a handler gets rid of.
type sending struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c sending) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// inFlight is what a server can get rid of on loopback before anybody reads it.
const inFlight = 16 << 20

// TestTwoGigabytesAreNotRead: neither if the server says so beforehand, nor if it
// does not.
func TestTwoGigabytesAreNotRead(t *testing.T) {
	const two = 2 << 30
	for name, c := range map[string]struct {
		declared bool
		most     int64
	}{"declared": {true, inFlight}, "not declared": {false, 50<<20 + inFlight}} {
		var sent atomic.Int64
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.declared {
				w.Header().Set("Content-Length", strconv.Itoa(two))
			}
			out, chunk := sending{w, &sent}, make([]byte, 64<<10)
			for range two / len(chunk) {
				if _, err := out.Write(chunk); err != nil {
					return
				}
			}
		})
		dir := t.TempDir()
		if err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, sum(nil), dir); !errors.Is(err, artifact.ErrTooLarge) {
			t.Errorf("%s: got error %v, want %v", name, err, artifact.ErrTooLarge)
		}
		if n := sent.Load(); n > c.most {
			t.Errorf("%s: %d bytes were taken, want at most %d", name, n, c.most)
		}
		if got := files(t, dir); len(got) > 0 {
			t.Errorf("%s: unpacked %q", name, got)
		}
		t.Logf("%s: the server got rid of %d bytes", name, sent.Load())
	}
}

// member is a gzip stream of its own of a number of zero bytes behind head.
// Several, one behind the other, are one gzip file.
func member(t *testing.T, head []byte, zeros int) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	chunk := make([]byte, 1<<20)
	_, failed := z.Write(head)
	for n := zeros; n > 0 && failed == nil; n -= len(chunk) {
		_, failed = z.Write(chunk[:min(n, len(chunk))])
	}
	if err := errors.Join(failed, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// header is a tar header alone.
func header(t *testing.T, h tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBombs: small ones, of which much becomes. What a fetch allocates in all its
// time, given back or not, is a bound of what it takes at once.
func TestBombs(t *testing.T) {
	const part = 32 << 20
	one := member(t, header(t, tar.Header{Name: "zeros.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: part}), part)
	fill := member(t, nil, part)
	for name, c := range map[string]struct {
		data []byte
		is   error
	}{
		"2 GiB in one file":                       {append(member(t, header(t, tar.Header{Name: "z", Typeflag: tar.TypeReg, Mode: 0o644, Size: 2 << 30}), 0), bytes.Repeat(fill, 64)...), artifact.ErrTooLarge},
		"2 GiB in files that replace one another": {bytes.Repeat(one, 64), artifact.ErrTooLarge},
		"a file that is cut":                      {append(member(t, header(t, tar.Header{Name: "z", Typeflag: tar.TypeReg, Mode: 0o644, Size: 100 << 20}), 0), fill...), artifact.ErrUnsafe},
		"2 GiB behind the end":                    {append(member(t, make([]byte, 1024), 0), bytes.Repeat(fill, 64)...), nil},
		"a name of 100 MiB":                       {append(member(t, typed(header(t, tar.Header{Name: "././@LongLink", Typeflag: tar.TypeReg, Size: 100 << 20}), tar.TypeGNULongName), 0), bytes.Repeat(fill, 4)...), artifact.ErrUnsafe},
		"a sparse file of 1 TiB":                  {member(t, sparse(t, 1<<40), 0), artifact.ErrTooLarge},
	} {
		if len(c.data) > 50<<20 {
			t.Fatalf("%s: the bomb itself is %d bytes", name, len(c.data))
		}
		dir := t.TempDir()
		address := serve(t, content(c.data))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, sum(c.data), dir)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.is) || (err == nil) != (c.is == nil) {
			t.Errorf("%s: got error %v, want %v", name, err, c.is)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes were allocated, want at most 16 MiB", name, n)
		} else {
			t.Logf("%s: %d bytes, %d allocated", name, len(c.data), n)
		}
		for _, f := range files(t, dir) {
			if len(f) > 200<<20 {
				t.Errorf("%s: a file of %d bytes was unpacked", name, len(f))
			}
		}
	}
}

// sparse is an archive of one file that is a hole, in GNU's format of PAX.
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	records := ""
	for key, value := range map[string]string{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "hole.yaml", "GNU.sparse.realsize": fmt.Sprint(size)} {
		line := fmt.Sprintf(" %s=%s\n", key, value)
		n := len(line) + 1
		for len(fmt.Sprint(n))+len(line) != n {
			n++
		}
		records += fmt.Sprint(n) + line
	}
	block := func(s string) []byte {
		b := make([]byte, (len(s)+511)/512*512)
		copy(b, s)
		return b
	}
	x := header(t, tar.Header{Name: "pax", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(records)), Format: tar.FormatUSTAR})
	out := append(typed(x, tar.TypeXHeader), block(records)...)
	// The map of what is there: nothing.
	holes := "1\n" + fmt.Sprint(size) + "\n0\n"
	out = append(out, header(t, tar.Header{Name: "hole.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: 512, Format: tar.FormatUSTAR})...)
	out = append(out, block(holes)...)
	return append(out, make([]byte, 1024)...)
}

// typed makes a header one of another type.
func typed(h []byte, flag byte) []byte {
	h[156] = flag
	copy(h[148:156], "        ") // what counts as its checksum
	n := 0
	for _, b := range h[:512] {
		n += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", n))
	return h
}

// TestAnAnswerThatIsCut ends in an error, and so does a server that is not there;
// both may pass.
func TestAnAnswerThatIsCut(t *testing.T) {
	data := pack(t, file("web.yaml", strings.Repeat("x", 1000)))
	for name, handler := range map[string]http.HandlerFunc{
		"with a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data[:len(data)/2])
		},
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(data[:len(data)/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"before the end of what was promised, as a whole": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data[:len(data)/2]) },
	} {
		dir := t.TempDir()
		err := artifact.New(artifact.Limits{}).Fetch(t.Context(), serve(t, handler), sum(data), dir)
		if err == nil || errors.Is(err, artifact.ErrUnsafe) || errors.Is(err, artifact.ErrTooLarge) {
			t.Errorf("%s: got error %v, want one that may pass", name, err)
		}
		if got := files(t, dir); len(got) > 0 {
			t.Errorf("%s: unpacked %q", name, got)
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	err := artifact.New(artifact.Limits{Time: 20 * time.Second}).Fetch(t.Context(), gone.URL+"/x.tar.gz", sum(data), t.TempDir())
	if err == nil || errors.Is(err, artifact.ErrUnsafe) || errors.Is(err, artifact.ErrTooLarge) {
		t.Errorf("no server: got error %v, want one that may pass", err)
	}
}

// TestAServerThatComesBack: restarted in the middle, it is asked again.
func TestAServerThatComesBack(t *testing.T) {
	data := pack(t, file("web.yaml", "web"))
	var asked atomic.Int32
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(data)
	})
	dir := t.TempDir()
	if err := artifact.New(artifact.Limits{}).Fetch(t.Context(), address, sum(data), dir); err != nil || len(files(t, dir)) != 1 {
		t.Errorf("got error %v, files %q", err, files(t, dir))
	}
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2", asked.Load())
	}
}
