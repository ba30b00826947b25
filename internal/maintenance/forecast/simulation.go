// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"time"

	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Run returns the forecast of a round. If the duration of a node's maintenance is unknown, the
// forecast ends with the beginning of the next drain.
func Run(in Input) Forecast {
	s := simulation{Input: in, at: in.Now, last: in.Now, result: Forecast{Left: len(in.Running) + len(in.Waiting)}}
	if in.From.After(in.Now) {
		s.at = in.From
	}
	for _, n := range in.Running {
		done := n.Start.Add(in.PerNode)
		if in.PerNode > 0 && done.Before(in.Now) {
			s.result.Overdue++
		}
		s.add(n.Node, latest(in.Now, done))
	}
	s.waiting = slices.Clone(in.Waiting)
	s.run()
	return s.finish()
}

// simulation is the state of the round at the simulated time `at`.
type simulation struct {
	Input
	at time.Time
	// running lists the nodes in maintenance, with the time at which the maintenance of each node
	// ends. last is the latest such time of any node that was in maintenance so far.
	running []ending
	last    time.Time
	waiting []Node
	result  Forecast
}

// ending is a node in maintenance, and the time at which its maintenance ends.
type ending struct {
	Node
	at time.Time
}

func (s *simulation) add(n Node, until time.Time) {
	s.running = append(s.running, ending{n, until})
	s.last = latest(s.last, until)
}

// run simulates drains until all drains have begun, no further drain can begin, or the simulation
// depends on the duration of a node's maintenance, which is unknown.
func (s *simulation) run() {
	s.release()
	for len(s.waiting) > 0 {
		opens, ok := s.opensAt(s.at)
		if !ok || opens.Sub(s.Now) > Horizon {
			return
		}
		if !opens.Equal(s.at) {
			s.at = opens
			s.release()
			continue
		}
		if i := s.candidate(); i >= 0 {
			s.begin(i)
			if s.PerNode == 0 {
				return
			}
			continue
		}
		if len(s.running) == 0 {
			s.result.LimitUsedUp = true
			return
		}
		if s.PerNode == 0 {
			return
		}
		s.at = s.running[s.first()].at
		s.release()
	}
}

// opensAt returns the earliest time, at or after the given time, at which a window is open and no
// freeze is in force. It returns false if there is no such time.
func (s *simulation) opensAt(at time.Time) (time.Time, bool) {
	for {
		opens, ok := s.Windows.OpensAt(at)
		if !ok {
			return time.Time{}, false
		}
		frozen := period.InForce(s.Freezes, opens)
		if frozen == nil {
			return opens, true
		}
		at = frozen.Until
	}
}

// candidate returns the index of the next waiting node whose drain may begin now, or -1 if there is
// none. Nodes whose zone is at its limit are skipped. Nodes of a later group wait for all nodes of
// the earlier groups.
func (s *simulation) candidate() int {
	group := s.waiting[0].Group
	for _, n := range s.running {
		group = min(group, n.Group)
	}
	unavailable, inZone := s.unavailable()
	for i, n := range s.waiting {
		itself := 0
		if n.Unavailable {
			itself = 1
		}
		switch {
		case n.Group > group || unavailable > s.Limit:
			return -1
		case unavailable-itself >= s.Limit:
			continue
		case s.ZoneLimit > 0 && n.Zone != "" && inZone[n.Zone]-itself >= s.ZoneLimit:
			continue
		}
		return i
	}
	return -1
}

// unavailable returns the number of unavailable nodes, and their number in each zone.
func (s *simulation) unavailable() (count int, inZone map[string]int) {
	inZone = map[string]int{}
	add := func(n Node) {
		count++
		inZone[n.Zone]++
	}
	for _, n := range s.running {
		add(n.Node)
	}
	for _, n := range s.Others {
		add(n)
	}
	for _, n := range s.waiting {
		if n.Unavailable {
			add(n)
		}
	}
	return count, inZone
}

// begin begins the drain of the waiting node with index i at the simulated time.
func (s *simulation) begin(i int) {
	n := s.waiting[i]
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.add(n, s.at.Add(s.PerNode))
	if s.result.NextDrain == nil {
		at := s.at
		s.result.NextDrain = &at
	}
	if len(s.Windows) == 0 {
		return
	}
	windows := s.result.Windows
	if k := len(windows) - 1; k >= 0 && s.at.Before(windows[k].Closes) {
		windows[k].Nodes++
		return
	}
	if opened, closes, ok := s.Windows.Around(s.at); ok {
		s.result.Windows = append(windows, Window{opened, closes, 1})
	}
}

// first returns the index of the running node whose maintenance ends first.
func (s *simulation) first() int {
	first := 0
	for i := range s.running {
		if s.running[i].at.Before(s.running[first].at) {
			first = i
		}
	}
	return first
}

// release removes the running nodes whose maintenance has ended at the simulated time.
func (s *simulation) release() {
	if s.PerNode == 0 {
		return
	}
	s.running = slices.DeleteFunc(s.running, func(n ending) bool { return !n.at.After(s.at) })
}

// finish completes the forecast when no further drain is simulated, and returns it.
func (s *simulation) finish() Forecast {
	f := s.result
	if s.PerNode > 0 || len(s.running) == 0 {
		f.NotStarted = len(s.waiting)
	}
	if f.LimitUsedUp && f.NotStarted == 0 {
		f.LimitUsedUp = false
	}
	if len(s.waiting) == 0 && (s.PerNode > 0 || f.Left == 0) {
		f.End = &s.last
	}
	if !s.Next.IsZero() {
		f.NextRound = &s.Next
		f.Late = f.Left > 0 && (f.End != nil && f.End.After(s.Next) || f.NotStarted > 0)
	}
	if s.PerNode == 0 {
		f.Windows = nil // The windows of the other nodes are unknown.
	}
	return f
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
