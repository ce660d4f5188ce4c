package controller

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// pacer holds the refreshes that are due, each at its time, and lets them go at
// a limited rate: two hundred hard refreshes at once are two hundred renders.
type pacer struct {
	limit *rate.Limiter

	mu       sync.Mutex
	due      map[string]refresh // by the application's key
	finished map[string]stamp   // what was asked for since begin
	change   chan struct{}      // of one element: look again
}

// refresh is one that is due.
type refresh struct {
	at    time.Time
	want  stamp // what will be judged by then
	cause string
}

func newPacer(perSecond float64, burst int) *pacer {
	return &pacer{limit: rate.NewLimiter(rate.Limit(perSecond), burst), due: map[string]refresh{}, finished: map[string]stamp{}, change: make(chan struct{}, 1)}
}

// begin is said before it is read what was refreshed: what is asked for from now
// on may not be in there, and is not to be put anew.
func (p *pacer) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.finished)
}

// put makes a refresh due. One that is there for the same reason keeps its time,
// one for another is put off: what it was to see has changed again.
func (p *pacer) put(key string, r refresh) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, there := p.due[key]; there && old.want == r.want {
		return false
	}
	if done, there := p.finished[key]; there && done == r.want {
		return false
	}
	p.due[key] = r
	select {
	case p.change <- struct{}{}:
	default:
	}
	return true
}

// drop takes out what is not due any more.
func (p *pacer) drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.due, key)
}

func (p *pacer) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.due)
}

// next returns the refresh that is due first, and how long until then.
func (p *pacer) next(now time.Time) (key string, r refresh, wait time.Duration, any bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k, x := range p.due {
		if !any || x.at.Before(r.at) || x.at.Equal(r.at) && k < key {
			key, r, any = k, x, true
		}
	}
	return key, r, max(0, r.at.Sub(now)), any
}

// done takes a refresh out unless it was put anew meanwhile.
func (p *pacer) done(key string, r refresh) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished[key] = r.want
	if p.due[key] == r {
		delete(p.due, key)
	}
}

// retry is how long a refresh that failed waits.
const retry = 10 * time.Second

// run calls do for each refresh at its time until ctx ends. One that fails is
// tried again.
func (p *pacer) run(ctx context.Context, do func(context.Context, string, refresh) error) {
	for ctx.Err() == nil {
		key, r, wait, any := p.next(time.Now())
		if !any {
			wait = time.Hour
		}
		if !any || wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-p.change:
			case <-time.After(wait):
			}
			continue
		}
		if err := p.limit.Wait(ctx); err != nil {
			return
		}
		if err := do(ctx, key, r); err != nil {
			p.later(key, r)
			continue
		}
		p.done(key, r)
	}
}

func (p *pacer) later(key string, r refresh) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due[key] == r {
		r.at = time.Now().Add(retry)
		p.due[key] = r
	}
}

// jitter spreads what several controllers of several clusters do at the same
// moment to one repo-server: up to a tenth of d more.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)/10)
}
