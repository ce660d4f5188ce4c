//go:build e2e && linux

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncgate/syncgate/e2e/internal/harness"
)

// fluxFault is what a source can have in the place of an archive.
type fluxFault struct {
	name   string
	answer http.HandlerFunc
	digest string
	want   string
	status string // of the condition: False for a verdict, Unknown for what may pass
	most   int64  // bytes that the source gets rid of, of one try; 0: whatever it has
}

// packedBomb is a small archive of a file of 2 GiB of zeros.
func packedBomb(t *testing.T) []byte {
	t.Helper()
	gz := func(head []byte, zeros int) []byte {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(append(head, make([]byte, zeros)...)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var all []byte
	part := gz(nil, 32<<20)
	for i := range 64 { // so that it is not known from the first header
		var h bytes.Buffer
		if err := tar.NewWriter(&h).WriteHeader(&tar.Header{Name: fmt.Sprintf("apps/shop/%d.yaml", i), Typeflag: tar.TypeReg, Mode: 0o644, Size: 32 << 20}); err != nil {
			t.Fatal(err)
		}
		all = append(append(all, gz(h.Bytes(), 0)...), part...)
	}
	return all
}

func fluxFaults(t *testing.T) []fluxFault {
	t.Helper()
	is := func(data []byte) (http.HandlerFunc, string) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }, fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	}
	archive := func(h tar.Header) (http.HandlerFunc, string) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return is(b.Bytes())
	}
	other := "sha256:" + strings.Repeat("0", 64)
	zeros := func(declared bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			const two, chunk = 2 << 30, 1 << 16
			if declared {
				w.Header().Set("Content-Length", strconv.Itoa(two))
			}
			for range two / chunk {
				if _, err := w.Write(make([]byte, chunk)); err != nil {
					return
				}
			}
		}
	}
	const inFlight = 16 << 20 // what a server gets rid of before anybody reads it
	bomb, bombDigest := is(packedBomb(t))
	traversal, traversalDigest := archive(tar.Header{Name: "../../../evil.yaml", Typeflag: tar.TypeReg, Mode: 0o644})
	link, linkDigest := archive(tar.Header{Name: "apps", Typeflag: tar.TypeSymlink, Linkname: "/etc"})
	return []fluxFault{
		{"a 404", http.NotFound, other, "the source has no such artifact now", "Unknown", 0},
		{"a 500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, other, "got status 500", "Unknown", 0},
		{"a wrong digest", bomb, other, "the digest does not match", "Unknown", 0},
		{"2 GiB, as it says", zeros(true), other, "larger than the gate takes: 2147483648 bytes", "False", inFlight},
		{"2 GiB, as it does not say", zeros(false), other, "larger than the gate takes: more than 52428800 bytes", "False", 50<<20 + inFlight},
		{"a zip bomb of 2 GiB", bomb, bombDigest, "more than 209715200 bytes unpacked", "False", 0},
		{"path traversal", traversal, traversalDigest, "leads out of it", "False", 0},
		{"a symbolic link", link, linkDigest, "is a link that leads out of it", "False", 0},
	}
}

// faulty is a source with a fault.
type faulty struct {
	now  atomic.Pointer[fluxFault]
	sent atomic.Int64 // of the last try
}

type sending struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (s sending) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p)
	s.n.Add(int64(n))
	return n, err
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := f.now.Load(); r.UserAgent() != "" && fault != nil {
		f.sent.Store(0)
		fault.answer(sending{w, &f.sent}, r)
	}
}

// memoryOf is the most that a process had in memory since the last call, in
// bytes.
func memoryOf(t *testing.T, pid int) int64 {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	data, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kilobytes, err := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "clear_refs"), []byte("5"), 0); err != nil {
		t.Logf("the peak of before counts, too: %v", err)
	}
	return kilobytes << 10
}

// TestFluxFaults: whatever becomes of the source, of the gate's disk and of the
// gate, nothing is applied that nobody signed, and it is all well again by
// itself.
func TestFluxFaults(t *testing.T) {
	e := harness.New(t)
	w := newFluxWorld(e, harness.BasicPolicy("release"))
	shops := map[string]*fluxShop{}
	for _, mode := range []string{byPostBuild, byArtifact} {
		s := w.newShop(mode)
		s.write("1", 1, "hello", nil)
		s.sign()
		s.create()
		s.WaitApplied(s.push("Release the shop"))
		shops[mode] = s
	}
	for mode, s := range shops {
		t.Run("source in "+mode+" mode", func(t *testing.T) { s.sourceFaults(t) })
	}
	t.Run("disk lost", func(t *testing.T) { shops[byArtifact].diskLost(t) })
	for mode, s := range shops {
		t.Run("killed in the middle in "+mode+" mode", func(t *testing.T) { s.killedInTheMiddle(t) })
	}
	t.Run("leader lost", func(t *testing.T) { w.leaderLost(t, shops) })
}

// sourceFaults has another server in the place of source-controller.
func (s *fluxShop) sourceFaults(t *testing.T) {
	w, before := s.w, s.snapshot()
	source := &faulty{}
	server := httptest.NewServer(source)
	defer server.Close()
	status := func() any {
		u := w.Get(harness.GitRepositories, s.Namespace, "shop")
		all, _ := u.Object["status"].(map[string]any)
		return all["artifact"]
	}
	set := func(artifact any) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": artifact}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Client().Resource(harness.GitRepositories).Namespace(s.Namespace).Patch(context.Background(), "shop", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	good := status()

	// source-controller is down: what is applied goes on being so.
	w.Source.Stop()
	s.Reconcile()
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("without source-controller (-before +after):\n%s", diff)
	}
	idle := memoryOf(t, w.gate.PID())
	for i, fault := range fluxFaults(t) {
		source.now.Store(&fault)
		memoryOf(t, w.gate.PID())
		set(map[string]any{
			"path": "x.tar.gz", "url": fmt.Sprintf("%s/%d.tar.gz", server.URL, i), "revision": fmt.Sprintf("main@sha1:%040d", i),
			"digest": fault.digest, "size": 1, "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
		})
		st := s.Wait("outcome of "+fault.name, func(st harness.KustomizationStatus) bool {
			return st.Approved == fault.status && strings.Contains(st.Sentence, fault.want)
		})
		report(t, s.mode+": condition after "+fault.name, st.Sentence)
		if n := source.sent.Load(); fault.most > 0 && n > fault.most {
			t.Errorf("%s: %d bytes were taken, want at most %d", fault.name, n, fault.most)
		}
		report(t, s.mode+": memory with "+fault.name, fmt.Sprintf("%d MiB at most, %d before all; the source got rid of %d bytes", memoryOf(t, w.gate.PID())>>20, idle>>20, source.sent.Load()))
		if diff := cmp.Diff(before, s.snapshot()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", fault.name, diff)
		}
	}
	// Nothing of all that stays on the disk.
	w.Eventually("an empty folder for what is fetched", func() (string, bool) {
		left, err := filepath.Glob(filepath.Join(w.gate.Temp, "syncgate-artifact-*"))
		return fmt.Sprint(left, err), err == nil && len(left) == 0
	})

	// It is well again by itself.
	set(good)
	w.Source.Start()
	s.approved("after the faults")
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after the faults (-before +after):\n%s", diff)
	}
}

// diskLost empties the gate's disk under it.
func (s *fluxShop) diskLost(t *testing.T) {
	w, before := s.w, s.snapshot()
	repaired := w.gate.Metric("syncgate_flux_repairs_total", map[string]string{"what": "file"})
	w.Run(w.gate.Storage, nil, "find", ".", "-mindepth", "1", "-delete")
	st := s.Reconcile() // the gate looks, too
	report(t, "status after the disk was lost", st.String())
	w.Eventually("the artifact on the disk", func() (string, bool) {
		files, err := filepath.Glob(filepath.Join(w.gate.Storage, "externalartifact", s.Namespace, "*", "*.tar.gz"))
		return fmt.Sprint(files, err), len(files) == 1
	})
	s.Reconcile()
	s.approved("after the disk was lost")
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after the disk was lost (-before +after):\n%s", diff)
	}
	if got := w.gate.Metric("syncgate_flux_repairs_total", nil); got < repaired {
		t.Errorf("repairs: got %v, %v before", got, repaired)
	}
}

// killedInTheMiddle kills the gate at the moment when it fetches what nobody has
// signed, and then what somebody has.
func (s *fluxShop) killedInTheMiddle(t *testing.T) {
	w, before := s.w, s.snapshot()
	s.write("2", 1, "killed", nil)
	s.push("Try an image that nobody signed")
	w.gate.Kill()
	st := s.Reconcile()
	report(t, s.mode+": status while the gate is dead", st.String())
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("while the gate was dead (-before +after):\n%s", diff)
	}
	w.gate.Start()
	s.WaitRefused("SYNC REFUSED [DigestMismatch]", "web:2")
	s.Reconcile()
	if diff := cmp.Diff(before, s.snapshot()); diff != "" {
		t.Errorf("after its return (-before +after):\n%s", diff)
	}
	s.sign()
	revision := s.push("Sign it")
	w.gate.Kill()
	w.gate.Start()
	s.WaitApplied(revision)
	if diff := cmp.Diff([]string{harness.Image("web:2")}, s.running()); diff != "" {
		t.Errorf("images after its return (-want +got):\n%s", diff)
	}
}

// leaderLost has a second gate, with a disk of its own, take over from one that
// is held up, and from one that is dead. At no time do two of them write.
func (w *fluxWorld) leaderLost(t *testing.T, shops map[string]*fluxShop) {
	first := w.gate
	second := harness.StandByFluxGate(w.Flux, w.b, w.policy.Dir, "--off", w.off.Dir)
	release := func(tag string) {
		t.Helper()
		revisions := map[string]string{}
		for mode, s := range shops {
			s.write(tag, 1, "release "+tag, nil)
			s.sign()
			revisions[mode] = s.push("Release " + tag)
		}
		if tag == "4" {
			second.WaitReady()
		}
		for mode, s := range shops {
			s.WaitApplied(revisions[mode])
		}
	}
	release("3")
	if second.Leads() || second.Metric("syncgate_flux_verdicts_total", nil) > 0 || second.Metric("syncgate_flux_writes_total", nil) > 0 {
		t.Errorf("the second gate is at work beside the first: %s", second.Log())
	}

	// The first is held up. When it goes on it knows nothing of the second.
	if err := syscall.Kill(first.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	release("4")
	state := map[string]string{}
	for mode, s := range shops {
		s.approved("by the second gate")
		state[mode] = s.handedOver(t)
	}
	stopped := len(first.Log())
	if err := syscall.Kill(first.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if status := first.WaitEnd(); status == 0 {
		t.Error("the first gate ended as if nothing had happened")
	}
	late := first.Log()[stopped:]
	report(t, "the first gate when it went on", late)
	if !strings.Contains(late, "this process does not hold the lease, and writes nothing") {
		t.Errorf("nothing that the first gate did was held up")
	}
	for mode, s := range shops {
		if diff := cmp.Diff(state[mode], s.handedOver(t)); diff != "" {
			t.Errorf("%s: somebody wrote when the first gate went on (-before +after):\n%s", mode, diff)
		}
	}

	// It waits now, with a disk that ends with 3 or 4; and the second dies.
	first.Launch()
	release("5")
	second.Kill()
	for _, s := range shops {
		s.write("6", 1, "unsigned", nil)
		s.push("Try an image that nobody signed")
	}
	first.WaitReady()
	for mode, s := range shops {
		s.WaitRefused("SYNC REFUSED [DigestMismatch]", "web:6")
		st := s.Reconcile()
		report(t, mode+": status after the second is dead", st.String())
		if diff := cmp.Diff([]string{harness.Image("web:5")}, s.running()); diff != "" {
			t.Errorf("%s: images after the second is dead (-want +got):\n%s", mode, diff)
		}
		s.sign()
		s.WaitApplied(s.push("Sign it"))
	}
}

// handedOver is what the gate gives to Flux, with the version of the object.
func (s *fluxShop) handedOver(t *testing.T) string {
	t.Helper()
	resource := harness.ConfigMaps
	if s.mode == byArtifact {
		resource = harness.ExternalArtifacts
	}
	u := s.Get(resource, s.Namespace, "syncgate-flux-shop")
	if u == nil {
		return "nothing"
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
