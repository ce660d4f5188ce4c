package webhook

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
)

// State is what requests are judged by: a policy with its keys and revocations,
// and the off-switches. It never changes; a new one takes its place.
type State struct {
	policy      *policy.Policy
	switches    *offswitch.Set
	environment string // asked for by the operator; empty: what policy says

	effectives sync.Map // namespace -> *effective
	cached     atomic.Int64
}

// effective is what the policy means for one namespace.
type effective struct {
	policy.Effective
	rules    *gate.Rules
	required []gate.Required
}

// maxCached bounds the namespaces that are remembered.
const maxCached = 10_000

// effective returns what the policy means for a namespace; the webhook knows of
// no application. Admission sees the old object, so that nothing is left to
// anybody else, and a receipt counts until it expires.
func (s *State) effective(namespace string) (*effective, error) {
	if e, ok := s.effectives.Load(namespace); ok {
		return e.(*effective), nil
	}
	app := policy.App{Namespace: cmp.Or(namespace, policy.ClusterScope)}
	p, err := s.policy.For(app)
	if s.environment != "" {
		p, err = s.policy.ForEnvironment(app, s.environment)
	}
	if err != nil {
		return nil, err
	}
	rules := p.Rules
	rules.Expired, rules.MinRemaining = gate.RefuseExpired, 0
	e := &effective{Effective: p, rules: &rules, required: rules.Required}
	if e.required == nil {
		for _, c := range projection.Categories() {
			if c != projection.Service {
				e.required = append(e.required, gate.Required{Category: c})
			}
		}
	}
	if s.cached.Add(1) <= maxCached {
		s.effectives.Store(namespace, e)
	}
	return e, nil
}

// Source names the files of a State.
type Source struct {
	Policy      string // the policy file; the others are beside it
	Off         string // directory of off-switches; empty: there are none
	Environment string // which of the policy's environments; empty: the one that it says
}

// Loader keeps the newest good State.
type Loader struct {
	source  Source
	current atomic.Pointer[State]

	mu     sync.Mutex
	failed error // of the last attempt; nil if it was good
	serial int64 // the highest revocation serial that was seen
}

// NewLoader loads the first State. A bad file is an error: a webhook that knows
// no policy must not start. A bad off-switch is none, and the webhook starts
// without it.
func NewLoader(s Source) (*Loader, error) {
	l := &Loader{source: s}
	if _, err := l.Reload(time.Now()); err != nil && l.State() == nil {
		return nil, err
	}
	return l, nil
}

// State returns the newest good one.
func (l *Loader) State() *State { return l.current.Load() }

// Failed returns why the files as they are now could not be loaded, or nil.
func (l *Loader) Failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Reload reads the files and reports whether something new was loaded. A bad
// file keeps the last good State.
func (l *Loader) Reload(now time.Time) (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed, l.failed = l.load(now)
	return changed, l.failed
}

// swaps is how often a directory may be swapped while it is read.
const swaps = 10

func (l *Loader) load(now time.Time) (bool, error) {
	for range swaps {
		before := generation(l.source.Policy)
		p, err := policy.Load(l.source.Policy)
		if generation(l.source.Policy) != before {
			continue // a ConfigMap was swapped in between: half of it may be old
		}
		if err != nil {
			return false, err
		}
		return l.take(p, now)
	}
	return false, fmt.Errorf("%s is being changed without end", l.source.Policy)
}

func (l *Loader) take(p *policy.Policy, now time.Time) (bool, error) {
	if _, err := p.ForEnvironment(policy.App{}, l.source.Environment); l.source.Environment != "" && err != nil {
		return false, err
	}
	serial, listed := p.RevocationSerial()
	if serial < l.serial || !listed && l.serial > 0 {
		return false, fmt.Errorf("the revocation list has serial %d, and %d was seen before: an older list brings back what was revoked", serial, l.serial)
	}
	old := l.current.Load()
	switches, off := offswitch.Load(l.source.Off, now)
	if off != nil { // those of before stay, and end in their time; the policy is taken all the same
		switches = &offswitch.Set{}
		if old != nil {
			switches = old.switches
		}
	}
	if old != nil && old.policy.Hash() == p.Hash() && old.switches.Equal(switches) {
		return false, off
	}
	l.serial = serial
	l.current.Store(&State{policy: p, switches: switches, environment: l.source.Environment})
	return true, off
}

// generation is where the kubelet's link to the newest content of a mounted
// ConfigMap points; empty for an ordinary directory.
func generation(file string) string {
	target, err := os.Readlink(filepath.Join(filepath.Dir(file), "..data"))
	if err != nil {
		return ""
	}
	return target
}
