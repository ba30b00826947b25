// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"sync"
	"testing"
)

// forEach calls `do` for each number from 0 to count-1, in the given number of goroutines.
func forEach(t *testing.T, workers, count int, do func(i int) error) {
	t.Helper()
	queue := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range queue {
				if err := do(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range count {
		queue <- i
	}
	close(queue)
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
