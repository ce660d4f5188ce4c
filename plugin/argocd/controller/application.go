package controller

import (
	"slices"

	argo "github.com/argoproj/argo-cd/v2/pkg/apis/application"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/settings"
)

// applicationKind is read as a raw tree: Argo CD's own types would bind us to
// one of its versions.
var applicationKind = schema.GroupVersionKind{Group: argo.Group, Version: "v1alpha1", Kind: argo.ApplicationKind}

// plugin is the name of the gate in manifests/argocd/plugin.yaml.
const plugin = "syncgate"

// application is what the controller goes by of one Application.
type application struct {
	object *unstructured.Unstructured
	key    string // as Argo CD calls it to plugins
}

func read(u *unstructured.Unstructured, argoNamespace string) application {
	return application{u, settings.Key(argoNamespace, u.GetNamespace(), u.GetName())}
}

// tree is an object in a tree. What is not one is an empty one: Argo CD reads
// the same objects by its types and would refuse them.
type tree map[string]any

func (t tree) object(name string) tree {
	m, _ := t[name].(map[string]any)
	return m
}

func (t tree) objects(name string) []tree {
	list, _ := t[name].([]any)
	var out []tree
	for _, x := range list {
		m, _ := x.(map[string]any)
		out = append(out, m)
	}
	return out
}

func (t tree) text(name string) string {
	s, _ := t[name].(string)
	return s
}

func (t tree) texts(name string) []string {
	list, _ := t[name].([]any)
	var out []string
	for _, x := range list {
		s, _ := x.(string)
		out = append(out, s)
	}
	return out
}

func (t tree) has(name string) bool {
	x, there := t[name]
	return there && x != nil
}

func (a application) spec() tree   { return tree(a.object.Object).object("spec") }
func (a application) status() tree { return tree(a.object.Object).object("status") }

// sources returns what an Application, or an operation of one, renders. A
// source with a ref and no path gives files to others and renders nothing.
func sources(t tree) []tree {
	var out []tree
	if t.has("source") && len(t.objects("sources")) == 0 { // as in Argo CD: with both, the list counts
		out = append(out, t.object("source"))
	}
	for _, s := range t.objects("sources") {
		if s.text("ref") == "" || s.text("path") != "" || s.text("chart") != "" {
			out = append(out, s)
		}
	}
	return out
}

// gated reports whether a source names the plugin.
func gated(source tree) bool {
	return source.object("plugin").text("name") == plugin
}

func (a application) project() string {
	if p := a.spec().text("project"); p != "" {
		return p
	}
	return "default"
}

// local reports whether the Application's objects are in the cluster that it is
// in itself.
func (a application) local() bool {
	d := a.spec().object("destination")
	return d.text("server") == "https://kubernetes.default.svc" || d.text("name") == "in-cluster"
}

// asking returns what policy may match on, for each source that names the
// plugin.
func (a application) asking() []policy.App {
	var out []policy.App
	for _, s := range sources(a.spec()) {
		if !gated(s) {
			continue
		}
		who := policy.App{
			Name: a.key, Namespace: a.spec().object("destination").text("namespace"), Path: s.text("path"),
			Project: a.project(), Repository: s.text("repoURL"), Env: map[string]string{},
		}
		for _, e := range s.object("plugin").objects("env") {
			who.Env[e.text("name")] = e.text("value")
		}
		who.Environment = who.Env["SYNCGATE_ENVIRONMENT"]
		out = append(out, who)
	}
	return out
}

// place is where the Application stands, as far as policy may tighten by it and
// Argo CD would take a render of elsewhere from its cache: its project, cluster
// and repositories.
func (a application) place() []string {
	d := a.spec().object("destination")
	out := []string{a.project(), d.text("server"), d.text("name")}
	for _, who := range a.asking() {
		out = append(out, who.Repository)
	}
	return out
}

// entry is what is published for an Application: what it asks for, and why it
// is refused, if the policy does not allow that.
func (a application) entry(p *policy.Policy, environment string) settings.Entry {
	e := settings.Parse(a.object.GetAnnotations(), p.Annotation())
	if e.Refused != "" {
		return e
	}
	for _, who := range a.asking() {
		_, err := p.ForAsking(who, environment, e.Asked())
		if err == nil {
			continue
		}
		if _, anyway := p.ForAsking(who, environment, policy.Asked{}); anyway != nil && e.Environment == "" {
			continue // not for what it asks for: the plugin says so itself
		}
		e.Refused = settings.Refuse("annotation of the Application: " + err.Error()).Refused
		return e
	}
	return e
}

// warned reports whether policy only warns of what a gated source renders.
func (a application) warned(p *policy.Policy, environment string, e settings.Entry) bool {
	return slices.ContainsFunc(a.asking(), func(who policy.App) bool {
		effective, err := p.ForAsking(who, environment, e.Asked())
		return err == nil && effective.Warn
	})
}
