package webhook

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/admission"
	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/receipt"
)

// fullDisk is where nothing more can be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAFullDiskUnderTheLogChangesNoAnswer(t *testing.T) {
	l, err := NewLoader(Source{Policy: policyDir(t, minimal)})
	if err != nil {
		t.Fatal(err)
	}
	h := NewHandler(l, NewMetrics(), slog.New(slog.NewJSONHandler(fullDisk{}, nil)))
	h.now = at(now)
	for _, tt := range []struct {
		obj  map[string]any
		want bool
	}{{sign(t, tree(t, deployment(pinned, "")), "release", nil), true}, {tree(t, deployment(pinned, "")), false}} {
		w := post(h, admission.ValidatePath, "application/json", bytes.NewReader(body(t, ask("CREATE", person, tt.obj, nil))))
		if got := answerOf(t, w).Response.Allowed; got != tt.want {
			t.Errorf("allowed: got %t, want %t", got, tt.want)
		}
	}
}

// TestAClockThatIsWrong: receipts are judged by the clock, so that one that is
// slow makes them count longer, by as much (docs/threat-model.md). What is new
// is refused until then with a reason that says why; what does not depend on time
// does not.
func TestAClockThatIsWrong(t *testing.T) {
	const twoHours = 2 * 3600
	receiptOf := func(from, until int64) func(*receipt.Claims) {
		return func(c *receipt.Claims) { c.IssuedAt, c.Expires = from, until }
	}
	for _, tt := range []struct {
		name  string
		clock int64
		claim func(*receipt.Claims)
		code  gate.Reason
	}{
		{"fast, a receipt with days left", now + twoHours, receiptOf(now-60, now+day), ""},
		{"fast, a receipt with an hour left", now + twoHours, receiptOf(now-60, now+3600), gate.ReceiptExpired},
		{"slow, a receipt of now", now - twoHours, receiptOf(now, now+day), gate.ReceiptNotYetValid},
		{"slow, a receipt of yesterday", now - twoHours, receiptOf(now-day, now+day), ""},
		{"slow, a receipt that ended three hours ago", now - twoHours, receiptOf(now-day, now-3*3600), gate.ReceiptExpired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := sign(t, tree(t, deployment(pinned, "")), "release", tt.claim)
			if v := state(t, "").decide(ask("CREATE", person, obj, nil), tt.clock); v.Reason != tt.code || v.Allowed != (tt.code == "") {
				t.Errorf("got %t %s %q, want %s", v.Allowed, v.Reason, v.Message, tt.code)
			}
			// Not a matter of time.
			forged := sign(t, tree(t, deployment(pinned, "")), "release", tt.claim)
			forged["spec"] = tree(t, deployment(other, ""))["spec"]
			if v := state(t, "").decide(ask("CREATE", person, forged, nil), tt.clock); v.Allowed || v.Reason != gate.DigestMismatch {
				t.Errorf("forged: got %t %s", v.Allowed, v.Reason)
			}
		})
	}
}

func TestABodyOfAHundredMegabytesIsNotRead(t *testing.T) {
	h, _ := handler(t, "")
	for _, declared := range []int64{100 << 20, -1} {
		read := &counter{r: io.LimitReader(spaces{}, 100<<20)}
		r := httptest.NewRequest(http.MethodPost, admission.ValidatePath, read)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = declared
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge || strings.Contains(w.Body.String(), "allowed") {
			t.Errorf("declared %d: got %d %s, want 413", declared, w.Code, w.Body)
		}
		if read.n > 2*MaxBody {
			t.Errorf("declared %d: %d bytes were read", declared, read.n)
		}
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestOtherKindsAreJudgedByTheirContent: a configuration that somebody widened
// by hand sends kinds that the table does not have.
func TestOtherKindsAreJudgedByTheirContent(t *testing.T) {
	for _, tt := range []struct {
		name, object string
		want         How
	}{
		{"a Lease", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l, namespace: shop}, spec: {holderIdentity: x}}`, Unchanged},
		{"a custom resource with a pod spec", `{apiVersion: example.com/v1, kind: Fleet, metadata: {name: f, namespace: shop}, spec: {containers: [{name: a, image: x}]}}`, Denied},
		{"a Secret's contents", `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {password: aHVudGVyMg==}}`, Unchanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := state(t, "").decide(ask("CREATE", person, tree(t, tt.object), nil), now)
			if v.How != tt.want {
				t.Errorf("got %s %q, want %s", v.How, v.Message, tt.want)
			}
			if strings.Contains(v.Message, "hunter2") || strings.Contains(v.Message, "aHVudGVyMg") {
				t.Errorf("message %q quotes a Secret", v.Message)
			}
		})
	}
}
