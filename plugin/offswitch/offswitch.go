// Package offswitch reads and writes the off-switches: entries of the ConfigMap
// syncgate-off in the gate's own namespace, by which an administrator lets
// refused changes of one namespace or application pass for a while
// (docs/webhook.md, Off-switch). Who may write them is for the guard and RBAC;
// how long is for this package.
package offswitch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/internal/jcs"
)

// ConfigMap is the name of the ConfigMap that holds the switches.
const ConfigMap = "syncgate-off"

// Longest is how far ahead a switch may end: it reverts by itself, and nobody
// forgets one.
const Longest = 24 * time.Hour

// maxFile bounds one switch, in bytes.
const maxFile = 4 << 10

// Switch lets what is refused for one target pass until a time.
type Switch struct {
	Namespace string `json:"namespace,omitempty"` // exactly one of these two
	App       string `json:"app,omitempty"`
	Until     string `json:"until"` // RFC 3339
	Reason    string `json:"reason"`
	By        string `json:"by"` // who says to have set it; the cluster's audit log knows
}

var (
	// An application outside Argo CD's own namespace is NAMESPACE_NAME to a plugin.
	target  = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?$`)
	oneLine = regexp.MustCompile(`^[ -~]{1,200}$`)
)

// Key is the key of the ConfigMap under which a switch is kept: one for each
// target.
func (s Switch) Key() string {
	if s.App != "" {
		return "app." + s.App
	}
	return "namespace." + s.Namespace
}

// Encode returns the value of the ConfigMap's key. The error is that of Check.
func (s Switch) Encode(now time.Time) (string, error) {
	if err := s.Check(now); err != nil {
		return "", err
	}
	b, err := json.Marshal(s)
	return string(b), err
}

// Check says what is wrong with a switch at a time. One that has ended is not
// wrong.
func (s Switch) Check(now time.Time) error {
	until, err := time.Parse(time.RFC3339, s.Until)
	switch {
	case (s.Namespace == "") == (s.App == ""):
		return errors.New("want a namespace or an app")
	case !target.MatchString(s.Namespace + s.App):
		return fmt.Errorf("%.80q is no name of a namespace or application", s.Namespace+s.App)
	case err != nil:
		return fmt.Errorf("until: %w", err)
	case until.After(now.Add(Longest + time.Minute)):
		return fmt.Errorf("until %s is more than %s ahead", s.Until, Longest)
	case !oneLine.MatchString(s.Reason):
		return errors.New("want a reason of one line of at most 200 ASCII characters")
	case !oneLine.MatchString(s.By):
		return errors.New("want a name of who sets it, of one line of at most 200 ASCII characters")
	}
	return nil
}

// Decode reads one switch strictly.
func Decode(data []byte) (Switch, error) {
	var s Switch
	if err := jcs.Strict(data, &s); err != nil {
		return Switch{}, err
	}
	return s, nil
}

// Set is the switches that were read. A nil one has none.
type Set struct {
	switches []entry
}

type entry struct {
	Switch
	until int64
}

// Error is a file that is no good switch.
type Error struct {
	File string // the key of the ConfigMap
	Err  error
}

// Error says what is wrong with which switch.
func (e *Error) Error() string { return fmt.Sprintf("reading off-switch %s: %v", e.File, e.Err) }

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all the files that are no good switches, by name.
type Errors []*Error

// Error names each.
func (e Errors) Error() string {
	parts := make([]string, len(e))
	for i, x := range e {
		parts[i] = x.Error()
	}
	return strings.Join(parts, "; ")
}

// Load reads the switches in a directory, as a ConfigMap is mounted; one that is
// not there has none. Each file stands by itself: what is no good switch opens
// nothing, the others count, and the error is [Errors]. Where the directory
// cannot be read the set is nil.
func Load(dir string, now time.Time) (*Set, error) {
	set := &Set{}
	if dir == "" {
		return set, nil
	}
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading off-switches: %w", err)
	}
	var wrong Errors
	for _, f := range list {
		if strings.HasPrefix(f.Name(), "..") { // the kubelet's own
			continue
		}
		e, err := read(filepath.Join(dir, f.Name()), now)
		if err == nil && e.Key() != f.Name() {
			err = fmt.Errorf("it is for %s", e.Key())
		}
		if err != nil {
			wrong = append(wrong, &Error{f.Name(), err})
			continue
		}
		set.switches = append(set.switches, e)
	}
	if len(wrong) > 0 {
		return set, wrong
	}
	return set, nil
}

func read(file string, now time.Time) (entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return entry{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return entry{}, fmt.Errorf("not a regular file of at most %d bytes", maxFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return entry{}, err
	}
	s, err := Decode(data)
	if err != nil {
		return entry{}, err
	}
	if err := s.Check(now); err != nil {
		return entry{}, err
	}
	until, err := time.Parse(time.RFC3339, s.Until)
	if err != nil {
		return entry{}, err
	}
	return entry{s, until.Unix()}, nil
}

// Namespace reports whether the gate is off for a namespace at a time in seconds
// since the epoch, and says why.
func (s *Set) Namespace(name string, now int64) (string, bool) {
	return s.find(func(e entry) bool { return name != "" && e.Namespace == name }, now)
}

// App reports whether the gate is off for an application.
func (s *Set) App(name string, now int64) (string, bool) {
	return s.find(func(e entry) bool { return name != "" && e.App == name }, now)
}

func (s *Set) find(is func(entry) bool, now int64) (string, bool) {
	if s == nil {
		return "", false
	}
	for _, e := range s.switches {
		if is(e) && now < e.until {
			return fmt.Sprintf("off until %s by %s: %s", e.Until, e.By, e.Reason), true
		}
	}
	return "", false
}

// Equal reports whether two sets have the same switches.
func (s *Set) Equal(t *Set) bool { return slices.Equal(s.switches, t.switches) }

// All returns the switches, by key.
func (s *Set) All() []Switch {
	out := make([]Switch, len(s.switches))
	for i, e := range s.switches {
		out[i] = e.Switch
	}
	return out
}
