package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/syncgate/syncgate/plugin/gate"
	"github.com/syncgate/syncgate/plugin/render"
)

// TestNoRefusalHoldsAWholeReceipt: a renderer's words may quote an object's
// annotations.
func TestNoRefusalHoldsAWholeReceipt(t *testing.T) {
	text := "object has map[syncgate.io/receipt:eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0.eyJhIjoxfQ.c2lnbmF0dXJl other:x]"
	for name, err := range map[string]error{
		"an error":             refuse(gate.RenderFailed, "reading", errors.New(text), ""),
		"one of a render":      unrendered(&render.Error{Err: errors.New(text)}),
		"one of something new": unrendered(errors.New(text)),
	} {
		if got := err.Error(); strings.Contains(got, "eyJ") || !strings.Contains(got, "syncgate.io/receipt:(a receipt) other:x") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestTheNextStepOfARenderIsThatOfItsRefusal(t *testing.T) {
	r := unrendered(&render.Error{Renderer: "flux", Fix: "do this", Err: errors.New("broken")})
	if got, want := r.Error(), "RENDER FAILED [RenderFailed] flux: broken; Fix: do this"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
