package controller

import (
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what the process knows of Kustomizations, so that what has not
// changed costs nothing. It is safe to lose: everything is judged anew then.
type memory struct {
	mu  sync.Mutex
	all map[types.NamespacedName]remembered
}

type remembered struct {
	key   string // of all that the outcome follows from
	out   outcome
	until time.Time // when it is judged anew whatever the key

	said      said
	toldOnce  bool
	shown     *meta.Artifact // in the status of the ExternalArtifact
	shownOnce bool

	course course
}

func newMemory() *memory { return &memory{all: map[types.NamespacedName]remembered{}} }

func (m *memory) get(k types.NamespacedName, key string, now time.Time) (outcome, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, there := m.all[k]
	return r.out, there && r.key == key && now.Before(r.until)
}

func (m *memory) put(k types.NamespacedName, key string, o outcome, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[k]
	r.key, r.out, r.until = key, o, until
	m.all[k] = r
}

// published drops the bytes of what is on the disk now: of some thousand
// Kustomizations they would be more than the process may have.
func (m *memory) published(k types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, there := m.all[k]; there {
		r.out.manifests = nil
		m.all[k] = r
	}
}

// doubt makes the next outcome a verdict.
func (m *memory) doubt(k types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, there := m.all[k]; there {
		r.key, r.out = "", outcome{}
		m.all[k] = r
	}
}

func (m *memory) told(k types.NamespacedName) (said, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[k].said, m.all[k].toldOnce
}

func (m *memory) tell(k types.NamespacedName, s said) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[k]
	r.said, r.toldOnce = s, true
	m.all[k] = r
}

func (m *memory) shown(k types.NamespacedName) (*meta.Artifact, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[k].shown, m.all[k].shownOnce
}

func (m *memory) show(k types.NamespacedName, a *meta.Artifact) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[k]
	r.shown, r.shownOnce = a, true
	m.all[k] = r
}

func (m *memory) course(k types.NamespacedName) course {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[k].course
}

func (m *memory) follow(k types.NamespacedName, c course) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.all[k]
	r.course = c
	m.all[k] = r
}

func (m *memory) forget(k types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, k)
}
