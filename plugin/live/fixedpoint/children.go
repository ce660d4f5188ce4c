package fixedpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/live"
	"github.com/syncgate/syncgate/plugin/projection"
)

// maker says what the controller of a kind makes of a template.
type maker struct {
	group, kind      string // of the object
	child            string // kind of what is made: ReplicaSet, Job or Pod
	apiVersion       string // of what is made
	controller       string
	template, marked string // where the template is; the label that the controller adds
}

var makers = []maker{
	{"apps", "Deployment", "ReplicaSet", "apps/v1", "deployment-controller", "spec.template", "pod-template-hash"},
	{"apps", "ReplicaSet", "Pod", "v1", "replicaset-controller", "spec.template", ""},
	{"apps", "StatefulSet", "Pod", "v1", "statefulset-controller", "spec.template", "controller-revision-hash"},
	{"apps", "DaemonSet", "Pod", "v1", "daemon-set-controller", "spec.template", "controller-revision-hash"},
	{"batch", "Job", "Pod", "v1", "job-controller", "spec.template", ""},
	{"batch", "CronJob", "Job", "batch/v1", "cronjob-controller", "spec.jobTemplate", ""},
	{"", "ReplicationController", "Pod", "v1", "replication-controller", "spec.template", ""},
}

// suffix stands where the controller would put a hash.
const suffix = "syncgate"

// children tries what the controller would make of an object as the API server
// would store it. of names that object for people.
func (f *Finder) children(ctx context.Context, stored map[string]any, of string) ([]Finding, error) {
	group, _, _ := strings.Cut(text(stored, "apiVersion"), "/")
	if text(stored, "apiVersion") == group {
		group = ""
	}
	for _, m := range makers {
		if m.kind == text(stored, "kind") && m.group == projection.CanonicalGroup(group, m.kind) {
			return f.child(ctx, m, stored, of)
		}
	}
	return nil, nil
}

func (f *Finder) child(ctx context.Context, m maker, stored map[string]any, of string) ([]Finding, error) {
	made := m.make(stored)
	if made == nil {
		return nil, nil
	}
	name := m.child + " of " + of
	trial, err := f.asController(ctx, m.controller, made)
	switch {
	case err != nil && !live.Answered(err) && !errors.Is(err, live.ErrNotServed):
		return nil, err
	case err != nil:
		return []Finding{{Object: name, Note: true, Text: "could not be tried: " + clip(err.Error())}}, nil
	}
	// What a webhook is asked about a child has its controller's user, and
	// its namespace.
	who := f.who(ctx, trial, made)
	var out []Finding
	switch m.child {
	case "ReplicaSet":
		out, err = f.loop(name, made, trial.Stored, who)
	default:
		out, err = f.gated(name, made, trial, who)
		if m.child == "Pod" {
			out = asNotes(out)
		}
	}
	if err != nil {
		return nil, err
	}
	more, err := f.children(ctx, trial.Stored, of)
	return append(out, more...), err
}

// asNotes is for Pods made by controllers: they are not judged, no controller
// compares them with their template, and some of their fields are the cluster's
// to choose.
func asNotes(list []Finding) []Finding {
	var out []Finding
	for _, d := range list {
		if !projection.ClusterDecides("", "Pod", d.Path) {
			d.Note = true
			out = append(out, d)
		}
	}
	return out
}

// loop compares the template of a ReplicaSet with that of its Deployment, every
// field of it: the Deployment's controller goes by the same comparison.
func (f *Finder) loop(name string, made, stored map[string]any, who culprit) ([]Finding, error) {
	changes := compare("spec.template", at(made, "spec.template"), at(stored, "spec.template"))
	if len(changes) == 0 {
		return nil, nil
	}
	before, err := f.options.Projector.Project(made)
	if err != nil {
		return nil, err
	}
	after, err := f.options.Projector.Project(stored)
	if err != nil {
		return nil, err
	}
	var out []Finding
	seen := map[string]bool{}
	add := func(d Finding) {
		d.Object, d.By, d.Candidates = name, who.by, who.candidates
		d.Reason = gate.DigestMismatch
		d.Text = fmt.Sprintf("%s changes %s: %s -> %s; its controller will make ReplicaSets without end", who.subject(), d.Path, d.Before, d.After)
		d.Fix = "write into the Deployment what the webhook makes of it, or take ReplicaSets out of the webhook's rules"
		if strings.HasSuffix(d.Path, ".image") {
			d.Fix = "pin it before it is applied: syncgate pin, commit .syncgate, apply what syncgate renders"
		}
		out = append(out, d)
	}
	for _, d := range projection.Diff(before, after) {
		if projection.IsBinding(d.Path) {
			continue // it moves with the field that it belongs to
		}
		seen[d.Path] = true
		add(Finding{Category: string(d.Category), Path: d.Path, Before: shown(d, d.Old), After: shown(d, d.New)})
	}
	for _, c := range changes {
		if !seen[c.path] {
			add(Finding{Path: c.path, Before: presence(c.before), After: presence(c.after)})
		}
	}
	return out, nil
}

// make returns what the controller would make, nil if the object has no
// template.
func (m maker) make(of map[string]any) map[string]any {
	template, _ := at(of, m.template).(map[string]any)
	if template == nil {
		return nil
	}
	meta, _ := of["metadata"].(map[string]any)
	inner, _ := template["metadata"].(map[string]any)
	labels := copied(inner["labels"])
	if m.marked != "" {
		labels[m.marked] = suffix
	}
	made := map[string]any{
		"apiVersion": m.apiVersion, "kind": m.child,
		"metadata": map[string]any{
			"namespace": meta["namespace"], "labels": labels, "annotations": copied(inner["annotations"]),
			"ownerReferences": []any{map[string]any{
				"apiVersion": of["apiVersion"], "kind": of["kind"], "name": meta["name"], "uid": meta["uid"], "controller": true,
			}},
		},
		"spec": template["spec"],
	}
	own := made["metadata"].(map[string]any)
	name := clipName(text(meta, "name"))
	switch m.child {
	case "Pod":
		own["generateName"] = name + "-"
	case "Job":
		own["name"] = name + "-" + suffix
	case "ReplicaSet":
		own["name"] = name + "-" + suffix
		// A controller copies the annotations, receipts among them.
		own["annotations"] = copied(meta["annotations"])
		delete(own["annotations"].(map[string]any), "kubectl.kubernetes.io/last-applied-configuration")
		next := maps.Clone(template)
		nextMeta := maps.Clone(inner)
		if nextMeta == nil {
			nextMeta = map[string]any{}
		}
		nextMeta["labels"] = labels
		next["metadata"] = nextMeta
		selector, _ := at(of, "spec.selector").(map[string]any)
		selector = maps.Clone(selector)
		if selector == nil {
			selector = map[string]any{}
		}
		match := copied(selector["matchLabels"])
		match[m.marked] = suffix
		selector["matchLabels"] = match
		made["spec"] = map[string]any{"replicas": at(of, "spec.replicas"), "selector": selector, "template": next}
	}
	return made
}

// clipName leaves room for what controllers append to a name.
func clipName(name string) string { return strings.TrimRight(name[:min(len(name), 50)], "-.") }

func copied(v any) map[string]any {
	m, _ := v.(map[string]any)
	out := map[string]any{}
	maps.Copy(out, m)
	return out
}

// at follows a dotted path.
func at(tree map[string]any, path string) any {
	var v any = tree
	for part := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// asController tries an object as its controller would make it; whoever may not
// impersonate the controller tries it as themselves.
func (f *Finder) asController(ctx context.Context, controller string, made map[string]any) (live.Trial, error) {
	user := f.options.SharedControllerIdentity
	if user == "" {
		user = "system:serviceaccount:kube-system:" + controller
	}
	other, err := f.impersonated(user)
	if err != nil {
		return live.Trial{}, err
	}
	trial, err := other.Try(ctx, made)
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate") {
		return f.cluster.Try(ctx, made)
	}
	return trial, err
}

func (f *Finder) impersonated(user string) (*live.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.users[user]; c != nil {
		return c, nil
	}
	c, err := f.cluster.As(user)
	if err == nil {
		f.users[user] = c
	}
	return c, err
}
