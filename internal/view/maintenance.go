// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// Maintenance summarizes a NodeMaintenance.
type Maintenance struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	// Known is true if a manager has observed the NodeMaintenance. Otherwise, the numbers of nodes
	// are unknown.
	Known bool `json:"known"`
	// Nodes is the number of nodes in the current or last round. Of these nodes, Done are back in
	// use, Running are being maintained, and Failed have failed.
	Nodes   int32 `json:"nodes"`
	Done    int32 `json:"done"`
	Running int32 `json:"running"`
	Failed  int32 `json:"failed"`
	// Until is the event that ends the maintenance of a drained node.
	Until string `json:"until"`
	// Round is the time that identifies the current or last round, or nil if no round has begun.
	// NextRound is the time at which the schedule begins the next round, or nil if there is none.
	Round     *time.Time `json:"round,omitempty"`
	NextRound *time.Time `json:"nextRound,omitempty"`
	Created   time.Time  `json:"created"`
}

// MaintenanceOf returns a NodeMaintenance's summary as of now.
func MaintenanceOf(m *tidekeeperv1.NodeMaintenance, now time.Time) Maintenance {
	s := &m.Status
	return Maintenance{
		Name: m.Name, Status: maintenanceStatus(m, now), Known: s.ObservedGeneration > 0,
		Nodes: s.Selected, Done: s.Done, Running: s.Running, Failed: s.Failed, Until: string(m.Spec.Until),
		Round: timeOf(s.RoundTime), NextRound: timeOf(s.NextRoundTime), Created: m.CreationTimestamp.Time,
	}
}

// maintenanceStatus returns the status from the conditions of a NodeMaintenance. A NodeMaintenance
// with a deletion timestamp is shown as being deleted, even if no manager is running to update the
// conditions.
func maintenanceStatus(m *tidekeeperv1.NodeMaintenance, now time.Time) Status {
	ready := meta.FindStatusCondition(m.Status.Conditions, tidekeeperv1.ConditionReady)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return deletingStatus(m, ready, now)
	case ready == nil:
		return notReconciled
	}
	s := Status{Reason: ready.Reason, Message: ready.Message}
	switch {
	case ready.Status != metav1.ConditionTrue, meta.IsStatusConditionTrue(m.Status.Conditions, tidekeeperv1.ConditionStalled):
		s.Severity = Bad
	case m.Status.Failed > 0:
		s.Severity = Warning
	}
	return s
}

// PhaseWaiting is the phase to show for a node whose drain has not begun in the round of
// maintenance.
const PhaseWaiting tidekeeperv1.NodePhase = "Waiting"

// MaintainedNode is a node of a maintenance round, with its phase.
type MaintainedNode struct {
	Name  string                 `json:"name"`
	Phase tidekeeperv1.NodePhase `json:"phase"`
	// Since is the time at which the node's phase began, and Started is the time at which the drain
	// of the node began. Both are nil if the drain has not begun.
	Since   *time.Time `json:"since,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	// Reason and Message explain why the node is waiting or has failed. Advice tells the user what
	// to do, or is empty if the user need not do anything.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Advice  string `json:"advice,omitempty"`
}

// phases lists the phases of a node's maintenance in display order. Phases that need attention come
// first.
var phases = []tidekeeperv1.NodePhase{
	tidekeeperv1.NodeFailed, tidekeeperv1.NodeReturning, tidekeeperv1.NodeDrained, tidekeeperv1.NodeDraining, PhaseWaiting,
	tidekeeperv1.NodeReleased, tidekeeperv1.NodeDone,
}

// Severity returns how urgently the node in maintenance needs attention.
func (n *MaintainedNode) Severity() Severity {
	switch n.Phase {
	case tidekeeperv1.NodeFailed:
		return Bad
	case tidekeeperv1.NodeReleased:
		return Warning
	case tidekeeperv1.NodeDone:
		return Good
	default:
		return Neutral
	}
}

// Running reports whether the node is being maintained.
func (n *MaintainedNode) Running() bool {
	return n.Phase == tidekeeperv1.NodeDraining || n.Phase == tidekeeperv1.NodeDrained || n.Phase == tidekeeperv1.NodeReturning
}

// MaintainedNodes returns the nodes whose drain has begun in the current or last round. Nodes that
// need attention come first. Nodes in the same phase are sorted by their time in the phase, longest
// first.
func MaintainedNodes(m *tidekeeperv1.NodeMaintenance) []MaintainedNode {
	nodes := []MaintainedNode{}
	for name, p := range m.Status.Nodes {
		nodes = append(nodes, MaintainedNode{
			Name: name, Phase: p.Phase, Since: &p.Since.Time, Started: &p.StartTime.Time, Reason: p.Reason, Message: p.Message,
			Advice: adviceOn(name, p, m),
		})
	}
	sortMaintained(nodes)
	return nodes
}

func sortMaintained(nodes []MaintainedNode) {
	slices.SortFunc(nodes, func(a, b MaintainedNode) int {
		if d := cmp.Compare(slices.Index(phases, a.Phase), slices.Index(phases, b.Phase)); d != 0 {
			return d
		}
		if a.Since != nil && b.Since != nil && !a.Since.Equal(*b.Since) {
			return a.Since.Compare(*b.Since)
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

// adviceOn returns advice for the user about a node whose drain has begun, or "" if the user need
// not do anything.
func adviceOn(node string, p tidekeeperv1.NodeProgress, m *tidekeeperv1.NodeMaintenance) string {
	done := "kubectl tide maintenance done " + node
	switch p.Phase {
	case tidekeeperv1.NodeDraining:
		if p.Reason != "" {
			return "see kubectl tide pools blockers --node " + node
		}
	case tidekeeperv1.NodeDrained:
		switch m.Spec.Until {
		case tidekeeperv1.UntilRebooted:
			return "reboot the machine, or: " + done
		case tidekeeperv1.UntilUpgraded:
			return "upgrade its kubelet, or: " + done
		case tidekeeperv1.UntilReplaced:
			return "replace the machine and delete the Node, or: " + done
		case tidekeeperv1.UntilDrained:
		default:
			return "once its maintenance is over: " + done
		}
	case tidekeeperv1.NodeReturning:
		return "if it does not get ready: kubectl describe node " + node
	case tidekeeperv1.NodeFailed:
		if countedFailures(m) >= max(1, m.Spec.FailureLimit) {
			return "fix the cause, then edit the spec: until then, no further drain begins"
		}
	}
	return ""
}

// countedFailures returns the number of failed nodes that count towards the failure limit. Failures
// before the last edit of the spec do not count.
func countedFailures(m *tidekeeperv1.NodeMaintenance) int32 {
	return m.Status.Failed - m.Status.ToleratedFailures
}
