package argocd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"github.com/syncgate/syncgate/plugin/app"
	"github.com/syncgate/syncgate/plugin/argocd/internal/slots"
	"github.com/syncgate/syncgate/plugin/gate"
)

// DefaultParallel is how many renders work at a time in one sidecar. Argo CD
// starts as many as it has applications to refresh, and each takes tens of
// megabytes of the container's memory.
const DefaultParallel = 4

// slot waits for a place among the renders of the sidecar, and has a folder for
// this one alone. waiting is true until it has come, for whoever gives up first.
func (r Request) slot(ctx context.Context, waiting *atomic.Bool) (slots.Slot, error) {
	n := DefaultParallel
	if s := r.Getenv("SYNCGATE_PARALLEL"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < 1 || n > slots.Most {
			return slots.Slot{}, app.Refuse(gate.PolicyInvalid, "SYNCGATE_PARALLEL is %.40q: want a number from 1 to %d", s, slots.Most)
		}
	}
	// Of this user: on a machine with several, each has slots of his own.
	dir := cmp.Or(r.Getenv("SYNCGATE_SLOTS"), filepath.Join(os.TempDir(), fmt.Sprintf("syncgate-%d", os.Geteuid())))
	waiting.Store(true)
	s, err := slots.Take(ctx, dir, n)
	switch {
	case err == nil:
		waiting.Store(false)
		return s, nil
	case ctx.Err() != nil:
		return s, busy()
	}
	return s, app.Refuse(gate.PolicyInvalid, "SYNCGATE_SLOTS: %v", err)
}

// busy refuses for now an application whose turn did not come in time. It does
// not say how many there were, which would be another message each time.
func busy() *app.Refusal {
	r := app.Refuse(gate.GateBusy, "too many applications are rendered at once, and this one's turn did not come in time")
	r.Sentence.Fix = "nothing, it is tried again; if it happens often, raise SYNCGATE_PARALLEL and the sidecar's memory"
	return r
}
