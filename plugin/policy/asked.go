package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Asked is what an application asks for by itself, in annotations of its
// Application or Kustomization (docs/argocd.md, Annotations). The zero value
// asks for nothing.
type Asked struct {
	Mode        string // "Enforce" or "Warn"; empty: not asked for
	Environment string // one of those that policy allows for the application

	// Categories that must be signed beside those of policy. One with '-' in
	// front is asked to be free.
	Categories []string
}

// ForAsking is For with what the application asks for on top, or, if operator
// is not empty, [Policy.ForEnvironment]. Asking tightens: what would relax is an
// [*Error] with the line of the policy that forbids it, Path naming the setting.
func (p *Policy) ForAsking(a App, operator string, q Asked) (Effective, error) {
	e, err := p.askedEnvironment(a, operator, q)
	if err != nil {
		return Effective{}, err
	}
	switch q.Mode {
	case "":
	case "Enforce":
		e.Warn = false
	case "Warn":
		if !e.Warn {
			return Effective{}, p.forbids(p.modeOf(a), "the mode is Enforce, and Warn would relax it")
		}
	default:
		return Effective{}, invalid("mode %.40q: want Enforce or Warn", q.Mode)
	}
	return p.askedCategories(a, e, q.Categories)
}

func (p *Policy) askedEnvironment(a App, operator string, q Asked) (Effective, error) {
	switch {
	case q.Environment == "":
	case operator != "" && operator != q.Environment:
		return Effective{}, invalid("environment %.40q is not %.40q, which the operator set", q.Environment, operator)
	case a.Environment != "" && a.Environment != q.Environment:
		return Effective{}, invalid("environment %.40q is not %.40q, which plugin.env asks for", q.Environment, a.Environment)
	default:
		a.Environment = q.Environment
	}
	if operator != "" {
		return p.ForEnvironment(a, operator)
	}
	env, err := p.selectEnvironment(a)
	if err != nil {
		if q.Environment != "" {
			path := "environments"
			if _, single := p.lines["environment"]; single {
				path = "environment"
			}
			return Effective{}, p.forbids(path, "%v", err)
		}
		return Effective{}, err
	}
	return p.effective(a, env), nil
}

func (p *Policy) askedCategories(a App, e Effective, list []string) (Effective, error) {
	required := map[projection.Category]int64{}
	for _, r := range e.Rules.Required {
		required[r.Category] = r.Since
	}
	for _, word := range list {
		name, free := strings.CutPrefix(word, "-")
		c := projection.Category(name)
		_, on := required[c]
		_, own := e.ownCategory(c)
		switch {
		case !c.Valid():
			return Effective{}, invalid("category %.40q: want one of %s, or x- and a name", name, categoryNames())
		case strings.HasPrefix(name, "x-") && !own:
			return Effective{}, p.forbids("kinds", "no entry has the category %.40q", name)
		case free && on:
			return Effective{}, p.forbids(p.categoryOf(a, c), "category %s must be signed, and leaving it out would relax that", c)
		case !free:
			required[c] = 0
		}
	}
	if len(list) > 0 {
		e.Rules.Required = requiredList(required)
	}
	return e, nil
}

// modeOf returns the path of what made the mode Enforce for an application.
func (p *Policy) modeOf(a App) string {
	return p.decidedBy(a, "mode.render", func(r app) (string, bool) { return ".mode.render", r.Mode.Render.is(enforce) })
}

// categoryOf returns the path of what requires a category.
func (p *Policy) categoryOf(a App, c projection.Category) string {
	path := "categories"
	if own, ok := p.base.ownCategory(c); ok {
		path = own
	}
	for i, d := range p.categories {
		if projection.Category(d.Name) == c && !d.off() {
			path = item("categories", i)
		}
	}
	return p.decidedBy(a, path, func(r app) (string, bool) {
		i := slices.IndexFunc(r.Categories, func(d categoryDoc) bool { return projection.Category(d.Name) == c && !d.off() })
		return "." + item("categories", i), i >= 0
	})
}

// decidedBy returns the path of a setting in the last rule of apps that gives
// it, those that only tighten coming last as in effective, or general.
func (p *Policy) decidedBy(a App, general string, gives func(app) (string, bool)) string {
	path := general
	for _, tightens := range []bool{false, true} {
		for i, r := range p.apps {
			if r.tightens != tightens || !r.match.matches(a) {
				continue
			}
			if field, yes := gives(r); yes {
				path = item("apps", i) + field
			}
		}
	}
	return path
}

// forbids is an error at a setting of the policy, with its line. Where the file
// does not have the setting, it says that this is the default.
func (p *Policy) forbids(path, format string, args ...any) *Error {
	line, given := p.lines[path]
	msg := fmt.Sprintf(format, args...)
	if !given {
		msg += " (by default)"
	}
	return &Error{Reason: gate.PolicyInvalid, File: p.file, Line: line, Path: path, Msg: msg}
}
