package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/fluxcd/pkg/runtime/events"
	"k8s.io/apimachinery/pkg/runtime"
)

// notifier records events, and tells notification-controller of them in the
// background: where that one is away or slow, sending one takes a quarter of a
// minute, for which no verdict is to wait.
type notifier struct {
	kube  events.Recorder // of events in the cluster
	out   events.Recorder // to notification-controller
	queue chan notice
	log   *slog.Logger
}

var _ events.Recorder = (*notifier)(nil)

// notice is an event that is to be sent.
type notice struct {
	object, related            runtime.Object
	annotations                map[string]string
	kind, reason, action, text string
}

// maxNotices bounds what waits to be sent. Beyond it the oldest is left out: the
// status of a commit is what was said of it last.
const maxNotices = 1000

// Eventf implements events.Recorder.
func (n *notifier) Eventf(object, related runtime.Object, kind, reason, action, format string, args ...any) {
	n.AnnotatedEventf(object, related, nil, kind, reason, action, format, args...)
}

// AnnotatedEventf implements events.Recorder. It does not wait.
func (n *notifier) AnnotatedEventf(object, related runtime.Object, annotations map[string]string, kind, reason, action, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.kube.AnnotatedEventf(object, related, annotations, kind, reason, action, "%s", text)
	next := notice{object, related, annotations, kind, reason, action, text}
	for {
		select {
		case n.queue <- next:
			return
		default:
		}
		select {
		case old := <-n.queue:
			n.log.Error("notification-controller takes none, and one notification is left out", "reason", old.reason, "text", old.text)
		default:
		}
	}
}

// Start sends until ctx ends, one after the other: the last word of a
// Kustomization comes last.
func (n *notifier) Start(ctx context.Context) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case x := <-n.queue:
				n.out.AnnotatedEventf(x.object, x.related, x.annotations, x.kind, x.reason, x.action, "%s", x.text)
			}
		}
	}()
	<-ctx.Done() // one that is being sent is not waited for
	return nil
}
