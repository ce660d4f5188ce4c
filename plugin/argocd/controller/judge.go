package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/internal/jcs"
	"github.com/syncgate/syncgate/plugin/policy"
	"github.com/syncgate/syncgate/plugin/projection"
	"github.com/syncgate/syncgate/plugin/receipt"
	"github.com/syncgate/syncgate/plugin/settings"
)

// judging is one look at the objects of an Application.
type judging struct {
	app  application
	by   []policy.Effective // of each gated source: which of them has rendered an object nobody knows
	all  map[subject]string // what it manages, with the version that serves it
	busy bool               // an operation is changing it
	seen string             // a hash of what tells whether to look again

	judged map[subject]bool        // whether it needs a receipt
	items  map[subject][]gate.Item // why it would be refused
	unread map[string]bool         // kinds
	failed bool                    // something could not be read, that can be another time
}

func newJudging(a application, p *policy.Policy, environment string, e settings.Entry) *judging {
	j := &judging{app: a, all: map[subject]string{}, judged: map[subject]bool{}, items: map[subject][]gate.Item{}, unread: map[string]bool{}}
	for _, who := range a.asking() {
		if effective, err := p.ForAsking(who, environment, e.Asked()); err == nil {
			j.by = append(j.by, effective)
		}
	}
	state := a.status().object("operationState")
	j.busy = state.text("phase") == "Running"
	what := []string{p.Hash(), fmt.Sprint(e), fmt.Sprint(a.asking()), fmt.Sprint(a.local()), state.text("finishedAt"), a.status().object("sync").text("revision")}
	for _, r := range a.status().objects("resources") {
		s := subjectOf(r)
		j.all[s] = r.text("version")
		what = append(what, s.String(), r.text("version"), r.text("status"))
	}
	j.seen = short(what...)
	return j
}

// receipt names the object as receipts do.
func (s subject) receipt() receipt.Subject {
	out := receipt.Subject{Group: projection.CanonicalGroup(s.kind.Group, s.kind.Kind), Kind: s.kind.Kind, Namespace: s.namespace, Name: s.name}
	if projection.ClusterScoped(out.Group, out.Kind) {
		out.Namespace = ""
	}
	return out
}

func (s subject) String() string { return s.receipt().String() }

// judge reads what Applications manage, a page at a time, and keeps of it the
// verdicts alone.
func (c *Controller) judge(ctx context.Context, due []*judging) {
	wanted := map[subject][]*judging{}
	kinds := map[schema.GroupVersionKind]map[string]bool{} // their namespaces
	for _, j := range due {
		for s, version := range j.all {
			j.place(s)
			switch {
			case !j.app.local() || slices.Contains(receiptless, s.kind):
				continue
			case s.kind == schema.GroupKind{Kind: "Secret"}: // the right to list them is that to read them
				j.unread["Secret"] = true
				continue
			}
			wanted[s] = append(wanted[s], j)
			kind := s.kind.WithVersion(version)
			if kinds[kind] == nil {
				kinds[kind] = map[string]bool{}
			}
			kinds[kind][s.namespace] = true
		}
	}
	for kind, namespaces := range kinds {
		err := c.listIn(ctx, kind, namespaces, func(o client.Object) {
			u, _ := o.(*unstructured.Unstructured)
			s := subject{kind.GroupKind(), o.GetNamespace(), o.GetName()}
			for _, j := range wanted[s] {
				j.object(s, u, c.Now())
			}
		})
		if err == nil {
			continue
		}
		lasting := apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
		if !lasting {
			c.Log.Error("listing what policy warns of", "kind", kind.GroupKind().String(), "error", err.Error())
		}
		for _, j := range due {
			for s := range j.all {
				if s.kind == kind.GroupKind() {
					j.unread[s.kind.String()] = true
					j.failed = j.failed || !lasting
				}
			}
		}
	}
}

// listIn lists a kind where it is wanted, or everywhere if that is in many
// namespaces.
func (c *Controller) listIn(ctx context.Context, kind schema.GroupVersionKind, namespaces map[string]bool, each func(client.Object)) error {
	const several, whole = 4, 100 // objects take more room than their metadata
	if len(namespaces) > several {
		namespaces = map[string]bool{"": true}
	}
	for ns := range namespaces {
		for o := (&client.ListOptions{Namespace: ns, Limit: whole}); ; {
			more, err := listPage(ctx, c.Reader, kind, o, true, each)
			if err != nil {
				return err
			}
			if more == "" {
				break
			}
			o.Continue = more
		}
	}
	return nil
}

// place judges by where an object is, which needs no look at it.
func (j *judging) place(s subject) {
	ns := s.namespace
	if s.kind == (schema.GroupKind{Kind: "Namespace"}) {
		ns = s.name
	}
	if ns == "" || len(j.by) == 0 || slices.ContainsFunc(j.by, func(e policy.Effective) bool { return !e.Protected(ns) }) {
		return
	}
	j.refuse(s, j.by[0], gate.Item{Reason: gate.ProtectedTarget, Text: fmt.Sprintf("namespace %s is protected: only the writers that policy lists under protected may render into it", ns)})
}

// object judges one. Where several sources are gated, those with one that would
// let it pass do not count.
func (j *judging) object(s subject, u *unstructured.Unstructured, now time.Time) {
	if _, already := j.items[s]; already || u == nil {
		return
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	tree, err := plain(u.Object)
	var first []gate.Item
	for _, e := range slices.SortedStableFunc(slices.Values(j.by), warnsFirst) {
		items, lacks, gated := []gate.Item{{Reason: gate.ObjectMalformed}}, []policy.Lack(nil), true
		if err == nil {
			items, lacks, gated = would(e, s.receipt(), tree, now.Unix())
		} else {
			items[0].Text = err.Error()
		}
		if len(items) == 0 {
			j.judged[s] = j.judged[s] || gated
			return
		}
		if first == nil {
			j.judged[s] = true
			items[0].Fix = cmp.Or(items[0].Fix, e.Fix(items[0].Reason, lacks...))
			first = items
		}
	}
	if first != nil {
		j.refuse(s, policy.Effective{}, first...)
	}
}

func warnsFirst(a, b policy.Effective) int {
	switch {
	case a.Warn == b.Warn:
		return 0
	case a.Warn:
		return -1
	}
	return 1
}

func (j *judging) refuse(s subject, e policy.Effective, items ...gate.Item) {
	for i := range items {
		items[i].Subject = s.receipt().Short()
	}
	if items[0].Fix == "" {
		items[0].Fix = e.Fix(items[0].Reason)
	}
	j.judged[s], j.items[s] = true, items
}

// plain is an object as the core takes it: numbers as they are written.
func plain(object map[string]any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	v, err := jcs.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	tree, _ := v.(map[string]any)
	return tree, nil
}

// would says why a render with this object in it would be refused. What the
// cluster has filled in is no part of a render.
func would(e policy.Effective, s receipt.Subject, tree map[string]any, now int64) (items []gate.Item, lacks []policy.Lack, gated bool) {
	one := func(reason gate.Reason, format string, args ...any) ([]gate.Item, []policy.Lack, bool) {
		return []gate.Item{{Reason: reason, Text: fmt.Sprintf(format, args...)}}, nil, true
	}
	object, err := e.Projector.Project(tree)
	if err != nil {
		return one(gate.ObjectMalformed, "%v", err)
	}
	receipts, err := gate.Receipts(tree, e.Annotation)
	if err != nil {
		return one(gate.ObjectMalformed, "%v", err)
	}
	if unknown := e.Projector.UnknownImages(tree); len(unknown) > 0 && e.UnknownImages == policy.RefuseUnknown {
		return one(gate.UnknownImage, "%s looks like an image, in a kind that neither syncgate nor policy knows", strings.Join(unknown, ", "))
	}
	if what := gate.Forced(s, tree, object); what != "" {
		return one(gate.ForceNotAllowed, "%s would delete a running object before its change is refused: remove it", what)
	}
	if gate.SignedBefore(s, receipts) {
		object = object.AsFound()
	}
	d := gate.Evaluate(gate.Request{Rules: &e.Rules, Subject: s, Object: object, Receipts: receipts, Now: now, Stored: true, Held: e.Rules.Held(s, object, receipts)})
	for _, f := range d.Findings {
		if f.Reason != gate.FieldDefaulted {
			items = append(items, gate.Item{Reason: f.Reason, Text: f.Text})
			lacks = append(lacks, policy.Lack{Subject: s, Finding: f, Object: object})
		}
	}
	return items, lacks, e.Rules.Gates(object)
}

// warning is what the look has shown.
func (j *judging) warning(now time.Time) *warning {
	for s, item := range j.app.refusedAtAdmission() {
		item.Subject = s.receipt().Short()
		if _, managed := j.all[s]; !managed {
			j.all[s] = "v1" // of an object that is not there
		}
		j.judged[s], j.items[s] = true, []gate.Item{item} // newer than what runs
	}
	w := &warning{items: j.items, served: j.all, remote: !j.app.local(), seen: j.seen, at: now}
	if j.failed {
		w.seen = ""
	}
	for s := range j.all {
		if _, judged := j.judged[s]; !judged && !slices.Contains(receiptless, s.kind) {
			w.hidden++
		}
	}
	for _, gated := range j.judged {
		if gated {
			w.gated++
		}
	}
	for kind := range j.unread {
		w.unread = append(w.unread, kind)
	}
	slices.Sort(w.unread)
	return w
}

// refusedAtAdmission are the objects that the webhook refused in the last sync,
// by what Argo CD wrote down of its answers.
func (a application) refusedAtAdmission() map[subject]gate.Item {
	out := map[subject]gate.Item{}
	for _, r := range a.status().object("operationState").object("syncResult").objects("resources") {
		_, rest, found := strings.Cut(r.text("message"), gate.Refused.Words()+" [")
		code, text, closed := strings.Cut(rest, "] ")
		if !found || !closed || !slices.Contains(gate.Reasons(), gate.Reason(code)) {
			continue
		}
		item := gate.Item{Reason: gate.Reason(code)}
		if i := strings.LastIndex(text, "; Fix: "); i >= 0 {
			text, item.Fix = text[:i], text[i+len("; Fix: "):]
		}
		s := subjectOf(r)
		if _, after, named := strings.Cut(text, s.receipt().Short()+": "); named {
			text = after
		}
		item.Text = text + " (refused by the webhook in the last sync)"
		out[s] = item
	}
	return out
}
