// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var tick = time.Date(2026, time.June, 10, 3, 0, 0, 0, time.UTC)

// podsOf returns pods that are described by strings such as "web-0", "web-1:new", "web-2:broken"
// and "web-3:new,broken". Old pods are ordered from oldest to newest.
func podsOf(words ...string) (pods []Pod) {
	for i, word := range words {
		name, marks, _ := strings.Cut(word, ":")
		pod := Pod{Name: name, UID: types.UID(name), Created: tick.Add(time.Duration(i-100) * time.Minute), Ready: !strings.Contains(marks, "broken")}
		if strings.Contains(marks, "new") {
			pod.Created = tick
		}
		pods = append(pods, pod)
	}
	return pods
}

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pods    []Pod
		desired int32
		most    int32
		ordered bool

		next    []string
		old     int
		unready int32
		done    bool
	}{
		{name: "the oldest goes first", pods: podsOf("c", "a", "b"), desired: 3, most: 1, next: []string{"c"}, old: 3},
		{name: "as many as may be unavailable", pods: podsOf("c", "a", "b"), desired: 3, most: 2, next: []string{"c", "a"}, old: 3},
		{name: "the highest ordinal goes first", pods: podsOf("db-2", "db-10", "db-9"), desired: 3, most: 1, ordered: true, next: []string{"db-10"}, old: 3},
		{name: "names without ordinals", pods: podsOf("db", "db-x"), desired: 2, most: 1, ordered: true, next: []string{"db"}, old: 2},
		{name: "the successor is missing", pods: podsOf("a", "b"), desired: 3, most: 1, old: 2, unready: 1},
		{name: "the successor is not ready", pods: podsOf("a", "b", "c:new,broken"), desired: 3, most: 1, old: 2, unready: 1},
		{name: "the successor is ready", pods: podsOf("a", "b", "c:new"), desired: 3, most: 1, next: []string{"a"}, old: 2},
		{name: "one more may be unavailable", pods: podsOf("a", "b", "c:new,broken"), desired: 3, most: 2, next: []string{"a"}, old: 2, unready: 1},
		{name: "a broken one goes first, and nothing is lost", pods: podsOf("a", "b:broken", "c"), desired: 3, most: 1, next: []string{"b"}, old: 3, unready: 1},
		{name: "of broken ones as many as may be unavailable", pods: podsOf("a:broken", "b:broken", "c:broken"), desired: 3, most: 2, next: []string{"a", "b"}, old: 3, unready: 3},
		{name: "broken ones wait for the successor", pods: podsOf("a:broken", "b:new,broken"), desired: 2, most: 1, old: 1, unready: 2},
		{name: "more than there should be", pods: podsOf("a", "b", "c"), desired: 2, most: 1, next: []string{"a", "b"}, old: 3},
		{name: "all are new", pods: podsOf("a:new", "b:new"), desired: 2, most: 1, done: true},
		{name: "all are new, one is not ready", pods: podsOf("a:new", "b:new,broken"), desired: 2, most: 1, unready: 1},
		{name: "scaled to none", desired: 0, most: 1, done: true},
		{name: "scaled up", pods: podsOf("a:new"), desired: 2, most: 1, unready: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Decide(Input{Pods: tt.pods, CreatedBefore: tick, Desired: tt.desired, MaxUnavailable: tt.most, Ordered: tt.ordered})
			var next []string
			for _, pod := range p.Next {
				next = append(next, pod.Name)
			}
			if diff := cmp.Diff([]any{tt.next, tt.old, tt.unready, tt.done}, []any{next, p.Old, p.Unready, p.Done}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEvictions simulates a workload that is scaled and whose pods are recreated, become ready and
// break, while the API server's clock differs from the manager's clock, and managers are replaced.
// No pod may be evicted twice. No pod that was created since the restart started may be evicted. No
// ready pod may be evicted if too few ready pods would remain. The restart must complete.
func TestEvictions(t *testing.T) {
	for seed := range uint64(2000) {
		w := newWorld(seed)
		for range 200 {
			w.step()
			if w.failed != "" {
				t.Fatalf("seed %d: %s", seed, w.failed)
			}
		}
		for range 400 {
			w.settle()
		}
		if p := Decide(w.input()); !p.Done || w.failed != "" {
			t.Fatalf("seed %d: %s; it ends with %+v", seed, w.failed, p)
		}
	}
}

type world struct {
	random  *rand.Rand
	now     time.Time
	skew    time.Duration
	pods    []Pod
	created int
	desired int32
	most    int32
	before  time.Time
	// initial is the set of pods that existed when the restart started.
	initial map[types.UID]bool
	failed  string
}

func newWorld(seed uint64) *world {
	random := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		random: random, now: tick.Add(-time.Hour), initial: map[types.UID]bool{},
		skew:    time.Duration(random.IntN(1200)-600) * time.Second,
		desired: int32(1 + random.IntN(8)), most: int32(1 + random.IntN(4)),
	}
	for len(w.pods) < int(w.desired) {
		w.now = w.now.Add(time.Duration(random.IntN(300)) * time.Second)
		w.create()
	}
	if w.now.Before(tick) {
		w.now = tick
	}
	w.now = w.now.Add(time.Second)
	w.before = CreatedBefore(tick, w.pods)
	for _, pod := range w.pods {
		w.initial[pod.UID] = true
	}
	return w
}

func (w *world) create() {
	w.created++
	name := fmt.Sprintf("web-%d", w.created)
	w.pods = append(w.pods, Pod{Name: name, UID: types.UID(name), Created: w.now.Add(w.skew).Truncate(time.Second)})
}

func (w *world) input() Input {
	return Input{Pods: slices.Clone(w.pods), CreatedBefore: w.before, Desired: w.desired, MaxUnavailable: w.most}
}

// step simulates one random event.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(1+w.random.IntN(20)) * time.Second)
	i := w.random.IntN(len(w.pods) + 1)
	switch w.random.IntN(6) {
	case 0:
		if i < len(w.pods) {
			w.pods[i].Ready = !w.pods[i].Ready
		}
	case 1:
		w.desired = int32(w.random.IntN(9))
	case 2, 3:
		w.control()
	default:
		w.evict()
	}
}

// settle simulates one step without failures.
func (w *world) settle() {
	w.now = w.now.Add(time.Second)
	w.control()
	for i := range w.pods {
		w.pods[i].Ready = true
	}
	w.evict()
}

// control creates or deletes one pod if needed, as the workload's controller does.
func (w *world) control() {
	switch {
	case len(w.pods) < int(w.desired):
		w.create()
	case len(w.pods) > int(w.desired):
		w.pods = slices.Delete(w.pods, 0, 1)
	}
}

func (w *world) evict() {
	ready := func() (n int32) {
		for _, pod := range w.pods {
			if pod.Ready {
				n++
			}
		}
		return n
	}
	for _, next := range Decide(w.input()).Next {
		i := slices.IndexFunc(w.pods, func(pod Pod) bool { return pod.UID == next.UID })
		switch {
		case i < 0:
			w.failed = fmt.Sprintf("%s is evicted twice", next.Name)
			return
		case !w.initial[next.UID]:
			w.failed = fmt.Sprintf("%s is evicted, which was created since", next.Name)
		case next.Ready && ready()-1 < w.desired-w.most:
			w.failed = fmt.Sprintf("%s is evicted, so that only %d of %d pods are ready", next.Name, ready()-1, w.desired)
		}
		w.pods = slices.Delete(w.pods, i, i+1)
	}
}

func TestCreatedBefore(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods []Pod
		want time.Time
	}{
		{"no pods", nil, time.Unix(1, 0)},
		{"no old pods", podsOf("b:new"), time.Unix(1, 0)},
		{"the youngest of the old ones", podsOf("a", "b"), tick.Add(-99*time.Minute + time.Second)},
		{"younger ones do not count", podsOf("a", "b:new"), tick.Add(-100*time.Minute + time.Second)},
		{"not after the tick", []Pod{{Created: tick.Add(-500 * time.Millisecond)}}, tick},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CreatedBefore(tick, tt.pods); !got.Equal(tt.want) {
				t.Errorf("it is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		value   string
		desired int32
		want    int32
	}{
		{"", 10, 1}, {"3", 10, 3}, {"25%", 10, 2}, {"25%", 3, 1}, {"100%", 3, 3}, {"50%", 0, 1}, {"0", 10, 1}, {"many", 10, 1},
	} {
		var value *intstr.IntOrString
		if tt.value != "" {
			value = new(intstr.Parse(tt.value))
		}
		if got := Limit(value, tt.desired); got != tt.want {
			t.Errorf("%q of %d is %d, want %d", tt.value, tt.desired, got, tt.want)
		}
	}
}
