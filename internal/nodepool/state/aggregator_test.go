// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
	"tidekeeper.dev/tidekeeper/internal/nodepool/test/objects"
	"tidekeeper.dev/tidekeeper/internal/text"
)

func TestEvents(t *testing.T) {
	team := setting.LabelKey("team")
	for _, tt := range []struct {
		name string
		add  func(*eventAggregator)
		want []string
	}{
		{name: "nothing", add: func(*eventAggregator) {}},
		{name: "one node", add: func(n *eventAggregator) { n.recordJoin("a") }, want: []string{"Normal NodesJoined: node a joined the pool"}},
		{
			name: "a few nodes are all named",
			add:  func(n *eventAggregator) { n.recordLeave("b"); n.recordLeave("a") },
			want: []string{"Normal NodesLeft: 2 nodes (a, b) left the pool"},
		},
		{
			name: "forty nodes are one event",
			add: func(n *eventAggregator) {
				for i := range 40 {
					n.recordJoin(fmt.Sprintf("n%02d", i))
				}
			},
			want: []string{"Normal NodesJoined: 40 nodes (n00, n01, n02, n03, n04 and 35 more) joined the pool"},
		},
		{name: "joining and leaving again is no event", add: func(n *eventAggregator) { n.recordJoin("a"); n.recordLeave("a") }},
		{
			name: "settings that were applied are reported by node only",
			add: func(n *eventAggregator) {
				n.recordChange("a", plan.Change{Pool: "p", Key: team, Kind: plan.Added})
				n.recordChange("a", plan.Change{Pool: "p", Key: setting.TaintKey("x", "NoSchedule"), Kind: plan.Removed})
				n.recordChange("b", plan.Change{Pool: "p", Key: team, Kind: plan.Updated})
			},
			want: []string{"Normal SettingsApplied: updated 2 nodes (a, b) to match the pool's spec"},
		},
		{
			name: "settings that other clients had changed are reported by key",
			add: func(n *eventAggregator) {
				n.recordChange("a", plan.Change{Pool: "p", Key: team, Kind: plan.Restored})
				n.recordChange("a", plan.Change{Pool: "p", Key: setting.TaintKey("x", "NoSchedule"), Kind: plan.Replaced})
			},
			want: []string{
				"Normal ValueReplaced: replaced values that other clients had set: taint x:NoSchedule on node a",
				"Warning DriftCorrected: restored settings that other clients had changed: label team on node a",
			},
		},
		{
			name: "much drift is counted",
			add: func(n *eventAggregator) {
				for i := range 8 {
					n.recordChange(fmt.Sprintf("n%d", i), plan.Change{Pool: "p", Key: team, Kind: plan.Restored})
				}
			},
			want: []string{"Warning DriftCorrected: restored settings that other clients had changed: label team on node n0, label team on node n1, label team on node n2, label team on node n3, label team on node n4 and 3 more"},
		},
		{
			name: "conflicting writers are reported once for all nodes",
			add: func(n *eventAggregator) {
				n.recordConflictingWriter("b")
				n.recordConflictingWriter("a")
				n.recordConflictingWriter("a")
			},
			want: []string{"Warning ConflictingWriter: another client or another pool keeps reverting this pool's changes to 2 nodes (a, b); updates are throttled"},
		},
		{
			name: "one failure of many nodes is one event",
			add: func(n *eventAggregator) {
				n.recordFailure("a", "denied")
				n.recordFailure("b", "denied")
				n.recordFailure("c", "too large")
			},
			want: []string{
				"Warning NodePatchFailed: could not update 2 nodes (a, b): denied",
				"Warning NodePatchFailed: could not update node c: too large",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &eventAggregator{}
			tt.add(n)
			var got []string
			for _, e := range n.events() {
				got = append(got, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventsOfOneNode checks that an event about a single node has the node as its related object,
// so that kubectl lists it among the node's events.
func TestEventsOfOneNode(t *testing.T) {
	n := &eventAggregator{}
	n.recordJoin("a")
	n.recordChange("b", plan.Change{Pool: "p", Key: setting.LabelKey("x"), Kind: plan.Restored})
	n.recordChange("b", plan.Change{Pool: "p", Key: setting.LabelKey("y"), Kind: plan.Restored})
	n.recordConflictingWriter("c")
	n.recordConflictingWriter("d")
	got := map[string]string{}
	for _, e := range n.events() {
		got[e.Reason] = e.Node
	}
	want := map[string]string{tidekeeperv1.EventNodesJoined: "a", tidekeeperv1.EventDriftCorrected: "b", tidekeeperv1.EventConflictingWriter: ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// TestEventsAreHeldBack checks that events are returned a second after the last recorded change, or
// five seconds after the first if changes continue.
func TestEventsAreHeldBack(t *testing.T) {
	at := func(seconds float64) time.Time {
		return objects.Epoch.Add(time.Duration(seconds * float64(time.Second)))
	}
	n := &eventAggregator{}
	if events, again := n.take(at(0)); events != nil || again != 0 {
		t.Errorf("empty: events %v, again after %v", events, again)
	}

	n.recordJoin("a")
	if events, again := n.take(at(0)); events != nil || again != time.Second {
		t.Errorf("one addition: events %v, again after %v; want none, 1s", events, again)
	}
	n.recordJoin("b")
	if events, again := n.take(at(0.5)); events != nil || again != time.Second {
		t.Errorf("two additions: events %v, again after %v; want none, 1s", events, again)
	}
	if events, again := n.take(at(1.25)); events != nil || again != 250*time.Millisecond {
		t.Errorf("not due yet: events %v, again after %v; want none, 250ms", events, again)
	}
	if events, again := n.take(at(1.5)); len(events) != 1 || again != 0 {
		t.Errorf("due: events %v, again after %v; want one event", events, again)
	}
	if events, again := n.take(at(1.6)); events != nil || again != 0 {
		t.Errorf("taken: events %v, again after %v", events, again)
	}

	for i := range 10 {
		n.recordJoin(fmt.Sprint(i))
		events, _ := n.take(at(10 + float64(i)*0.6))
		if (events != nil) != (i == 9) {
			t.Errorf("steady additions, after %.1f seconds: events %v", float64(i)*0.6, events)
		}
	}
}

// TestNotesAreShort checks that no event note exceeds 1,024 bytes, the API server's limit.
func TestNotesAreShort(t *testing.T) {
	n := &eventAggregator{}
	for i := range 9 {
		node := strings.Repeat("n", 250) + fmt.Sprint(i)
		n.recordJoin(node)
		n.recordChange(node, plan.Change{Pool: "p", Key: setting.AnnotationKey(strings.Repeat("k", 317)), Kind: plan.Restored})
		n.recordChange(node, plan.Change{Pool: "p", Key: setting.TaintKey(strings.Repeat("t", 317), "NoSchedule"), Kind: plan.Replaced})
		n.recordChange(node, plan.Change{Pool: "p", Key: setting.LabelKey("x"), Kind: plan.Added})
		n.recordConflictingWriter(node)
		n.recordFailure(node, text.Shorten(strings.Repeat("é", 5_000), maxReasonLength))
	}
	for _, e := range n.events() {
		if len(e.Note) > 1024 {
			t.Errorf("%s has %d bytes", e.Reason, len(e.Note))
		}
	}
}
