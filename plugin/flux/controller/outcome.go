package controller

import (
	"errors"
	"fmt"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/gate"
)

// outcome is what became of a Kustomization at one revision. The zero value
// refuses.
type outcome struct {
	approved bool
	reason   string // of the condition, the event and the metric
	sentence string // one line

	values    map[string]string // postBuild mode: for the ConfigMap
	manifests []byte            // artifact mode: what is published
	content   string            // SHA-256 of what was approved, 64 hex digits

	revision string // of the source, as it is now
	origin   string // the revision that a person knows
	digest   string // of the source's tarball

	// again says that this is no verdict: the source could not be had, and asking
	// again may help.
	again bool
}

// Reasons beside those of package gate.
const (
	approvedReason = "Approved"
	warnedReason   = "Warned"         // policy only warns; offReason: an off-switch lets it pass
	notReadyReason = "SourceNotReady" // nothing to judge yet
	fetchReason    = "FetchFailed"
)

// refused is the outcome of an error.
func refused(err error) outcome {
	var r *app.Refusal
	if !errors.As(err, &r) {
		r = app.Refuse(gate.RenderFailed, "%v", err)
	}
	return outcome{reason: string(r.Sentence.Reason()), sentence: r.Error()}
}

// unavailable is the outcome of what may pass if it is tried again.
func unavailable(reason string, err error) outcome {
	return outcome{reason: reason, sentence: gate.ASCII(fmt.Sprintf("nothing is approved now: %v", err)), again: true}
}
