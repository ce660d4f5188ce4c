// Package fixedpoint finds out whether a cluster would store manifests as they
// are: it dry-runs each object, and what its controller would make of it, and
// names the gated fields that admission or defaulting changed, and who may have
// done it.
package fixedpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/projection"
)

// Options say what counts.
type Options struct {
	Projector *projection.Projector // nil: the table's kinds alone
	All       bool                  // fields that are not gated too
	// SharedControllerIdentity is the user of all built-in controllers in a
	// cluster where they share one; empty: each has its own.
	SharedControllerIdentity string
}

// Finding is one field that the cluster would not store as it is. A Note makes
// no manifest worse, and is there to be read.
type Finding struct {
	Object     string      `json:"object"` // "Deployment shop/web", "ReplicaSet of Deployment shop/web"
	Reason     gate.Reason `json:"reason,omitempty"`
	Category   string      `json:"category,omitempty"` // empty: not gated
	Path       string      `json:"path,omitempty"`
	Before     string      `json:"before,omitempty"`
	After      string      `json:"after,omitempty"`
	By         string      `json:"by,omitempty"`         // who did it, if only one can have
	Candidates []string    `json:"candidates,omitempty"` // who can have, if several
	Note       bool        `json:"note,omitempty"`
	Text       string      `json:"text"`
	Fix        string      `json:"fix,omitempty"`
}

// Finder tries objects in one cluster. It may be used by several goroutines.
type Finder struct {
	cluster  *live.Cluster
	options  Options
	mutators []live.Mutator

	mu     sync.Mutex
	users  map[string]*live.Cluster
	labels map[string]map[string]string // of namespaces
}

// New reads what may change objects at admission. Whoever may not list that
// gets findings without names.
func New(ctx context.Context, c *live.Cluster, o Options) (*Finder, error) {
	f := &Finder{cluster: c, options: o, users: map[string]*live.Cluster{}, labels: map[string]map[string]string{}}
	var err error
	if f.mutators, err = c.Mutators(ctx); err != nil && !live.Answered(err) {
		return nil, err
	}
	return f, nil
}

// Find tries one object, a raw tree that names its namespace if it has one.
// name is what people call it. The error says why the cluster could not be
// asked.
func (f *Finder) Find(ctx context.Context, tree map[string]any, name string) ([]Finding, error) {
	trial, err := f.cluster.Try(ctx, tree)
	switch {
	case errors.Is(err, live.ErrNotServed):
		return []Finding{untried(name, "the cluster does not serve its kind", "install what defines the kind first")}, nil
	case live.Answered(err):
		return []Finding{untried(name, "the API server refuses it: "+clip(err.Error()), "mend what it says; syncgate check tells what the gate would refuse")}, nil
	case err != nil:
		return nil, err
	}
	who := f.who(ctx, trial, tree)
	out, err := f.gated(name, tree, trial, who)
	if err != nil {
		return nil, err
	}
	if f.options.All {
		out = append(out, f.others(name, tree, trial, who, out)...)
	}
	more, err := f.children(ctx, trial.Stored, name)
	return append(out, more...), err
}

func untried(name, why, fix string) Finding {
	return Finding{Object: name, Reason: gate.ClusterUnavailable, Text: "could not be tried: " + why, Fix: fix}
}

// gated compares projections.
func (f *Finder) gated(name string, tree map[string]any, trial live.Trial, who culprit) ([]Finding, error) {
	group, kind := groupKind(tree)
	before, err := f.options.Projector.Project(tree)
	if err != nil {
		return []Finding{{Object: name, Reason: gate.ObjectMalformed, Text: err.Error()}}, nil
	}
	after, err := f.options.Projector.Project(trial.Stored)
	if err != nil {
		return nil, fmt.Errorf("projecting %s as it would be stored: %w", name, err)
	}
	there, err := f.there(trial)
	if err != nil {
		return nil, err
	}
	was := map[string]any{}
	for _, l := range there.Leaves() {
		was[gate.LeafKey(l)] = l.Value
	}
	var out []Finding
	seen := map[string]bool{}
	for _, d := range projection.Diff(before, after) {
		key := leafKey(d)
		old, stays := was[key]
		switch {
		case projection.IsBinding(d.Path): // it moves with the field that it belongs to
			continue
		case trial.Merged && d.Old == nil && stays && same(old, d.New): // nobody touches it
			continue
		}
		seen[key] = true
		out = append(out, describe(name, d, projection.ClusterDecides(group, kind, d.Path), who))
	}
	// What the cluster chose when it created the object stays with it, and is
	// chosen again for the next one.
	for _, d := range projection.Diff(before, there) {
		if trial.Live != nil && d.Old == nil && !seen[leafKey(d)] && projection.ClusterDecides(group, kind, d.Path) {
			out = append(out, describe(name, d, true, who))
		}
	}
	return out, nil
}

// there is the projection of the object that is there; one from before the
// gate, that has none, and one that is not there are empty.
func (f *Finder) there(trial live.Trial) (*projection.Projection, error) {
	if trial.Live == nil {
		return &projection.Projection{}, nil
	}
	p, err := f.options.Projector.Project(trial.Live)
	var malformed *projection.MalformedError
	if errors.As(err, &malformed) {
		return &projection.Projection{}, nil
	}
	return p, err
}

func leafKey(d projection.Change) string {
	return gate.LeafKey(projection.Leaf{Category: d.Category, Path: d.Path})
}

// describe makes a finding of a gated field.
func describe(name string, d projection.Change, decides bool, who culprit) Finding {
	out := Finding{Object: name, Category: string(d.Category), Path: d.Path, Before: shown(d, d.Old), After: shown(d, d.New), By: who.by, Candidates: who.candidates}
	subject := who.subject()
	switch {
	case d.Old == nil:
		out.Reason = gate.FieldDefaulted
		if decides && who.none() {
			subject = "the cluster"
		}
		out.Text = fmt.Sprintf("%s fills in %s: %s", subject, d.Path, out.After)
		out.Fix = "write it into the manifest: " + line(d)
	case d.New == nil:
		out.Reason = gate.FieldDropped
		out.Text = fmt.Sprintf("%s drops %s: %s", subject, d.Path, out.Before)
		out.Fix = "remove it from the manifest, or enable the feature that it needs"
	default:
		out.Reason = gate.DigestMismatch
		out.Text = fmt.Sprintf("%s changes %s: %s -> %s", subject, d.Path, out.Before, out.After)
		out.Fix = "write into the manifest what the cluster makes of it, or exempt the object from who changes it"
	}
	return out
}

// line is what to add to a manifest.
func line(d projection.Change) string {
	value := shown(d, d.New)
	if value == hidden {
		return d.Path
	}
	return d.Path + ": " + value
}

// others lists the fields that are not gated. What is filled in beside a
// manifest fights with nobody.
func (f *Finder) others(name string, tree map[string]any, trial live.Trial, who culprit, known []Finding) []Finding {
	gated := map[string]bool{}
	for _, k := range known {
		gated[k.Path] = true
	}
	var out []Finding
	for _, c := range compare("", without(tree), without(trial.Stored)) {
		if gated[c.path] || c.before == nil && trial.Merged {
			continue
		}
		d := Finding{Object: name, Path: c.path, Before: presence(c.before), After: presence(c.after), By: who.by, Candidates: who.candidates, Reason: gate.DigestMismatch}
		switch {
		case c.before == nil:
			d.Reason, d.Note, d.Text = gate.FieldDefaulted, true, fmt.Sprintf("%s fills in %s", who.subject(), c.path)
		case c.after == nil:
			d.Reason, d.Text, d.Fix = gate.FieldDropped, fmt.Sprintf("%s drops %s", who.subject(), c.path), "remove it from the manifest"
		default:
			d.Text, d.Fix = fmt.Sprintf("%s changes %s", who.subject(), c.path), "write into the manifest what the cluster makes of it"
		}
		out = append(out, d)
	}
	return out
}

// culprit is who may have changed an object, found by elimination: a client is
// not told who did.
type culprit struct {
	by         string   // the only one that can have, beside the API server itself
	candidates []string // several
}

func (c culprit) none() bool { return c.by == "" && len(c.candidates) == 0 }

// subject begins a sentence.
func (c culprit) subject() string {
	switch {
	case c.by != "":
		return c.by
	case len(c.candidates) > 0:
		return "one of " + strings.Join(c.candidates, ", ")
	}
	return "the API server"
}

// who returns what can have changed an object.
func (f *Finder) who(ctx context.Context, trial live.Trial, tree map[string]any) culprit {
	asked := live.Asked{Operation: trial.Operation, Resource: trial.Resource, Labels: live.Labels(tree), Namespace: trial.Namespace}
	switch {
	case asked.Namespace != "":
		asked.NamespaceLabels = f.namespaceLabels(ctx, asked.Namespace)
	case trial.Resource.Resource == "namespaces":
		asked.NamespaceLabels = live.Labels(trial.Stored)
	}
	var may []string
	for _, m := range f.mutators {
		if m.May(asked) {
			may = append(may, m.String())
		}
	}
	if len(may) == 1 {
		return culprit{by: may[0]}
	}
	return culprit{candidates: may}
}

// namespaceLabels are the labels of a namespace; of one that cannot be read
// what every namespace has.
func (f *Finder) namespaceLabels(ctx context.Context, name string) map[string]string {
	f.mu.Lock()
	known, ok := f.labels[name]
	f.mu.Unlock()
	if ok {
		return known
	}
	known, err := f.cluster.NamespaceLabels(ctx, name)
	if err != nil {
		known = map[string]string{"kubernetes.io/metadata.name": name}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels[name] = known
	return known
}

const hidden = "(not shown)"

// shown is the value of a gated field for people. Arguments, annotations and
// foreign specs can hold passwords; references and switches cannot.
func shown(d projection.Change, v any) string {
	if v == nil {
		return "nothing"
	}
	switch d.Category {
	case projection.Image, projection.Identity, projection.Privilege, projection.RBAC, projection.Network, projection.Service:
		if !strings.Contains(d.Path, "annotations[") {
			return value(v)
		}
	}
	return hidden
}

func value(v any) string {
	if s, ok := v.(string); ok {
		return clip(gate.ASCII(s))
	}
	data, err := json.Marshal(v)
	if err != nil {
		return hidden
	}
	return clip(gate.ASCII(string(data)))
}

// presence stands for a value that is not shown.
func presence(v any) string {
	if v == nil {
		return "nothing"
	}
	return hidden
}

func groupKind(tree map[string]any) (group, kind string) {
	kind = text(tree, "kind")
	group, _, found := strings.Cut(text(tree, "apiVersion"), "/")
	if !found {
		group = ""
	}
	return projection.CanonicalGroup(group, kind), kind
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// clip bounds what somebody else wrote.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
