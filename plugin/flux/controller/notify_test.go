package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/runtime/events"
	"github.com/go-logr/logr"

	"github.com/syncgate/syncgate/plugin/application"
)

// TestNoVerdictWaitsForNotifications: with a notification-controller that does
// not answer, events are recorded all the same, and once it does it is told of
// them in their order, the oldest left out where there are too many.
func TestNoVerdictWaitsForNotifications(t *testing.T) {
	asked, answer, got := make(chan struct{}, 100), make(chan struct{}), make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-answer
		var e struct{ Message string }
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Error(err)
		}
		got <- e.Message
	}))
	defer server.Close()
	scheme, err := Scheme()
	must(t, err)
	out, err := events.NewRecorder(logr.FromSlogHandler(slog.DiscardHandler), server.URL, fieldOwner, events.WithScheme(scheme))
	must(t, err)
	kube := events.NewFakeRecorder(100, false)
	n := &notifier{kube: kube, out: out, queue: make(chan notice, 3), log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- n.Start(ctx) }()

	say := func(text string) {
		n.AnnotatedEventf(kustomizationOf(t, application.Artifact, ""), nil, nil, "Normal", "Approved", "Approve", "%s", text)
	}
	say("first 100%")
	<-asked // it hangs from here on
	for i := range 10 {
		say(fmt.Sprint(i))
	}
	if n := len(kube.Events); n != 11 {
		t.Errorf("%d events recorded, want 11", n)
	}
	close(answer)
	var all []string
	for range 4 {
		all = append(all, <-got)
	}
	if want := []string{"first 100%", "7", "8", "9"}; !slices.Equal(all, want) {
		t.Errorf("notification-controller is told %q, want %q", all, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
