package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// PinSource says where the digests of images come from that the manifests do
// not pin. The zero value takes only what is pinned already.
type PinSource int

const (
	// AlreadyPinned refuses an image without digest.
	AlreadyPinned PinSource = iota
	// LockFile takes the digest from the lock, else refuses. The default.
	LockFile
	// Registry asks a registry for what the lock does not have.
	Registry
)

// UnmarshalText reads the name of a source.
func (p *PinSource) UnmarshalText(b []byte) error {
	i, err := choose(b, "AlreadyPinned", "LockFile", "Registry")
	*p = PinSource(i)
	return err
}

// UnknownImages says what becomes of a string that looks like an image, in a
// kind outside the tables. The zero value refuses.
type UnknownImages int

const (
	// RefuseUnknown refuses the object with UnknownImage.
	RefuseUnknown UnknownImages = iota
	// WarnUnknown reports it. The default.
	WarnUnknown
	// IgnoreUnknown says nothing.
	IgnoreUnknown
)

// UnmarshalText reads Refuse, Warn or Ignore.
func (u *UnknownImages) UnmarshalText(b []byte) error {
	i, err := choose(b, "Refuse", "Warn", "Ignore")
	*u = UnknownImages(i)
	return err
}

// mode is whether a refusal is only reported.
type mode int

const (
	enforce mode = iota
	warn
)

func (m *mode) UnmarshalText(b []byte) error {
	i, err := choose(b, "Enforce", "Warn")
	*m = mode(i)
	return err
}

type expiredMode gate.ExpiredMode

func (e *expiredMode) UnmarshalText(b []byte) error {
	i, err := choose(b, "Refuse", "LeaveToAdmission", "AllowUnchanged")
	*e = []expiredMode{expiredMode(gate.RefuseExpired), expiredMode(gate.LeaveToAdmission), expiredMode(gate.AllowUnchanged)}[i]
	return err
}

// kindScope is whether objects of a kind have a namespace.
type kindScope int

const (
	namespacedScope kindScope = iota
	clusterScope
)

func (s *kindScope) UnmarshalText(b []byte) error {
	i, err := choose(b, "Namespaced", "Cluster")
	*s = kindScope(i)
	return err
}

// is reports whether a scope is given and is want.
func (s *kindScope) is(want kindScope) bool { return s != nil && *s == want }

func (s kindScope) String() string {
	if s == clusterScope {
		return "Cluster"
	}
	return "Namespaced"
}

// choose returns the index of a word, 0 with an error, and 0 is the strictest.
func choose(b []byte, words ...string) (int, error) {
	i := slices.Index(words, string(b))
	if i < 0 {
		return 0, fmt.Errorf("got %.40q, want %s", b, strings.Join(words, " or "))
	}
	return i, nil
}

// seconds is a duration such as 168h or 90m.
type seconds int64

func (s *seconds) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil || d < 0 || d%time.Second != 0 {
		return fmt.Errorf("got %.40q, want a duration in whole seconds such as 168h", b)
	}
	*s = seconds(d / time.Second)
	return nil
}

// day is midnight UTC of a date, in seconds since the epoch.
type day int64

func (d *day) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return fmt.Errorf("got %.40q, want a date such as 2027-01-15", b)
	}
	*d = day(t.Unix())
	return nil
}

type glob gate.Glob

func (g *glob) UnmarshalText(b []byte) error {
	parsed, err := gate.ParseGlob(string(b))
	*g = glob(parsed)
	return err
}

// matches is true for a pattern that the file does not give.
func (g glob) matches(s string) bool { return g == "" || gate.Glob(g).Match(s) }

func globs(list []glob) []gate.Glob {
	var out []gate.Glob
	for _, g := range list {
		out = append(out, gate.Glob(g))
	}
	return out
}

type category projection.Category

func (c *category) UnmarshalText(b []byte) error {
	*c = category(b)
	if !projection.Category(*c).Valid() {
		return fmt.Errorf("got %.40q, want one of %s, or x- and a name", b, categoryNames())
	}
	return nil
}

func categoryNames() string {
	var names []string
	for _, c := range projection.Categories() {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

func categories(list []category) []projection.Category {
	var out []projection.Category
	for _, c := range list {
		out = append(out, projection.Category(c))
	}
	return out
}

// Names of issuers and environments become names of files and directories in
// the lock; kinds and namespaces stand in webhook rules.
var (
	nameWord      = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	namespaceWord = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	groupWord     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	namespaceGlob = regexp.MustCompile(`^(-|[a-z0-9*]([a-z0-9*-]{0,61}[a-z0-9*])?)$`)
	kindWord      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	kindRefWord   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}(\.[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$`)
	resourceWord  = regexp.MustCompile(`^[a-z][a-z0-9]{0,62}$`)
	variableWord  = regexp.MustCompile(`^(\*?[A-Za-z0-9_.-]{1,62}|[A-Za-z0-9_.-]{1,62}\*|\*)$`)
	fieldPath     = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	annotationKey = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	oneLine       = regexp.MustCompile(`^[ -~]{1,300}$`)
)
