package argocd

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// asked is what the Application asks for in its annotations, as the controller
// published it. Where an operator says that settings are published, one that is
// missing is not "none": it may have been meant to tighten.
func (r Request) asked(name string) (settings.Entry, error) {
	dir := cmp.Or(r.Apps, r.Getenv("SYNCGATE_APPS"))
	if dir == "" {
		return settings.Entry{}, nil
	}
	e, err := settings.Load(dir, name)
	if errors.Is(err, settings.ErrMissing) {
		refusal := app.Refuse(gate.PolicyInvalid, "no settings are published for application %.80q", name)
		refusal.Sentence.Fix = "wait two minutes and refresh; if that does not help, see whether syncgate-controller runs"
		return e, refusal
	}
	if err != nil {
		return e, app.Refuse(gate.PolicyInvalid, "settings of application %.80q: %v", name, err)
	}
	return e, nil
}

// effective is what policy means for the application with what it asks for. It
// is judged here, by this policy, and what the controller found wrong by its
// own counts as well.
func effective(p *policy.Policy, who policy.App, operator string, asked settings.Entry) (policy.Effective, error) {
	if _, err := app.Effective(p, who, operator); err != nil && asked.Environment == "" {
		return policy.Effective{}, err // nothing that was asked for is the reason
	}
	e, err := p.ForAsking(who, operator, asked.Asked())
	switch {
	case err != nil:
		return policy.Effective{}, notAsked("annotation of the Application: %v", err)
	case asked.Refused != "":
		return policy.Effective{}, notAsked("%s", asked.Refused)
	}
	return e, nil
}

func notAsked(format string, args ...any) *app.Refusal {
	r := app.Refuse(gate.PolicyInvalid, format, args...)
	r.Sentence.Fix = "change or remove the annotation of the Application"
	return r
}

// place applies what is asked for about where and how to render.
func place(asked settings.Entry, s *app.Settings) error {
	if asked.Renderer != "" {
		if s.Render.Renderer != "" && s.Render.Renderer != asked.Renderer {
			return notAsked("annotation syncgate.io/renderer is %s, and plugin.parameters say %.40q", asked.Renderer, s.Render.Renderer)
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
