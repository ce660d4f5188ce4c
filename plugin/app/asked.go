package app

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/render"
	"github.com/syncgate/syncgate/plugin/settings"
)

// The kinds of objects whose annotations ask for something.
const (
	Application   = "Application"
	Kustomization = "Kustomization"
)

// EffectiveAsking is [Effective] with what the application asks for in
// annotations of an object of the given kind, "" if there is none. It is judged
// here, by this policy, and what the controller found wrong by its own counts as
// well. The error is a *Refusal.
func EffectiveAsking(p *policy.Policy, kind string, a policy.App, environment string, asked settings.Entry) (policy.Effective, error) {
	if _, err := effective(p, a, environment); err != nil && asked.Environment == "" {
		return policy.Effective{}, chosen(kind, err) // no annotation is the reason
	}
	e, err := p.ForAsking(a, environment, asked.Asked())
	switch {
	case err != nil:
		return policy.Effective{}, NotAsked(kind, "annotation of the %s: %v", kind, err)
	case asked.Refused != "":
		return policy.Effective{}, NotAsked(kind, "%s", asked.Refused)
	}
	return e, nil
}

// chosen refuses over the environment, with the next step of whoever asks for
// one in an object of the given kind: where the policy is right, it is not
// theirs to change.
func chosen(kind string, err error) *Refusal {
	r := policyRefusal(err)
	var e *policy.Error
	if !errors.As(err, &e) {
		return r
	}
	switch e.Choice {
	case policy.WrongChoice:
		r.Sentence.Fix = "change SYNCGATE_ENVIRONMENT in plugin.env of the Application to one of these"
	case policy.MissingChoice:
		switch kind {
		case Application:
			r.Sentence.Fix = "name one of these as SYNCGATE_ENVIRONMENT in plugin.env of the Application"
		case Kustomization:
			r.Sentence.Fix = "name one of these in the annotation syncgate.io/environment of the Kustomization"
		default:
			r.Sentence.Fix = "name one of these with --environment"
		}
	}
	return r
}

// NotAsked refuses what the annotations of an object of the given kind ask for.
func NotAsked(kind, format string, args ...any) *Refusal {
	r := Refuse(gate.PolicyInvalid, format, args...)
	r.Sentence.Fix = "change or remove the annotation of the " + kind
	return r
}

// Ask applies what the application asks for about how to render, and where its
// lock is. The error is a *Refusal.
func (s *Settings) Ask(asked settings.Entry) error {
	kind := Application
	if s.Render.Flux != nil {
		kind = Kustomization
	}
	switch {
	case asked.Renderer == "":
	case s.Render.Flux != nil:
		if asked.Renderer != render.Kustomize {
			return NotAsked(kind, "annotation syncgate.io/renderer is %s, and Flux builds with kustomize alone", asked.Renderer)
		}
	default:
		if s.Render.Renderer != "" && s.Render.Renderer != asked.Renderer {
			return NotAsked(kind, "annotation syncgate.io/renderer is %s, and the Application's source says %.40q", asked.Renderer, s.Render.Renderer)
		}
		s.Render.Renderer = asked.Renderer
	}
	if asked.Lock == "" {
		return nil
	}
	if s.Render.Root == "" {
		return NotAsked(kind, "annotation syncgate.io/lock is %.80q, and the repository's root is not known", asked.Lock)
	}
	root, err := os.OpenRoot(s.Render.Root)
	if err != nil {
		return NotAsked(kind, "annotation syncgate.io/lock: the repository cannot be opened")
	}
	defer root.Close()
	st, err := root.Stat(asked.Lock) // follows no link that leads out
	if err != nil || !st.IsDir() {
		return NotAsked(kind, "annotation syncgate.io/lock: %.80q is no directory of the repository", asked.Lock)
	}
	s.Lock = filepath.Join(s.Render.Root, filepath.FromSlash(asked.Lock))
	return nil
}
