package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// App is an application (of Argo CD, or a Flux Kustomization) or a run of the
// command line. Empty members are not known; a pattern matches them only if it
// matches everything.
type App struct {
	Name       string
	Namespace  string // the destination's
	Path       string // in the repository
	Project    string // not in Argo CD's cache key
	Repository string // URL; not in Argo CD's cache key

	// Env is plugin.env, without the prefix ARGOCD_ENV_.
	Env map[string]string

	// Environment is asked for by the application; it must be one that policy
	// allows for it. Empty: the only one that is possible.
	Environment string
}

// Effective is what a policy means for one application. The zero value refuses
// whatever is gated, and every namespace is protected. Maps and slices are
// shared with the policy and must not be changed.
type Effective struct {
	Rules gate.Rules
	Warn  bool // at render: report what would be refused

	Help       string // shown after "Fix:"; empty: a bare command
	Annotation string // the key under which objects carry receipts

	Pins          PinSource
	Mirrors       map[string]string // registry host -> host, or host/prefix
	UnknownImages UnknownImages
	Kinds         []CustomKind
	Variables     []projection.CustomVariables
	Projector     *projection.Projector // projects with Kinds and Variables

	KeepPrevious int   // earlier receipts of a subject that are kept and stamped
	Grace        int64 // seconds for which an expired receipt still creates a Job or Pod
	Backstop     bool  // the webhook is installed: what render leaves open is judged

	Warnings []string // what has been turned off: Policy.Warnings

	protection *protection
}

// protection is nil in the zero Effective.
type protection struct {
	namespaces map[string]bool
	writers    []gate.Glob
	writer     bool // the application is one
}

// ownCategory returns the path of the policy's entry that has a category of its
// own, "x-..."; false if none has.
func (e Effective) ownCategory(c projection.Category) (path string, ok bool) {
	for i, k := range e.Kinds {
		if k.Category == c {
			path, ok = item("kinds", i), true
		}
	}
	for i, s := range e.Variables {
		if s.Category == c {
			path, ok = item("variables", i), true
		}
	}
	return path, ok
}

// Protected reports whether this application may render nothing into a
// namespace. An object without namespace goes to the destination's: fill that
// in first.
func (e Effective) Protected(namespace string) bool {
	if e.protection == nil {
		return true
	}
	return e.protection.namespaces[namespace] && !e.protection.writer
}

// For returns what the policy means for an application. The error is an
// [*Error]: no environment, or several, are possible for it, or it asks for one
// that it must not have.
func (p *Policy) For(a App) (Effective, error) {
	env, err := p.selectEnvironment(a)
	if err != nil {
		return Effective{}, err
	}
	return p.effective(a, env), nil
}

// ForEnvironment is For when a person or an operator's configuration names the
// environment (--environment): any that the policy knows will do. An
// application must never choose it.
func (p *Policy) ForEnvironment(a App, name string) (Effective, error) {
	for _, e := range p.environments {
		if e.name == name {
			return p.effective(a, e), nil
		}
	}
	return Effective{}, invalid("environment %.40q is not one of this policy: %s", name, orNone(p.Environments())).about(UnknownChoice)
}

func (p *Policy) effective(a App, env environment) Effective {
	e := p.base
	e.Warnings = p.warnings
	required := maps.Clone(p.required)
	// First what depends on the cache key, the last rule wins; then what may
	// only tighten, on top of whatever that gave.
	for _, rule := range p.apps {
		if !rule.tightens && rule.match.matches(a) {
			rule.apply(&e, required)
		}
	}
	for _, rule := range p.apps {
		if rule.tightens && rule.match.matches(a) {
			rule.tighten(&e, required)
		}
	}
	e.Rules.Environment = env.name
	e.Rules.Accepts = env.accepts
	e.Rules.Required = requiredList(required)
	protected := *p.base.protection
	protected.writer = a.Name != "" && slices.ContainsFunc(protected.writers, func(g gate.Glob) bool { return g.Match(a.Name) })
	e.protection = &protected
	return e
}

// about returns e, with what it says about the choice of an environment.
func (e *Error) about(c Choice) *Error {
	e.Choice = c
	return e
}

func invalid(format string, args ...any) *Error {
	return &Error{Reason: gate.PolicyInvalid, Msg: fmt.Sprintf(format, args...)}
}
