// Package pin writes image references as name[:tag]@sha256:... into objects.
// Which tag is which digest is the caller's knowledge, given as a Resolver:
// the lock, or a registry. Pinning is idempotent: an image that has a digest
// is left as it is and not looked up, so that what the gate renders is a
// fixed point (docs/argocd.md, "Pinning").
//
//	image: ghcr.io/acme/web:1.5
//	image: ghcr.io/acme/web:1.5@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
package pin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/projection"
)

// The classes of a Resolver's errors, told apart with errors.Is. ErrNotLocked
// and ErrNotReference become ImageNotPinned at the front end, the others
// ImageUnresolvable.
var (
	ErrNotLocked    = errors.New("no pin in the lock")            // run syncgate pin and commit
	ErrNotFound     = errors.New("not found in the registry")     // retrying does not help
	ErrUnauthorized = errors.New("not authorized")                // credentials missing or refused
	ErrRateLimited  = errors.New("rate limit of the registry")    // retrying later helps
	ErrUnavailable  = errors.New("registry unavailable")          // retrying helps
	ErrBadAnswer    = errors.New("unusable answer of a registry") // a proxy or a broken registry
)

// Resolver finds the digest of a reference.
type Resolver interface {
	// Resolve returns "sha256:" and 64 lower-case hex digits for
	// r.Name() and r.LookupTag(). It is not called for a reference that has a
	// digest. An error wraps one of the classes above and names no secret.
	Resolve(ctx context.Context, r Reference) (digest string, err error)
}

// Change is one image that was pinned.
type Change struct {
	Path     string // where in the object, as projection writes paths
	Old, New string
}

// Failure is one image that could not be pinned.
type Failure struct {
	Path  string
	Image string
	Err   error
}

func (f *Failure) Error() string { return f.Path + ": " + f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Failures are all images of an object that could not be pinned, sorted by
// path.
type Failures []*Failure

func (f Failures) Error() string {
	texts := make([]string, len(f))
	for i, x := range f {
		texts[i] = x.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives errors.Is and errors.As each *Failure.
func (f Failures) Unwrap() []error {
	out := make([]error, len(f))
	for i, x := range f {
		out[i] = x
	}
	return out
}

// Object pins every image of the object, in place, and returns what it
// changed, sorted by path. Which strings are images is decided by
// projection.EachImage. allow says which references (placeholders) may stay
// as they are; nil allows none. On an error, of type Failures if it is about
// images, the object is unchanged.
func Object(ctx context.Context, tree map[string]any, resolve Resolver, allow func(ref string) bool) ([]Change, error) {
	return ObjectWith(ctx, projection.EachImage, tree, resolve, allow)
}

// Images finds and replaces the images of an object: projection.EachImage, or
// the method of a Projector that knows more of them.
type Images func(tree map[string]any, fn func(path, ref string) (string, error)) error

// ObjectWith is Object with another way to find images.
func ObjectWith(ctx context.Context, images Images, tree map[string]any, resolve Resolver, allow func(ref string) bool) ([]Change, error) {
	p := pinner{resolve: resolve, allow: allow, known: map[string]answer{}}
	var changes []Change
	var failures Failures
	err := images(tree, func(path, ref string) (string, error) {
		pinned, err := p.pin(ctx, ref)
		if err != nil {
			failures = append(failures, &Failure{Path: path, Image: ref, Err: err})
			return ref, err // one error, and EachImage writes nothing
		}
		if pinned != ref {
			changes = append(changes, Change{Path: path, Old: ref, New: pinned})
		}
		return pinned, nil
	})
	if len(failures) > 0 {
		slices.SortStableFunc(failures, func(a, b *Failure) int { return cmp.Compare(a.Path, b.Path) })
		return nil, failures
	}
	if err != nil {
		return nil, fmt.Errorf("finding images: %w", err)
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

type pinner struct {
	resolve Resolver
	allow   func(string) bool
	known   map[string]answer // by reference as written: one look-up each
}

type answer struct {
	pinned string
	err    error
}

func (p *pinner) pin(ctx context.Context, ref string) (string, error) {
	a, ok := p.known[ref]
	if !ok {
		a.pinned, a.err = p.lookup(ctx, ref)
		p.known[ref] = a
	}
	return a.pinned, a.err
}

func (p *pinner) lookup(ctx context.Context, ref string) (string, error) {
	if p.allow != nil && p.allow(ref) {
		return ref, nil
	}
	r, err := Parse(ref)
	if err != nil {
		return "", err
	}
	if r.Digest() != "" {
		return ref, nil
	}
	if p.resolve == nil {
		return "", fmt.Errorf("%s: %w", ref, ErrNotLocked)
	}
	digest, err := p.resolve.Resolve(ctx, r)
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", ref, err)
	}
	pinned, err := r.Pin(digest)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	return pinned.String(), nil
}
