package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/syncgate/syncgate/plugin/application"
	"github.com/syncgate/syncgate/plugin/flux/hook"
	"github.com/syncgate/syncgate/plugin/gate"
)

// anywayReason is that of the condition, the event and the notification when Flux
// has applied what the gate refused. In postBuild mode nothing but the missing
// ConfigMap holds it up, which a revision without the gate's variables does not
// need, and a race may come before.
const anywayReason = "AppliedAnyway"

// applied is what a Kustomization's status says of what Flux applied last. The
// zero value: nothing.
type applied struct {
	revision string
	origin   string    // the revision that a person knows
	digest   string    // of the objects; "" of a Flux that keeps no history
	began    time.Time // zero of such a Flux; to the second
	ended    time.Time
}

// content reports whether two applies were of the same content.
func (a applied) content(b applied) bool { return a.revision == b.revision && a.digest == b.digest }

// applies are the states in which kustomize-controller has applied everything,
// whatever came of it.
var applies = []string{meta.ReconciliationSucceededReason, meta.HealthCheckFailedReason, meta.PruneFailedReason}

// lastApplied reads the status of a Kustomization, whose history has the newest
// first.
func lastApplied(u *unstructured.Unstructured) applied {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "history")
	items, _ := list.([]any)
	for _, x := range items {
		m, _ := x.(map[string]any)
		if status, _ := m["lastReconciledStatus"].(string); !slices.Contains(applies, status) {
			continue
		}
		a := applied{}
		a.digest, _ = m["digest"].(string)
		about, _ := m["metadata"].(map[string]any)
		a.revision, _ = about["revision"].(string)
		if a.origin, _ = about["originRevision"].(string); a.origin == "" {
			a.origin = a.revision
		}
		ended, _ := m["lastReconciled"].(string)
		took, _ := m["lastReconciledDuration"].(string)
		a.ended, _ = time.Parse(time.RFC3339, ended) // zero: it is never news by its time
		d, _ := time.ParseDuration(took)
		a.began = a.ended.Add(-d)
		return a
	}
	revision, _, _ := unstructured.NestedString(u.Object, "status", "lastAppliedRevision")
	return applied{revision: revision, origin: revision}
}

// maxRefused bounds the revisions of a Kustomization that are known as refused.
const maxRefused = 16

// course is what was seen of what Flux applied of one Kustomization.
type course struct {
	known    bool     // the rest was seen by this process
	last     applied  // when it was looked at before
	approved []string // digests that were applied while they were approved
	refused  []string // revisions; the newest last
	anyway   applied  // was refused, and is what Flux applied last
}

// learns notes a verdict, and that what Flux has applied of an approved revision
// is that content.
func (c *course) learns(o outcome, have applied) {
	c.refused = slices.DeleteFunc(slices.Clone(c.refused), func(r string) bool { return r == o.revision })
	switch {
	case !o.approved && o.revision != "":
		c.refused = append(c.refused, o.revision)
		c.refused = c.refused[max(0, len(c.refused)-maxRefused):]
	case o.approved && have.revision == o.revision && have.digest != "" && !have.content(c.anyway) && !slices.Contains(c.approved, have.digest):
		c.approved = append(slices.Clone(c.approved), have.digest)
		c.approved = c.approved[max(0, len(c.approved)-meta.HistoryMaxSize):]
	}
}

// anyway looks whether Flux has applied what the gate refused, and if so makes
// that the outcome: to be told louder than a refusal that holds. Where another
// revision is approved by now it is told all the same.
func (r *Reconciler) anyway(s subject, o outcome) outcome {
	if s.mode != application.PostBuild || o.again {
		return o
	}
	key := client.ObjectKeyFromObject(s)
	have, c := lastApplied(s.Unstructured), r.memory.course(key)
	c.learns(o, have)
	total := r.Metrics.anyway.WithLabelValues(s.GetNamespace(), s.GetName())
	found := c.finds(s, o, have)
	told := have.content(c.anyway)
	if c.known, c.last = true, have; found {
		c.anyway = have
	} else if !told {
		c.anyway = applied{}
	}
	r.memory.follow(key, c)
	if !found {
		return o
	}
	sentence := gate.ASCII(fmt.Sprintf("APPLIED ANYWAY %s: the gate refused it, and Flux has applied it; Fix: flux suspend kustomization %s --namespace %s, and look at what it brought (docs/flux.md, Applied anyway)",
		have.origin, s.GetName(), s.GetNamespace()))
	if !told {
		total.Inc()
		r.Log.Error("applied what was refused", "kustomization", key.String(), "revision", have.revision, "digest", have.digest)
	}
	if o.approved {
		r.event(s, outcome{reason: anywayReason, sentence: sentence, revision: have.revision, origin: have.origin})
		return o
	}
	o.reason, o.sentence = anywayReason, sentence+"; "+o.sentence
	return o
}

// finds reports whether what Flux applied last was refused.
func (c course) finds(s subject, o outcome, have applied) bool {
	news := have.revision != c.last.revision || have.digest != c.last.digest || have.ended.After(c.last.ended)
	refused := slices.Contains(c.refused, have.revision)
	switch {
	case have.revision == "" || have.digest != "" && slices.Contains(c.approved, have.digest):
		return false
	case o.approved:
		return c.known && news && refused
	case o.revision != "" && !refused: // an older one
		return false
	case c.known:
		return news || have.content(c.anyway)
	}
	return before(s, have)
}

// before reports whether Flux has applied what is refused now while nobody
// looked, or before this process did. What it applied before the Kustomization
// asked to be gated is nothing of that, nor what was approved then.
func before(s subject, have applied) bool {
	get := conditions.UnstructuredGetter(s.Unstructured)
	observed, _, _ := unstructured.NestedInt64(s.Object, "status", "observedGeneration")
	asked := observed == s.GetGeneration() && conditions.IsTrue(get, meta.ReadyCondition) // it does not wait for the ConfigMap
	said := conditions.Get(get, hook.Condition)
	switch {
	case said == nil || said.Status == metav1.ConditionUnknown:
		return asked
	case said.Status == metav1.ConditionFalse && said.Reason == anywayReason:
		return strings.Contains(said.Message, gate.ASCII(have.origin))
	case said.Status == metav1.ConditionFalse:
		return have.began.After(said.LastTransitionTime.Time)
	}
	return asked && said.Reason == approvedReason && !strings.HasPrefix(said.Message, have.origin+": ")
}
