// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// state holds the input of a decision, and its output so far. All steps of the decision share it.
type state struct {
	Input
	spec   *tidekeeperv1.NodeMaintenanceSpec
	status *tidekeeperv1.NodeMaintenanceStatus
	out    *Output
}

// waiting explains to users why no further drain begins.
type waiting struct {
	reason, message string
}

// failures returns the number of nodes of the current round that have failed.
func (s *state) failures() (count int32) {
	for _, p := range s.status.Nodes {
		if p.Phase == tidekeeperv1.NodeFailed {
			count++
		}
	}
	return count
}

// left lists the selected nodes whose drain has not begun in the current round.
func (s *state) left() (names []string) {
	for _, name := range s.Selected {
		if _, begun := s.status.Nodes[name]; !begun {
			names = append(names, name)
		}
	}
	return names
}

// wake sets the time of the next decision, unless it is already set to an earlier time.
func (s *state) wake(at time.Time) {
	if !at.IsZero() && (s.out.Wake.IsZero() || at.Before(s.out.Wake)) {
		s.out.Wake = at
	}
}

// running lists the sorted names of the nodes in maintenance, without nodes that have failed.
func (s *state) running() (names []string) {
	for name, p := range s.status.Nodes {
		if p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// set stores the progress of the named node in the status, with its message cut to [maxMessage].
func (s *state) set(name string, p tidekeeperv1.NodeProgress) {
	if s.status.Nodes == nil {
		s.status.Nodes = map[string]tidekeeperv1.NodeProgress{}
	}
	p.Message = text.Cut(p.Message, maxMessage)
	s.status.Nodes[name] = p
}

// enter records that a node enters another phase now, for the given reason.
func (s *state) enter(p *tidekeeperv1.NodeProgress, phase tidekeeperv1.NodePhase, reason, message string) {
	p.Phase, p.Since, p.HeldSince = phase, metav1.NewTime(s.Now.Truncate(time.Second)), nil
	p.Reason, p.Message = reason, message
}

func (s *state) act(kind ActionKind, n Node) {
	s.out.Actions = append(s.out.Actions, Action{kind, n})
}

func (s *state) report(node, reason, message string, warning bool) {
	s.out.Events = append(s.out.Events, Event{Node: node, Reason: reason, Message: message, Warning: warning})
}

// drainsRun reports whether any node is being drained, is drained, or is waiting to become ready
// again.
func (s *state) drainsRun() bool {
	for _, p := range s.status.Nodes {
		if p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
			return true
		}
	}
	return false
}

// Running lists the nodes in maintenance, in no particular order.
func Running(status *tidekeeperv1.NodeMaintenanceStatus) (names []string) {
	for name, p := range status.Nodes {
		if IsRunning(p) {
			names = append(names, name)
		}
	}
	return names
}

// IsRunning reports whether a node is being drained, is drained, is waiting to become ready again,
// or has failed and is still cordoned.
func IsRunning(p tidekeeperv1.NodeProgress) bool {
	switch p.Phase {
	case tidekeeperv1.NodeDraining, tidekeeperv1.NodeDrained, tidekeeperv1.NodeReturning:
		return true
	case tidekeeperv1.NodeFailed:
		return p.Cordoned
	default:
		return false
	}
}
