// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// evictionWorld simulates a workload whose restarts evict its pods, while managers crash between
// any two writes, evictions are rejected, responses are lost, pods break, and the API server's
// clock differs from the manager's clock.
type evictionWorld struct {
	t       *testing.T
	random  *rand.Rand
	seed    uint64
	now     time.Time
	skew    time.Duration
	sound   bool
	restart *tidekeeperv1.ScheduledRestart
	pods    []evict.Pod
	created int
	desired int32

	attempts Attempts
	sent     time.Time
	leading  time.Time
	// started is the set of pods that existed when the restart in progress started.
	started map[types.UID]bool
	records map[time.Time]int
	evicted int
}

func TestEvictionsWhereverItDies(t *testing.T) {
	evicted, succeeded := 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &evictionWorld{
			t: t, random: random, seed: seed, now: at("00:30:00"), skew: time.Duration(random.IntN(400)-200) * time.Second,
			desired: int32(1 + random.IntN(5)), records: map[time.Time]int{},
		}
		w.restart = makeInputs(byEviction).Restart
		w.restart.Spec.StartingDeadlineSeconds = int32(60 + random.IntN(1800))
		w.restart.Spec.Precondition = tidekeeperv1.PreconditionNone
		w.restart.Spec.FailureLimit, w.restart.CreationTimestamp.Time = 100, w.now
		w.restart.Status = tidekeeperv1.ScheduledRestartStatus{}
		for range 250 {
			w.step()
		}
		w.sound = true
		for range 200 {
			w.step()
		}
		if w.restart.Status.Active != nil {
			t.Fatalf("seed %d: a restart never ends: %+v", seed, w.restart.Status.Active)
		}
		for tick, n := range w.records {
			if n != 1 {
				t.Fatalf("seed %d: %d records of %s", seed, n, tick)
			}
		}
		evicted += w.evicted
		for _, r := range w.restart.Status.History {
			if r.Outcome == tidekeeperv1.OutcomeSucceeded {
				succeeded++
			}
		}
	}
	if evicted < 300 || succeeded < 150 {
		t.Errorf("only %d pods were evicted, and %d restarts have succeeded", evicted, succeeded)
	}
}

func (w *evictionWorld) goesWrong(n int) bool { return !w.sound && w.random.IntN(n) == 0 }

func (w *evictionWorld) step() {
	w.now = w.now.Add(time.Duration(1+w.random.IntN(90)) * time.Second)
	switch {
	case w.goesWrong(40):
		w.desired = int32(w.random.IntN(6))
	case w.goesWrong(30):
		w.now = w.now.Add(time.Duration(w.random.IntN(3600)) * time.Second)
	}
	for len(w.pods) < int(w.desired) {
		w.created++
		name := fmt.Sprint("web-", w.created)
		w.pods = append(w.pods, evict.Pod{Name: name, UID: types.UID(name), Created: w.now.Add(w.skew).Truncate(time.Second)})
	}
	if len(w.pods) > int(w.desired) {
		w.pods = w.pods[:w.desired]
	}
	for i := range w.pods {
		w.pods[i].Ready = !w.goesWrong(5)
	}
	w.reconcile()
}

// dies reports whether the manager crashes now. If so, another manager takes over.
func (w *evictionWorld) dies() bool {
	if !w.goesWrong(10) {
		return false
	}
	w.attempts, w.sent, w.leading = Attempts{}, time.Time{}, w.now
	return true
}

func (w *evictionWorld) reconcile() {
	ticks := makeInputs().Ticks
	in := Input{
		Restart: w.restart, Ticks: ticks, HasSlot: true, Live: true, FreezesLive: true, Attempts: w.attempts, Sent: w.sent, LeadingSince: w.leading, Now: w.now,
		Target: &workload.State{Kind: "Deployment", Name: "web", UID: "t", Pods: w.desired, Rollout: workload.Progress{Available: true}},
	}
	d := Decide(in)
	if d.Needs == NeedPods {
		in.Pods = &Pods{Active: slices.Clone(w.pods)}
		w.attempts.LookedAt = w.now
		d = Decide(in)
	}
	if d.Needs != NeedNothing {
		w.t.Fatalf("seed %d: it needs %v", w.seed, d.Needs)
	}
	if w.dies() || w.goesWrong(10) {
		return // The API server rejects the status.
	}
	was := w.restart.Status.Active
	w.restart = w.restart.DeepCopy()
	w.restart.Status = d.Status
	for _, r := range d.Records {
		w.records[r.ScheduledTime.UTC()]++
	}
	if was == nil && d.Status.Active != nil {
		w.attempts, w.sent, w.started = Attempts{}, d.Started, map[types.UID]bool{}
		for _, pod := range w.pods {
			w.started[pod.UID] = true
		}
	}
	if w.dies() {
		return
	}
	for _, pod := range d.Evict {
		if refused := w.goesWrong(3); refused {
			w.attempts = Attempts{LookedAt: w.now, Refusal: "refused", RefusedAt: w.now, RefusedSince: w.now}
			return
		}
		i := slices.IndexFunc(w.pods, func(p evict.Pod) bool { return p.UID == pod.UID })
		if i < 0 || !w.started[pod.UID] || !pod.Created.Before(d.Status.Active.ScheduledTime.Time) {
			w.t.Fatalf("seed %d: %s is evicted for %s, with %+v", w.seed, pod.Name, d.Status.Active.ScheduledTime, metav1.Time{Time: pod.Created})
		}
		w.pods = slices.Delete(w.pods, i, i+1)
		w.evicted++
		if w.dies() {
			return // The response to the eviction is lost.
		}
		w.attempts.Evicted, w.attempts.Refusal = true, ""
	}
}
