package harness

import (
	"time"

	"github.com/alicebob/miniredis/v2"
)

// redisTick is how often and how far the clock of the redis is moved.
const redisTick = 100 * time.Millisecond

// startRedis serves a redis in this process and returns its address. Its keys
// expire only as its clock is moved, so a goroutine moves it with ours.
func (e *Env) startRedis() string {
	e.T.Helper()
	r := miniredis.NewMiniRedis()
	if err := r.StartAddr("127.0.0.1:0"); err != nil {
		e.T.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(redisTick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.FastForward(redisTick)
			case <-stop:
				return
			}
		}
	}()
	e.T.Cleanup(func() {
		close(stop)
		<-stopped
		r.Close()
	})
	return r.Addr()
}
