package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/settings"
)

// told is what was said of an Application by this process.
type told struct {
	text    string             // of the annotation
	codes   string             // of the last events
	notes   map[subject]string // of the last events about objects
	written time.Time          // of the annotation; zero: never
}

// insist is how long the controller waits before it writes an annotation again
// that somebody took away: an ApplicationSet that does not preserve it would
// else take turns with it for ever (docs/argocd.md).
const insist = time.Hour

// report says where the gate is not in the path of an Application.
func (c *Controller) report(ctx context.Context, apps []application, standings map[string]standing) error {
	if c.told == nil {
		c.told = map[string]told{}
	}
	c.Metrics.findings.Reset()
	c.Metrics.warned.Reset()
	counts := map[bool]int{}
	there := map[string]bool{}
	var failed error
	for _, a := range apps {
		there[a.key] = true
		counts[len(a.asking()) > 0]++
		var list []Finding
		if c.inGatedProject(a.project()) {
			list = a.findings(standings[a.key])
		}
		for _, f := range list {
			c.Metrics.findings.WithLabelValues(a.object.GetNamespace(), a.object.GetName(), f.Code).Set(1)
		}
		c.events(a, list)
		c.tellWarned(a, standings[a.key].warning)
		if err := c.annotate(ctx, a, statusText(list)); err != nil && failed == nil {
			failed = err // the others are told all the same
		}
	}
	for key := range c.told {
		if !there[key] {
			delete(c.told, key)
		}
	}
	for _, gated := range []bool{false, true} {
		c.Metrics.apps.WithLabelValues(strconv.FormatBool(gated)).Set(float64(counts[gated]))
	}
	return failed
}

// events tells of findings that are new, and of the end of all.
func (c *Controller) events(a application, list []Finding) {
	t := c.told[a.key]
	codes := ""
	for _, f := range list {
		if f.Code != WouldBeRefused { // has an event for each object
			codes += "[" + f.Code + "] " + f.Text + "\n"
		}
	}
	if codes == t.codes {
		return
	}
	for _, f := range list {
		if f.Code != WouldBeRefused {
			c.Events.Eventf(a.object, nil, corev1.EventTypeWarning, f.Code, "Audit", "%s", note(f.Text))
		}
	}
	if len(list) == 0 {
		c.Events.Eventf(a.object, nil, corev1.EventTypeNormal, "Gated", "Audit", "the gate is in the path of every source")
	}
	t.codes = codes
	c.told[a.key] = t
}

// tellWarned counts the objects that would be refused, and makes an event for
// each that is news.
func (c *Controller) tellWarned(a application, w *warning) {
	t := c.told[a.key]
	var notes map[subject]string
	if w != nil {
		set := func(reason string, n int) {
			c.Metrics.warned.WithLabelValues(a.object.GetNamespace(), a.object.GetName(), reason).Set(float64(n))
		}
		for reason, n := range w.reasons() {
			set(string(reason), n)
		}
		if w.hidden > 0 {
			set(unreadReason, w.hidden)
		}
		const most = 20 // the others are in the metric, and syncgate check names them
		notes = w.notes()
		told := 0
		for _, s := range w.objects() {
			if notes[s] == t.notes[s] || told == most {
				continue
			}
			told++
			// With the object, or the recorder takes the next one for the same event.
			c.Events.Eventf(a.object, reference(s, w.served[s]), corev1.EventTypeWarning, WouldBeRefused, "Audit", "%s", note(notes[s]))
		}
	}
	if len(notes) > 0 || len(t.notes) > 0 {
		t.notes = notes
		c.told[a.key] = t
	}
}

// unreadReason stands in the metric beside the reasons of the gate.
const unreadReason = "Unread"

// reference is what an event says of an object.
func reference(s subject, version string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(s.kind.WithVersion(version))
	o.SetNamespace(s.namespace)
	o.SetName(s.name)
	return o
}

// note is a text as the API server takes it in an event: at most 1 KiB.
func note(text string) string {
	const room = 1 << 10
	if len(text) > room {
		return text[:room-3] + "..."
	}
	return text
}

// annotate makes the annotation say text, or be absent.
func (c *Controller) annotate(ctx context.Context, a application, text string) error {
	t := c.told[a.key]
	have, there := a.object.GetAnnotations()[settings.Status]
	if have == text && (there || text == "") {
		return nil
	}
	now := c.Now()
	if t.text == text && !t.written.IsZero() && now.Sub(t.written) < insist {
		// Either the cache is older than our write, or somebody undid it.
		if now.Sub(t.written) > time.Minute {
			c.Metrics.removed.Inc()
		}
		return nil
	}
	var value any // null takes it away
	if text != "" {
		value = text
	}
	err := c.Client.Patch(ctx, a.object.DeepCopy(), mergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{settings.Status: value}}}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating %s: %w", a.key, err)
	}
	t.text, t.written = text, now
	c.told[a.key] = t
	return nil
}

// mergePatch is a JSON merge patch of what is given.
func mergePatch(v any) client.Patch {
	data, err := json.Marshal(v)
	if err != nil { // strings in maps: there is none
		data = []byte("{}")
	}
	return client.RawPatch(types.MergePatchType, data)
}
