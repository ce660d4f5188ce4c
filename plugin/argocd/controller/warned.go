package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/policy"
)

// Which objects would be refused, of Applications for which policy only warns.
// Argo CD shows nobody what a plugin that succeeds says, and the sidecar has no
// API token. So the controller judges what runs, by the same core: what was let
// through is there. Where admission enforces, what it refused in the last sync
// stands in the Application's status, on whatever cluster.

// again is how long what was seen counts while nothing shows that it changed:
// receipts expire, and people edit what runs.
const again = 10 * time.Minute

// warning is what is known of one Application for which policy only warns.
type warning struct {
	items  map[subject][]gate.Item // of objects that would be refused; the first is the gravest
	served map[subject]string      // versions
	gated  int                     // objects that need a receipt, those of items among them
	hidden int                     // objects that were not judged and may need one
	unread []string                // why, as far as it is for their kinds: sorted
	remote bool                    // or because they are in a cluster that is not read

	seen string    // what it was made from, by hash; empty: not all could be read
	at   time.Time // when
}

// warnings looks at the Applications of which that may give something new, and
// returns what is known of all that policy only warns for, by key.
func (c *Controller) warnings(ctx context.Context, p *policy.Policy, apps []application, standings map[string]standing) map[string]*warning {
	known := map[string]*warning{}
	var due []*judging
	for _, a := range apps {
		st := standings[a.key]
		if !st.warn || !c.inGatedProject(a.project()) {
			continue
		}
		j := newJudging(a, p, c.Environment, st.entry)
		w := c.warned[a.key]
		if w != nil && (j.busy || j.seen == w.seen && c.Now().Sub(w.at) < again) {
			known[a.key] = w
			continue
		}
		due = append(due, j)
	}
	c.judge(ctx, due)
	for _, j := range due {
		known[j.app.key] = j.warning(c.Now())
	}
	c.warned = known
	return known
}

// sentence is the one of the render (docs/spec/refusal.md), of what is known.
func (w *warning) sentence() gate.Sentence {
	s := gate.Sentence{Gated: w.gated, Warn: true}
	for _, o := range w.objects() {
		s.Items = append(s.Items, w.items[o]...)
	}
	return s
}

// objects are those that would be refused, in one order.
func (w *warning) objects() []subject {
	return slices.SortedFunc(maps.Keys(w.items), func(a, b subject) int { return strings.Compare(a.String(), b.String()) })
}

// reasons counts the objects that would be refused by their gravest reason.
func (w *warning) reasons() map[gate.Reason]int {
	out := map[gate.Reason]int{}
	for _, items := range w.items {
		out[items[0].Reason]++
	}
	return out
}

// notes are the texts of events, one for each object that would be refused.
func (w *warning) notes() map[subject]string {
	out := map[subject]string{}
	for o, items := range w.items {
		out[o] = gate.Sentence{Items: items, Warn: true}.String()
	}
	return out
}

// text is what there is to know beside the sentence, above all whether that is
// all. A nil warning is that nobody looked.
func (w *warning) text() string {
	const head = "policy warns for this Application: what would be refused syncs"
	switch {
	case w == nil:
		return head + "; syncgate check says what that is"
	case w.remote && len(w.items) > 0:
		return head + "; of what is in another cluster the controller sees what the webhook refused, and no more: syncgate check says the rest"
	case w.remote:
		return head + "; what that is in another cluster, the controller does not see: syncgate check says it, and the log of the sidecar"
	}
	text := head + fmt.Sprintf("; of %d gated objects that run %s would be", w.gated, count(len(w.items)))
	if w.hidden == 0 {
		return text
	}
	text += fmt.Sprintf(", and %d could not be looked at", w.hidden)
	if len(w.unread) > 0 {
		const most = 5
		list := w.unread
		if len(list) > most {
			list = append(slices.Clone(list[:most]), fmt.Sprintf("%d more kinds", len(w.unread)-most))
		}
		text += " (" + strings.Join(list, ", ") + ")"
	}
	return text + ": syncgate check judges them, too"
}

func count(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}
