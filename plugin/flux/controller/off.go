package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/offswitch"
	"github.com/syncgate/syncgate/plugin/process"
)

// offReason is that of the condition while an off-switch lets a refusal pass.
const offReason = "SwitchedOff"

// offPoll is how often the off-switches are looked at: a switch, and its end,
// takes no longer.
const offPoll = 2 * time.Second

// switched is what the off-switches say of one Kustomization now.
type switched struct {
	why string // "off until ... by ...: ..."; empty: the gate is on
	err error  // no switch counts
}

// switched reads the off-switches. Where one cannot be read none counts, as in
// the plugin for Argo CD.
func (r *Reconciler) switched(s subject) switched {
	set, err := offswitch.Load(r.Off, r.Now())
	if err != nil {
		return switched{err: err}
	}
	why, _ := set.App(s.says.App.Name, r.Now().Unix())
	return switched{why: why}
}

// key is what a verdict follows from.
func (o switched) key() string {
	if o.err != nil {
		return "error: " + o.err.Error()
	}
	return o.why
}

// passes reports whether a refusal passes by an off-switch, and else adds to it
// why none counts.
func (o switched) passes(refusal *gate.Sentence) bool {
	switch {
	case !app.MaySwitchOff(*refusal):
		return false
	case o.err != nil:
		app.NoSwitchCounts(refusal, o.err)
		return false
	}
	return o.why != ""
}

// followOff passes on that another set of off-switches is in force, by a change
// or by the end of one.
func (r *Reconciler) followOff(p *process.Process, changed chan<- event.GenericEvent) error {
	if r.Off == "" {
		return nil
	}
	return p.Add(manager.RunnableFunc(func(ctx context.Context) error {
		tick := time.NewTicker(offPoll)
		defer tick.Stop()
		for last := ""; ; {
			now, err := r.inForce()
			if now != last {
				last = now
				if err != nil {
					r.Log.Error("no off-switch counts", "error", err.Error())
				} else {
					r.Log.Info("off-switches in force", "switches", now)
				}
				select {
				case <-ctx.Done():
					return nil
				case changed <- event.GenericEvent{Object: kustomization()}:
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	}))
}

// inForce names the switches of applications that are in force now.
func (r *Reconciler) inForce() (string, error) {
	set, err := offswitch.Load(r.Off, r.Now())
	if err != nil {
		return "error: " + err.Error(), err
	}
	var all []string
	for _, s := range set.All() {
		if why, off := set.App(s.App, r.Now().Unix()); off {
			all = append(all, fmt.Sprintf("%s %s", s.App, why))
		}
	}
	return strings.Join(all, "; "), nil
}
