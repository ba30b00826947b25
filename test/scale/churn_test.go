// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// churnRate is the number of pod events per second. An event is the creation, readiness or deletion
// of a pod.
const churnRate = 500

// put writes the numbered pods after applying `change`, and adds the requests of new pods to
// r.requested.
func (r *run) put(t *testing.T, numbers []int, change func(*corev1.Pod)) {
	t.Helper()
	var pending []seed.Operation
	for _, i := range numbers {
		pod := seed.PodOf(i, r.nodes, r.report.start)
		if change != nil {
			change(pod)
		}
		value, err := seed.Encode(pod, corev1.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, seed.Operation{Key: seed.PodKey(pod), Value: value})
		if !r.there[i] {
			r.there[i] = true
			r.requested += seed.RequestOf(i)
		}
	}
	r.writeEach(t, pending)
}

// drop deletes the numbered pods, and subtracts their requests from r.requested.
func (r *run) drop(t *testing.T, numbers []int) {
	t.Helper()
	var pending []seed.Operation
	for _, i := range numbers {
		pending = append(pending, seed.Operation{Key: seed.PodKey(seed.PodOf(i, r.nodes, r.report.start))})
		delete(r.there, i)
		r.requested -= seed.RequestOf(i)
	}
	r.writeEach(t, pending)
}

// writeEach writes each operation in its own revision of etcd, as the API server does. If several
// operations shared a revision, a watch that resumes from it would miss some of them.
func (r *run) writeEach(t *testing.T, operations []seed.Operation) {
	t.Helper()
	forEach(t, 8, len(operations), func(i int) error { return r.etcd.Write(operations[i : i+1]) })
}

// addPod adds one pod without an owner, so that no controller counts it.
func (r *run) addPod(t *testing.T) {
	t.Helper()
	r.put(t, []int{r.pods + len(r.there)}, orphan)
}

func orphan(pod *corev1.Pod) { pod.OwnerReferences = nil }

// podChurn continuously creates pods, makes them ready and deletes them, and measures the manager
// meanwhile.
func (r *run) podChurn(t *testing.T, files map[string][]byte) {
	t.Helper()
	r.awaitIdle(t)
	const ticks = 10 // per second
	const each = churnRate / ticks / 3
	generations := int(r.churn.Seconds()) * ticks
	batch := func(generation int) (numbers []int) {
		for i := range each {
			numbers = append(numbers, 2*r.pods+generation*each+i)
		}
		return numbers
	}
	notReady := func(pod *corev1.Pod) {
		orphan(pod)
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
				c.Status = corev1.ConditionFalse
			}
		}
	}
	bare := startBaseline(t, r.Cluster, framework.Build(t, "./test/scale/baseline/watch"), "watching:")
	defer bare.kill()
	r.awaitIdle(t)
	profile := r.profileCPU(r.churn)
	audit := r.Audit(t, "tidekeeper/")
	seenBefore := bare.seen(t)
	start, before, bareBefore := time.Now(), framework.CPUTime(t, r.manager.Pid()), framework.CPUTime(t, bare.Process.Pid)
	// Both processes see the same events at the same time, in each part of the churn. Parts of few
	// seconds would be too short for the clock, which counts hundredths of a second.
	var ours, bares []time.Duration
	since, bareSince := before, bareBefore
	part := func() {
		now, bareNow := framework.CPUTime(t, r.manager.Pid()), framework.CPUTime(t, bare.Process.Pid)
		ours, bares = append(ours, now-since), append(bares, bareNow-bareSince)
		since, bareSince = now, bareNow
	}
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	for generation := range generations {
		<-tick.C
		r.put(t, batch(generation), notReady)
		if generation >= 5 {
			r.put(t, batch(generation-5), orphan)
		}
		if generation >= 10 {
			r.drop(t, batch(generation-10))
		}
		if r.rounds > 1 && r.churn >= 20*time.Second && (generation+1)%(generations/r.rounds) == 0 {
			part()
		}
	}
	took := time.Since(start)
	events := float64(each * (3*generations - 15))
	// Read the baseline's CPU time only once it has seen the last events.
	framework.EventuallyWithin(t, r.patience, "the bare watch has seen all events", func() error {
		if seen := bare.seen(t) - seenBefore; seen < int(events) {
			return fmt.Errorf("it has seen %d of %.0f", seen, events)
		}
		return nil
	})
	used := (framework.CPUTime(t, r.manager.Pid()) - before).Seconds() / took.Seconds()
	limit := (framework.CPUTime(t, bare.Process.Pid) - bareBefore).Seconds() / took.Seconds()
	var status float64
	for _, request := range audit.Requests(t) {
		switch {
		case request.Resource == "nodepools" && request.Subresource == "status":
			status++
		case request.Verb != "watch":
			t.Errorf("request of the manager during the churn: %s", request)
		}
	}
	files[r.report.Scale+"-cpu.pprof"] = <-profile

	for generation := max(0, generations-10); generation < generations; generation++ {
		r.drop(t, batch(generation))
	}
	r.awaitLevel(t)
	rate := events / took.Seconds()
	r.report.add(figure{
		Key: "churn-cpu", What: fmt.Sprintf("%.0f pod events a second: CPU", rate), Value: 100 * used, Unit: "% of a core",
		Limit: 100 * limit, LimitIs: "a bare watch of the pods that keeps nothing, at the same time",
		Within: 0.85, Pairs: pairsOf(ours, bares),
	})
	r.report.add(figure{
		Key: "churn-cpu-event", What: "… for each event", Value: 1e6 * used / rate, Unit: "µs",
		Limit: 1e6 * limit / rate, LimitIs: "that watch",
		// 100 microseconds per event are 5 % of a core at 500 events per second.
		Most: new(100.0),
	})
	r.report.add(figure{
		Key: "churn-status", What: "… writes of the pool's status", Value: status,
		Limit: 1 + math.Ceil(took.Seconds()/5), LimitIs: "one, and one every 5 s", Within: 1,
	})
}
