package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// Examined is what the controller makes of one Application, for who looks
// without one.
type Examined struct {
	Key      string // by which its entry is published
	Entry    string // that is to be published; empty: none can be
	Gated    bool   // it is in a gated project
	Asks     bool   // some source names the plugin
	Findings []Finding
}

// Examine looks at an Application, given as a raw tree, as the controller with
// these options does. What only the controller knows, such as off-switches, is
// not among the findings.
func (o Options) Examine(object map[string]any, p *policy.Policy) Examined {
	a := read(&unstructured.Unstructured{Object: object}, o.ArgoNamespace)
	e := a.entry(p, o.Environment)
	out := Examined{Key: a.key, Gated: o.gates(a.project()), Asks: len(a.asking()) > 0}
	if text, err := e.Encode(); err == nil && settings.ValidKey(a.key) {
		out.Entry = text
	}
	if out.Gated {
		out.Findings = a.findings(standing{entry: e, warn: a.warned(p, o.Environment, e)})
	}
	return out
}

// gates reports whether a project is one in which every source is meant to name
// the plugin.
func (o Options) gates(project string) bool {
	if len(o.Projects) == 0 {
		return project != plugin
	}
	return slices.ContainsFunc(o.Projects, func(g string) bool { return gate.Glob(g).Match(project) })
}
