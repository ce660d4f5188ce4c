// Package settings encodes what one Argo CD Application asks for in its
// annotations, for the plugin, which Argo CD shows no annotation.
//
// The controller publishes the entries of all Applications in the ConfigMap
// [ConfigMap], which the sidecar mounts: a file for each, named by [Key] as
// Argo CD names the application to plugins. An entry is one strict JSON object,
// for example
//
//	{"mode":"Enforce","categories":["service"]}
//
// and {} for an Application that asks for nothing. Whether what is asked for
// only tightens is for package policy to decide: entries are not trusted.
package settings

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

	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/policy"
)

// ConfigMap is the name of the ConfigMap that holds the entries, in Argo CD's
// namespace.
const ConfigMap = "syncgate-apps"

// Prefix begins every annotation of the gate. Status is the one that the
// controller writes.
const (
	Prefix = "syncgate.io/"
	Status = Prefix + "status"
)

// maxEntry bounds an entry, in bytes: thousands of them share a ConfigMap.
const maxEntry = 2 << 10

// Entry is what one application asks for. The zero value asks for nothing.
type Entry struct {
	Mode        string   `json:"mode,omitempty"`        // Enforce or Warn
	Environment string   `json:"environment,omitempty"` // one that policy allows
	Categories  []string `json:"categories,omitempty"`  // to be signed, too
	Renderer    string   `json:"renderer,omitempty"`    // and no other
	Lock        string   `json:"lock,omitempty"`        // folder of .syncgate, from the repository's root

	// Refused says why the application must not sync whatever is signed: an
	// annotation that would relax, or that nobody understands.
	Refused string `json:"refused,omitempty"`
}

// Asked is the part of an entry that policy judges.
func (e Entry) Asked() policy.Asked {
	return policy.Asked{Mode: e.Mode, Environment: e.Environment, Categories: e.Categories}
}

// names are the annotations without prefix, and where each value goes.
var names = []struct {
	name string
	set  func(*Entry, string) error
}{
	{"categories", func(e *Entry, v string) error {
		for _, c := range strings.Split(v, ",") {
			e.Categories = append(e.Categories, strings.TrimSpace(c))
		}
		return words(e.Categories, category, "categories, with commas between them")
	}},
	{"environment", func(e *Entry, v string) error {
		e.Environment = v
		return words([]string{v}, name, "the name of an environment")
	}},
	{"lock", func(e *Entry, v string) error {
		e.Lock = v
		if !filepath.IsLocal(v) || !plain.MatchString(v) {
			return fmt.Errorf("got %.80q, want a folder of the repository, from its root", v)
		}
		return nil
	}},
	{"mode", func(e *Entry, v string) error { e.Mode = v; return oneOf(v, "Enforce", "Warn") }},
	{"renderer", func(e *Entry, v string) error {
		e.Renderer = v
		return oneOf(v, "kustomize", "helm", "directory", "command")
	}},
}

var (
	name     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	category = regexp.MustCompile(`^-?[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	plain    = regexp.MustCompile(`^[!-~]([ -~]{0,198}[!-~])?$`)
)

func words(list []string, want *regexp.Regexp, what string) error {
	for _, w := range list {
		if !want.MatchString(w) {
			return fmt.Errorf("got %.40q, want %s", w, what)
		}
	}
	return nil
}

func oneOf(v string, list ...string) error {
	if !slices.Contains(list, v) {
		return fmt.Errorf("got %.40q, want %s", v, strings.Join(list, ", "))
	}
	return nil
}

// Parse reads the annotations of an Application. One of the gate's that it does
// not know was meant to tighten something: it makes an entry that is Refused,
// as does a value that it cannot read. others are keys that may stand beside
// them, such as the one of receipts: an Application can itself be signed.
func Parse(annotations map[string]string, others ...string) Entry {
	var e Entry
	var bad, known []string
	for _, n := range names {
		key := Prefix + n.name
		known = append(known, key)
		if v, set := annotations[key]; set {
			if err := n.set(&e, v); err != nil {
				bad = append(bad, fmt.Sprintf("annotation %s: %v", key, err))
			}
		}
	}
	for _, key := range others {
		if strings.HasPrefix(key, Prefix) { // else it is never looked for
			known = append(known, key)
		}
	}
	slices.Sort(known)
	var unknown []string
	for key := range annotations {
		if strings.HasPrefix(key, Prefix) && key != Status && !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for _, key := range unknown {
		bad = append(bad, fmt.Sprintf("annotation %.80q is none of %s", key, strings.Join(known, ", ")))
	}
	if len(bad) > 0 {
		return Refuse(strings.Join(bad, "; "))
	}
	return e
}

// Refuse returns an entry that refuses the application for a reason, of which
// at most 1 KiB is kept.
func Refuse(why string) Entry {
	const room = 1 << 10
	if len(why) > room {
		why = why[:room-3] + "..."
	}
	return Entry{Refused: strings.ToValidUTF8(why, "?")}
}

// Key is the name by which Argo CD calls an application to plugins, and of its
// entry: the bare name in the namespace that Argo CD itself is in, else
// NAMESPACE_NAME.
func Key(controllerNamespace, namespace, name string) string {
	if namespace == controllerNamespace {
		return name
	}
	return namespace + "_" + name
}

// key is what a ConfigMap takes, which is more than an application can be named.
var key = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?$`)

// ValidKey reports whether an entry can have this name. That of a long name in
// another namespace can be too long for a ConfigMap.
func ValidKey(k string) bool { return key.MatchString(k) }

// Encode returns the entry as its file holds it: the same entry, the same text.
func (e Entry) Encode() (string, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encoding settings: %w", err)
	}
	if len(b) > maxEntry {
		return "", fmt.Errorf("encoding settings: %d bytes, want at most %d", len(b), maxEntry)
	}
	return string(b), nil
}

// ErrMissing is what Load wraps when there is no entry: the controller has not
// published one, or the mount is older than it.
var ErrMissing = errors.New("no settings are published")

// Load reads the entry of an application in a directory, as the ConfigMap is
// mounted. The error wraps ErrMissing if there is none.
func Load(dir, app string) (Entry, error) {
	if !ValidKey(app) {
		return Entry{}, fmt.Errorf("%.80q is no name of an application", app)
	}
	file := filepath.Join(dir, app)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, ErrMissing
	}
	if err != nil {
		return Entry{}, fmt.Errorf("reading settings: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxEntry {
		return Entry{}, fmt.Errorf("reading settings: not a regular file of at most %d bytes", maxEntry)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return Entry{}, fmt.Errorf("reading settings: %w", err)
	}
	var e Entry
	if err := jcs.Strict(data, &e); err != nil {
		return Entry{}, fmt.Errorf("reading settings: %w", err)
	}
	return e, nil
}
