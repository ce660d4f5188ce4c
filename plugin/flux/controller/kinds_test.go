package controller

import (
	"archive/tar"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/artifact"
	"github.com/syncgate/syncgate/plugin/flux/hook"
)

// from makes the Kustomization one that is built from shop/shop of another kind.
func (w *world) from(kind string) {
	w.t.Helper()
	if w.mode == application.Artifact {
		w.annotate(map[string]string{hook.SourceAnnotation: kind + "/shop", hook.PathAnnotation: "app"})
		return
	}
	u := w.kustomization()
	must(w.t, unstructured.SetNestedField(u.Object, kind, "spec", "sourceRef", "kind"))
	w.replace(u)
}

// TestWhatAnOCIRepositoryOrABucketPacks is taken as what a GitRepository packs:
// whoever pushes to a registry or a bucket may make the tarball by hand.
func TestWhatAnOCIRepositoryOrABucketPacks(t *testing.T) {
	const name = "app/web.yaml"
	regular := tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1}
	for what, c := range map[string]struct {
		entries []tar.Header // nil: the good ones
		limits  artifact.Limits
		want    string
	}{
		"all as it should be": {},
		"a parent":            {entries: []tar.Header{{Name: "app/../../web.yaml", Typeflag: tar.TypeReg, Size: 1}}, want: "leads out of it"},
		"an absolute path":    {entries: []tar.Header{{Name: "/etc/web.yaml", Typeflag: tar.TypeReg, Size: 1}}, want: "leads out of it"},
		"a link out":          {entries: []tar.Header{{Name: "app", Typeflag: tar.TypeSymlink, Linkname: "../.."}, regular}, want: "is a link that leads out of it"},
		"a hard link":         {entries: []tar.Header{{Name: name, Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, want: "is no file, folder or symbolic link"},
		"a device":            {entries: []tar.Header{{Name: name, Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}}, want: "is no file, folder or symbolic link"},
		"a pipe":              {entries: []tar.Header{{Name: name, Typeflag: tar.TypeFifo}}, want: "is no file, folder or symbolic link"},
		"a huge file":         {entries: []tar.Header{{Name: name, Typeflag: tar.TypeReg, Size: 1 << 20}}, limits: artifact.Limits{Unpacked: 1<<20 - 1}, want: "more than 1048575 bytes unpacked"},
	} {
		for kind, object := range map[string]func(*meta.Artifact) client.Object{
			sourcev1.OCIRepositoryKind: func(a *meta.Artifact) client.Object {
				return &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}, Status: sourcev1.OCIRepositoryStatus{Artifact: a}}
			},
			sourcev1.BucketKind: func(a *meta.Artifact) client.Object {
				return &sourcev1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}, Status: sourcev1.BucketStatus{Artifact: a}}
			},
		} {
			for _, mode := range modes {
				t.Run(what+" of "+kind+" in "+string(mode)+" mode", func(t *testing.T) {
					w := newWorld(t, mode)
					w.Fetcher = artifact.New(c.limits)
					w.Fetcher.Close()
					w.from(kind)
					w.write("1", nil)
					w.sign()
					data := packed(t, w.repo)
					if c.entries != nil {
						data = entries(t, c.entries...)
					}
					server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(data) }))
					defer server.Close()
					must(t, w.Client.Create(t.Context(), object(&meta.Artifact{URL: server.URL + "/x.tar.gz", Path: "x.tar.gz", Revision: "latest@sha256:1", Digest: digestOf(string(data)), LastUpdateTime: metav1.NewTime(start)})))
					w.reconcile()
					if c.want == "" {
						w.is(metav1.ConditionTrue, "Approved", "latest@sha256:1: 1 objects, 1 gated")
						return
					}
					w.is(metav1.ConditionFalse, "RenderFailed", c.want, "; Fix: change what the source packs")
					if got := w.handedOver(); got != "" {
						t.Errorf("%q is handed over", got)
					}
				})
			}
		}
	}
}

// TestLineBreaksInVariables: Flux takes them out of a value, so that no value
// begins another line of a manifest; and what comes of it is what must be signed.
func TestLineBreaksInVariables(t *testing.T) {
	const structure = "a value changes its structure"
	for tag, want := range map[string]string{
		"2":                          "",
		"2\n":                        "",
		"\r\n2\r\n":                  structure,
		"2\nhostNetwork: true":       structure,
		"2'}], hostNetwork: true}\n": structure,
	} {
		w := newWorld(t, application.PostBuild)
		set := func(value string) {
			u := w.kustomization()
			must(t, unstructured.SetNestedField(u.Object, value, "spec", "postBuild", "substitute", "tag"))
			w.replace(u)
		}
		w.write("2", map[string]string{"app/web.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations: {syncgate.io/receipt: '${syncgate_receipt_web}'}\nspec:\n  containers:\n  - name: web\n    image: ghcr.io/acme/web:${tag}@${syncgate_pin_web}\n"})
		set("2")
		w.sign()
		w.push("main@sha1:1")
		set(tag)
		w.reconcile()
		if want == "" {
			w.is(metav1.ConditionTrue, "Approved")
			if got := w.values()["syncgate_pin_web"]; got != digestOf("2") {
				t.Errorf("%q: got the digest %q", tag, got)
			}
			continue
		}
		w.is(metav1.ConditionFalse, "RenderFailed", want)
		if w.values() != nil {
			t.Errorf("%q: values %v", tag, w.values())
		}
	}
}
