// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package rotate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nodeAt returns the event that a node is closed or open.
func nodeAt(seconds float64, name string, closed bool) Event {
	return Event{At: after(seconds), Node: &Node{Name: name, Closed: closed}}
}

// on moves the pod of an event to a node.
func on(node string, e Event) Event {
	e.Pod.Node = node
	return e
}

func TestRotations(t *testing.T) {
	one := map[string]int{"web": 1}
	for _, tt := range []struct {
		name       string
		events     []Event
		want       []Rotation
		stuck      []string
		leftClosed []string
		moved      int
		span       time.Duration
	}{
		{"no node is closed", numbered(nodeAt(0, "n1", false), podAt(0, "a", ready), nodeAt(1, "n1", false)), nil, nil, nil, 0, 0},
		{
			"a node is closed, empty and opened",
			numbered(nodeAt(0, "n1", false), podAt(0, "a", ready), nodeAt(1, "n1", true), podAt(2, "a", leaving), podAt(3, "a", gone), nodeAt(3, "n1", true), nodeAt(4, "n1", false)),
			[]Rotation{{Node: "n1", Closed: after(1), Empty: after(3), Open: after(4), Pods: one}}, nil, nil, 1, 3 * time.Second,
		},
		{
			"a pod that is started on the empty node just then changes nothing",
			numbered(podAt(0, "a", ready), nodeAt(1, "n1", true), podAt(2, "a", gone), podAt(3, "b", starting), podAt(3.5, "b", gone), nodeAt(4, "n1", false)),
			[]Rotation{{Node: "n1", Closed: after(1), Empty: after(2), Open: after(4), Pods: one}}, nil, nil, 1, 3 * time.Second,
		},
		{
			"the watch of nodes is behind the watch of pods",
			numbered(podAt(0, "a", ready), nodeAt(3, "n1", true), podAt(2, "a", gone), nodeAt(4, "n1", false)),
			[]Rotation{{Node: "n1", Closed: after(3), Empty: after(3), Open: after(4), Pods: one}}, nil, nil, 1, time.Second,
		},
		{
			"a node without pods is empty at once",
			numbered(nodeAt(0, "n1", false), on("", podAt(0, "a", starting)), nodeAt(1, "n1", true), nodeAt(4, "n1", false)),
			[]Rotation{{Node: "n1", Closed: after(1), Empty: after(1), Open: after(4), Pods: map[string]int{}}}, nil, nil, 0, 3 * time.Second,
		},
		{
			"a node is opened with a pod on it",
			numbered(podAt(0, "a", ready), podAt(0, "b", ready), nodeAt(1, "n1", true), podAt(3, "a", gone), nodeAt(4, "n1", false), podAt(5, "b", gone)),
			[]Rotation{{Node: "n1", Closed: after(1), Open: after(4), Pods: map[string]int{"web": 2}}}, []string{"n1"}, nil, 2, 3 * time.Second,
		},
		{
			"a second attempt empties the node",
			numbered(podAt(0, "a", ready), nodeAt(1, "n1", true), nodeAt(2, "n1", false), nodeAt(3, "n1", true), podAt(4, "a", gone), nodeAt(5, "n1", false)),
			[]Rotation{
				{Node: "n1", Closed: after(1), Open: after(2), Pods: one},
				{Node: "n1", Closed: after(3), Empty: after(4), Open: after(5), Pods: one},
			}, nil, nil, 2, 4 * time.Second,
		},
		{
			"a node is left closed, while another one is rotated",
			numbered(on("n2", podAt(0, "a", ready)), nodeAt(1, "n2", true), on("n2", podAt(2, "a", gone)), nodeAt(3, "n1", true), nodeAt(4, "n1", false)),
			[]Rotation{
				{Node: "n2", Closed: after(1), Empty: after(2), Pods: one},
				{Node: "n1", Closed: after(3), Empty: after(3), Open: after(4), Pods: map[string]int{}},
			}, nil, []string{"n2"}, 1, 3 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Rotations(tt.events)
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.stuck, Stuck(got)); diff != "" {
				t.Errorf("stuck (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.leftClosed, LeftClosed(got)); diff != "" {
				t.Errorf("left closed (-want +got):\n%s", diff)
			}
			if moved := ToMove(got); moved != tt.moved {
				t.Errorf("%d pods had to leave, want %d", moved, tt.moved)
			}
			if span := Span(got); span != tt.span {
				t.Errorf("it took %s, want %s", span, tt.span)
			}
		})
	}
}

func TestLeast(t *testing.T) {
	workloads := []Workload{
		{Name: "single", Replicas: 1},
		{Name: "pair", Replicas: 2},
		{Name: "blocked", Replicas: 3, Healthy: 3},
		{Name: "large", Replicas: 8, Healthy: 8},
		{Name: "budget", Replicas: 4, Healthy: 3},
	}
	with := func(pods ...map[string]int) []Rotation {
		var rotations []Rotation
		for _, p := range pods {
			rotations = append(rotations, Rotation{Pods: p})
		}
		return rotations
	}
	for _, tt := range []struct {
		name      string
		rotations []Rotation
		atOnce    int
		want      time.Duration
	}{
		{"no rotation", nil, 1, 0},
		{"a node without pods", with(map[string]int{}), 1, 0},
		{"the only pod leaves when its replacement is ready", with(map[string]int{"single": 1}), 1, 6 * time.Second},
		{"a pod that its workload can spare leaves at once", with(map[string]int{"pair": 1}), 1, time.Second},
		{"a workload keeps a pod without a budget, too", with(map[string]int{"pair": 2}), 1, 6 * time.Second},
		{"a blocked workload is rolled pod by pod", with(map[string]int{"blocked": 2}), 1, 11 * time.Second},
		{"a large workload is rolled a quarter at a time", with(map[string]int{"large": 3}), 1, 11 * time.Second},
		{"a budget lets a pod go when the one before is ready again", with(map[string]int{"budget": 3}), 1, 11 * time.Second},
		{"the slowest workload of a node counts", with(map[string]int{"single": 1, "budget": 3, "pair": 1}), 1, 11 * time.Second},
		{"one node after the other", with(map[string]int{"single": 1}, map[string]int{"blocked": 1}), 1, 12 * time.Second},
		{"a budget is still used by the node before", with(map[string]int{"budget": 1}, map[string]int{"budget": 1}), 1, 6 * time.Second},
		{"two nodes at once", with(map[string]int{"single": 1}, map[string]int{"blocked": 1}, map[string]int{"single": 1}), 2, 12 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Least(workloads, tt.rotations, Pace{Ready: 5 * time.Second, Gone: time.Second, AtOnce: tt.atOnce})
			if got != tt.want {
				t.Errorf("it takes %s, want %s", got, tt.want)
			}
		})
	}
}
