package policy

import (
	"regexp"
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// Defaults of a policy that says nothing else.
const (
	defaultAnnotation  = "syncgate.io/receipt"
	defaultMaxLifetime = 90 * 24 * 3600 // 2160h
	defaultGrace       = 7 * 24 * 3600  // 168h
	defaultKeep        = 1
	defaultNamespace   = "syncgate-system"
	maxKeep            = 8 // receipts of a subject are stamped together, and an object takes 16
)

var (
	defaultProtected     = []string{"kube-system", "kube-public", "argocd", "flux-system"} // and the gate's own
	defaultClusterScoped = []string{"Namespace"}
)

// validator turns a decoded file into a Policy and collects what is wrong.
type validator struct {
	decoder
	read func(name string) ([]byte, error)
	doc  document

	environments []environment
	issuers      map[string]gate.Issuer
	keys         map[string][]receipt.Key // of each issuer, to compare
	required     map[projection.Category]int64
	custom       []customKind // that the webhook judges
	loaded       []byte       // every file, to be hashed
	rules        int          // how much of it was loaded before the revocation list
}

func (v *validator) policy() *Policy {
	v.header()
	v.environments = v.environmentList()
	kinds, variables := v.customKinds(), v.customVariables()
	v.issuerTable()
	v.required = v.requiredCategories(kinds, variables)
	requirements := v.requirementList()
	v.everyCategoryCanBeSigned(requirements)
	p := &Policy{
		environments: v.environments,
		required:     v.required,
		anywhere:     v.requiredAnywhere(),
		admission:    v.admissionPart(),
		base: Effective{
			Rules: gate.Rules{
				Issuers:       v.issuers,
				Requirements:  requirements,
				Revocations:   v.revocationList(),
				AllowUnpinned: globs(v.doc.Images.AllowUnpinned),
			},
			Warn:       v.doc.Mode.Render.is(warn),
			Help:       v.doc.Help,
			Mirrors:    v.mirrors(),
			Kinds:      kinds,
			Variables:  variables,
			Projector:  projection.NewProjector(kinds, variables...),
			Annotation: defaultAnnotation,
			protection: v.protection(),
		},
	}
	v.images(&p.base)
	v.receipts(&p.base)
	v.minRemaining(p.base)
	p.apps = v.appRules(p.base)
	p.warnings = v.warnings(p.admission)
	p.custom, p.keyIDs, p.hash, p.rulesHash = v.custom, v.keyIDs(), hash(v.loaded), hash(v.loaded[:v.rules])
	p.file, p.lines, p.categories = v.file, v.lines, v.doc.Categories
	p.read, p.issuers, p.revocations = v.read, v.doc.Issuers, v.doc.Revocations
	return p
}

func (v *validator) header() {
	if v.doc.APIVersion != APIVersion {
		v.fail("apiVersion", "got %.40q, want %q", v.doc.APIVersion, APIVersion)
	}
	if v.doc.Kind != FileKind {
		v.fail("kind", "got %.40q, want %q", v.doc.Kind, FileKind)
	}
	v.helpText("help", v.doc.Help)
}

// helpText ends a refusal, which is one ASCII line.
func (v *validator) helpText(path, s string) {
	if s != "" {
		v.word(path, s, oneLine, "one line of at most 300 ASCII characters")
	}
}

// word checks a string against a pattern; want says what the pattern is.
func (v *validator) word(path, s string, pattern *regexp.Regexp, want string) bool {
	if pattern.MatchString(s) {
		return true
	}
	v.fail(path, "got %.40q, want %s", s, want)
	return false
}

// words checks a list of strings, which hold no duplicates.
func (v *validator) words(path string, list []string, pattern *regexp.Regexp, want string) {
	for i, s := range list {
		v.word(item(path, i), s, pattern, want)
	}
	unique(v, path, list)
}

// unique refuses duplicates: the second is a mistake for something else.
func unique[T comparable](v *validator, path string, list []T) {
	for i, x := range list {
		if slices.Contains(list[:i], x) {
			v.fail(item(path, i), "%.40q is there twice", toString(x))
		}
	}
}

func (v *validator) images(e *Effective) {
	e.Pins = LockFile
	if v.doc.Images.Pins != nil {
		e.Pins = *v.doc.Images.Pins
	}
	e.UnknownImages = WarnUnknown
	if v.doc.UnknownImages != nil {
		e.UnknownImages = *v.doc.UnknownImages
	}
}

var (
	hostWord   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`)
	mirrorWord = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9._-]+)*$`)
)

func (v *validator) mirrors() map[string]string {
	for host, mirror := range v.doc.Images.Mirrors {
		path := join("images.mirrors", host)
		v.word(path, host, hostWord, "a registry host")
		v.word(path, mirror, mirrorWord, "a registry host, with a path if need be")
	}
	return v.doc.Images.Mirrors
}

func (v *validator) receipts(e *Effective) {
	r := v.doc.Receipts
	if r.Annotation != "" && v.word("receipts.annotation", r.Annotation, annotationKey, "an annotation key") {
		e.Annotation = r.Annotation
	}
	if r.MinRemaining != nil {
		e.Rules.MinRemaining = int64(*r.MinRemaining)
	}
	e.KeepPrevious = defaultKeep
	if r.KeepPrevious != nil {
		e.KeepPrevious = int(min(*r.KeepPrevious, maxKeep))
		if *r.KeepPrevious > maxKeep {
			v.fail("receipts.keepPrevious", "got %d, want at most %d", *r.KeepPrevious, maxKeep)
		}
	}
	e.Grace = defaultGrace
	if r.Grace != nil {
		e.Grace = int64(*r.Grace)
	}
	// Without a backstop nothing stands behind a render that lets an expired
	// receipt pass.
	e.Backstop = r.Backstop
	if r.Backstop {
		e.Rules.Expired = gate.LeaveToAdmission
	}
	if r.Expired != nil {
		e.Rules.Expired = gate.ExpiredMode(*r.Expired)
		v.expiredMode("receipts.expired", r.Expired)
	}
}

func (v *validator) expiredMode(path string, mode *expiredMode) {
	if mode != nil && gate.ExpiredMode(*mode) == gate.LeaveToAdmission && !v.doc.Receipts.Backstop {
		v.fail(path, "LeaveToAdmission needs receipts.backstop: true, or nothing judges what has expired")
	}
}

func (v *validator) protection() *protection {
	p := &protection{namespaces: map[string]bool{}, writers: globs(v.doc.Protected.Writers)}
	list := v.doc.Protected.Namespaces
	if list == nil {
		list = defaultProtected
	}
	v.words("protected.namespaces", list, namespaceWord, "the exact name of a namespace")
	for _, ns := range list {
		p.namespaces[ns] = true
	}
	// Where the policy itself lives, whatever the list says.
	p.namespaces[v.ownNamespace()] = true
	return p
}

func (v *validator) warnings(a Admission) []string {
	var out []string
	if _, on := v.required[projection.Command]; !on {
		out = append(out, "category command is not required: an approved image can be told to run any program that it contains")
	}
	if v.doc.Mode.Render.is(warn) {
		out = append(out, "mode.render is Warn: nothing is refused at render")
	}
	if v.doc.Mode.Admission.is(warn) {
		out = append(out, "mode.admission is Warn: nothing is refused at admission")
	}
	if v.doc.Receipts.Backstop {
		out = append(out, "receipts.backstop is true: render passes receipts that have expired or were revoked, for the webhook to judge; without the webhook nothing does")
	}
	return append(out, writerWarnings(a)...)
}
