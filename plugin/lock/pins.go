package lock

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Pin says which digest a tag of an image name stood for when it was resolved.
type Pin struct {
	Name   string // as written in the manifest, without tag and digest
	Tag    string // empty: none was written
	Digest string // sha256: and 64 lower-case hexadecimal digits
}

// maxImageName is the limit of the registry protocol's implementations.
const maxImageName = 255

var (
	// imageName is what an image name can be made of, and no YAML plain scalar
	// takes for anything else; package pin knows which of them are references.
	imageName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/:-]*[A-Za-z0-9])?$`)
	imageTag  = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$`)
	digest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	pinLine   = regexp.MustCompile(`^- \{name: ([^ ,{}"]+), tag: "([^"]*)", digest: ([^ ,{}"]+)\}$`)
)

func (p Pin) check() error {
	switch {
	case len(p.Name) > maxImageName || !imageName.MatchString(p.Name):
		return fmt.Errorf("image name %.80q: want letters, digits, '.', '_', '-', '/' and ':', at most %d of them", p.Name, maxImageName)
	case !imageTag.MatchString(p.Tag):
		return fmt.Errorf("image %s: malformed tag %.80q", p.Name, p.Tag)
	case !digest.MatchString(p.Digest):
		return fmt.Errorf(`image %s:%s: got digest %.80q, want "sha256:" and 64 lower-case hexadecimal digits`, p.Name, p.Tag, p.Digest)
	}
	return nil
}

// Pin returns the digest of a tag of an image name, as both are written in the
// manifest.
func (l *Lock) Pin(name, tag string) (digest string, ok bool) {
	digest, ok = l.pins[name][tag]
	return digest, ok
}

// SetPin sets or replaces a pin. It returns an error for a malformed one.
func (l *Lock) SetPin(p Pin) error {
	err := p.check()
	if err != nil {
		return fmt.Errorf("pinning: %w", err)
	}
	if l.pins[p.Name] == nil {
		l.pins[p.Name] = map[string]string{}
	}
	l.pins[p.Name][p.Tag] = p.Digest
	return nil
}

// Pins returns every pin, sorted by name, then tag.
func (l *Lock) Pins() []Pin {
	var list []Pin
	for name, tags := range l.pins {
		for tag, digest := range tags {
			list = append(list, Pin{Name: name, Tag: tag, Digest: digest})
		}
	}
	slices.SortFunc(list, func(a, b Pin) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Tag, b.Tag))
	})
	return list
}

// KeepPins drops the pins for which keep is false.
func (l *Lock) KeepPins(keep func(Pin) bool) {
	for _, p := range l.Pins() {
		if !keep(p) {
			delete(l.pins[p.Name], p.Tag)
		}
	}
}

func formatPins(name string, tags map[string]string) string {
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		b.WriteString(Pin{Name: name, Tag: tag, Digest: tags[tag]}.line())
	}
	return b.String()
}

func (p Pin) line() string {
	return fmt.Sprintf("- {name: %s, tag: %q, digest: %s}\n", p.Name, p.Tag, p.Digest)
}

func (l *Lock) loadPins(f file) error {
	for i, line := range f.lines() {
		p, err := parsePin(line)
		if err == nil {
			err = p.check()
		}
		if err == nil && pinsPath(p.Name) != f.path {
			err = fmt.Errorf("got image %s, which belongs into %s", p.Name, pinsPath(p.Name))
		}
		if _, twice := l.Pin(p.Name, p.Tag); err == nil && twice {
			err = fmt.Errorf("image %s:%s twice", p.Name, p.Tag)
		}
		if err == nil {
			err = l.SetPin(p)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// parsePin reads the one spelling that line writes.
func parsePin(line string) (Pin, error) {
	m := pinLine.FindStringSubmatch(line)
	if m == nil {
		return Pin{}, fmt.Errorf(`got %.80q, want - {name: NAME, tag: "TAG", digest: sha256:...}`, line)
	}
	return Pin{Name: m[1], Tag: m[2], Digest: m[3]}, nil
}
