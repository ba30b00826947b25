// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package wakeup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"tidekeeper.dev/tidekeeper/internal/test/waitfor"
)

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-06-10T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

func TestDue(t *testing.T) {
	c := clocktesting.NewFakeClock(at("03:00:00"))
	a := New[types.NamespacedName](c)
	a.Set(key("a", "soon"), at("03:00:10"))
	a.Set(key("a", "later"), at("03:01:00"))
	a.Set(key("a", "off"), at("03:00:05"))
	a.Set(key("a", "off"), time.Time{})
	a.Set(key("a", "moved"), at("03:00:01"))
	a.Set(key("a", "moved"), at("03:02:00"))
	expect := func(wait time.Duration, want ...types.NamespacedName) {
		t.Helper()
		keys, w := a.due()
		if diff := cmp.Diff(want, keys); diff != "" || w != wait {
			t.Errorf("wait %s, want %s; due (-want +got):\n%s", w, wait, diff)
		}
	}
	expect(10 * time.Second)
	c.SetTime(at("03:00:10"))
	expect(50*time.Second, key("a", "soon"))
	// The clock jumps forward, as when a suspended machine resumes.
	c.SetTime(at("05:00:00"))
	expect(0, key("a", "later"), key("a", "moved"))
	expect(0)
	// The clock is set back, first by less than setBack, then by more.
	a.Set(key("a", "next"), at("06:00:00"))
	c.SetTime(at("04:59:00"))
	expect(61 * time.Minute)
	c.SetTime(at("04:00:00"))
	expect(0, key("a", "next"))
	expect(0)
}

// TestOrder checks that, after any sequence of calls of Set, due returns exactly the requests that
// are due, in the order of their times.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := clocktesting.NewFakeClock(at("03:00:00"))
		a := New[types.NamespacedName](c)
		set := map[types.NamespacedName]time.Time{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"})
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, when := key("n", names.Draw(t, "name")), c.Now().Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "in"))*time.Second)
				a.Set(k, when)
				set[k] = when
			},
			"turn off": func(t *rapid.T) {
				k := key("n", names.Draw(t, "name"))
				a.Set(k, time.Time{})
				delete(set, k)
			},
			"wait": func(t *rapid.T) {
				c.Step(time.Duration(rapid.IntRange(0, 30).Draw(t, "for")) * time.Second)
				keys, _ := a.due()
				last := time.Time{}
				for _, k := range keys {
					when, known := set[k]
					if !known || when.After(c.Now()) || when.Before(last) {
						t.Fatalf("%s comes at %s, set for %s (known: %v)", k, c.Now(), when, known)
					}
					last = when
					delete(set, k)
				}
				for k, when := range set {
					if !when.After(c.Now()) {
						t.Fatalf("%s does not come at %s, set for %s", k, c.Now(), when)
					}
				}
			},
		})
	})
}

// TestQueues checks that the loop queues a key at its time, even if an earlier time is set while
// the loop waits for a later key.
func TestQueues(t *testing.T) {
	c := clocktesting.NewFakeClock(at("03:00:00"))
	a := New[types.NamespacedName](c)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	defer queue.ShutDown()
	a.Set(key("n", "late"), at("04:00:00"))
	if err := a.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	a.Set(key("n", "early"), at("03:00:00"))
	if got, _ := queue.Get(); got != key("n", "early") {
		t.Errorf("queued %s, want early", got)
	}
	waitfor.Nil(t, "the loop waits for the clock", func() error {
		if !c.HasWaiters() {
			return errors.New("it does not")
		}
		return nil
	})
	c.SetTime(at("04:00:00"))
	if got, _ := queue.Get(); got != key("n", "late") {
		t.Errorf("queued %s, want late", got)
	}
}

// clockwork simulates many schedules that wait for their next scheduled times (ticks).
type clockwork struct {
	clock   *clocktesting.FakeClock
	wakeups *Wakeups[types.NamespacedName]
	every   time.Duration
}

func newClockwork(schedules int) *clockwork {
	w := &clockwork{clock: clocktesting.NewFakeClock(at("03:00:00")), every: time.Duration(schedules) * time.Second}
	w.wakeups = New[types.NamespacedName](w.clock)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(schedules) {
		w.wakeups.Set(key("shop", fmt.Sprint("service-", i)), w.clock.Now().Add(time.Duration(i+1)*time.Second))
	}
	return w
}

// tick advances the clock by a second, and sets the next scheduled time of each schedule that is
// due. It returns the number of due schedules.
func (w *clockwork) tick() int {
	w.clock.Step(time.Second)
	keys, _ := w.wakeups.due()
	for _, key := range keys {
		w.wakeups.Set(key, w.clock.Now().Add(w.every))
	}
	return len(keys)
}

// TestClockwork checks that many schedules with different times become due one after the other.
func TestClockwork(t *testing.T) {
	w := newClockwork(100)
	for i := range 250 {
		if due := w.tick(); due != 1 {
			t.Fatalf("%d are due at tick %d, want 1", due, i)
		}
	}
}

// BenchmarkTick measures the processing of one due schedule among n schedules, which should cost
// O(log n).
func BenchmarkTick(b *testing.B) {
	for _, schedules := range []int{200, 2_000, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("schedules=%d", schedules), func(b *testing.B) {
			w := newClockwork(schedules)
			b.ReportAllocs()
			for b.Loop() {
				w.tick()
			}
		})
	}
}
