package parallel

import (
	"sync/atomic"
	"testing"
)

func TestEachCallsEveryIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		counts := make([]atomic.Int64, n)
		Each(n, func(i int) { counts[i].Add(1) })
		for i := range counts {
			if got := counts[i].Load(); got != 1 {
				t.Errorf("of %d: index %d was called %d times", n, i, got)
			}
		}
	}
}

func TestEachRaisesAPanicInItsCaller(t *testing.T) {
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("recovered %v", p)
		}
	}()
	Each(100, func(i int) {
		if i == 50 {
			panic("boom")
		}
	})
	t.Error("no panic")
}
