package controller

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
)

// entries is a tarball of headers, each file with one byte for each of its size.
func entries(t *testing.T, all ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for _, h := range all {
		h.Mode = 0o600
		must(t, w.WriteHeader(&h))
		_, err := w.Write(bytes.Repeat([]byte("#"), int(h.Size)))
		must(t, err)
	}
	must(t, w.Close())
	must(t, g.Close())
	return b.Bytes()
}

// TestEveryFaultOfASource: nothing is approved by it, what was approved before is
// not touched in artifact mode and taken away in postBuild mode, and when the
// source is well again so is everything. A fault that stays with the digest is a
// verdict, and costs one download; one that may pass is tried again soon.
func TestEveryFaultOfASource(t *testing.T) {
	const name = "app/web.yaml"
	for what, c := range map[string]struct {
		data   []byte       // what is served, with the digest that it has
		answer http.Handler // or what is answered
		digest string       // or another digest
		limits artifact.Limits
		want   string
		passes bool // it may pass
	}{
		"path traversal":       {data: entries(t, tar.Header{Name: "../web.yaml", Typeflag: tar.TypeReg, Size: 1}), want: "leads out of it"},
		"an absolute path":     {data: entries(t, tar.Header{Name: "/etc/web.yaml", Typeflag: tar.TypeReg, Size: 1}), want: "leads out of it"},
		"a symbolic link out":  {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), want: "is a link that leads out of it"},
		"a symbolic link":      {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "web"}), want: `"app" is not a directory`}, // it is left out, as Flux does
		"a hard link":          {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}), want: "is no file, folder or symbolic link"},
		"a device":             {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeBlock}), want: "is no file, folder or symbolic link"},
		"a bomb":               {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 2000}), limits: artifact.Limits{Unpacked: 1999}, want: "more than 1999 bytes unpacked"},
		"too large a download": {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1}), limits: artifact.Limits{Packed: 10}, want: "larger than the gate takes"},
		"too many files":       {data: entries(t, tar.Header{Name: name, Typeflag: tar.TypeReg}, tar.Header{Name: "b", Typeflag: tar.TypeReg}), limits: artifact.Limits{Files: 1}, want: "more than 1 files and folders"},
		"no archive":           {data: []byte("<html>"), want: "not an archive of plain files"},

		"not found":          {answer: http.NotFoundHandler(), want: "the source has no such artifact now", passes: true},
		"forbidden":          {answer: answers(http.StatusForbidden), want: "got status 403", passes: true},
		"a redirect":         {answer: http.RedirectHandler("/other", http.StatusFound), want: "got status 302", passes: true},
		"another digest":     {data: entries(t), digest: "sha256:" + strings.Repeat("0", 64), want: "the digest does not match", passes: true},
		"no known algorithm": {data: entries(t), digest: "blake3:" + strings.Repeat("0", 64), want: "want sha256, sha384 or sha512", passes: true},
		"slow":               {answer: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), limits: artifact.Limits{Time: 100 * time.Millisecond}, want: "took longer than 100ms", passes: true},
	} {
		for _, mode := range modes {
			t.Run(what+" in "+string(mode)+" mode", func(t *testing.T) {
				w := released(t, mode)
				before := w.handedOver()
				handler := c.answer
				if handler == nil {
					handler = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(c.data) })
				}
				server := httptest.NewServer(handler)
				defer server.Close()
				digest := c.digest
				if digest == "" {
					digest = digestOf(string(c.data))
				}
				good := w.Fetcher
				w.Fetcher = artifact.New(c.limits)
				w.Fetcher.Close()
				w.source(&meta.Artifact{URL: server.URL + "/x.tar.gz", Path: "x.tar.gz", Revision: "main@sha1:2", Digest: digest, LastUpdateTime: metav1.NewTime(start)})
				result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				must(t, err)
				if c.passes {
					w.is(metav1.ConditionUnknown, "FetchFailed", "nothing is approved now", c.want)
					const goesOn = "; Flux goes on with main@sha1:1, which was approved before"
					if got := strings.HasSuffix(w.condition().Message, goesOn); got != (mode == application.Artifact) {
						t.Errorf("condition: got %q; in artifact mode alone Flux goes on with something", w.condition().Message)
					}
					if result.RequeueAfter != soon {
						t.Errorf("tried again after %s, want %s", result.RequeueAfter, soon)
					}
					if said := w.said(); len(said) > 0 {
						t.Errorf("events about what may pass: %q", said)
					}
				} else {
					w.is(metav1.ConditionFalse, "RenderFailed", "RENDER FAILED [RenderFailed]", c.want)
					if result.RequeueAfter < anew {
						t.Errorf("tried again after %s, want at least %s", result.RequeueAfter, anew)
					}
					if got := fmt.Sprint(w.said()); got != "[Warning RenderFailed]" {
						t.Errorf("events: got %s", got)
					}
				}
				want := ""
				if mode == application.Artifact {
					want = before
				}
				if got := w.handedOver(); got != want {
					t.Errorf("%q is handed over, want %q", got, want)
				}

				w.Fetcher = good
				w.push("main@sha1:1")
				w.reconcile()
				w.is(metav1.ConditionTrue, "Approved")
				if got := w.handedOver(); got != before {
					t.Errorf("when it is well again %q is handed over, want %q", got, before)
				}
			})
		}
	}
}

// answers is a server that answers with a status.
func answers(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}
