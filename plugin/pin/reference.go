package pin

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// ErrNotReference is wrapped by Parse for text that was never meant as an
// image to pull: empty, a template, a build tool's import path, or the word
// that a service mesh replaces. Such a value passes only if policy allows it
// by name (allowUnpinned); it is never looked up.
var ErrNotReference = errors.New("not an image reference")

// maxReference bounds the text of a reference: a name has at most 255
// characters, a tag 128, a digest 71.
const maxReference = 512

// Reference is an image reference as it was written: nothing is added to its
// name, so that "nginx" never becomes "docker.io/library/nginx" in a manifest.
// The zero value refers to nothing.
type Reference struct {
	name, tag, digest string
}

// Name returns what was written before the tag and the digest, the host and
// port included.
func (r Reference) Name() string { return r.name }

// Tag returns the tag as written, "" if there is none.
func (r Reference) Tag() string { return r.tag }

// LookupTag returns the tag that a runtime pulls: Tag, or "latest".
func (r Reference) LookupTag() string {
	if r.tag == "" {
		return "latest"
	}
	return r.tag
}

// Digest returns "sha256:" and 64 lower-case hex digits, or "" if the
// reference is not pinned.
func (r Reference) Digest() string { return r.digest }

// String returns the reference as written: name[:tag][@digest].
func (r Reference) String() string {
	s := r.name
	if r.tag != "" {
		s += ":" + r.tag
	}
	if r.digest != "" {
		s += "@" + r.digest
	}
	return s
}

// Pin returns r with the digest. A reference without a tag is not given one:
// "nginx" becomes "nginx@sha256:...". What was written stays a prefix of the
// result, and the API server's default for imagePullPolicy is then
// IfNotPresent; with ":latest@sha256:..." it would be Always, for content
// that cannot change. It fails if r is pinned to another digest.
func (r Reference) Pin(digest string) (Reference, error) {
	if r.name == "" {
		return Reference{}, fmt.Errorf("pinning: %w", ErrNotReference)
	}
	if !digestForm.MatchString(digest) {
		return Reference{}, fmt.Errorf("pinning %q: got digest %q, want sha256: and 64 lower-case hex digits", r.String(), digest)
	}
	if r.digest != "" && r.digest != digest {
		return Reference{}, fmt.Errorf("pinning %q: got digest %q for it", r.String(), digest)
	}
	r.digest = digest
	return r, nil
}

var (
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// A digest where a tag belongs: what comes of putting one into a chart's
	// tag value.
	digestAsTag = regexp.MustCompile(`:(sha256|sha384|sha512):[0-9A-Fa-f]*$`)
	identifier  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	bareHex     = regexp.MustCompile(`@[0-9a-fA-F]{64}$`)
)

// Parse parses name[:tag][@sha256:hex] by the grammar of distribution, which
// the container runtimes use. It fails with ErrNotReference, or with an error
// that says what is wrong with the reference.
func Parse(ref string) (Reference, error) {
	if why := notReference(ref); why != "" {
		return Reference{}, fmt.Errorf("%q: %w: %s", clip(ref), ErrNotReference, why)
	}
	if len(ref) > maxReference {
		return Reference{}, fmt.Errorf("image %q is longer than %d characters", clip(ref), maxReference)
	}
	if digestAsTag.MatchString(ref) {
		i := strings.LastIndex(ref[:strings.LastIndexByte(ref, ':')], ":")
		return Reference{}, fmt.Errorf("image %q: a digest needs '@' before it: %q", ref, ref[:i]+"@"+ref[i+1:])
	}
	if bareHex.MatchString(ref) {
		return Reference{}, fmt.Errorf("image %q: a digest starts with its algorithm: \"@sha256:...\"", ref)
	}
	if _, digest, ok := strings.Cut(ref, "@"); ok && !digestForm.MatchString(digest) {
		return Reference{}, fmt.Errorf("image %q: the digest must be sha256: and 64 lower-case hex digits", ref)
	}
	parsed, err := reference.Parse(ref)
	if errors.Is(err, reference.ErrNameContainsUppercase) {
		return Reference{}, fmt.Errorf("image %q: the repository must be lower case", ref)
	}
	if err != nil {
		return Reference{}, fmt.Errorf("image %q: %s: want name[:tag][@sha256:...]", ref, detail(ref, err))
	}
	var r Reference
	named, ok := parsed.(reference.Named)
	// A name of 64 hex digits is an identifier to the runtimes, which refuse
	// it in a manifest.
	if !ok || identifier.MatchString(named.Name()) {
		return Reference{}, fmt.Errorf("image %q: malformed: no name", ref)
	}
	r.name = named.Name()
	// Some runtimes take "Acme/web" for a host called Acme, some refuse it.
	if r.name != strings.ToLower(r.name) {
		return Reference{}, fmt.Errorf("image %q: the repository must be lower case", ref)
	}
	if t, ok := parsed.(reference.Tagged); ok {
		r.tag = t.Tag()
	}
	if d, ok := parsed.(reference.Digested); ok {
		r.digest = d.Digest().String()
	}
	if r.String() != ref {
		return Reference{}, fmt.Errorf("image %q is not in canonical form", ref)
	}
	return r, nil
}

func notReference(ref string) string {
	switch {
	case ref == "":
		return "it is empty"
	case ref == "auto":
		return "the placeholder that a service mesh's injector replaces"
	case strings.Contains(ref, "://"):
		return "it has a scheme"
	case strings.ContainsAny(ref, " \t\r\n"):
		return "it holds white space"
	case strings.ContainsAny(ref, "${}<>()*|"):
		return "it is a template or a pattern"
	}
	return ""
}

func detail(ref string, err error) string {
	switch {
	case strings.HasSuffix(ref, ":") || strings.Contains(ref, ":@"):
		return "the tag is empty (was a variable not set?)"
	case errors.Is(err, reference.ErrNameTooLong):
		return "the name is too long"
	}
	return "malformed"
}

func clip(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "..."
	}
	return s
}
