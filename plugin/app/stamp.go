package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/lock"
	"github.com/syncgate/syncgate/plugin/policy"
)

// stamp puts the receipts of the lock on the object, behind those that it has
// already, so that the webhook sees what render saw. Only receipts of the
// gate's own environment, or those it accepts, are taken. The annotation is on
// the object's own metadata, never in a pod template, which it would roll; a
// CronJob's also on its jobTemplate, whose Jobs then carry it.
func (s Settings) stamp(l *lock.Lock, o *Object) error {
	have, err := gate.Receipts(o.Tree, s.Effective.Annotation)
	if err != nil {
		return err
	}
	if l != nil { // also for an object without leaves: losing the last one is a change
		for _, env := range append([]string{s.Effective.Rules.Environment}, s.Effective.Rules.Accepts...) {
			for _, e := range l.Receipts(env, o.Subject) {
				if e.Previous && s.Effective.KeepPrevious == 0 {
					continue
				}
				if !slices.Contains(have, e.Receipt) {
					have = append(have, e.Receipt)
				}
			}
		}
	}
	return o.Stamp(s.Effective, have...)
}

// Stamp sets the receipts of an object, in this order.
func (o *Object) Stamp(e policy.Effective, receipts ...string) error {
	o.Receipts = receipts
	if len(receipts) == 0 {
		return nil
	}
	value := strings.Join(receipts, " ")
	if err := annotate(o.Tree, e.Annotation, value, "metadata"); err != nil {
		return err
	}
	if o.Subject.Group == "batch" && o.Subject.Kind == "CronJob" {
		return annotate(o.Tree, e.Annotation, value, "spec", "jobTemplate", "metadata")
	}
	return nil
}

func annotate(tree map[string]any, key, value string, path ...string) error {
	cur := tree
	for _, p := range append(path, "annotations") {
		next, ok := cur[p].(map[string]any)
		if !ok {
			if cur[p] != nil {
				return fmt.Errorf("%s is not an object", p)
			}
			next = map[string]any{}
			cur[p] = next
		}
		cur = next
	}
	cur[key] = value
	return nil
}
