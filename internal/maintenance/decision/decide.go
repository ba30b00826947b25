// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/maintenance/selection"
	"tidekeeper.dev/tidekeeper/internal/schedule"
	"tidekeeper.dev/tidekeeper/internal/text"
)

// maxMessage is the maximum length of a node's message in the status, in bytes.
const maxMessage = 256

// decider makes a decision.
type decider struct {
	Input
	spec    *tidekeeperv1.NodeMaintenanceSpec
	status  *tidekeeperv1.NodeMaintenanceStatus
	out     *Output
	ticks   *schedule.Schedule
	windows schedule.Windows
	// waits is the reason why no further drain begins; nil if there is none.
	waits *waiting
}

// waiting is a reason why no further drain begins.
type waiting struct {
	reason, message string
}

// Decide returns the decision about a NodeMaintenance that is not being deleted.
func Decide(in Input) Output {
	out := Output{Status: *in.Maintenance.Status.DeepCopy()}
	d := &decider{Input: in, spec: &in.Maintenance.Spec, status: &out.Status, out: &out}
	ticks, windows, err := selection.Times(d.spec)
	d.ticks, d.windows = ticks, windows
	all := d.Selected
	d.leaveOutNewNodes()
	if err == nil && d.beginRound() {
		d.Selected = all
		d.leaveOutNewNodes()
	}
	d.observe()
	for _, name := range slices.Sorted(maps.Keys(d.status.Nodes)) {
		(&phases{d}).advance(name)
	}
	d.sweep()
	if err == nil {
		(&starter{d}).start()
	}
	d.count()
	(&conditions{d}).set(err)
	return out
}

// observe records the generation of the spec. After an edit, earlier failures no longer count.
func (d *decider) observe() {
	if d.status.ObservedGeneration != d.Maintenance.Generation {
		d.status.ToleratedFailures = d.failures()
	}
	d.status.ObservedGeneration = d.Maintenance.Generation
}

// leaveOutNewNodes removes nodes that were created after the round began from the selection.
// Otherwise a NodeMaintenance whose only round ended long ago would drain each new node of a pool.
// Nodes that are selected because they are outdated remain selected.
func (d *decider) leaveOutNewNodes() {
	if d.spec.Nodes.Outdated != nil || d.status.RoundTime == nil {
		return
	}
	d.Selected = slices.DeleteFunc(slices.Clone(d.Selected), func(name string) bool {
		_, begun := d.status.Nodes[name]
		return !begun && d.Nodes[name].Created.After(d.status.RoundTime.Time)
	})
}

// sweep removes the annotations and labels of this NodeMaintenance from nodes that it no longer
// maintains. They remain if a manager is killed between writing the status and patching a node.
func (d *decider) sweep() {
	for _, name := range slices.Sorted(maps.Keys(d.Nodes)) {
		n := d.Nodes[name]
		p, begun := d.status.Nodes[name]
		switch {
		case n.CordonedFor != string(d.Maintenance.UID) || begun && IsRunning(p) && p.UID == n.UID:
		case begun && p.Phase == tidekeeperv1.NodeReleased:
			d.act(Clean, n)
		default:
			d.act(Uncordon, n)
		}
	}
}

// failures returns the number of nodes of the round that have failed.
func (d *decider) failures() (count int32) {
	for _, p := range d.status.Nodes {
		if p.Phase == tidekeeperv1.NodeFailed {
			count++
		}
	}
	return count
}

// count sets the numbers of nodes by phase in the status.
func (d *decider) count() {
	s := d.status
	s.Done, s.Running, s.Failed, s.Selected = 0, 0, 0, int32(len(s.Nodes))
	for _, p := range s.Nodes {
		switch p.Phase {
		case tidekeeperv1.NodeDone, tidekeeperv1.NodeReleased:
			s.Done++
		case tidekeeperv1.NodeFailed:
			s.Failed++
		default:
			s.Running++
		}
	}
	for _, name := range d.Selected {
		if _, known := s.Nodes[name]; !known {
			s.Selected++
		}
	}
}

// left lists the selected nodes whose drain has not begun in this round.
func (d *decider) left() (names []string) {
	for _, name := range d.Selected {
		if _, begun := d.status.Nodes[name]; !begun {
			names = append(names, name)
		}
	}
	return names
}

// wake sets the time of the next decision, unless it is already set to an earlier time.
func (d *decider) wake(at time.Time) {
	if !at.IsZero() && (d.out.Wake.IsZero() || at.Before(d.out.Wake)) {
		d.out.Wake = at
	}
}

// running lists the nodes that are being maintained.
func (d *decider) running() (names []string) {
	for name, p := range d.status.Nodes {
		if p.Phase != tidekeeperv1.NodeFailed && IsRunning(p) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
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

// set writes the progress of a node.
func (d *decider) set(name string, p tidekeeperv1.NodeProgress) {
	if d.status.Nodes == nil {
		d.status.Nodes = map[string]tidekeeperv1.NodeProgress{}
	}
	p.Message = text.Cut(p.Message, maxMessage)
	d.status.Nodes[name] = p
}

// enter moves a node to another phase.
func (d *decider) enter(p *tidekeeperv1.NodeProgress, phase tidekeeperv1.NodePhase, reason, message string) {
	p.Phase, p.Since, p.HeldSince = phase, metav1.NewTime(d.Now.Truncate(time.Second)), nil
	p.Reason, p.Message = reason, message
}

func (d *decider) act(kind ActionKind, n Node) {
	d.out.Actions = append(d.out.Actions, Action{kind, n.Name, n.UID})
}

func (d *decider) report(node, reason, message string, warning bool) {
	d.out.Events = append(d.out.Events, Event{Node: node, Reason: reason, Message: message, Warning: warning})
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
