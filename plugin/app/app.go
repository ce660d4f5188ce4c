package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/manifest"
	"github.com/syncgate/syncgate/plugin/internal/parallel"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/pin"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/render"
)

// Settings say which application, and by which rules.
type Settings struct {
	Render    render.Options   // Dir is the application's directory
	Lock      string           // the directory that holds the lock; empty: Render.Dir, or for a Stream none
	Namespace string           // of the destination: where objects without a namespace go
	Effective policy.Effective // what policy means for this application
	Registry  pin.Resolver     // asked if policy's pins say Registry; nil otherwise
	Stream    *Stream          // given instead of rendering Dir
	Keep      Keep             // what is kept of each object

	// LeaveUnpinned keeps images without a pin as they are instead of
	// reporting them: for showing fields, never for a verdict.
	LeaveUnpinned bool
}

// Stream is a stream of manifests that somebody else rendered.
type Stream struct {
	Data []byte
	File string // a name for messages
}

// Keep says what a build keeps of each object once it is evaluated. A decoded
// tree takes several times the room of its manifest.
type Keep int

const (
	KeepTrees   Keep = iota // everything
	KeepBytes               // the encoded form, for Encode
	KeepNothing             // no manifest at all: only a verdict is wanted
)

// Object is one rendered object and what the gate knows of it.
type Object struct {
	manifest.Object
	Subject    receipt.Subject
	Projection *projection.Projection // nil if Problem says why there is none
	Receipts   []string               // in the order of the annotation
	Pinned     []pin.Change
	Unknown    []string   // paths that look like images, in a kind nobody described
	Problem    *gate.Item // what was wrong before a receipt was looked at
	Test       bool       // one of a chart's tests, which need not be rendered

	generate string // metadata.generateName
	encoded  []byte // with KeepBytes
}

// Build is an application, rendered and pinned, every object projected and its
// receipts stamped on it.
type Build struct {
	Objects  []*Object
	Renderer string
	Warnings []string
	Lock     *lock.Lock        // nil for a stream without one
	Inputs   lock.RenderInputs // what the render depended on beside the repository

	// Values are the data of the ConfigMap from which Flux fills in pins and
	// receipts; nil if it does not, or something is wrong with an object.
	Values map[string]string

	dir       string            // where the lock is
	signedFor lock.RenderInputs // what the lock says of the inputs
}

// Refusal is an application that was refused as a whole. Its text is the
// sentence of docs/spec/refusal.md.
type Refusal struct{ Sentence gate.Sentence }

func (r *Refusal) Error() string { return r.Sentence.String() }

// Refuse returns a Refusal of one item that is about no single object.
func Refuse(reason gate.Reason, format string, args ...any) *Refusal {
	return &Refusal{gate.Sentence{Items: []gate.Item{{Reason: reason, Text: fmt.Sprintf(format, args...)}}}}
}

// New renders, pins, projects and stamps. The error is a *Refusal, or ctx's.
func New(ctx context.Context, s Settings) (*Build, error) {
	b := &Build{}
	prepare := func(m manifest.Object) *Object { return s.prepared(ctx, b.Lock, m) }
	if s.Stream != nil {
		if s.Lock != "" {
			if err := b.open(s.Lock, s.Lock); err != nil {
				return nil, err
			}
		}
		objects, err := manifest.Map(s.Stream.Data, s.Stream.File, prepare)
		if err != nil {
			return nil, Refuse(gate.RenderFailed, "%v", err)
		}
		b.Objects = objects
	} else {
		if err := b.open(s.Render.Dir, cmp.Or(s.Lock, s.Render.Dir)); err != nil {
			return nil, err
		}
		r, err := render.Render(ctx, s.Render)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, unrendered(err)
		}
		b.Renderer, b.Warnings, b.Inputs = r.Renderer, r.Warnings, inputs(r)
		if r.Fill != nil {
			if err := s.filled(ctx, b, r); err != nil {
				return nil, err
			}
		} else {
			b.Objects = make([]*Object, len(r.Objects))
			parallel.Each(len(r.Objects), func(i int) {
				b.Objects[i] = prepare(r.Objects[i])
				b.Objects[i].Test = r.IsTest(r.Objects[i])
			})
			b.offerWithoutTests(s.Effective)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(b.Objects) == 0 {
		r := Refuse(gate.EmptyRender, "the render has no objects; with pruning on, syncing it would delete the application")
		r.Sentence.Fix = "check the path and the renderer; to remove the application delete it in Argo CD or Flux"
		return nil, r
	}
	if s.Effective.UnknownImages == policy.WarnUnknown {
		b.warnUnknown()
	}
	return b, b.unique()
}

// warnUnknown reports what looks like an image and is neither pinned nor
// gated.
func (b *Build) warnUnknown() {
	for _, o := range b.Objects {
		for _, path := range o.Unknown {
			b.Warnings = append(b.Warnings, fmt.Sprintf("%s: %s looks like an image and is not gated: name it under kinds in policy", o.Subject.Short(), path))
		}
	}
}

// open reads the lock in at.
func (b *Build) open(dir, at string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		r := Refuse(gate.RenderFailed, "%q is not a directory", dir)
		r.Sentence.Fix = "check the path"
		return r
	}
	l, err := lock.Open(at)
	if err != nil {
		return refuse(gate.RenderFailed, "reading the lock", err, "repair or remove the file it names, then sign again")
	}
	if b.signedFor, err = lock.ReadRenderInputs(at); err != nil {
		return refuse(gate.RenderFailed, "reading the lock", err, "repair or remove the file it names, then sign again")
	}
	b.Lock, b.dir = l, at
	return nil
}

// unique refuses an object that stands twice: which of the two counts would
// depend on who reads them.
func (b *Build) unique() error {
	seen := make(map[string]*Object, len(b.Objects))
	for _, o := range b.Objects {
		if o.Subject.Generated {
			continue // its name is chosen later: never the same twice
		}
		key := o.Subject.String()
		if first := seen[key]; first != nil {
			at := o.Where()
			if first.Where() != at {
				at = first.Where() + " and in " + at
			}
			r := Refuse(gate.DuplicateObject, "%s stands twice: in %s", o.Subject.Short(), at)
			r.Sentence.Fix = "keep one of the two"
			return r
		}
		seen[key] = o
	}
	return nil
}

// prepared makes one object ready for evaluating, and keeps of it what is
// wanted.
func (s Settings) prepared(ctx context.Context, l *lock.Lock, m manifest.Object) *Object {
	o := &Object{Object: m, generate: m.GenerateName()}
	s.prepare(ctx, l, o)
	s.drop(o)
	return o
}

// drop keeps of an object what is wanted.
func (s Settings) drop(o *Object) {
	switch s.Keep {
	case KeepBytes:
		var buf bytes.Buffer
		if err := manifest.Encode(&buf, []manifest.Object{o.Object}); err != nil && o.Problem == nil {
			o.Problem = &gate.Item{Subject: o.Subject.Short(), Reason: gate.ObjectMalformed, Text: err.Error()}
		}
		o.encoded, o.Tree = buf.Bytes(), nil
	case KeepNothing:
		o.Tree = nil
	}
}

func refuse(reason gate.Reason, doing string, err error, fix string) *Refusal {
	text := err.Error()
	if doing != "" {
		text = doing + ": " + text
	}
	r := Refuse(reason, "%s", receiptLike.ReplaceAllString(text, "(a receipt)"))
	r.Sentence.Fix = fix
	return r
}

// unrendered is the refusal of manifests that cannot be rendered.
func unrendered(err error) *Refusal {
	fix := ""
	var failed *render.Error
	if errors.As(err, &failed) {
		fix = failed.Fix
	}
	return refuse(gate.RenderFailed, "", err, fix)
}

// receiptLike is a compact JWS. Some of kustomize's errors print an object's
// annotations, and a message never holds a whole receipt (docs/spec/refusal.md).
var receiptLike = regexp.MustCompile(`eyJ[\w-]{16,}\.[\w-]*\.[\w-]*`)

// prepare fills in one object; what is wrong with it becomes o.Problem.
func (s Settings) prepare(ctx context.Context, l *lock.Lock, o *Object) {
	o.Subject = subjectOf(o.Object, s.Namespace)
	problem := func(reason gate.Reason, format string, args ...any) {
		o.Problem = &gate.Item{Subject: o.Subject.Short(), Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	if o.Subject.Namespace == "" && !s.LeaveUnpinned && !projection.ClusterScoped(o.Subject.Group, o.Subject.Kind) && projection.Known(o.Subject.Group, o.Subject.Kind) {
		problem(gate.ObjectMalformed, "no namespace, and the destination names none (%s)", o.Where())
		o.Problem.Fix = "write a namespace, or name the destination's (on the command line: --namespace)"
		return
	}
	if ns, yes := s.protected(o); yes {
		problem(gate.ProtectedTarget, "namespace %s is protected: only the writers that policy lists under protected may render into it", ns)
		return
	}
	changes, err := pin.ObjectWith(ctx, s.Effective.Projector.EachImage, o.Tree, s.resolver(l), s.mayStay(l))
	if err != nil {
		reason, text, fix := pinProblem(err)
		problem(reason, "%s", text)
		if reason == gate.ImageUnresolvable { // a reference that no registry knows is mended in its file
			o.Problem.Text += " (" + o.Where() + ")"
		}
		o.Problem.Fix = fix
		return
	}
	o.Pinned = changes
	o.Projection, err = s.Effective.Projector.Project(o.Tree)
	if err != nil {
		problem(gate.ObjectMalformed, "%v (%s)", err, o.Where())
		return
	}
	if o.Unknown = s.Effective.Projector.UnknownImages(o.Tree); len(o.Unknown) > 0 && s.Effective.UnknownImages == policy.RefuseUnknown {
		problem(gate.UnknownImage, "%s looks like an image, in a kind that neither syncgate nor policy knows", strings.Join(o.Unknown, ", "))
		o.Problem.Fix = "name the path under kinds in policy, with pin: true if it is an image"
		return
	}
	if what := gate.Forced(o.Subject, o.Tree, o.Projection); what != "" {
		problem(gate.ForceNotAllowed, "%s would delete a running object before its change is refused: remove it", what)
		return
	}
	if o.Subject.Group == "apps" && o.Subject.Kind == "ControllerRevision" {
		// Its controller would run Pods from it without asking (docs/spec/gated-fields.md, Kinds).
		problem(gate.ObjectMalformed, "a ControllerRevision is written by its controller alone, never by an application (%s)", o.Where())
		return
	}
	if err := s.stamp(l, o); err != nil {
		problem(gate.ObjectMalformed, "%v (%s)", err, o.Where())
		return
	}
	if gate.SignedBefore(o.Subject, o.Receipts) {
		o.Projection = o.Projection.AsFound()
	}
}

// subjectOf names an object; one without a namespace goes to the destination's.
func subjectOf(o manifest.Object, namespace string) receipt.Subject {
	s := receipt.Subject{Group: projection.CanonicalGroup(o.Group(), o.Kind()), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
	switch {
	case projection.ClusterScoped(s.Group, s.Kind):
		s.Namespace = ""
	case s.Namespace == "":
		s.Namespace = namespace
	}
	if s.Name == "" {
		s.Name, s.Generated = o.GenerateName(), true
	}
	return s
}

// protected reports whether the object goes to a namespace, or is one, that
// this application must leave alone.
func (s Settings) protected(o *Object) (string, bool) {
	ns := o.Subject.Namespace
	if o.Subject.Group == "" && o.Subject.Kind == "Namespace" {
		ns = o.Subject.Name
	}
	return ns, ns != "" && s.Effective.Protected(ns)
}

// WriteReference is the next step where an image is no reference at all.
const WriteReference = "write an image reference; a placeholder that something else fills in goes under images.allowUnpinned in policy"

// pinProblem says why an object's images could not be pinned. One code serves
// all of them: a registry's answer, if that is what is missing.
func pinProblem(err error) (reason gate.Reason, text, fix string) {
	var failures pin.Failures
	if !errors.As(err, &failures) {
		return gate.ImageUnresolvable, err.Error(), ""
	}
	reason = gate.ImageNotPinned
	var parts []string
	for _, f := range failures {
		what := "cannot be pinned: " + f.Err.Error()
		switch {
		case errors.Is(f.Err, pin.ErrNotLocked):
			what = "has no digest and no pin in the lock"
		case Unanswered(f.Err):
			reason = gate.ImageUnresolvable
		default:
			fix = WriteReference
		}
		parts = append(parts, fmt.Sprintf("%s is %s, which %s", gate.ShortPath(f.Path), f.Image, what))
	}
	if reason == gate.ImageUnresolvable {
		fix = ""
	}
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("and %d more", len(parts)-3))
	}
	return reason, strings.Join(parts, ", "), fix
}

// Unanswered reports whether an error of a pin.Resolver is a registry's, and
// not the reference's own fault.
func Unanswered(err error) bool {
	for _, class := range []error{pin.ErrNotFound, pin.ErrUnauthorized, pin.ErrRateLimited, pin.ErrUnavailable, pin.ErrBadAnswer, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}
