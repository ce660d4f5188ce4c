//go:build e2e

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// TestFluxForceIsRefusedBeforeAnythingIsDeleted: with force, Flux deletes an
// object whose change the API server calls immutable, and only then meets the
// webhook.
func TestFluxForceIsRefusedBeforeAnythingIsDeleted(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	for _, mode := range []string{byPostBuild, byArtifact} {
		t.Run(mode, func(t *testing.T) {
			s := w.newShop(mode)
			s.write("1", 1, "hello", nil)
			s.sign()
			s.create()
			first := s.push("Release the shop")
			s.WaitApplied(first)
			before := s.snapshot()

			// On the Kustomization.
			spec := fluxSpec(mode, s.Namespace)
			s.Replace(spec+"  force: true\n", fluxAnnotations(mode))
			report(t, mode+": condition with spec.force", s.WaitRefused("SYNC REFUSED [ForceNotAllowed]", "spec.force"))
			web := string(e.Run(s.repo.Work, nil, "cat", "apps/shop/web.yaml"))
			other := strings.ReplaceAll(strings.Replace(web, "matchLabels: {app: web}", "matchLabels: {app: web, of: shop}", 1), "metadata: {labels: {app: web}}", "metadata: {labels: {app: web, of: shop}}")
			if other == web {
				t.Fatalf("nothing to replace in\n%s", web)
			}
			s.repo.Write(map[string]string{"apps/shop/web.yaml": strings.Replace(other, "web:1@", "web:2@", 1)})
			s.push("Change what is immutable, and the image")
			s.WaitRefused("ForceNotAllowed")
			s.Reconcile()
			if diff := cmp.Diff(before, s.snapshot()); diff != "" {
				t.Errorf("after spec.force (-before +after):\n%s", diff)
			}

			// On an object.
			s.Replace(spec+"  force: false\n", fluxAnnotations(mode))
			forced := strings.Replace(other, "metadata: {name: web", "metadata: {labels: {kustomize.toolkit.fluxcd.io/force: enabled}, name: web", 1)
			if forced == other {
				t.Fatalf("nothing to replace in\n%s", other)
			}
			s.repo.Write(map[string]string{"apps/shop/web.yaml": forced})
			s.push("Force it on the object")
			report(t, mode+": condition with force on an object", s.WaitRefused("SYNC REFUSED [ForceNotAllowed]", "Deployment"))
			s.Reconcile()
			if diff := cmp.Diff(before, s.snapshot()); diff != "" {
				t.Errorf("after force on the object (-before +after):\n%s", diff)
			}
		})
	}
}

// TestFluxForgedArtifactsAreUndone: whoever may write the status of the gate's
// ExternalArtifact gets nothing unsigned to run, and is not there for long.
func TestFluxForgedArtifactsAreUndone(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	s := w.newShop(byArtifact)
	s.write("1", 1, "hello", nil)
	s.sign()
	s.create()
	s.WaitApplied(s.push("Release the shop"))
	before := s.snapshot()
	const own = "syncgate-flux-shop"
	artifact := func() any {
		u := w.Get(harness.ExternalArtifacts, s.Namespace, own)
		if u == nil {
			return nil
		}
		status, _ := u.Object["status"].(map[string]any)
		return status["artifact"]
	}
	good := artifact()

	evil := tarball(t, map[string]string{"web.yaml": strings.ReplaceAll(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: %s}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: %q}]}}}}`, s.Namespace, harness.Image("evil:1")), "\n", "")})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(evil) }))
	defer server.Close()
	forge := func() {
		t.Helper()
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(evil))
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
			"path": "evil.tar.gz", "url": server.URL + "/evil.tar.gz", "revision": "evil@" + digest, "digest": digest, "size": len(evil), "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Client().Resource(harness.ExternalArtifacts).Namespace(s.Namespace).Patch(context.Background(), own, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	restored := func(what string) {
		t.Helper()
		e.Eventually("repair of "+what, func() (string, bool) {
			diff := cmp.Diff(good, artifact())
			return diff, diff == ""
		})
		s.Reconcile()
		if diff := cmp.Diff(before, s.snapshot()); diff != "" {
			t.Errorf("after %s (-before +after):\n%s", what, diff)
		}
	}

	forge()
	restored("a forged status")
	w.Kubectl(nil, "delete", "externalartifact", own, "--namespace", s.Namespace)
	e.Eventually("the artifact again", func() (string, bool) { return fmt.Sprint(artifact()), artifact() != nil })
	restored("a deleted ExternalArtifact")

	// While the gate is away Flux believes it, and the webhook does not.
	w.gate.Stop()
	forge()
	report(t, "a forged artifact without the gate", s.WaitNotReady("SYNC REFUSED [", "dry-run failed (Forbidden)"))
	w.gate.Start()
	restored("a status that was forged while the gate was away")

	// The files are lost: what is approved now is stored anew, what is not is gone.
	w.gate.Stop()
	e.Run(w.gate.Storage, nil, "find", ".", "-mindepth", "1", "-delete")
	w.gate.Start()
	e.Eventually("the artifact again", func() (string, bool) {
		got, _ := artifact().(map[string]any)
		want, _ := good.(map[string]any)
		return fmt.Sprint(got), got["digest"] == want["digest"] && got["revision"] == want["revision"]
	})
	s.Wait("recovery", func(st harness.KustomizationStatus) bool { return st.Ready == "True" })
	w.gate.Stop()
	e.Run(w.gate.Storage, nil, "find", ".", "-mindepth", "1", "-delete")
	s.write("2", 1, "bye", nil)
	s.push("Try an image that nobody signed")
	w.gate.Start()
	s.WaitRefused("DigestMismatch")
	e.Eventually("no artifact", func() (string, bool) { return fmt.Sprint(artifact()), artifact() == nil })
	s.Reconcile()
	report(t, "refused, and what was approved before is lost", s.WaitNotReady("artifact"))
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after the files were lost (-before +after):\n%s", diff)
	}

	// Whoever has the gate's token can do no more than it does.
	thief := w.AsServiceAccount("syncgate-system", "syncgate-flux")
	if err := thief.TryPatch(harness.ConfigMaps, s.Namespace, "greeting", map[string]any{"data": map[string]any{"a": "b"}}); err == nil || !strings.Contains(err.Error(), "is forbidden") {
		t.Errorf("with the gate's token somebody could patch any ConfigMap: %v", err)
	}
	for _, args := range [][]string{
		{"delete", "configmap", "greeting", "--namespace", s.Namespace}, {"create", "configmap", "any", "--namespace", s.Namespace},
		{"get", "secrets", "--all-namespaces"}, {"delete", "kustomization.kustomize.toolkit.fluxcd.io", "shop", "--namespace", s.Namespace},
		{"patch", "kustomization.kustomize.toolkit.fluxcd.io", "shop", "--namespace", s.Namespace, "--subresource=status", "--type=merge", "--patch", `{"status":{"lastAppliedRevision":"x"}}`},
		{"patch", "kustomization.kustomize.toolkit.fluxcd.io", "shop", "--namespace", s.Namespace, "--type=merge", "--patch", `{"spec":{"path":"x"}}`},
	} {
		if r := thief.TryKubectl(nil, args...); r.Status == 0 || !strings.Contains(string(r.Stderr), "orbidden") && !strings.Contains(string(r.Stderr), "SYNC REFUSED [ProtectedTarget]") {
			t.Errorf("with the gate's token kubectl %v: status %d, %s", args, r.Status, r.Stderr)
		}
	}
}

// tarball packs files as source-controller does.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
