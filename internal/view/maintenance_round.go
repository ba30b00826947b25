// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/maintenance/decision"
	"tidekeeper.dev/tidekeeper/internal/maintenance/forecast"
	"tidekeeper.dev/tidekeeper/internal/maintenance/selection"
	"tidekeeper.dev/tidekeeper/internal/schedule"
)

// MaintenanceFacts holds the objects from which the round of a NodeMaintenance is computed.
type MaintenanceFacts struct {
	Maintenance *tidekeeperv1.NodeMaintenance
	Nodes       []*corev1.Node
	Pools       []*tidekeeperv1.NodePool
	Freezes     []period.Period
	// Blockers returns the reason why the pods of a node prevent its drain from beginning, or nil.
	// The field is nil if pods are not evaluated.
	Blockers func(node *corev1.Node) *Status
}

// MaintenanceRound is the current round of a NodeMaintenance. If the current round has ended or no
// round has begun, it is the next round, provided that there is a schedule.
type MaintenanceRound struct {
	// Begun is true if the round of maintenance has begun. Over is true if the round has ended, and
	// the NodeMaintenance has no schedule that begins another round.
	Begun, Over bool
	// Nodes lists the nodes that belong to the round of maintenance.
	Nodes []MaintainedNode
	// Held is the reason why no drain of a node begins now, regardless of the state of the nodes.
	// It is nil if drains may begin.
	Held *Status
	// Unavailable lists the names of the nodes that count towards the limit of unavailable nodes.
	Unavailable []string
	// Input is the input for a forecast of the round of maintenance. It lacks only the duration of
	// a node's maintenance.
	Input forecast.Input
}

// RoundOf returns the current or next round of a NodeMaintenance as of now. It returns an error if
// the spec is invalid.
func RoundOf(f MaintenanceFacts, now time.Time) (r MaintenanceRound, err error) {
	m := f.Maintenance
	ticks, windows, err := selection.Times(&m.Spec)
	if err != nil {
		return r, err
	}
	selected, err := selectedNodes(f, now)
	if err != nil {
		return r, err
	}
	r.Input = forecast.Input{Now: now, Windows: windows, Freezes: f.Freezes, ZoneLimit: int(m.Spec.MaxUnavailablePerZone)}
	r.Nodes = MaintainedNodes(m)
	r.addProgress(f, selected)
	r.Input.Limit = selection.Limit(&m.Spec, len(r.Nodes)+len(r.Input.Waiting))
	r.Begun = m.Status.RoundTime != nil || ticks == nil
	if ended := r.Begun && len(r.Input.Running)+len(r.Input.Waiting) == 0; ended || !r.Begun {
		if r.Over = ended && ticks == nil; !r.Over && ticks != nil {
			r.beginNext(m, selected, ticks)
		}
	}
	if ticks != nil {
		if next, ok := ticks.Next(latestOf(now, r.Input.From)); ok {
			r.Input.Next = next
		}
	}
	r.Held = r.held(m)
	r.addWaiting(f, selected)
	return r, nil
}

// addProgress adds the nodes of the round to the input of the forecast: waiting nodes, nodes in
// maintenance, and other unavailable nodes. It also sets r.Unavailable.
func (r *MaintenanceRound) addProgress(f MaintenanceFacts, selected []selectedNode) {
	progress := f.Maintenance.Status.Nodes
	byName := map[string]selectedNode{}
	for _, node := range f.Nodes {
		byName[node.Name] = selectedNode{selection.Node{Node: node}}
	}
	for _, s := range selected {
		byName[s.Name] = s
		if _, begun := progress[s.Name]; !begun {
			r.Input.Waiting = append(r.Input.Waiting, s.forecast())
		}
	}
	for _, n := range r.Nodes {
		s, exists := byName[n.Name]
		switch {
		case n.Running():
			node := forecast.Node{Name: n.Name}
			if exists {
				node = s.forecast()
			}
			r.Input.Running = append(r.Input.Running, forecast.RunningNode{Node: node, Start: *n.Started})
		case exists && s.unavailable():
			r.Input.Others = append(r.Input.Others, s.forecast())
		default:
			continue
		}
		r.Unavailable = append(r.Unavailable, n.Name)
	}
	for _, n := range r.Input.Waiting {
		if n.Unavailable {
			r.Unavailable = append(r.Unavailable, n.Name)
		}
	}
	slices.Sort(r.Unavailable)
}

// beginNext turns r into the next round, which has not begun yet.
func (r *MaintenanceRound) beginNext(m *tidekeeperv1.NodeMaintenance, selected []selectedNode, ticks *schedule.Schedule) {
	r.Begun = false
	if next := m.Status.NextRoundTime; next != nil {
		r.Input.From = next.Time
	} else if next, ok := ticks.Next(r.Input.Now); ok {
		r.Input.From = next
	}
	r.Input.Waiting, r.Input.Running, r.Input.Others = nil, nil, nil
	for _, s := range selected {
		r.Input.Waiting = append(r.Input.Waiting, s.forecast())
	}
}

// held returns the reason why no drain begins now, regardless of the state of the nodes. It returns
// nil if drains may begin.
func (r *MaintenanceRound) held(m *tidekeeperv1.NodeMaintenance) *Status {
	now := r.Input.Now
	opens, ok := r.Input.Windows.OpensAt(now)
	switch {
	case !m.DeletionTimestamp.IsZero():
		return &Status{Reason: tidekeeperv1.ReasonDeleting, Message: "it is being deleted"}
	case m.Spec.Suspend:
		return &Status{Reason: tidekeeperv1.ReasonSuspended, Message: "it is suspended: kubectl tide maintenance resume " + m.Name}
	case countedFailures(m) >= max(1, m.Spec.FailureLimit):
		return &Status{Reason: tidekeeperv1.ReasonFailureLimit, Message: fmt.Sprintf("%s failed, the limit is %d: edit the spec once the cause is fixed", plural(int(countedFailures(m)), "node"), max(1, m.Spec.FailureLimit))}
	case !r.Begun && !r.Input.From.IsZero():
		return &Status{Reason: tidekeeperv1.ReasonScheduled, Message: "the next round begins at " + r.Input.From.UTC().Format(time.RFC3339)}
	case !ok:
		return &Status{Reason: tidekeeperv1.ReasonWindowClosed, Message: "no window is open, and none will open"}
	case opens.After(now):
		return &Status{Reason: tidekeeperv1.ReasonWindowClosed, Message: "no window is open; the next one opens at " + opens.UTC().Format(time.RFC3339)}
	}
	if frozen := period.InForce(r.Input.Freezes, now); frozen != nil {
		return &Status{Reason: tidekeeperv1.ReasonFrozen, Message: frozen.String()}
	}
	return nil
}

// addWaiting adds the nodes whose drain has not begun, each with the reason why it is waiting.
func (r *MaintenanceRound) addWaiting(f MaintenanceFacts, selected []selectedNode) {
	bySelected := map[string]selectedNode{}
	for _, s := range selected {
		bySelected[s.Name] = s
	}
	if !r.Begun {
		r.Nodes = nil
	}
	taken := slices.Concat(running(r.Input.Running), r.Input.Others)
	for _, n := range r.Input.Waiting {
		if n.Unavailable {
			taken = append(taken, n)
		}
	}
	for _, n := range r.Input.Waiting {
		why := r.Held
		if why == nil {
			why = r.waits(n, taken, f, bySelected[n.Name].Node.Node)
		}
		shown := MaintainedNode{Name: n.Name, Phase: PhaseWaiting, Message: "its drain begins next"}
		if why != nil {
			shown.Reason, shown.Message = why.Reason, why.Message
		} else if !n.Unavailable {
			taken = append(taken, n)
		}
		r.Nodes = append(r.Nodes, shown)
	}
	slices.SortStableFunc(r.Nodes, func(a, b MaintainedNode) int {
		return slices.Index(phases, a.Phase) - slices.Index(phases, b.Phase)
	})
}

// waits returns the reason why the drain of a node must wait even if other drains may begin. It
// returns nil if the drain may begin now. taken lists the unavailable nodes, and the nodes whose
// drain begins earlier.
func (r *MaintenanceRound) waits(n forecast.Node, taken []forecast.Node, f MaintenanceFacts, node *corev1.Node) *Status {
	for _, earlier := range slices.Concat(r.Input.Waiting, running(r.Input.Running)) {
		if earlier.Group < n.Group {
			return &Status{Reason: tidekeeperv1.ReasonOutOfOrder, Message: "the nodes of the pool " + f.Maintenance.Spec.Nodes.Pools[earlier.Group] + " come first"}
		}
	}
	var others, inZone []string
	for _, t := range taken {
		if t.Name == n.Name {
			continue
		}
		others = append(others, t.Name)
		if t.Zone == n.Zone && n.Zone != "" {
			inZone = append(inZone, t.Name)
		}
	}
	switch limit := r.Input.ZoneLimit; {
	case len(others) >= r.Input.Limit:
		return &Status{Reason: tidekeeperv1.ReasonMaxUnavailable, Message: limitText(others, r.Input.Limit, "")}
	case limit > 0 && len(inZone) >= limit:
		return &Status{Reason: tidekeeperv1.ReasonMaxUnavailable, Message: limitText(inZone, limit, " in the zone "+n.Zone)}
	case f.Blockers != nil && node != nil:
		return f.Blockers(node)
	}
	return nil
}

// mostUnavailable is the maximum number of unavailable nodes that a message names.
const mostUnavailable = 3

// limitText names the nodes that use up a limit of unavailable nodes.
func limitText(names []string, limit int, where string) string {
	more := ""
	if n := len(names) - mostUnavailable; n > 0 {
		names, more = names[:mostUnavailable], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("at most %s may be unavailable%s: %s%s", plural(limit, "node"), where, strings.Join(names, ", "), more)
}

func running(list []forecast.RunningNode) []forecast.Node {
	plain := make([]forecast.Node, len(list))
	for i := range list {
		plain[i] = list[i].Node
	}
	return plain
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// selectedNode is a node that a NodeMaintenance selects.
type selectedNode struct{ selection.Node }

func (s selectedNode) unavailable() bool {
	return decision.IsUnavailable(decision.NodeOf(s.Node.Node, 0))
}

func (s selectedNode) forecast() forecast.Node {
	return forecast.Node{Name: s.Name, Zone: s.Labels[corev1.LabelTopologyZone], Group: s.Group, Unavailable: s.unavailable()}
}

// selectedNodes returns the nodes that a NodeMaintenance selects now, in the order in which they
// will be maintained.
func selectedNodes(f MaintenanceFacts, now time.Time) ([]selectedNode, error) {
	list, err := selection.Nodes(&f.Maintenance.Spec.Nodes, f.Nodes, f.Pools, now)
	selected := make([]selectedNode, len(list))
	for i := range list {
		selected[i] = selectedNode{list[i]}
	}
	return selected, err
}
