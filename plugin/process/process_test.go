package process

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/syncgate/syncgate/plugin/keys"
	"github.com/syncgate/syncgate/plugin/receipt"
)

const prod = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironment: prod\nissuers: [{name: release, keys: {file: jwks.json}}]\n"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually is for what another goroutine does soon.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 6000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// leases is as much of an API server as the election of a leader needs. While
// other is set somebody else leads.
type leases struct {
	mu     sync.Mutex
	lease  *coordinationv1.Lease
	other  bool
	writes int
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := func(code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v) // to a client that may have gone
	}
	status := func(code int, reason metav1.StatusReason) {
		answer(code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code)})
	}
	if !strings.HasPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/gate/leases") {
		status(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if l.other {
		holder, seconds, now := "somebody else", int32(15), metav1.NewMicroTime(time.Now())
		l.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "gate", Name: "syncgate-controller"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}}
	}
	switch {
	case r.Method == http.MethodGet && l.lease == nil:
		status(http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodGet:
		answer(http.StatusOK, l.lease)
	default:
		if l.other {
			l.writes++
		}
		next := &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(next); err != nil {
			status(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		l.lease = next
		answer(http.StatusOK, next)
	}
}

func (l *leases) set(other bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.other = other; !other {
		l.lease = nil
	}
}

// world is a process before its start, with what it says.
type world struct {
	*Process
	file string
	log  *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), text)
}

// options are those of a process with a policy that loads, in a folder of its
// own.
func options(t *testing.T) (Options, *safeBuffer) {
	t.Helper()
	dir := t.TempDir()
	k, err := receipt.NewKey("k1", ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	must(t, err)
	set, err := keys.PublicJWKS([]receipt.Key{k})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "jwks.json"), set, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(prod), 0o600))
	log := &safeBuffer{}
	return Options{
		Policy: filepath.Join(dir, "policy.yaml"), LeaseNamespace: "gate", MetricsListen: "0", ProbesListen: "0",
		Poll: 5 * time.Millisecond, Log: slog.New(slog.NewJSONHandler(log, nil)), Scheme: runtime.NewScheme(),
	}, log
}

func newWorld(t *testing.T, l *leases, change func(*Options)) *world {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	o, log := options(t)
	change(&o)
	p, err := New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, o)
	must(t, err)
	t.Cleanup(func() {
		metrics.Registry.Unregister(p.failed)
		metrics.Registry.Unregister(p.loaded)
	})
	return &world{p, o.Policy, log}
}

// start runs the process until the test ends.
func (w *world) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
}

// write puts another file in the place of the policy's, as a whole.
func (w *world) write(t *testing.T, text string) {
	t.Helper()
	must(t, os.WriteFile(w.file+".new", []byte(text), 0o600))
	must(t, os.Rename(w.file+".new", w.file))
}

func (w *world) hash() string {
	p, _ := w.Policy.Policy()
	return p.Hash()
}

func TestAPolicyThatDoesNotLoadIsNoStart(t *testing.T) {
	o, _ := options(t)
	must(t, os.WriteFile(o.Policy, []byte("kind: GatePolicy\n"), 0o600))
	if p, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, o); err == nil || p != nil || !strings.HasPrefix(err.Error(), "loading the policy: ") {
		t.Errorf("got %v, %v", p, err)
	}
}

// shown are the metrics of the policy: those of the hashes that are 1, and
// whether something does not load.
func shown(t *testing.T) (hashes []string, failed bool) {
	t.Helper()
	all, err := metrics.Registry.Gather()
	must(t, err)
	for _, f := range all {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "syncgate_reload_failed":
				failed = m.GetGauge().GetValue() == 1
			case "syncgate_policy_info":
				hashes = append(hashes, m.GetLabel()[0].GetValue())
			}
		}
	}
	return hashes, failed
}

// TestAChangedPolicyIsToldToEveryController, and one that does not load changes
// nothing but what is said of it.
func TestAChangedPolicyIsToldToEveryController(t *testing.T) {
	w := newWorld(t, &leases{}, func(*Options) {})
	one, other := w.Changed(), w.Changed()
	w.start(t)
	first := w.hash()
	eventually(t, "the first policy in the metrics", func() bool {
		hashes, failed := shown(t)
		return slices.Equal(hashes, []string{first}) && !failed
	})

	w.write(t, "nonsense\n")
	eventually(t, "the failure in the metrics", func() bool { _, failed := shown(t); return failed })
	w.write(t, "nonsense\n") // it is no news
	if w.hash() != first || len(one) > 0 || len(other) > 0 {
		t.Errorf("a policy that does not load is in force, or was told: %s, %d, %d", w.hash(), len(one), len(other))
	}

	w.write(t, prod+"help: ask\n")
	<-one
	<-other
	second := w.hash()
	if second == first {
		t.Errorf("told of a change: %s again", first)
	}
	eventually(t, "the second policy in the metrics, alone", func() bool {
		hashes, failed := shown(t)
		return slices.Equal(hashes, []string{second}) && !failed
	})
	if got := w.log.count("not loaded; what was loaded before is gone by"); got != 1 {
		t.Errorf("the failure was said %d times, want once", got)
	}

	// Nobody reads: nothing waits for it, and one is kept.
	w.write(t, prod+"help: a\n")
	eventually(t, "the third policy", func() bool { return w.hash() != second })
	third := w.hash()
	w.write(t, prod+"help: b\n")
	eventually(t, "the fourth policy", func() bool { return w.hash() != third })
	<-one
	<-other
}

// TestOneThatWaitsKnowsThePolicyOfToday: when it begins to lead, it judges by
// what was taken back meanwhile.
func TestOneThatWaitsKnowsThePolicyOfToday(t *testing.T) {
	l := &leases{other: true}
	w := newWorld(t, l, func(o *Options) { o.LeaderElection = true })
	began := make(chan string, 1)
	must(t, w.Add(manager.RunnableFunc(func(ctx context.Context) error {
		began <- w.hash()
		<-ctx.Done()
		return nil
	})))
	w.start(t)
	first := w.hash()
	w.write(t, prod+"help: ask\n")
	eventually(t, "the new policy", func() bool { return w.hash() != first })
	select {
	case <-w.Elected():
		t.Fatal("it leads while another one does")
	case <-began:
		t.Fatal("a controller began while another one leads")
	default:
	}
	l.mu.Lock()
	if l.writes > 0 {
		t.Errorf("it wrote the lease of another %d times", l.writes)
	}
	l.mu.Unlock()
	l.set(false)
	if got := <-began; got == first {
		t.Error("it began to lead with the policy of its start")
	}
}
