package process

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lease that answers err.
type lock struct {
	resourcelock.Interface
	err error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestALeaseIsHeldFromItsRenewalOn(t *testing.T) {
	mine, given := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	for _, c := range []struct {
		name string
		do   func(*lease, *lock) error
		held bool
		err  bool
	}{
		{"at first", func(*lease, *lock) error { return nil }, false, false},
		{"taken", func(l *lease, _ *lock) error { return l.Create(t.Context(), mine) }, true, false},
		{"renewed", func(l *lease, _ *lock) error { return l.Update(t.Context(), mine) }, true, false},
		{"not to be had", func(l *lease, o *lock) error { o.err = errors.New("conflict"); return l.Create(t.Context(), mine) }, false, true},
		{"not renewed, a moment ago", func(l *lease, o *lock) error {
			must(t, l.Update(t.Context(), mine))
			o.err = errors.New("conflict")
			return l.Update(t.Context(), mine)
		}, true, true},
		{"not renewed for long", func(l *lease, _ *lock) error {
			must(t, l.Update(t.Context(), mine))
			long := time.Now().Add(-writable)
			l.renewed.Store(&long)
			return nil
		}, false, false},
		{"given back", func(l *lease, _ *lock) error {
			must(t, l.Update(t.Context(), mine))
			return l.Update(t.Context(), given)
		}, false, false},
		{"given back, to nobody who answers", func(l *lease, o *lock) error {
			must(t, l.Update(t.Context(), mine))
			o.err = errors.New("conflict")
			return l.Update(t.Context(), given)
		}, false, true},
	} {
		o := &lock{}
		l := &lease{Interface: o}
		if err := c.do(l, o); (err != nil) != c.err {
			t.Errorf("%s: got error %v", c.name, err)
		}
		if l.held() != c.held {
			t.Errorf("%s: held %v, want %v", c.name, l.held(), c.held)
		}
	}
}

// TestNobodyWritesWithoutTheLease: whichever client it is of.
func TestNobodyWritesWithoutTheLease(t *testing.T) {
	l := &leases{other: true}
	w := newWorld(t, l, func(o *Options) { o.LeaderElection = true })
	w.start(t)
	address := w.GetConfig().Host + "/api/v1/namespaces/shop/configmaps"
	ask := func(method string) error {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("{}"))
		must(t, err)
		resp, err := w.GetHTTPClient().Do(r)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	all := []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	for _, method := range all {
		if err := ask(method); !errors.Is(err, errWaiting) {
			t.Errorf("%s while another one leads: got %v, want %v", method, err, errWaiting)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if err := ask(method); err != nil {
			t.Errorf("%s while another one leads: %v", method, err)
		}
	}
	l.set(false)
	<-w.Elected()
	for _, method := range all {
		if err := ask(method); err != nil {
			t.Errorf("%s while it leads: %v", method, err)
		}
	}
}

func TestWithoutAnElectionEverybodyWrites(t *testing.T) {
	w := newWorld(t, &leases{}, func(*Options) {})
	resp, err := w.GetHTTPClient().Post(w.GetConfig().Host+"/api/v1/namespaces/shop/configmaps", "application/json", strings.NewReader("{}"))
	must(t, err)
	must(t, resp.Body.Close())
}
