package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncgate/syncgate/plugin/application"
)

// applies makes the status say what kustomize-controller would after it applied a
// revision, of which content is the digest.
func (w *world) applies(revision, content string) {
	w.t.Helper()
	w.says(content, revision, meta.ReconciliationSucceededReason, metav1.ConditionTrue, meta.ReconciliationSucceededReason)
}

// fails makes it say that nothing could be built, which leaves the history alone.
func (w *world) fails() {
	w.t.Helper()
	w.says("", "", "", metav1.ConditionFalse, meta.BuildFailedReason)
}

func (w *world) says(content, revision, status string, ready metav1.ConditionStatus, reason string) {
	w.t.Helper()
	u := w.kustomization()
	state, _, _ := unstructured.NestedMap(u.Object, "status")
	if state == nil {
		state = map[string]any{}
	}
	if status != "" {
		history, _ := state["history"].([]any)
		at := w.now.UTC().Format(time.RFC3339)
		state["history"] = append([]any{map[string]any{
			"digest": digestOf(content), "firstReconciled": at, "lastReconciled": at, "lastReconciledDuration": "100ms", "lastReconciledStatus": status,
			"totalReconciliations": int64(1), "metadata": map[string]any{"revision": revision},
		}}, history...)
	}
	if status == meta.ReconciliationSucceededReason {
		state["lastAppliedRevision"], state["observedGeneration"] = revision, u.GetGeneration()
	}
	conditions := []any{map[string]any{"type": meta.ReadyCondition, "status": string(ready), "reason": reason, "message": "x", "lastTransitionTime": w.now.UTC().Format(time.RFC3339)}}
	all, _ := state["conditions"].([]any)
	for _, x := range all {
		if m, _ := x.(map[string]any); m["type"] != meta.ReadyCondition {
			conditions = append(conditions, x)
		}
	}
	state["conditions"] = conditions
	u.Object["status"] = state
	must(w.t, w.Client.Status().Update(w.t.Context(), u))
}

// anywayTotal is the metric, over all Kustomizations.
func (w *world) anywayTotal() float64 {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	must(w.t, registry.Register(w.Metrics.anyway))
	families, err := registry.Gather()
	must(w.t, err)
	total := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			total += m.GetCounter().GetValue()
		}
	}
	return total
}

// restart forgets what a process knows, and sees nothing of what was told.
func (w *world) restart() {
	w.said()
	w.memory = newMemory()
}

// TestWhatIsRefusedIsAppliedAnyway: the ways in which Flux applies what the gate
// refuses, and those in which it does not.
func TestWhatIsRefusedIsAppliedAnyway(t *testing.T) {
	const (
		told   = "Warning AppliedAnyway"
		second = "main@sha1:2"
	)
	// later is a while after what was before.
	later := func(w *world) { w.now = w.now.Add(time.Minute) }
	// refuse makes the second revision one that nobody signed, and lets the gate
	// look at it.
	refuse := func(w *world) {
		w.write("2", nil)
		w.push(second)
		later(w)
		w.reconcile()
	}
	for _, c := range []struct {
		name   string
		do     func(w *world)
		reason string // of the condition at the end
		events []string
		total  float64
	}{
		{"a revision that needs no variable", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.reconcile()
			later(w)
			w.applies(second, "2") // at each interval
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 1},
		{"a race, before the verdict", func(w *world) {
			w.applies(second, "2")
			refuse(w)
		}, anywayReason, []string{told}, 1},
		{"a race that is over", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.fails()
			w.reconcile()
			later(w)
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 1},
		{"a race that is over, and the next revision is refused", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.write("3", nil)
			w.push("main@sha1:3")
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 1},
		{"a race that is over, and the next revision is approved", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.write("1", nil)
			w.push("main@sha1:3")
			w.reconcile()
			w.reconcile()
		}, approvedReason, []string{"Warning DigestMismatch", told, "Normal Approved"}, 1},
		{"an apply after which something is not healthy", func(w *world) {
			refuse(w)
			w.says("2", second, meta.HealthCheckFailedReason, metav1.ConditionFalse, meta.HealthCheckFailedReason)
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 1},
		{"two contents of it", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.reconcile()
			later(w)
			w.applies(second, "another")
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 2},
		{"a Kustomization that can do without the ConfigMap", func(w *world) {
			w.replace(kustomizationOf(w.t, application.PostBuild, "  force: true\n"))
			w.reconcile()
			later(w)
			w.applies("main@sha1:1", "patched")
			w.reconcile()
		}, anywayReason, []string{"Warning ForceNotAllowed", told}, 1},
		{"a Flux that keeps no history", func(w *world) {
			u := w.kustomization()
			unstructured.RemoveNestedField(u.Object, "status", "history")
			must(w.t, w.Client.Status().Update(w.t.Context(), u))
			w.reconcile()
			refuse(w)
			u = w.kustomization()
			must(w.t, unstructured.SetNestedField(u.Object, second, "status", "lastAppliedRevision"))
			must(w.t, w.Client.Status().Update(w.t.Context(), u))
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told}, 1},
		{"while the gate was away", func(w *world) {
			w.restart()
			w.applies(second, "2")
			refuse(w)
		}, anywayReason, []string{told}, 1},
		{"while the gate was away, after it refused", func(w *world) {
			refuse(w)
			w.restart()
			later(w)
			w.now = time.Now().Add(time.Hour) // the condition has the time of the machine
			w.applies(second, "2")
			w.reconcile()
		}, anywayReason, []string{told}, 1},
		{"seen by the process before", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.reconcile()
			w.restart()
			w.reconcile()
		}, anywayReason, nil, 2},
		{"and policy lets it pass for a while", func(w *world) {
			refuse(w)
			w.applies(second, "2")
			w.reconcile()
			w.policyIs(prod + "mode: {render: Warn}\n")
			w.reconcile()
			w.policyIs(prod)
			w.reconcile()
		}, anywayReason, []string{"Warning DigestMismatch", told, "Warning Warned", told}, 1},

		{"a refusal that holds", func(w *world) {
			refuse(w)
			w.fails()
			w.reconcile()
		}, "DigestMismatch", []string{"Warning DigestMismatch"}, 0},
		{"one that the webhook refuses, too", func(w *world) {
			refuse(w)
			w.says("2", second, meta.ReconciliationFailedReason, metav1.ConditionFalse, meta.ReconciliationFailedReason)
			w.reconcile()
		}, "DigestMismatch", []string{"Warning DigestMismatch"}, 0},
		{"the end of what was approved", func(w *world) {
			w.now = w.now.Add(40 * 24 * time.Hour) // receipts are for thirty days
			w.reconcile()
			w.fails()
			w.reconcile()
		}, "ReceiptExpired", []string{"Warning ReceiptExpired"}, 0},
		{"what was approved, applied at its end", func(w *world) {
			w.now = w.now.Add(40 * 24 * time.Hour)
			w.reconcile()
			w.applies("main@sha1:1", "1")
			w.reconcile()
		}, "ReceiptExpired", []string{"Warning ReceiptExpired"}, 0},
		{"the end of what was approved, while the gate was away", func(w *world) {
			w.restart()
			w.now = w.now.Add(40 * 24 * time.Hour)
			w.reconcile()
		}, "ReceiptExpired", []string{"Warning ReceiptExpired"}, 0},
		{"the end of what was approved, and another process", func(w *world) {
			w.now = w.now.Add(40 * 24 * time.Hour)
			w.reconcile()
			w.restart()
			w.reconcile()
		}, "ReceiptExpired", nil, 0},
		{"one that policy lets pass before it is applied", func(w *world) {
			refuse(w)
			w.policyIs(prod + "mode: {render: Warn}\n")
			w.reconcile()
			w.write("1", nil)
			w.push("main@sha1:3")
			w.applies(second, "2")
			w.reconcile()
		}, approvedReason, []string{"Warning DigestMismatch", "Warning Warned", "Normal Approved"}, 0},
		{"a source that is not to be had", func(w *world) {
			w.source(nil)
			w.applies(second, "2")
			w.reconcile()
		}, notReadyReason, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := released(t, application.PostBuild)
			w.applies("main@sha1:1", "1")
			w.reconcile()
			c.do(w)
			got := w.condition()
			if got.Reason != c.reason {
				t.Errorf("condition: got %+v, want the reason %s", got, c.reason)
			}
			if c.reason == anywayReason {
				for _, want := range []string{"APPLIED ANYWAY main@sha1:", "Fix: flux suspend kustomization shop --namespace shop, ", "; SYNC REFUSED ["} {
					if !strings.Contains(got.Message, want) {
						t.Errorf("condition: got %q, want %q in it", got.Message, want)
					}
				}
			}
			if (w.values() == nil) != (c.reason != approvedReason) {
				t.Errorf("values: got %v", w.values())
			}
			if diff := cmp.Diff(c.events, w.said()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if total := w.anywayTotal(); total != c.total {
				t.Errorf("metric: got %v, want %v", total, c.total)
			}
		})
	}
}

// TestWhatWasAppliedBeforeTheGateIsNotAppliedAnyway: who begins to be gated with
// something unsigned is told that it is refused, and no more, until Flux applies it
// as it is asked to now.
func TestWhatWasAppliedBeforeTheGateIsNotAppliedAnyway(t *testing.T) {
	w := newWorld(t, application.PostBuild)
	w.write("1", nil)
	w.push("main@sha1:1")
	w.replace(kustomizationOf(t, application.Plain, ""))
	w.applies("main@sha1:1", "1")
	w.replace(func() *unstructured.Unstructured {
		u := kustomizationOf(t, application.PostBuild, "")
		u.Object["status"] = w.kustomization().Object["status"]
		return u
	}())
	w.reconcile()
	w.is(metav1.ConditionFalse, "ReceiptMissing")
	w.fails()
	w.reconcile()
	w.is(metav1.ConditionFalse, "ReceiptMissing")
	w.now = w.now.Add(time.Minute)
	w.applies("main@sha1:1", "1") // without the ConfigMap
	w.reconcile()
	w.is(metav1.ConditionFalse, anywayReason)
}

// TestArtifactModeAppliesNothingAnyway: there Flux has nothing else to apply.
func TestArtifactModeAppliesNothingAnyway(t *testing.T) {
	w := released(t, application.Artifact)
	w.write("2", nil)
	w.push("main@sha1:2")
	w.reconcile()
	w.applies("main@sha1:2", "2")
	w.reconcile()
	w.is(metav1.ConditionFalse, "DigestMismatch")
}
