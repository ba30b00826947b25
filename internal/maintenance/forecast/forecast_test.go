// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// noon is a Tuesday.
var noon = time.Date(2026, time.June, 9, 12, 0, 0, 0, time.UTC)

// nodes returns nodes with the given names. A name has the format name, name/zone or
// name/zone/group; an exclamation mark at the end marks an unavailable node.
func nodes(names ...string) []Node {
	var list []Node
	for _, text := range names {
		text, unavailable := strings.CutSuffix(text, "!")
		parts := append(strings.Split(text, "/"), "", "")
		group := 0
		if parts[2] != "" {
			group = int(parts[2][0] - '0')
		}
		list = append(list, Node{Name: parts[0], Zone: parts[1], Group: group, Unavailable: unavailable})
	}
	return list
}

// running returns nodes whose drain began the given time ago.
func running(ago time.Duration, names ...string) []RunningNode {
	var list []RunningNode
	for _, n := range nodes(names...) {
		list = append(list, RunningNode{n, noon.Add(-ago)})
	}
	return list
}

// nightly returns a window of the given length that opens at 22:00 each day.
func nightly(t *testing.T, length time.Duration) schedule.Windows {
	t.Helper()
	opens, err := schedule.Parse("0 22 * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Windows{{Opens: opens, Length: length}}
}

// text formats a forecast in one line.
func text(f Forecast) string {
	at := func(t *time.Time) string {
		if t == nil {
			return "?"
		}
		return t.Format("2 15:04")
	}
	line := fmt.Sprintf("%d left, next %s, end %s", f.Left, at(f.NextDrain), at(f.End))
	for _, w := range f.Windows {
		line += fmt.Sprintf(", %d in %s-%s", w.Nodes, at(&w.Opens), at(&w.Closes))
	}
	if f.Overdue > 0 {
		line += fmt.Sprintf(", %d overdue", f.Overdue)
	}
	if f.NotStarted > 0 {
		line += fmt.Sprintf(", %d not started", f.NotStarted)
	}
	if f.LimitUsedUp {
		line += ", limit used up"
	}
	if f.Late {
		line += ", late"
	}
	return line
}

func TestRun(t *testing.T) {
	const each = 30 * time.Minute
	for _, tt := range []struct {
		name string
		in   Input
		want string
	}{
		{"nothing is left", Input{Limit: 1, PerNode: each}, "0 left, next ?, end 9 12:00"},
		{"one after the other", Input{Waiting: nodes("a", "b", "c"), Limit: 1, PerNode: each}, "3 left, next 9 12:00, end 9 13:30"},
		{"two at a time", Input{Waiting: nodes("a", "b", "c"), Limit: 2, PerNode: each}, "3 left, next 9 12:00, end 9 13:00"},
		{"after a running one", Input{Running: running(10*time.Minute, "a"), Waiting: nodes("b"), Limit: 1, PerNode: each}, "2 left, next 9 12:20, end 9 12:50"},
		{"a running one that is overdue", Input{Running: running(time.Hour, "a"), Waiting: nodes("b"), Limit: 1, PerNode: each}, "2 left, next 9 12:00, end 9 12:30, 1 overdue"},
		{"the last one runs", Input{Running: running(10*time.Minute, "a"), Limit: 1, PerNode: each}, "1 left, next ?, end 9 12:20"},
		{"a round to come", Input{From: noon.Add(time.Hour), Waiting: nodes("a"), Limit: 1, PerNode: each}, "1 left, next 9 13:00, end 9 13:30"},
		{
			"a window takes what begins in it", Input{Waiting: nodes("a", "b", "c", "d"), Limit: 1, PerNode: each, Windows: nightly(t, time.Hour)},
			"4 left, next 9 22:00, end 10 23:00, 2 in 9 22:00-9 23:00, 2 in 10 22:00-10 23:00",
		},
		{
			"what has begun goes on after the window", Input{Waiting: nodes("a", "b"), Limit: 1, PerNode: 50 * time.Minute, Windows: nightly(t, time.Hour)},
			"2 left, next 9 22:00, end 9 23:40, 2 in 9 22:00-9 23:00",
		},
		{
			"a freeze takes a night", Input{Waiting: nodes("a"), Limit: 1, PerNode: each, Windows: nightly(t, time.Hour), Freezes: []period.Period{{From: noon, Until: noon.Add(12 * time.Hour)}}},
			"1 left, next 10 22:00, end 10 22:30, 1 in 10 22:00-10 23:00",
		},
		{
			"a freeze takes a part of it", Input{Waiting: nodes("a", "b"), Limit: 1, PerNode: each, Windows: nightly(t, time.Hour), Freezes: []period.Period{{From: noon.Add(10*time.Hour + time.Minute), Until: noon.Add(10*time.Hour + 45*time.Minute)}}},
			"2 left, next 9 22:00, end 9 23:15, 2 in 9 22:00-9 23:00",
		},
		{
			"zones have a limit", Input{Waiting: nodes("a/1", "b/1", "c/2"), Limit: 2, ZoneLimit: 1, PerNode: each},
			"3 left, next 9 12:00, end 9 13:00",
		},
		{
			"pools one after the other", Input{Waiting: nodes("a//0", "b//1", "c//1"), Limit: 2, PerNode: each},
			"3 left, next 9 12:00, end 9 13:00",
		},
		{
			"the running one is of the pool before", Input{Running: running(10*time.Minute, "a//0"), Waiting: nodes("b//1"), Limit: 2, PerNode: each},
			"2 left, next 9 12:20, end 9 12:50",
		},
		{"another is unavailable", Input{Waiting: nodes("a", "b"), Others: nodes("x"), Limit: 2, PerNode: each}, "2 left, next 9 12:00, end 9 13:00"},
		{"others use up the limit", Input{Waiting: nodes("a", "b"), Others: nodes("x"), Limit: 1, PerNode: each}, "2 left, next ?, end ?, 2 not started, limit used up"},
		{"others use up the limit of a zone", Input{Waiting: nodes("a/1", "b/2"), Others: nodes("x/1"), Limit: 2, ZoneLimit: 1, PerNode: each}, "2 left, next 9 12:00, end ?, 1 not started, limit used up"},
		{"the unavailable one goes first", Input{Waiting: nodes("a", "b!"), Limit: 1, PerNode: each}, "2 left, next 9 12:00, end 9 13:00"},
		{"how long a node takes is not known", Input{Waiting: nodes("a", "b"), Limit: 1, Windows: nightly(t, time.Hour)}, "2 left, next 9 22:00, end ?"},
		{"nor when the running one is done", Input{Running: running(time.Hour, "a"), Waiting: nodes("b"), Limit: 1}, "2 left, next ?, end ?"},
		{"but another may begin", Input{Running: running(time.Hour, "a"), Waiting: nodes("b"), Limit: 2}, "2 left, next 9 12:00, end ?"},
		{"before the next round", Input{Waiting: nodes("a", "b"), Limit: 1, PerNode: each, Next: noon.Add(time.Hour)}, "2 left, next 9 12:00, end 9 13:00"},
		{"not before the next round", Input{Waiting: nodes("a", "b"), Limit: 1, PerNode: each, Next: noon.Add(time.Hour - time.Second)}, "2 left, next 9 12:00, end 9 13:00, late"},
		{"never before the next round", Input{Waiting: nodes("a"), Others: nodes("x"), Limit: 1, PerNode: each, Next: noon.Add(time.Hour)}, "1 left, next ?, end ?, 1 not started, limit used up, late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Now = noon
			if got := text(Run(tt.in)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestHorizon checks that drains more than a year ahead are counted but not simulated.
func TestHorizon(t *testing.T) {
	f := Run(Input{Now: noon, Waiting: nodes(slices.Repeat([]string{"a"}, 400)...), Limit: 1, PerNode: time.Hour, Windows: nightly(t, time.Minute)})
	if f.End != nil || len(f.Windows) != 366 || f.NotStarted != 34 || f.LimitUsedUp {
		t.Errorf("the end is %v, %d nights, %d nodes do not begin, limit used up: %v; want 366 nights of one node, and 34 left", f.End, len(f.Windows), f.NotStarted, f.LimitUsedUp)
	}
}

// TestEndIsNotTooEarly checks with random rounds that the forecast end is never earlier than the
// remaining work divided by the number of nodes that may be maintained at a time. It also checks
// that every drain begins in an open window outside of freezes.
func TestEndIsNotTooEarly(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := Input{
			Now: noon, Limit: rapid.IntRange(1, 4).Draw(r, "limit"), ZoneLimit: rapid.IntRange(0, 2).Draw(r, "zone limit"),
			PerNode: time.Duration(rapid.IntRange(1, 300).Draw(r, "minutes")) * time.Minute,
		}
		if rapid.Bool().Draw(r, "has windows") {
			in.Windows = nightly(t, time.Duration(rapid.IntRange(1, 30).Draw(r, "hours"))*time.Hour)
		}
		for range rapid.IntRange(0, 3).Draw(r, "freezes") {
			from := noon.Add(time.Duration(rapid.IntRange(-10, 60).Draw(r, "from")) * time.Hour)
			in.Freezes = append(in.Freezes, period.Period{From: from, Until: from.Add(time.Duration(rapid.IntRange(1, 30).Draw(r, "until")) * time.Hour)})
		}
		zone := func() string { return fmt.Sprint(rapid.IntRange(0, 2).Draw(r, "zone")) }
		var left time.Duration
		for i := range rapid.IntRange(0, in.Limit).Draw(r, "running") {
			n := RunningNode{Node{Name: fmt.Sprint("r", i), Zone: zone()}, noon.Add(-time.Duration(rapid.IntRange(0, 300).Draw(r, "ago")) * time.Minute)}
			in.Running = append(in.Running, n)
			left += max(0, n.Start.Add(in.PerNode).Sub(noon))
		}
		groups := rapid.IntRange(1, 2).Draw(r, "groups")
		for i := range rapid.IntRange(0, 12).Draw(r, "waiting") {
			n := Node{Name: fmt.Sprint("w", i), Zone: zone(), Group: i * groups / 12}
			in.Waiting = append(in.Waiting, n)
			left += in.PerNode
		}
		f := Run(in)
		if f.End == nil {
			r.Fatalf("the end is not known: %s", text(f))
		}
		if least := noon.Add(left / time.Duration(in.Limit)); f.End.Before(least) {
			r.Fatalf("%s of work with at most %d at a time end at %s, want not before %s", left, in.Limit, f.End, least)
		}
		if f.NextDrain != nil {
			if opens, _ := in.Windows.OpensAt(*f.NextDrain); !opens.Equal(*f.NextDrain) || period.InForce(in.Freezes, *f.NextDrain) != nil {
				r.Fatalf("a drain begins at %s, while the windows open at %s, or a freeze is in force", f.NextDrain, opens)
			}
		}
		begun := 0
		for _, w := range f.Windows {
			begun += w.Nodes
		}
		if in.Windows != nil && begun != len(in.Waiting) {
			r.Fatalf("%d nodes begin in windows, want %d", begun, len(in.Waiting))
		}
	})
}

func TestPerNode(t *testing.T) {
	took := func(phase tidekeeperv1.NodePhase, minutes int) tidekeeperv1.NodeProgress {
		return tidekeeperv1.NodeProgress{Phase: phase, StartTime: metav1.Time{Time: noon}, Since: metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}}
	}
	for _, tt := range []struct {
		name     string
		nodes    []tidekeeperv1.NodeProgress
		want     time.Duration
		measured int
	}{
		{"none is done", []tidekeeperv1.NodeProgress{took(tidekeeperv1.NodeDraining, 5), took(tidekeeperv1.NodeFailed, 60), took(tidekeeperv1.NodeReleased, 1)}, 0, 0},
		{"one", []tidekeeperv1.NodeProgress{took(tidekeeperv1.NodeDone, 7)}, 7 * time.Minute, 1},
		{"the median of three", []tidekeeperv1.NodeProgress{took(tidekeeperv1.NodeDone, 100), took(tidekeeperv1.NodeDone, 7), took(tidekeeperv1.NodeDone, 9)}, 9 * time.Minute, 3},
		{"the longer of two", []tidekeeperv1.NodeProgress{took(tidekeeperv1.NodeDone, 7), took(tidekeeperv1.NodeDone, 9)}, 9 * time.Minute, 2},
		{"of a clock that went back", []tidekeeperv1.NodeProgress{took(tidekeeperv1.NodeDone, -7)}, time.Second, 1},
	} {
		progress := map[string]tidekeeperv1.NodeProgress{}
		for i, n := range tt.nodes {
			progress[fmt.Sprint("node-", i)] = n
		}
		if got, measured := PerNode(progress); got != tt.want || measured != tt.measured {
			t.Errorf("%s: %s of %d nodes, want %s of %d", tt.name, got, measured, tt.want, tt.measured)
		}
	}
}
