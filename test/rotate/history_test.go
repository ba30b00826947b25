// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// after returns the time at a number of seconds after the begin of a history.
func after(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

// States of pods in the histories of tests.
var (
	starting = Pod{}
	ready    = Pod{Ready: true}
	leaving  = Pod{Ready: true, Deleted: true}
	gone     = Pod{Deleted: true, Gone: true}
)

// podAt returns the event that a pod of the workload "web" on the node "n1" is in a state.
func podAt(seconds float64, uid types.UID, state Pod) Event {
	state.UID, state.Workload, state.Node = uid, "web", "n1"
	return Event{At: after(seconds), Pod: &state}
}

// readinessAt returns the event that the node "n1" is, or is not, ready.
func readinessAt(seconds float64, notReady bool) Event {
	return Event{At: after(seconds), Node: &Node{Name: "n1", NotReady: notReady}}
}

// numbered gives events their revisions, in the given order.
func numbered(events ...Event) []Event {
	for i := range events {
		events[i].Revision = uint64(i + 1)
	}
	return events
}

func TestMeasure(t *testing.T) {
	for _, tt := range []struct {
		name    string
		healthy int
		events  []Event
		want    Suffered
	}{
		{"nothing happens", 2, numbered(podAt(0, "a", ready), podAt(0, "b", ready)), Suffered{}},
		{
			"the only pod is deleted, and its replacement is ready 5 s later", 0,
			numbered(podAt(0, "a", ready), podAt(1, "a", leaving), podAt(1, "b", starting), podAt(1.1, "a", gone), podAt(6, "b", ready)),
			Suffered{Down: 5 * time.Second, Outages: 1, Deleted: 1},
		},
		{
			"a rollout replaces the only pod first", 1,
			numbered(podAt(0, "a", ready), podAt(1, "b", starting), podAt(6, "b", ready), podAt(6, "a", leaving), podAt(6.1, "a", gone)),
			Suffered{Deleted: 1},
		},
		{
			"the node of the only pod is not ready for a while, and then the pod is deleted", 0,
			numbered(podAt(0, "a", ready), readinessAt(1, true), podAt(1, "a", starting), readinessAt(5, false), podAt(6, "a", starting), podAt(7, "a", ready), podAt(8, "a", leaving), podAt(9, "b", ready)),
			Suffered{Down: time.Second, Outages: 1, Deleted: 1},
		},
		{
			"a pod is deleted while its node is not ready", 0,
			numbered(podAt(0, "a", ready), readinessAt(1, true), podAt(1, "a", starting), podAt(2, "a", gone), podAt(4, "b", ready)),
			Suffered{Down: 2 * time.Second, Outages: 1, Deleted: 1},
		},
		{
			"a pod is unready on a node that was not ready before", 0,
			numbered(podAt(0, "a", ready), readinessAt(1, true), readinessAt(2, false), podAt(3, "a", starting), podAt(4, "a", ready)),
			Suffered{Down: time.Second, Outages: 1},
		},
		{
			"an eviction within the budget", 1,
			numbered(podAt(0, "a", ready), podAt(0, "b", ready), podAt(1, "a", leaving), podAt(1.1, "a", gone)),
			Suffered{Deleted: 1},
		},
		{
			"each deletion past the budget is a violation", 2,
			numbered(podAt(0, "a", ready), podAt(0, "b", ready), podAt(1, "a", leaving), podAt(2, "b", leaving), podAt(3, "c", ready)),
			Suffered{Down: time.Second, Outages: 1, Deleted: 2, Violations: 2},
		},
		{
			"a pod without a deletion time is gone at once", 1,
			numbered(podAt(0, "a", ready), podAt(1, "a", gone), podAt(3, "b", ready)),
			Suffered{Down: 2 * time.Second, Outages: 1, Deleted: 1, Violations: 1},
		},
		{
			"the deletion of a pod that is not healthy violates no budget", 2,
			numbered(podAt(0, "a", ready), podAt(0, "b", starting), podAt(1, "b", gone)),
			Suffered{Deleted: 1},
		},
		{
			"a pod that becomes unready violates no budget, but the workload is down", 1,
			numbered(podAt(0, "a", ready), podAt(1, "a", starting), podAt(4, "a", ready)),
			Suffered{Down: 3 * time.Second, Outages: 1},
		},
		{
			"an outage lasts until the end", 0,
			numbered(podAt(0, "a", ready), podAt(8, "a", leaving), podAt(8.1, "a", gone)),
			Suffered{Down: 2 * time.Second, Outages: 1, Deleted: 1},
		},
		{
			"two outages, one of which is too short to be timed", 0,
			numbered(podAt(0, "a", ready), podAt(1, "a", leaving), podAt(1, "b", ready), podAt(2, "b", leaving), podAt(4, "c", ready)),
			Suffered{Down: 2 * time.Second, Outages: 2, Deleted: 2},
		},
		{"a workload that never has a pod", 0, nil, Suffered{Down: 10 * time.Second, Outages: 1}},
		{"a workload that is not ready at the beginning", 0, numbered(podAt(0, "a", starting), podAt(3, "a", ready)), Suffered{Down: 3 * time.Second, Outages: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := numbered(podAt(0, "z", ready), podAt(1, "z", gone))
			for i := range other {
				other[i].Pod.Workload = "other"
			}
			workloads := []Workload{{Name: "web", Healthy: tt.healthy}}
			got := Measure(workloads, append(tt.events, other...), begin, after(10))
			if diff := cmp.Diff([]Suffered{tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrder checks that the resource versions order the events of the two watches, and not the
// times at which they were observed.
func TestOrder(t *testing.T) {
	events := []Event{{Revision: 9, At: after(1)}, {Revision: 10, At: after(2)}, {Revision: 3, At: after(3)}}
	Order(events)
	var got []uint64
	for _, e := range events {
		got = append(got, e.Revision)
	}
	if diff := cmp.Diff([]uint64{3, 9, 10}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
