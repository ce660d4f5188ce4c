package app

import (
	"os"
	"path/filepath"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// EffectiveAsking is [Effective] with what the application asks for in its
// annotations. It is judged here, by this policy, and what the controller found
// wrong by its own counts as well. The error is a *Refusal.
func EffectiveAsking(p *policy.Policy, a policy.App, environment string, asked settings.Entry) (policy.Effective, error) {
	if _, err := Effective(p, a, environment); err != nil && asked.Environment == "" {
		return policy.Effective{}, err // nothing that was asked for is the reason
	}
	e, err := p.ForAsking(a, environment, asked.Asked())
	switch {
	case err != nil:
		return policy.Effective{}, notAsked("annotation of the Application: %v", err)
	case asked.Refused != "":
		return policy.Effective{}, notAsked("%s", asked.Refused)
	}
	return e, nil
}

func notAsked(format string, args ...any) *Refusal {
	r := Refuse(gate.PolicyInvalid, format, args...)
	r.Sentence.Fix = "change or remove the annotation of the Application"
	return r
}

// Ask applies what the application asks for about how to render, and where its
// lock is. The error is a *Refusal.
func (s *Settings) Ask(asked settings.Entry) error {
	if asked.Renderer != "" {
		if s.Render.Renderer != "" && s.Render.Renderer != asked.Renderer {
			return notAsked("annotation syncgate.io/renderer is %s, and the Application's source says %.40q", asked.Renderer, s.Render.Renderer)
		}
		s.Render.Renderer = asked.Renderer
	}
	if asked.Lock == "" {
		return nil
	}
	if s.Render.Root == "" {
		return notAsked("annotation syncgate.io/lock is %.80q, and the repository's root is not known", asked.Lock)
	}
	root, err := os.OpenRoot(s.Render.Root)
	if err != nil {
		return notAsked("annotation syncgate.io/lock: the repository cannot be opened")
	}
	defer root.Close()
	st, err := root.Stat(asked.Lock) // follows no link that leads out
	if err != nil || !st.IsDir() {
		return notAsked("annotation syncgate.io/lock: %.80q is no directory of the repository", asked.Lock)
	}
	s.Lock = filepath.Join(s.Render.Root, filepath.FromSlash(asked.Lock))
	return nil
}
