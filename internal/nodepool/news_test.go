// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnnouncements(t *testing.T) {
	team := slot{label, "team"}
	for _, tt := range []struct {
		name string
		add  func(*news)
		want []string
	}{
		{name: "nothing", add: func(*news) {}},
		{name: "one node", add: func(n *news) { n.moved("a", +1) }, want: []string{"Normal NodesJoined: node a joined the pool"}},
		{
			name: "a few nodes are all named",
			add:  func(n *news) { n.moved("b", -1); n.moved("a", -1) },
			want: []string{"Normal NodesLeft: 2 nodes (a, b) left the pool"},
		},
		{
			name: "forty nodes are one event",
			add: func(n *news) {
				for i := range 40 {
					n.moved(fmt.Sprintf("n%02d", i), +1)
				}
			},
			want: []string{"Normal NodesJoined: 40 nodes (n00, n01, n02, n03, n04 and 35 more) joined the pool"},
		},
		{name: "back and forth is nothing", add: func(n *news) { n.moved("a", +1); n.moved("a", -1) }},
		{
			name: "what a node was given is told by its name only",
			add: func(n *news) {
				n.changed("a", change{"p", team, put})
				n.changed("a", change{"p", slot{taint, "x:NoSchedule"}, removed})
				n.changed("b", change{"p", team, updated})
			},
			want: []string{"Normal NodesUpdated: brought 2 nodes (a, b) up to date"},
		},
		{
			name: "what others had changed is told key by key",
			add: func(n *news) {
				n.changed("a", change{"p", team, putBack})
				n.changed("a", change{"p", slot{taint, "x:NoSchedule"}, replaced})
			},
			want: []string{
				"Normal ValueReplaced: replaced values that others had set: taint x:NoSchedule on node a",
				"Warning DriftCorrected: put back what others had changed: label team on node a",
			},
		},
		{
			name: "much drift is counted",
			add: func(n *news) {
				for i := range 8 {
					n.changed(fmt.Sprintf("n%d", i), change{"p", team, putBack})
				}
			},
			want: []string{"Warning DriftCorrected: put back what others had changed: label team on node n0, label team on node n1, label team on node n2, label team on node n3, label team on node n4 and 3 more"},
		},
		{
			name: "a fight is told once for all its nodes",
			add:  func(n *news) { n.foughtOver("b"); n.foughtOver("a"); n.foughtOver("a") },
			want: []string{"Warning NodesFoughtOver: somebody else, or another pool, undoes what this pool does to 2 nodes (a, b) again and again; it is slowed down"},
		},
		{
			name: "one failure of many nodes is one event",
			add: func(n *news) {
				n.failed("a", errors.New("denied"))
				n.failed("b", errors.New("denied"))
				n.failed("c", errors.New("too large"))
			},
			want: []string{
				"Warning NodeUpdateFailed: could not update 2 nodes (a, b): denied",
				"Warning NodeUpdateFailed: could not update node c: too large",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &news{}
			tt.add(n)
			var got []string
			for _, a := range n.announcements() {
				got = append(got, fmt.Sprintf("%s %s: %s", a.eventType, a.reason, a.note))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNewsRipen: news are told a second after the last of them, and after five
// seconds even if there is always more.
func TestNewsRipen(t *testing.T) {
	at := func(seconds float64) time.Time { return poolEpoch.Add(time.Duration(seconds * float64(time.Second))) }
	n := &news{}
	if told, again := n.tell(at(0)); told != nil || again != 0 {
		t.Errorf("no news: told %v, again after %v", told, again)
	}

	n.moved("a", +1)
	if told, again := n.tell(at(0)); told != nil || again != time.Second {
		t.Errorf("fresh news: told %v, again after %v; want none, 1s", told, again)
	}
	n.moved("b", +1)
	if told, again := n.tell(at(0.5)); told != nil || again != time.Second {
		t.Errorf("more news: told %v, again after %v; want none, 1s", told, again)
	}
	if told, again := n.tell(at(1.25)); told != nil || again != 250*time.Millisecond {
		t.Errorf("not quite ripe: told %v, again after %v; want none, 250ms", told, again)
	}
	if told, again := n.tell(at(1.5)); len(told) != 1 || again != 0 {
		t.Errorf("ripe news: told %v, again after %v; want one event", told, again)
	}
	if told, again := n.tell(at(1.6)); told != nil || again != 0 {
		t.Errorf("old news: told %v, again after %v", told, again)
	}

	for i := range 10 {
		n.moved(fmt.Sprint(i), +1)
		told, _ := n.tell(at(10 + float64(i)*0.6))
		if (told != nil) != (i == 9) {
			t.Errorf("steady news, after %.1f seconds: told %v", float64(i)*0.6, told)
		}
	}
}
