package argocd

import (
	"cmp"
	"errors"
	"strings"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
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
		if namespace, _, other := strings.Cut(name, "_"); other { // of Argo CD's own it is the bare name
			refusal.Sentence.Fix += " with --application-namespaces=" + namespace
		}
		return e, refusal
	}
	if err != nil {
		return e, app.Refuse(gate.PolicyInvalid, "settings of application %.80q: %v", name, err)
	}
	return e, nil
}
