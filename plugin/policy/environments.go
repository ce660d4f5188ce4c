package policy

import (
	"fmt"
	"strings"
)

// environment is one name that the policy stands for. A nil match is every
// application's.
type environment struct {
	name    string
	accepts []string
	match   *matchDoc
}

func (v *validator) environmentList() []environment {
	d := &v.doc
	const want = "a name of at most 63 letters, digits, '.', '_' or '-'"
	switch {
	case d.Environment != "" && d.Environments != nil:
		v.fail("environments", "given beside environment; want one of the two")
		return nil
	case d.Environment != "":
		v.word("environment", d.Environment, nameWord, want)
		v.words("acceptsEnvironments", d.AcceptsEnvironments, nameWord, want)
		return []environment{{name: d.Environment, accepts: d.AcceptsEnvironments}}
	case len(d.Environments) == 0:
		v.fail("environment", "missing: which environment does this gate stand for?")
		return nil
	case d.AcceptsEnvironments != nil:
		v.fail("acceptsEnvironments", "with environments, it belongs to each of them")
	}
	var out []environment
	var names []string
	for i, e := range d.Environments {
		path := item("environments", i)
		v.word(path+".name", e.Name, nameWord, want)
		v.words(path+".acceptsEnvironments", e.Accepts, nameWord, want)
		if e.Match != nil {
			v.match(path+".match", *e.Match, false)
		}
		names = append(names, e.Name)
		out = append(out, environment{e.Name, e.Accepts, e.Match})
	}
	unique(v, "environments", names)
	return out
}

// match checks the members of a match. Those outside Argo CD's cache key may
// select only what tightens.
func (v *validator) match(path string, m matchDoc, tightening bool) {
	if m.Name == "" && m.Namespace == "" && m.Path == "" && len(m.Env) == 0 && m.Project == "" && m.Repository == "" {
		v.fail(path, "matches everything; want at least one of name, namespace, path, env")
	}
	if tightening {
		return
	}
	for _, outside := range m.outsideCacheKey() {
		v.fail(path+"."+outside, "is not in Argo CD's cache key (name, namespace, path, env), so it cannot select an environment")
	}
}

func (m matchDoc) outsideCacheKey() []string {
	var out []string
	if m.Project != "" {
		out = append(out, "project")
	}
	if m.Repository != "" {
		out = append(out, "repository")
	}
	return out
}

// matches reports whether every member that the file gives matches.
func (m matchDoc) matches(a App) bool {
	for name, pattern := range m.Env {
		value, set := a.Env[name]
		if !set || !pattern.matches(value) {
			return false
		}
	}
	return m.Name.matches(a.Name) && m.Namespace.matches(a.Namespace) && m.Path.matches(a.Path) &&
		m.Project.matches(a.Project) && m.Repository.matches(a.Repository)
}

// knownEnvironments are all names whose receipts are good somewhere here.
func (v *validator) knownEnvironments() map[string]bool {
	known := map[string]bool{}
	for _, e := range v.environments {
		known[e.name] = true
		for _, a := range e.accepts {
			known[a] = true
		}
	}
	return known
}

// select returns the environment of an application: the one that is asked for,
// if it is allowed, else the only one that is.
func (p *Policy) selectEnvironment(a App) (environment, error) {
	var possible []environment
	var names []string
	for _, e := range p.environments {
		if e.match == nil || e.match.matches(a) {
			possible = append(possible, e)
			names = append(names, e.name)
		}
	}
	if a.Environment != "" {
		for _, e := range possible {
			if e.name == a.Environment {
				return e, nil
			}
		}
		choice := WrongChoice
		if len(names) == 0 {
			choice = NoChoice // it cannot ask for any
		}
		return environment{}, invalid("environment %.40q is not one that policy allows for %s: %s", a.Environment, a, orNone(names)).about(choice)
	}
	switch len(possible) {
	case 1:
		return possible[0], nil
	case 0:
		return environment{}, invalid("no environment of the policy matches %s%s", a, p.wantMore(a))
	}
	return environment{}, invalid("several environments are possible for %s: %s; select one", a, orNone(names)).about(MissingChoice)
}

// wantMore says which environments cannot match for want of a name, when only a
// namespace is known: at the webhook nothing else ever is.
func (p *Policy) wantMore(a App) string {
	if a.Name != "" || a.Path != "" || len(a.Env) > 0 {
		return ""
	}
	var names []string
	for _, e := range p.environments {
		if e.match.Namespace.matches(a.Namespace) { // so that it is something else that does not
			names = append(names, e.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names, ", ") + " may, but more than a namespace is not known here: match on that alone, or name one with --environment"
}

// String names an application for a message.
func (a App) String() string {
	switch {
	case a.Name != "" || a.Namespace == "":
		return fmt.Sprintf("application %.40q", a.Name)
	case a.Namespace == ClusterScope:
		return "cluster-scoped objects"
	}
	return fmt.Sprintf("namespace %.63q", a.Namespace)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// item returns the path of an element.
func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func toString(x any) string { return fmt.Sprint(x) }
