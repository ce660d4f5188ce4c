package gate_test

import (
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
)

// FuzzEvaluate: no bytes that nobody signed allow a gated object, whatever
// stands beside them; and none of them takes away what a good receipt allows.
func FuzzEvaluate(f *testing.F) {
	p := deployment(f, image, `"hostPID":true,`, "")
	moved := deployment(f, other, `"hostPID":true,`, "")
	good := sign(f, "release", p, nil)
	for _, seed := range []string{"", good, good + " " + good, good[:len(good)-2] + "AA", strings.Replace(good, ".", "..", 1), "a.b.c"} {
		f.Add(seed)
	}
	r := rules(f)
	f.Fuzz(func(t *testing.T, text string) {
		junk := strings.Fields(text)
		d := gate.Evaluate(gate.Request{Rules: r, Subject: web, Object: moved, Receipts: junk, Now: now})
		if d.Allowed() {
			t.Errorf("allowed by %q", text)
		}
		if len(d.Findings) == 0 {
			t.Error("refused without a finding")
		}
		d = gate.Evaluate(gate.Request{Rules: r, Subject: web, Object: p, Receipts: append([]string{good}, junk...), Now: now})
		if !d.Allowed() {
			t.Errorf("a good receipt does not count beside %q: %+v", text, d.Findings)
		}
		s := gate.Sentence{Items: []gate.Item{{Subject: text, Reason: gate.ReceiptMissing, Text: text}}, Fix: text}.String()
		if len(s) > gate.MaxSentence || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("not one line of printable ASCII: %q", s)
		}
	})
}
