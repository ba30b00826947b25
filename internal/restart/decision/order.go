// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Predecessor is a ScheduledRestart that is named in the spec.after of another ScheduledRestart.
type Predecessor struct {
	Name string
	// Restart is the predecessor; nil if it does not exist.
	Restart *tidekeeperv1.ScheduledRestart
	// Changed is true if the predecessor has a pending restart for a change of a ConfigMap or
	// Secret that its status does not show yet. See [ChangePending].
	Changed bool
}

// orderGate keeps a restart from starting while a predecessor (a ScheduledRestart in spec.after)
// does not exist, has a due or running restart, or has failed in its last restart. It also does so
// while the predecessors form a cycle.
type orderGate struct {
	// names is spec.after. predecessors holds the ScheduledRestarts with these names. cycle lists
	// the names on a cycle of predecessors through this ScheduledRestart; nil if there is no cycle.
	names        []string
	predecessors []Predecessor
	cycle        []string
	now          time.Time
}

func (g *orderGate) blocks(_, due time.Time) *blocker {
	if len(g.names) == 0 {
		return nil
	}
	if len(g.cycle) > 0 {
		return &blocker{reason: tidekeeperv1.ReasonOrderCycle, message: cycleMessage(g.cycle), permanent: true}
	}
	for _, p := range g.predecessors {
		if b := p.blocks(due, g.now); b != nil {
			return b
		}
	}
	return nil
}

func (g *orderGate) describe(at, due time.Time) Gate {
	open := "it comes after no other"
	if len(g.names) > 0 {
		open = "those that it comes after have finished"
	}
	return describeAs(GateOrder, g.blocks(at, due), open)
}

// missing returns a clause for the end of a message that names a predecessor that does not exist;
// "" if all predecessors exist.
func (g *orderGate) missing() string {
	for _, p := range g.predecessors {
		if p.Restart == nil {
			return "; it comes after " + shorten(p.Name) + ", which does not exist, and is missed without it"
		}
	}
	return ""
}

// blocks returns the reason for which a restart with the given due time must wait for the
// predecessor; nil if it need not wait.
func (p *Predecessor) blocks(due, now time.Time) *blocker {
	waits := func(text string) *blocker {
		return &blocker{reason: tidekeeperv1.ReasonOutOfOrder, message: fmt.Sprintf("it comes after %s, %s", p.Name, text)}
	}
	if p.Restart == nil {
		return &blocker{reason: tidekeeperv1.ReasonPredecessorNotFound, message: fmt.Sprintf("it comes after %s, which does not exist", p.Name)}
	}
	status := &p.Restart.Status
	switch {
	case status.ObservedGeneration != p.Restart.Generation:
		return waits("whose spec has changed just now")
	case status.Active != nil && !status.Active.ScheduledTime.After(due):
		return waits("which is being restarted")
	case p.Changed:
		return waits("for which the content of ConfigMaps or Secrets has changed")
	case p.isDue(due, now):
		return waits("which is due and has not started")
	}
	for i := range status.History {
		record := &status.History[i]
		if record.StartedTime == nil || record.ScheduledTime.After(due) {
			continue
		}
		if record.Outcome == tidekeeperv1.OutcomeFailed {
			return &blocker{
				reason:  tidekeeperv1.ReasonPredecessorFailed,
				message: fmt.Sprintf("it comes after %s, whose restart for the tick of %s has failed", p.Name, formatTime(record.ScheduledTime.Time)),
			}
		}
		return nil
	}
	return nil
}

// isDue reports whether the predecessor has an undecided restart that is due at or before the given
// time.
func (p *Predecessor) isDue(due, now time.Time) bool {
	status := &p.Restart.Status
	start := status.NextScheduleTime
	if status.NextStartTime != nil {
		start = status.NextStartTime
	}
	for _, at := range []*metav1.Time{start, status.NextAgeTime, status.NextChangeTime} {
		if at != nil && !at.After(due) {
			return true
		}
	}
	requested, err := RequestedTime(p.Restart, now)
	return err == nil && !requested.IsZero() && !requested.After(due) &&
		(status.LastRequestTime == nil || requested.After(status.LastRequestTime.Time))
}

// ReadAfter sets the predecessors (spec.after) in the input. get must return the ScheduledRestart
// with the given name in the same namespace; nil if it does not exist.
func (in *Input) ReadAfter(get func(name string) (*tidekeeperv1.ScheduledRestart, error)) error {
	for _, name := range in.Restart.Spec.After {
		other, err := get(name)
		if err != nil {
			return fmt.Errorf("get the ScheduledRestart %s, which comes first: %w", name, err)
		}
		in.After = append(in.After, Predecessor{Name: name, Restart: other})
	}
	return nil
}

// ReadOrder sets the predecessors in the input, and searches for a cycle. It is for callers that do
// not keep a graph of all ScheduledRestarts, and calls get only once for each name.
func (in *Input) ReadOrder(get func(name string) (*tidekeeperv1.ScheduledRestart, error)) (err error) {
	if len(in.Restart.Spec.After) == 0 {
		return nil
	}
	read := map[string]*tidekeeperv1.ScheduledRestart{in.Restart.Name: in.Restart}
	once := func(name string) (*tidekeeperv1.ScheduledRestart, error) {
		other, known := read[name]
		if known {
			return other, nil
		}
		if other, err = get(name); err != nil {
			return nil, err
		}
		read[name] = other
		return other, nil
	}
	if err := in.ReadAfter(once); err != nil {
		return err
	}
	in.Cycle, err = FindCycle(in.Restart.Name, func(name string) ([]string, error) {
		other, err := once(name)
		if err != nil {
			return nil, fmt.Errorf("get the ScheduledRestart %s, which comes first: %w", name, err)
		}
		if other == nil {
			return nil, nil
		}
		return other.Spec.After, nil
	})
	return err
}

// maxOrder is the maximum number of ScheduledRestarts that the search for a cycle visits.
const maxOrder = 1000

// FindCycle returns a cycle of predecessors (spec.after) through a ScheduledRestart, as a list of
// names that begins and ends with its name; nil if there is none. The function after must return
// the names of the predecessors of the ScheduledRestart with the given name.
func FindCycle(name string, after func(name string) ([]string, error)) ([]string, error) {
	seen := map[string]bool{}
	var find func(path []string) ([]string, error)
	find = func(path []string) ([]string, error) {
		names, err := after(path[len(path)-1])
		if err != nil {
			return nil, err
		}
		for _, next := range names {
			switch {
			case next == name:
				return append(slices.Clone(path), next), nil
			case seen[next] || len(seen) >= maxOrder:
				continue
			}
			seen[next] = true
			if found, err := find(append(slices.Clone(path), next)); found != nil || err != nil {
				return found, err
			}
		}
		return nil, nil
	}
	return find([]string{name})
}

// cycleMessage describes a cycle of predecessors to users. It abbreviates a long cycle.
func cycleMessage(cycle []string) string {
	if most := 6; len(cycle) > most {
		cycle = slices.Concat(cycle[:most-2], []string{"…"}, cycle[len(cycle)-1:])
	}
	text := make([]string, len(cycle))
	for i, name := range cycle {
		text[i] = shorten(name)
	}
	return "by spec.after these come after each other, and none can be first: " + strings.Join(text, " after ")
}

// shorten limits the length of a name for a message.
func shorten(name string) string {
	if most := 63; len(name) > most {
		return name[:most] + "…"
	}
	return name
}
