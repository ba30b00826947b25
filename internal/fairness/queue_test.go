// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func testQueue(workers int) *Queue[string] {
	return newQueue("", workers, workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour), of)
}

// TestQueue checks that the queue hands out all requests in turns and with their priority,
// including requests that were added with a delay.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(1)
		defer q.ShutDown()
		var _ priorityqueue.PriorityQueue[string] = q
		for i := range 3 {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, fmt.Sprint("a/", i))
		}
		q.Add("a/0")
		q.AddAfter("b/0", time.Minute)
		q.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: new(-100)}, "c/0")
		q.AddRateLimited("d/0")
		time.Sleep(2 * time.Minute) // sleep: uses the clock of the synctest bubble
		var got []string
		for range 6 {
			r, priority, _ := q.GetWithPriority()
			got = append(got, fmt.Sprint(r, ":", priority))
			q.Done(r)
		}
		if got, want := strings.Join(got, " "), "a/0:1 d/0:0 b/0:0 c/0:-100 a/1:1 a/2:1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if q.Len() != 0 {
			t.Errorf("%d are left", q.Len())
		}
	})
}

// TestQueueOfOneThatRuns checks that a request that is added during its processing is handed out
// again only after Done was called for it.
func TestQueueOfOneThatRuns(t *testing.T) {
	q := testQueue(2)
	defer q.ShutDown()
	q.Add("a/0")
	r, _ := q.Get()
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, r)
	if q.Len() != 0 {
		t.Error("it is handed out while a worker has it")
	}
	q.Done(r)
	if again, priority, _ := q.GetWithPriority(); again != r || priority != 1 {
		t.Errorf("%s comes with the priority %d", again, priority)
	}
}

// TestQueueWakesWorkers checks that idle workers immediately get requests of a second namespace,
// and that they get more requests of the first namespace once some of its requests are done.
func TestQueueWakesWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(4)
		release, ran := make(chan struct{}), make(chan string, 100)
		for range 4 {
			go func() {
				for {
					r, shutdown := q.Get()
					if shutdown {
						return
					}
					ran <- r
					<-release
					q.Done(r)
				}
			}()
		}
		for i := range 6 {
			q.Add(fmt.Sprint("a/", i))
		}
		expect := func(when string, want int) {
			t.Helper()
			if synctest.Wait(); len(ran) != want {
				t.Errorf("%s: %d requests have a worker, want %d", when, len(ran), want)
			}
			for len(ran) > 0 {
				<-ran
			}
		}
		expect("of one namespace", 2)
		q.Add("b/0")
		expect("of another", 1)
		release <- struct{}{}
		expect("one is done", 1)
		close(release)
		expect("all are done", 3)
		q.ShutDown()
		synctest.Wait()
		if r, shutdown := q.Get(); !shutdown {
			t.Errorf("%s is handed out after the end", r)
		}
	})
}
