package controller

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncgate/syncgate/plugin/application"
)

// annotate sets annotations of the Kustomization, without a commit; an empty
// value removes one.
func (w *world) annotate(all map[string]string) {
	w.t.Helper()
	u := w.kustomization()
	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range all {
		if annotations[key] = value; value == "" {
			delete(annotations, key)
		}
	}
	u.SetAnnotations(annotations)
	w.replace(u)
}

// policyIs puts another policy into force.
func (w *world) policyIs(text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(w.policy, []byte(text), 0o600))
	for range 2 { // a file must be seen twice the same
		if w.Loader.Reload() {
			return
		}
	}
	w.t.Fatal("the policy was not loaded")
}

// TestEachAnnotationTightensAndNoneRelaxes: what is approved without the
// annotation is judged anew with it, without a commit, and again when it goes.
func TestEachAnnotationTightensAndNoneRelaxes(t *testing.T) {
	const (
		issuers = "issuers: [{name: release, keys: {file: jwks.json}}]\n"
		two     = "apiVersion: syncgate.io/v1alpha1\nkind: GatePolicy\nenvironments:\n- {name: prod, match: {name: shop_shop}}\n- {name: stage, match: {name: \"shop_*\"}}\n- {name: lab, match: {name: lab}}\n" + issuers
		rule    = prod + "apps:\n- match: {name: shop_*}\n  mode: {render: Enforce}\n  categories: [{name: rbac}]\n"
		warn    = prod + "mode: {render: Warn}\n"
	)
	enforced := map[string]string{"syncgate.io/mode": "Enforce"}
	for _, c := range []struct {
		name, policy string
		unsigned     bool
		before       map[string]string
		asked        map[string]string
		reason       string   // "": it stays approved
		want         []string // in the condition
	}{
		// What tightens.
		{name: "mode", policy: warn, unsigned: true, asked: enforced, reason: "DigestMismatch", want: []string{"SYNC REFUSED [DigestMismatch]", "Pod shop/web"}},
		{name: "mode that is", policy: warn, unsigned: true, asked: map[string]string{"syncgate.io/mode": "Warn"}, reason: ""},
		{name: "environment", policy: two, before: map[string]string{"syncgate.io/environment": "prod"}, asked: map[string]string{"syncgate.io/environment": "stage"},
			reason: "ReceiptMissing", want: []string{"SYNC REFUSED [ReceiptMissing]", "Pod shop/web", "--environment stage,"}},
		{name: "categories", policy: prod, asked: map[string]string{"syncgate.io/categories": "service"}, reason: "ReceiptMissing", want: []string{"Service shop/web: no receipt for service"}},
		{name: "the renderer that is", policy: prod, asked: map[string]string{"syncgate.io/renderer": "kustomize"}, reason: ""},
		{name: "another renderer", policy: prod, asked: map[string]string{"syncgate.io/renderer": "directory"}, reason: "PolicyInvalid",
			want: []string{"annotation syncgate.io/renderer is directory, and Flux builds with kustomize alone; Fix: change or remove the annotation of the Kustomization"}},
		{name: "lock", policy: prod, asked: map[string]string{"syncgate.io/lock": "empty"}, reason: "ImageNotPinned", want: []string{"Pod shop/web"}},
		{name: "a lock that is not there", policy: prod, asked: map[string]string{"syncgate.io/lock": "gone"}, reason: "PolicyInvalid", want: []string{`"gone" is no directory of the repository`}},

		// What would relax.
		{name: "a laxer mode, by default", policy: prod, asked: map[string]string{"syncgate.io/mode": "Warn"}, reason: "PolicyInvalid",
			want: []string{"GATE ERROR [PolicyInvalid] annotation of the Kustomization: ", "policy.yaml: mode.render: the mode is Enforce, and Warn would relax it (by default)", "Fix: change or remove the annotation of the Kustomization"}},
		{name: "a laxer mode, by a rule", policy: rule, asked: map[string]string{"syncgate.io/mode": "Warn"}, reason: "PolicyInvalid",
			want: []string{"policy.yaml line 7: apps[0].mode.render: the mode is Enforce, and Warn would relax it"}},
		{name: "an environment for others", policy: two, before: map[string]string{"syncgate.io/environment": "prod"}, asked: map[string]string{"syncgate.io/environment": "lab"}, reason: "PolicyInvalid",
			want: []string{`policy.yaml line 3: environments: environment "lab" is not one that policy allows for application "shop_shop"`}},
		{name: "a category less, by default", policy: prod, asked: map[string]string{"syncgate.io/categories": "-image"}, reason: "PolicyInvalid",
			want: []string{"policy.yaml: categories: category image must be signed, and leaving it out would relax that (by default)"}},
		{name: "a category less, by a rule", policy: rule, asked: map[string]string{"syncgate.io/categories": "service,-rbac"}, reason: "PolicyInvalid",
			want: []string{"policy.yaml line 8: apps[0].categories[0]: category rbac must be signed"}},
		{name: "a lock that leads out", policy: prod, asked: map[string]string{"syncgate.io/lock": "../../etc"}, reason: "PolicyInvalid", want: []string{`annotation syncgate.io/lock: got "../../etc"`}},
		{name: "one that nobody knows", policy: prod, asked: map[string]string{"syncgate.io/skip": "true"}, reason: "PolicyInvalid", want: []string{`annotation "syncgate.io/skip" is none of syncgate.io/categories, syncgate.io/environment, syncgate.io/lock, syncgate.io/mode, syncgate.io/path, syncgate.io/receipt, syncgate.io/renderer, syncgate.io/source`}},
		{name: "one in another case", policy: prod, asked: map[string]string{"syncgate.io/Mode": "Enforce"}, reason: "PolicyInvalid", want: []string{`annotation "syncgate.io/Mode" is none of`}},
	} {
		for _, mode := range modes {
			t.Run(fmt.Sprintf("%s in %s mode", c.name, mode), func(t *testing.T) {
				w := newWorld(t, mode)
				w.annotate(c.before)
				if c.policy != prod {
					w.policyIs(c.policy)
				}
				w.write("1", map[string]string{"empty/keep": "", "app/service.yaml": `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop` + receiptOf(mode) + `}, spec: {selector: {app: web}, ports: [{port: 80}]}}` + "\n"})
				w.sign()
				if c.unsigned {
					w.write("2", nil)
				}
				w.push("main@sha1:1")
				w.reconcile()
				w.is(metav1.ConditionTrue, map[bool]string{true: "Warned", false: "Approved"}[c.unsigned])
				content := w.handedOver()
				w.said()

				w.annotate(c.asked)
				w.reconcile()
				if c.reason == "" {
					w.is(metav1.ConditionTrue, w.condition().Reason)
					if w.handedOver() != content {
						t.Errorf("%q was handed over, %q before", w.handedOver(), content)
					}
					return
				}
				w.is(metav1.ConditionFalse, c.reason, c.want...)
				if got := strings.Join(w.said(), ", "); got != "Warning "+c.reason {
					t.Errorf("events: got %s, want Warning %s", got, c.reason)
				}
				want := "" // the ConfigMap goes; what was approved last stays published
				if mode == application.Artifact {
					want = content
				}
				if got := w.handedOver(); got != want {
					t.Errorf("after the annotation: %q is handed over, want %q", got, want)
				}

				undo := map[string]string{}
				for key := range c.asked {
					undo[key] = c.before[key]
				}
				w.annotate(undo)
				w.reconcile()
				w.is(metav1.ConditionTrue, map[bool]string{true: "Warned", false: "Approved"}[c.unsigned])
				if got := w.handedOver(); got != content {
					t.Errorf("after it was taken back: %q is handed over, want %q", got, content)
				}
			})
		}
	}
}

// receiptOf is the placeholder for receipts of the Service.
func receiptOf(mode application.Mode) string {
	if mode != application.PostBuild {
		return ""
	}
	return `, annotations: {syncgate.io/receipt: "${syncgate_receipt_service}"}`
}

// handedOver names what Flux is given: the latch of the ConfigMap, or the
// revision of the ExternalArtifact.
func (w *world) handedOver() string {
	w.t.Helper()
	if w.mode == application.PostBuild {
		return fmt.Sprint(w.values()["syncgate_latch"])
	}
	if ea := w.published(); ea != nil && ea.Status.Artifact != nil {
		return ea.Status.Artifact.Revision
	}
	return ""
}
