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

func TestAnnouncements(t *testing.T) {
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
		{name: "back and forth is nothing", add: func(n *eventAggregator) { n.recordJoin("a"); n.recordLeave("a") }},
		{
			name: "what a node was given is told by its name only",
			add: func(n *eventAggregator) {
				n.recordChange("a", plan.Change{Pool: "p", Key: team, Kind: plan.Added})
				n.recordChange("a", plan.Change{Pool: "p", Key: setting.TaintKey("x", "NoSchedule"), Kind: plan.Removed})
				n.recordChange("b", plan.Change{Pool: "p", Key: team, Kind: plan.Updated})
			},
			want: []string{"Normal SettingsApplied: brought 2 nodes (a, b) up to date"},
		},
		{
			name: "what others had changed is told key by key",
			add: func(n *eventAggregator) {
				n.recordChange("a", plan.Change{Pool: "p", Key: team, Kind: plan.Restored})
				n.recordChange("a", plan.Change{Pool: "p", Key: setting.TaintKey("x", "NoSchedule"), Kind: plan.Replaced})
			},
			want: []string{
				"Normal ValueReplaced: replaced values that others had set: taint x:NoSchedule on node a",
				"Warning DriftCorrected: put back what others had changed: label team on node a",
			},
		},
		{
			name: "much drift is counted",
			add: func(n *eventAggregator) {
				for i := range 8 {
					n.recordChange(fmt.Sprintf("n%d", i), plan.Change{Pool: "p", Key: team, Kind: plan.Restored})
				}
			},
			want: []string{"Warning DriftCorrected: put back what others had changed: label team on node n0, label team on node n1, label team on node n2, label team on node n3, label team on node n4 and 3 more"},
		},
		{
			name: "a fight is told once for all its nodes",
			add: func(n *eventAggregator) {
				n.recordConflictingWriter("b")
				n.recordConflictingWriter("a")
				n.recordConflictingWriter("a")
			},
			want: []string{"Warning ConflictingWriter: somebody else, or another pool, undoes what this pool does to 2 nodes (a, b) again and again; it is slowed down"},
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
			for _, a := range n.events() {
				got = append(got, fmt.Sprintf("%s %s: %s", a.Type, a.Reason, a.Note))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// What is about one node says so, so that it is found beside the node.
func TestNewsOfOneNode(t *testing.T) {
	n := &eventAggregator{}
	n.recordJoin("a")
	n.recordChange("b", plan.Change{Pool: "p", Key: setting.LabelKey("x"), Kind: plan.Restored})
	n.recordChange("b", plan.Change{Pool: "p", Key: setting.LabelKey("y"), Kind: plan.Restored})
	n.recordConflictingWriter("c")
	n.recordConflictingWriter("d")
	got := map[string]string{}
	for _, a := range n.events() {
		got[a.Reason] = a.Node
	}
	want := map[string]string{tidekeeperv1.EventNodesJoined: "a", tidekeeperv1.EventDriftCorrected: "b", tidekeeperv1.EventConflictingWriter: ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// TestNewsRipen: news are told a second after the last of them, and after five
// seconds even if there is always more.
func TestNewsRipen(t *testing.T) {
	at := func(seconds float64) time.Time {
		return objects.Epoch.Add(time.Duration(seconds * float64(time.Second)))
	}
	n := &eventAggregator{}
	if told, again := n.take(at(0)); told != nil || again != 0 {
		t.Errorf("no news: told %v, again after %v", told, again)
	}

	n.recordJoin("a")
	if told, again := n.take(at(0)); told != nil || again != time.Second {
		t.Errorf("fresh news: told %v, again after %v; want none, 1s", told, again)
	}
	n.recordJoin("b")
	if told, again := n.take(at(0.5)); told != nil || again != time.Second {
		t.Errorf("more news: told %v, again after %v; want none, 1s", told, again)
	}
	if told, again := n.take(at(1.25)); told != nil || again != 250*time.Millisecond {
		t.Errorf("not quite ripe: told %v, again after %v; want none, 250ms", told, again)
	}
	if told, again := n.take(at(1.5)); len(told) != 1 || again != 0 {
		t.Errorf("ripe news: told %v, again after %v; want one event", told, again)
	}
	if told, again := n.take(at(1.6)); told != nil || again != 0 {
		t.Errorf("old news: told %v, again after %v", told, again)
	}

	for i := range 10 {
		n.recordJoin(fmt.Sprint(i))
		told, _ := n.take(at(10 + float64(i)*0.6))
		if (told != nil) != (i == 9) {
			t.Errorf("steady news, after %.1f seconds: told %v", float64(i)*0.6, told)
		}
	}
}

// The notes of events fit: the API server refuses more than 1024 bytes.
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
	for _, a := range n.events() {
		if len(a.Note) > 1024 {
			t.Errorf("%s has %d bytes", a.Reason, len(a.Note))
		}
	}
}
