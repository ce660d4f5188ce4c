package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseName is the lease of all syncgate-controllers of a cluster.
const leaseName = "syncgate-controller"

// writable is how long after the beginning of its last renewal of the lease a
// process may write. Others take the lease 15 seconds after it, at the earliest
// (controller-runtime's lease duration); a process that was held up meanwhile,
// and runs on, does not know that they have.
const writable = 10 * time.Second

// errWaiting is why a process that does not lead writes nothing.
var errWaiting = errors.New("this process does not hold the lease, and writes nothing")

// lease is the lock of the election, which knows for how long it is held.
type lease struct {
	resourcelock.Interface
	renewed atomic.Pointer[time.Time] // when the last renewal began; nil: not held
}

func newLease(config *rest.Config, namespace string) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process: %w", err)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, rest.AddUserAgent(config, "leader-election"), writable)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease: %w", err)
	}
	return &lease{Interface: lock}, nil
}

// Create takes a lease that nobody has had.
func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Create)
}

// Update takes, renews or gives back the lease.
func (l *lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.Interface.Update)
}

func (l *lease) write(ctx context.Context, r resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	begun := time.Now()
	if r.HolderIdentity != l.Identity() {
		l.renewed.Store(nil) // given back: from before it is known
		return do(ctx, r)
	}
	if err := do(ctx, r); err != nil {
		return err
	}
	l.renewed.Store(&begun)
	return nil
}

// held reports whether nobody else can have the lease now.
func (l *lease) held() bool {
	t := l.renewed.Load()
	return t != nil && time.Since(*t) < writable
}

// fenced is a transport that lets a process only read while it does not lead.
type fenced struct {
	next http.RoundTripper
	held func() bool
}

// RoundTrip is that of the interface.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !f.held() {
		if r.Body != nil {
			_ = r.Body.Close() // as the interface asks
		}
		return nil, errWaiting
	}
	return f.next.RoundTrip(r)
}

// fence returns a configuration whose clients write only while the lease is
// held.
func (l *lease) fence(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{next, l.held} })
	return config
}
