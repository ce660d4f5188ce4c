package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/settings"
)

// told is what was said of an Application by this process.
type told struct {
	text    string    // of the annotation
	codes   string    // of the last events
	written time.Time // of the annotation; zero: never
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
		codes += "[" + f.Code + "] " + f.Text + "\n"
	}
	if codes == t.codes {
		return
	}
	for _, f := range list {
		c.Events.Eventf(a.object, nil, corev1.EventTypeWarning, f.Code, "Audit", "%s", f.Text)
	}
	if len(list) == 0 {
		c.Events.Eventf(a.object, nil, corev1.EventTypeNormal, "Gated", "Audit", "the gate is in the path of every source")
	}
	t.codes = codes
	c.told[a.key] = t
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
