package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/admission"
)

// FuzzHandler: whatever the body, the answer is an HTTP error or a well-formed
// review; and nobody whom the policy does not exempt gets anything gated in.
func FuzzHandler(f *testing.F) {
	signed := sign(f, tree(f, deployment(pinned, "")), "release", nil)
	for _, q := range []request{
		ask("CREATE", person, signed, nil), ask("UPDATE", person, tree(f, deployment(other, "")), signed), ask("DELETE", person, nil, signed),
		ask("CREATE", person, tree(f, object("v1", "Pod", "p", pinned, "hostPID: true, ")), nil),
		ask("CREATE", person, tree(f, object("batch/v1", "CronJob", "c", pinned, "")), nil),
		ask("UPDATE", person, tree(f, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {type: NodePort}}`), tree(f, `{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {}}`)),
	} {
		f.Add(body(f, q))
	}
	l, err := NewLoader(Source{Policy: policyDir(f, minimal)})
	if err != nil {
		f.Fatal(err)
	}
	h := NewHandler(l, NewMetrics(), slog.New(slog.DiscardHandler))
	h.now = at(now)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := post(h, admission.ValidatePath, "application/json", bytes.NewReader(data))
		if w.Code != http.StatusOK {
			return
		}
		var out review
		d := json.NewDecoder(w.Body)
		d.DisallowUnknownFields()
		if err := d.Decode(&out); err != nil {
			t.Fatalf("the answer is no review: %v", err)
		}
		if out.Response.UID == "" || out.APIVersion != reviewVersion || out.Kind != reviewKind {
			t.Errorf("answer %+v", out)
		}
		if !out.Response.Allowed {
			if s := out.Response.Status; s == nil || s.Code != http.StatusForbidden ||
				!strings.HasPrefix(s.Message, "SYNC REFUSED [") && !strings.HasPrefix(s.Message, "GATE ERROR [") {
				t.Errorf("refusal without a reason: %+v", s)
			}
			return
		}
		q, err := parseReview(data)
		if err != nil {
			t.Fatalf("allowed what cannot be parsed: %v", err)
		}
		// What is allowed on its receipts must be what was signed.
		if out.Response.AuditAnnotations["how"] == string(ByReceipt) {
			p, err := l.State().policy.Projector().Project(q.Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, image := range p.Images() {
				if image.Value != pinned {
					t.Errorf("an image that nobody signed is allowed: %v", image.Value)
				}
			}
		}
	})
}
