package webhook

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/syncgate/syncgate/plugin/admission"
)

func BenchmarkHandler(b *testing.B) {
	h, _ := handler(b, "")
	data := body(b, ask("CREATE", person, sign(b, tree(b, deployment(pinned, "hostPID: true, ")), "release", nil), nil))
	b.ReportAllocs()
	for b.Loop() {
		if w := post(h, admission.ValidatePath, "application/json", bytes.NewReader(data)); !bytes.Contains(w.Body.Bytes(), []byte(`"allowed":true`)) {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkDecodeOnly is what any handler has to do with the same review.
func BenchmarkDecodeOnly(b *testing.B) {
	data := body(b, ask("CREATE", person, sign(b, tree(b, deployment(pinned, "hostPID: true, ")), "release", nil), nil))
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			b.Fatal(err)
		}
	}
}
