// Package parallel runs independent pieces of work on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each calls work with 0 to n-1, each once, on as many goroutines as there are
// processors, and returns when all calls have. A panic in work is raised again
// in the caller.
func Each(n int, work func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			work(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	var once sync.Once
	var raised any
	for range workers {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { raised = p })
					next.Store(int64(n)) // the others need not go on
				}
			}()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				work(i)
			}
		})
	}
	wg.Wait()
	if raised != nil {
		panic(raised)
	}
}
