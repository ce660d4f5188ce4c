package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Loader keeps the newest good State. Each file stands by itself: what is wrong
// with one keeps no other from taking effect, as far as that only takes trust
// away. A policy with its key sets and revocations is trusted whole or not at
// all: a new key may be meant for a policy that trusts it with less, and an old
// one may be revoked beside a policy that trusts it again. So where they do not
// load, the last good ones stay, without the keys that are gone from their key
// sets, and with a revocation list that is newer (policy.Policy.Narrowed).
type Loader struct {
	source  Source
	current atomic.Pointer[State]

	mu     sync.Mutex
	whole  *policy.Policy // the last that loaded with all its files
	failed []failure      // of the last attempt; none if it was good
	serial int64          // the highest revocation serial that was seen
}

// failure is a file that cannot be loaded.
type failure struct {
	file string // its name, without the directory
	err  error
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
	return joined(l.failed)
}

// FailedFiles returns the names of the files that could not be loaded, sorted,
// without the directory.
func (l *Loader) FailedFiles() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, f := range l.failed {
		out = append(out, f.file)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func joined(list []failure) error {
	var errs []error
	for _, f := range list {
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// Reload reads the files and reports whether something new is in force. The
// error says what could not be loaded.
func (l *Loader) Reload(now time.Time) (changed bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, failed := l.policy()
	switches, off := l.switches(now)
	l.failed = append(failed, off...)
	err = joined(l.failed)
	old := l.current.Load()
	if p == nil || old != nil && old.policy.Hash() == p.Hash() && old.switches.Equal(switches) {
		return false, err
	}
	if serial, _ := p.RevocationSerial(); serial > l.serial {
		l.serial = serial
	}
	l.current.Store(&State{policy: p, switches: switches, environment: l.source.Environment})
	return true, err
}

// swaps is how often a directory may be swapped while it is read.
const swaps = 10

// policy returns what is to be in force, nil if nothing can be.
func (l *Loader) policy() (*policy.Policy, []failure) {
	for range swaps {
		before := generation(l.source.Policy)
		p, failed := l.read()
		if generation(l.source.Policy) != before {
			continue // a ConfigMap was swapped in between: half of it may be old
		}
		if len(failed) == 0 {
			l.whole = p
		}
		return p, failed
	}
	name := filepath.Base(l.source.Policy)
	failed := []failure{{name, fmt.Errorf("%s is being changed without end", l.source.Policy)}}
	if old := l.current.Load(); old != nil {
		return old.policy, failed
	}
	return nil, failed
}

// read reads the files once.
func (l *Loader) read() (*policy.Policy, []failure) {
	p, err := policy.Load(l.source.Policy)
	failed := l.failures(err)
	if err == nil {
		failed = l.unfit(p)
	}
	if len(failed) == 0 || l.whole == nil {
		if len(failed) > 0 {
			p = nil
		}
		return p, failed
	}
	base := l.whole
	if serial, _ := base.RevocationSerial(); serial < l.serial {
		base = l.current.Load().policy // it has the newer list, and no key more
	}
	// The files that are wrong are known; what cannot be read here is among them.
	narrowed, err := base.Narrowed()
	for _, f := range l.failures(err) {
		if !slices.ContainsFunc(failed, func(x failure) bool { return x.file == f.file }) {
			failed = append(failed, f)
		}
	}
	return narrowed, failed
}

// unfit says why a policy that loaded is none for this webhook.
func (l *Loader) unfit(p *policy.Policy) []failure {
	name := filepath.Base(l.source.Policy)
	if _, err := p.ForEnvironment(policy.App{}, l.source.Environment); l.source.Environment != "" && err != nil {
		return []failure{{name, err}}
	}
	serial, listed := p.RevocationSerial()
	switch {
	case !listed && l.serial > 0:
		return []failure{{name, fmt.Errorf("the policy names no revocation list, and serial %d was seen before: without a list what was revoked comes back", l.serial)}}
	case serial < l.serial:
		return []failure{{filepath.Base(p.RevocationFile()), fmt.Errorf("the revocation list has serial %d, and %d was seen before: an older list brings back what was revoked", serial, l.serial)}}
	}
	return nil
}

// failures are the faults of a policy by the files that have them.
func (l *Loader) failures(err error) []failure {
	if err == nil {
		return nil
	}
	name := filepath.Base(l.source.Policy)
	var list policy.Errors
	if !errors.As(err, &list) || len(list) == 0 {
		return []failure{{name, err}}
	}
	byFile := map[string]policy.Errors{}
	var order []string
	for _, e := range list {
		file := name
		if e.Named != "" {
			file = filepath.Base(e.Named)
		}
		if byFile[file] == nil {
			order = append(order, file)
		}
		byFile[file] = append(byFile[file], e)
	}
	var out []failure
	for _, file := range order {
		out = append(out, failure{file, byFile[file]})
	}
	return out
}

// switches returns the off-switches that are good. Without a directory that can
// be read those of before stay, and end in their time.
func (l *Loader) switches(now time.Time) (*offswitch.Set, []failure) {
	set, err := offswitch.Load(l.source.Off, now)
	if set == nil {
		set = &offswitch.Set{}
		if old := l.current.Load(); old != nil {
			set = old.switches
		}
	}
	if err == nil {
		return set, nil
	}
	var list offswitch.Errors
	if !errors.As(err, &list) {
		return set, []failure{{filepath.Base(l.source.Off), err}}
	}
	var out []failure
	for _, e := range list {
		out = append(out, failure{e.File, e})
	}
	return set, out
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
